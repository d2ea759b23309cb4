from __future__ import annotations

import anyio
import pytest

from capdex_server.middleware import WholeRequest
from capdex_server.shedding import Shedding

pytestmark = pytest.mark.anyio
DONE = {"type": "http.request", "body": b"{}", "more_body": False}
PART = {"type": "http.request", "body": b"{", "more_body": True}


class Held:
    """An application that reads its request and answers when it is let."""

    def __init__(self) -> None:
        self.entered = 0
        self.let = anyio.Event()

    async def __call__(self, scope, receive, send) -> None:
        await receive()
        self.entered += 1
        await self.let.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class Exchange:
    """One request; ``status`` and ``headers`` are the answer's."""

    def __init__(self, app, path: str = "/search") -> None:
        self.app, self.scope = app, {"type": "http", "path": path, "method": "POST", "headers": []}
        self.status, self.headers = None, {}
        self.put, self.messages = anyio.create_memory_object_stream(10)

    async def send(self, message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}

    async def run(self, *messages) -> None:
        for message in messages:
            self.put.send_nowait(message)
        with self.put, self.messages:
            await self.app(self.scope, self.messages.receive, self.send)


@pytest.fixture
def held() -> Held:
    return Held()


def whole(app, most: int):
    return Shedding(WholeRequest(app, max_bytes=1000), most)


async def test_what_is_beyond_the_limit_is_answered_503_without_reading_its_body(held):
    app = whole(held, 2)
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(Exchange(app).run, DONE)
        await anyio.wait_all_tasks_blocked()
        third = Exchange(app)
        await third.run()  # nothing of its body ever comes
        assert (third.status, third.headers["retry-after"]) == (503, "1")
        held.let.set()
    assert held.entered == 2


async def test_then_requests_are_answered_again(held):
    app = whole(held, 1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Exchange(app).run, DONE)
        await anyio.wait_all_tasks_blocked()
        await Exchange(app).run()
        held.let.set()
    for _ in range(3):
        after = Exchange(app)
        await after.run(DONE)
        assert after.status == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_what_tells_how_the_server_is_doing_is_never_shed(held, path):
    app = whole(held, 1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Exchange(app).run, DONE)
        await anyio.wait_all_tasks_blocked()
        probe = Exchange(app, path)
        tasks.start_soon(probe.run, DONE)
        await anyio.wait_all_tasks_blocked()
        assert held.entered == 2
        held.let.set()
    assert probe.status == 200


async def test_clients_that_send_slowly_keep_nobody_out_and_the_limit_holds_when_they_have_sent(held):
    app = whole(held, 1)
    slow = Exchange(app)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(slow.run, PART)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(Exchange(app).run, DONE)
        await anyio.wait_all_tasks_blocked()
        assert held.entered == 1
        slow.put.send_nowait({**DONE, "body": b"}"})
        await anyio.wait_all_tasks_blocked()
        assert slow.status == 503
        held.let.set()
    assert held.entered == 1


async def test_a_place_is_free_again_after_a_request_that_failed():
    async def failing(scope, receive, send) -> None:
        await receive()
        raise ValueError("failed")

    app = whole(failing, 1)
    for _ in range(3):
        with pytest.raises(ValueError, match="failed"):
            await Exchange(app).run(DONE)


async def test_a_place_is_free_again_after_a_client_that_went_away(held):
    app = whole(held, 1)
    for _ in range(3):
        gone = Exchange(app)
        await gone.run(DONE, {"type": "http.disconnect"})
        assert gone.status is None
    assert held.entered == 3


async def test_foreign_scopes_pass():
    seen = []

    async def lifespan(scope, receive, send) -> None:
        seen.append(scope["type"])

    await Shedding(lifespan, 1)({"type": "lifespan"}, None, None)
    assert seen == ["lifespan"]
