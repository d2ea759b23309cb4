"""Files are watched with real events, and without; URLs and failures go by a schedule."""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from capdex_engine.encode.testing import HashEncoder
from capdex_server import watch as module
from capdex_server.config import ReloadConfig, SourceConfig
from capdex_server.live import Live
from capdex_server.outbound import Outbound
from capdex_server.pieces import FetchFailed, Piece
from capdex_server.watch import Keeper, keep_current

pytestmark = pytest.mark.anyio


def api(*ids: str) -> str:
    paths = {f"/{one}": {"get": {"operationId": one, "responses": {}}} for one in ids}
    return json.dumps({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths})


class Told(Live):
    """Says when a reload has ended."""

    ended = None
    reloads = 0

    async def reload(self, only=None, *, raising=False):
        result = await super().reload(only, raising=raising)
        self.reloads += 1
        if self.ended is not None:
            self.ended.set()
        return result

    async def until(self, *ids: str, problems: int = 0) -> None:
        """Return once these are the operations and there are so many problems."""
        with anyio.fail_after(60):
            while True:
                self.ended = anyio.Event()
                names = [one.name for one in self.current.catalog.operations] if self.ready else []
                if names == sorted(ids) and len(self.problems) == problems:
                    return
                await self.ended.wait()


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    monkeypatch.setattr(module, "SETTLE", 0.02)


async def no_events(folders, recursive, tell):
    raise OSError("no space left for watches")


async def silent_events(folders, recursive, tell):
    await anyio.sleep_forever()


@pytest.fixture
def keeping(make_settings, upstream):
    @asynccontextmanager
    async def keeping(sources, *, outbound=None, refresh="off", **world):
        sources = {name: SourceConfig(location=str(where)) for name, where in sources.items()}
        settings = make_settings(sources=sources, reload=ReloadConfig(refresh=refresh))
        parts = {"outbound": outbound or Outbound({}), "transport": upstream, "encoder": HashEncoder}
        live = Told.from_settings(settings, environ={}, **parts)
        async with anyio.create_task_group() as tasks:
            if world:
                await live.reload()
                tasks.start_soon(Keeper(live, live.build, settings, **world).run)
            else:
                tasks.start_soon(keep_current, live, settings)
            yield live
            tasks.cancel_scope.cancel()

    return keeping


def replace(path: Path, text: str) -> None:
    """Save as editors do: a new file takes the place of the old."""
    beside = path.with_name(f".{path.name}.swp")
    beside.write_text(text)
    os.replace(beside, path)


@pytest.fixture(params=["events", "no events"])
def world(request, monkeypatch):
    """The operating system's events, or none and looks instead."""
    if request.param == "events":
        return {}
    monkeypatch.setattr(module, "LOOK_WITHOUT_EVENTS", 0.02)
    return {"events": no_events}


async def test_a_file_is_watched_through_edits_replacement_and_absence(keeping, tmp_path, world):
    path = tmp_path / "a.json"
    path.write_text(api("one"))
    async with keeping({"a": path}, **world) as live:
        await live.until("one")
        path.write_text(api("two"))
        await live.until("two")
        replace(path, api("three"))
        await live.until("three")
        path.unlink()
        await live.until("three", problems=1)
        path.write_text("{ not json")
        path.write_text(api("four"))
        await live.until("four")


async def test_a_folder_and_its_new_subfolders_are_watched(keeping, tmp_path, world):
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "a.json").write_text(api("one"))
    async with keeping({"team": folder}, **world) as live:
        await live.until("one")
        (folder / "sub").mkdir()
        (folder / "sub" / "b.json").write_text(api("two"))
        await live.until("one", "two")
        (folder / "a.json").unlink()
        await live.until("two")


async def test_referenced_files_are_watched_where_they_are(keeping, tmp_path, world):
    (tmp_path / "parts").mkdir()
    document = json.loads(api())
    document["paths"] = {"/x": {"$ref": "parts/x.json"}}
    (tmp_path / "a.json").write_text(json.dumps(document))
    part = tmp_path / "parts" / "x.json"
    async with keeping({"a": tmp_path / "a.json"}, **world) as live:
        await live.until()
        for name in ("one", "two"):
            replace(part, json.dumps({"get": {"operationId": name, "responses": {}}}))
            await live.until(name)


async def test_a_link_that_is_swapped_is_a_change(keeping, tmp_path, world):
    """As Kubernetes mounts configuration."""
    for version, name in (("v1", "one"), ("v2", "two")):
        (tmp_path / version).mkdir()
        (tmp_path / version / "a.json").write_text(api(name))
    mount = tmp_path / "mount"
    mount.mkdir()
    (mount / "..data").symlink_to(tmp_path / "v1")
    (mount / "a.json").symlink_to("..data/a.json")
    async with keeping({"a": mount / "a.json"}, **world) as live:
        await live.until("one")
        (mount / "..new").symlink_to(tmp_path / "v2")
        os.replace(mount / "..new", mount / "..data")
        await live.until("two")


async def test_a_log_in_the_same_folder_does_not_hold_a_change_up(keeping, tmp_path, monkeypatch):
    slept: list[float] = []

    async def sleep(seconds):
        if seconds != module.SETTLE:
            await anyio.sleep_forever()
        slept.append(seconds)
        tells[0]({tmp_path / "log"})

    tells: list = []

    async def events(folders, recursive, tell):
        tells.append(tell)
        path.write_text(api("two"))
        tell({path})
        await anyio.sleep_forever()

    path = tmp_path / "a.json"
    path.write_text(api("one"))
    (tmp_path / "log").write_text("")
    async with keeping({"a": path}, events=events, sleep=sleep) as live:
        await live.until("two")
    # At each rest the log has just been written to; waiting for it would take all rests there are.
    assert len(slept) < module.MAX_SETTLES / 2


async def test_what_nobody_tells_of_is_seen_at_the_next_look(keeping, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LOOK", 0.02)
    path = tmp_path / "a.json"
    path.write_text(api("one"))
    async with keeping({"a": path}, events=silent_events) as live:
        await live.until("one")
        path.write_text(api("two"))
        await live.until("two")


class Time:
    """A clock that moves when everything waits for it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await anyio.lowlevel.checkpoint()
        self.now += seconds


class Page(Outbound):
    def __init__(self) -> None:
        super().__init__({})
        self.answers: list[object] = []
        self.asked = 0
        self.enough = anyio.Event()

    async def fetch(self, url, *, source, since=None, limits=None):
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if len(self.answers) == 1 and self.asked > 6:
            self.enough.set()
            await anyio.sleep_forever()
        if isinstance(answer, Exception):
            raise answer
        return Piece(answer.encode())


async def test_a_url_is_polled_and_a_server_that_fails_is_asked_less_and_less(keeping):
    time = Time()
    web = Page()
    busy = FetchFailed("busy", location="https://a.example", retry_after=1000.0)
    down = FetchFailed("down", location="https://a.example")
    web.answers = [api("one"), api("two"), down, down, busy, api("three")]
    url = "https://a.example/a.json"
    world = {"clock": lambda: time.now, "sleep": time.sleep, "chance": lambda: 0.5}
    async with keeping({"a": url}, outbound=web, refresh="5m", **world) as live:
        with anyio.fail_after(60):
            await web.enough.wait()
        assert [one.name for one in live.current.catalog.operations] == ["three"]
    assert time.slept[:6] == [300.0, 300.0, 2.0, 4.0, 1000.0, 300.0]


async def test_a_url_that_is_not_polled_is_left_alone(keeping):
    time = Time()
    web = Page()
    web.answers = [api("one")]
    world = {"clock": lambda: time.now, "sleep": time.sleep}
    async with keeping({"a": "https://a.example/a.json"}, outbound=web, **world) as live:
        await anyio.wait_all_tasks_blocked()
        assert live.reloads == 1 and web.asked == 1 and not time.slept


class Gate:
    """Gives a document at each URL once its gate is open."""

    def __init__(self, *urls: str) -> None:
        self.open = {url: anyio.Event() for url in urls}
        self.asked: list[str] = []

    async def fetch(self, url, **_):
        self.asked.append(url)
        await self.open[url].wait()
        return Piece(api(url.rpartition("/")[2]).encode())

    async def aclose(self):
        return None


SLOW, QUICK = "http://one.example/slow", "http://one.example/quick"


async def test_a_slow_url_delays_only_itself(keeping, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0)
    path, gate = tmp_path / "a.json", Gate(SLOW)
    path.write_text(api("one"))
    async with keeping({"a": path, "b": SLOW}, outbound=gate) as live:
        await live.until("one", problems=1)
        path.write_text(api("two"))
        await live.until("two", problems=1)
        gate.open[SLOW].set()
        await live.until("slow", "two")
        assert gate.asked == [SLOW]


async def test_the_first_of_several_urls_is_served_at_once(keeping, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0)
    gate = Gate(SLOW, QUICK)
    async with keeping({"a": QUICK, "b": SLOW}, outbound=gate) as live:
        gate.open[QUICK].set()
        await live.until("quick", problems=1)
        gate.open[SLOW].set()
        await live.until("quick", "slow")


async def test_a_poll_that_hangs_holds_no_other_poll_up(keeping):
    time, gate = Time(), Gate(SLOW, QUICK)
    for event in gate.open.values():
        event.set()
    world = {"clock": lambda: time.now, "sleep": time.sleep, "chance": lambda: 0.5}
    async with keeping({"a": QUICK, "b": SLOW}, outbound=gate, refresh="1s", **world) as live:
        await live.until("quick", "slow")
        gate.open[SLOW] = anyio.Event()
        gate.asked.clear()
        with anyio.fail_after(30):
            while gate.asked.count(QUICK) < 5:
                live.ended = anyio.Event()
                await live.ended.wait()
        assert gate.asked.count(SLOW) <= 1
