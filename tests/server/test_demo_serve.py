import logging
import signal
import threading
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.applications import Starlette

from capdex_server.demo import create_demo_app, demo_document, run_in_thread


def test_the_app_answers_within_the_block_and_no_longer_after() -> None:
    with run_in_thread(create_demo_app(api_key="k")) as url:
        assert url.startswith("http://127.0.0.1:")
        assert httpx2.get(f"{url}/status").json()["status"] == "ok"
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{url}/status")


def test_two_apps_run_side_by_side_and_leave_no_thread() -> None:
    before = threading.active_count()
    app = create_demo_app(api_key="k")
    with run_in_thread(app) as one, run_in_thread(app) as two:
        assert one != two
        assert httpx2.get(f"{two}/workers", headers={"X-Workforce-Key": "k"}).status_code == 200
    assert threading.active_count() == before


def test_signal_handlers_and_logging_stay_as_they_were() -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    logged = logging.getLogger("uvicorn").handlers
    with run_in_thread(create_demo_app(api_key="k")):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
        assert logging.getLogger("uvicorn").handlers == logged


def test_an_app_that_fails_to_start_is_an_error_of_the_caller() -> None:
    @asynccontextmanager
    async def fail(app: Starlette):
        raise OSError("no")
        yield

    with pytest.raises(RuntimeError), run_in_thread(Starlette(lifespan=fail)):
        pass


def test_an_error_in_the_block_stops_the_server_and_passes_through() -> None:
    before = threading.active_count()
    with pytest.raises(KeyError), run_in_thread(create_demo_app(api_key="k")):
        raise KeyError
    assert threading.active_count() == before


def test_the_document_is_packaged_and_leaves_the_server_to_be_replaced() -> None:
    assert b"\n  - url: /\n" in demo_document()
