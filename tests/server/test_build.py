"""One snapshot after another: what is read, parsed and encoded again, and what stays."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path

import anyio
import pytest

from capdex_engine.catalog import document as engine_document
from capdex_engine.encode.testing import HashEncoder
from capdex_engine.errors import ModelError
from capdex_server.build import STAYS, Builder
from capdex_server.config import SourceConfig
from capdex_server.live import Live, changes_between
from capdex_server.outbound import Outbound
from capdex_server.pieces import FetchFailed, Piece

pytestmark = pytest.mark.anyio


def api(*ids: str, **fields) -> dict:
    """A document with one operation per id; its summary is the id."""
    paths = {f"/{one}": {"get": {"operationId": one, "summary": one, "responses": {}}} for one in ids}
    info = {"title": "t", "version": "1"}
    return {
        "openapi": "3.1.0",
        "info": info,
        "servers": [{"url": "https://x.example"}],
        "paths": paths,
    } | fields


def write(path: Path, document: object) -> None:
    path.write_text(document if isinstance(document, str) else json.dumps(document))


def names(live: Live) -> list[str]:
    return [operation.name for operation in live.current.catalog.operations]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "specs"
    folder.mkdir()
    write(folder / "a.json", api("one", "two"))
    write(folder / "b.json", api("three"))
    return folder


@pytest.fixture
def two(folder, make_settings, make_live):
    """A live catalog over two files."""
    sources = {name: SourceConfig(location=str(folder / f"{name}.json")) for name in "ab"}
    return make_live(make_settings(sources=sources))


@pytest.fixture
def whole(folder, make_settings, make_live):
    """A live catalog over one folder."""
    return make_live(make_settings(sources={"team": SourceConfig(location=str(folder))}))


@pytest.fixture
def parsed(monkeypatch):
    """The locations of the documents that are parsed."""
    seen: list[str] = []
    parse = engine_document.parse_document

    def counting(data, *, location=""):
        seen.append(Path(location).name)
        return parse(data, location=location)

    monkeypatch.setattr(engine_document, "parse_document", counting)
    return seen


async def test_only_changed_documents_are_parsed_again(two, folder, parsed):
    await two.reload()
    assert sorted(parsed) == ["a.json", "b.json"]
    write(folder / "b.json", api("three", "four"))
    assert await two.reload()
    assert parsed[2:] == ["b.json"] and "four" in names(two)


async def test_only_changed_operations_are_encoded_again(folder, make_settings, make_live):
    encoded: list[str] = []
    loaded: list[object] = []

    class Counting(HashEncoder):
        def __init__(self):
            super().__init__()
            loaded.append(self)

        def encode(self, texts):
            encoded.extend(texts)
            return super().encode(texts)

    sources = {name: SourceConfig(location=str(folder / f"{name}.json")) for name in "ab"}
    live = make_live(make_settings(sources=sources), encoder=Counting)
    await live.reload()
    assert len(encoded) == 3
    document = api("one", "two", "new")
    document["paths"]["/two"]["get"]["summary"] = "reworded"
    write(folder / "a.json", document)
    await live.reload()
    assert len(encoded) == 5 and all("new" in text or "reworded" in text for text in encoded[3:])
    assert len(loaded) == 1


async def test_when_nothing_has_changed_nothing_is_built_and_nothing_swapped(two, folder, parsed):
    await two.reload()
    before = two.current
    (folder / "a.json").touch()
    assert not await two.reload()
    assert two.current is before and len(parsed) == 2
    assert not two.build.changed()


async def test_of_other_sources_nothing_is_read_again(two, folder):
    await two.reload()
    write(folder / "a.json", api("uno"))
    write(folder / "b.json", api("tres"))
    assert set(two.build.changed()) == {"a", "b"}
    await two.reload({"a"})
    assert names(two) == ["three", "uno"]
    await two.reload({"b"})
    assert names(two) == ["tres", "uno"]


async def test_a_good_change_is_served_while_another_source_fails(two, folder):
    await two.reload()
    write(folder / "a.json", "{ not json")
    write(folder / "b.json", api("four"))
    assert await two.reload()
    assert names(two) == ["four", "one", "two"]
    assert two.problems["a"].endswith(STAYS) and set(two.problems) == {"a"}
    (folder / "a.json").unlink()
    await two.reload()
    assert names(two) == ["four", "one", "two"] and "cannot be read" in two.problems["a"]
    write(folder / "a.json", api("five"))
    await two.reload()
    assert names(two) == ["five", "four"] and not two.problems


async def test_one_document_of_a_folder_that_fails_stays_and_the_others_change(whole, folder):
    await whole.reload()
    for broken in ("{ not json, but openapi: 3", ""):
        write(folder / "a.json", broken)
        write(folder / "b.json", api("four" if broken else "five"))
        await whole.reload()
        assert names(whole) == sorted(["four" if broken else "five", "one", "two"])
        assert len(whole.problems) == 1
    (folder / "a.json").unlink()
    await whole.reload()
    assert names(whole) == ["five"] and not whole.problems


async def test_new_documents_of_a_folder_come_in_and_hidden_ones_do_not(whole, folder):
    await whole.reload()
    write(folder / "c.json", api("four"))
    (folder / "..data").mkdir()
    write(folder / "..data" / "d.json", api("five"))
    assert set(whole.build.changed()) == {"team"}
    await whole.reload()
    assert names(whole) == ["four", "one", "three", "two"]


async def test_a_link_out_of_a_folder_is_told_and_costs_no_other_document(whole, folder, tmp_path):
    write(tmp_path / "outside.json", api("secret"))
    (folder / "out.json").symlink_to(tmp_path / "outside.json")
    await whole.reload()
    assert names(whole) == ["one", "three", "two"]
    assert "reference_roots" in whole.problems["team.out.json"]


async def test_a_folder_that_goes_away_and_comes_back(whole, folder):
    await whole.reload()
    away = folder.rename(folder.with_name("away"))
    assert set(whole.build.changed()) == {"team"}
    await whole.reload()
    assert names(whole) == ["one", "three", "two"] and "team" in whole.problems
    away.rename(folder)
    assert set(whole.build.changed()) == {"team"}
    await whole.reload()
    assert not whole.problems


REFERRING = api(paths={"/one": {"$ref": "part.json#/one"}})
PART = {"one": {"get": {"operationId": "one", "summary": "one", "responses": {}}}}


@pytest.fixture
def referring(folder, make_settings, make_live):
    write(folder / "a.json", REFERRING)
    write(folder / "part.json", PART)
    return make_live(make_settings(sources={"a": SourceConfig(location=str(folder / "a.json"))}))


async def test_a_referenced_file_counts_as_the_document(referring, folder):
    await referring.reload()
    assert folder / "part.json" in referring.build.files()
    write(folder / "part.json", {"one": {"get": {"operationId": "uno", "responses": {}}}})
    assert set(referring.build.changed()) == {"a"}
    assert await referring.reload({"a"})
    assert names(referring) == ["uno"]


async def test_a_referenced_file_that_goes_away_leaves_the_source_as_it_was(referring, folder):
    await referring.reload()
    (folder / "part.json").unlink()
    assert set(referring.build.changed()) == {"a"}
    await referring.reload()
    assert names(referring) == ["one"] and "any more" in referring.problems["a"]
    write(folder / "part.json", PART)
    assert set(referring.build.changed()) == {"a"}
    await referring.reload()
    assert names(referring) == ["one"] and not referring.problems


async def test_a_referenced_file_that_was_missing_comes_in_when_it_is_there(referring, folder):
    (folder / "part.json").unlink()
    await referring.reload()
    assert names(referring) == []
    write(folder / "part.json", PART)
    assert set(referring.build.changed()) == {"a"}
    await referring.reload()
    assert names(referring) == ["one"]


class Pages(Outbound):
    """URLs in memory with ETags; counts whole answers."""

    def __init__(self, pages):
        super().__init__({})
        self.pages, self.whole, self.asked = pages, 0, 0

    async def fetch(self, url, *, source, since=None, limits=None):
        self.asked += 1
        data = self.pages.get(url)
        if data is None:
            raise FetchFailed("The server answered 503.", location=url, retry_after=77.0)
        if since is not None and since.etag == str(hash(data)):
            return since
        self.whole += 1
        return Piece(data, None, str(hash(data)))


async def test_urls_and_what_they_refer_to_are_asked_with_their_etags(make_settings, make_live):
    base = "https://a.example"
    pages = {f"{base}/a.json": json.dumps(REFERRING).encode(), f"{base}/part.json": json.dumps(PART).encode()}
    web = Pages(pages)
    live = make_live(make_settings(sources={"a": SourceConfig(location=f"{base}/a.json")}), outbound=web)
    await live.reload()
    before = live.current
    assert not await live.reload({"a"})
    assert (web.asked, web.whole) == (4, 2) and live.current is before
    part = pages.pop(f"{base}/part.json")
    await live.reload({"a"})
    assert names(live) == ["one"] and live.build.failing() == {"a": 77.0}
    pages[f"{base}/part.json"] = part.replace(b'"one", "summary"', b'"uno", "summary"')
    assert await live.reload({"a"})
    assert names(live) == ["uno"] and live.build.failing() == {}


async def test_many_triggers_during_a_build_lead_to_one_further_build(two):
    builds: list[object] = []
    started, go = anyio.Event(), anyio.Event()
    build = two.build

    async def slow(only):
        builds.append(only)
        started.set()
        await go.wait()
        return await build(only)

    two.build = slow
    await build()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(two.reload)
        await started.wait()
        for name in "abababab":
            tasks.start_soon(two.reload, {name})
        await anyio.wait_all_tasks_blocked()
        go.set()
    assert len(builds) == 2


async def test_a_build_that_fails_as_a_whole_keeps_what_was_and_is_made_up_for(
    folder, make_settings, make_live
):
    broken = [False]

    class Moody(HashEncoder):
        def encode(self, texts):
            if broken[0]:
                raise ModelError("no weights")
            return super().encode(texts)

    sources = {name: SourceConfig(location=str(folder / f"{name}.json")) for name in "ab"}
    live = make_live(make_settings(sources=sources), encoder=Moody)
    await live.reload()
    broken[0] = True
    write(folder / "a.json", api("new"))
    assert not await live.reload({"a"})
    assert names(live) == ["one", "three", "two"] and live.failure == "no weights"
    broken[0] = False
    assert await live.reload({"a"})
    assert names(live) == ["new", "three"] and live.failure is None


async def test_a_first_load_that_failed_heals(two, folder):
    for name in "ab":
        write(folder / f"{name}.json", "{ not json")
    assert not await two.reload()
    assert set(two.build.failing()) == {"a", "b"}
    write(folder / "a.json", api("one"))
    assert await two.reload({"a"})
    assert names(two) == ["one"] and set(two.problems) == {"b"}


async def test_one_line_says_what_a_reload_changed(two, folder, caplog):
    await two.reload()
    before = two.current
    document = api("two", "new")
    document["paths"]["/two"]["get"]["parameters"] = [{"name": "q", "in": "query", "schema": {}}]
    write(folder / "a.json", document)
    write(folder / "b.json", api("three", tags=[{"name": "unused"}]))
    caplog.set_level("INFO")
    await two.reload()
    (line,) = [record.msg for record in caplog.records if record.msg["event"] == "catalog.reloaded"]
    counts = {"added": 1, "removed": 1, "changed": 1, "reworded": 0}
    assert counts.items() <= line.items() and changes_between(before, two.current) == counts


async def test_a_failure_is_logged_once_and_so_is_its_end(two, folder, caplog):
    caplog.set_level("INFO")
    await two.reload()
    write(folder / "a.json", "{ not json")
    for _ in range(3):
        await two.reload()
    write(folder / "a.json", api("one", "two"))
    await two.reload()
    events = [record.msg["event"] for record in caplog.records]
    assert (events.count("source.failed"), events.count("source.recovered")) == (1, 1)


def mapped_stores() -> list[str]:
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if ".store" in line]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
async def test_a_hundred_reloads_leave_one_snapshot_and_its_files(two, folder, tmp_path):
    """Nothing waits for the garbage collector: it may be long in coming."""
    await two.reload()
    old: list[weakref.ref] = []
    gc.collect()
    open_before, maps_before = len(list(Path("/proc/self/fd").iterdir())), len(mapped_stores())
    gc.disable()
    try:
        for number in range(100):
            snapshot = two.current
            old += map(weakref.ref, (snapshot.catalog, snapshot.searcher, snapshot.executor))
            snapshot.searcher.search("one")
            del snapshot
            two.current.catalog.body_schema(two.current.catalog.operations[0])
            write(folder / "a.json", api(f"one{number}", "two"))
            if number % 10 == 5:
                write(folder / "b.json", "{ not json")
            elif number % 10 == 6:
                write(folder / "b.json", api("three"))
            assert await two.reload()
        assert sum(ref() is not None for ref in old) == 0
        assert len(mapped_stores()) == maps_before
        assert len(list(Path("/proc/self/fd").iterdir())) == open_before
        assert len(list((tmp_path / "cache" / "catalogs").iterdir())) == 2
    finally:
        gc.enable()


async def test_a_snapshot_serves_on_while_a_request_holds_it(two, folder):
    await two.reload()
    held = two.current
    for number in range(3):
        write(folder / "a.json", api(f"one{number}"))
        await two.reload()
    operation = held.catalog.get("two")
    assert held.catalog.details(operation).base_url == "https://x.example"
    assert isinstance(two.build, Builder)
