from __future__ import annotations

import json
from dataclasses import replace

import anyio
import pytest

from capdex_engine.encode.testing import HashEncoder
from capdex_engine.errors import ConfigurationError, DocumentError, ModelError
from capdex_server.build import STAYS
from capdex_server.callers import LOCAL
from capdex_server.config import RuleConfig, SourceConfig
from capdex_server.live import Live, NotReady
from capdex_server.outbound import Outbound
from capdex_server.pieces import FetchFailed, Piece
from capdex_server.policy import Policy

pytestmark = pytest.mark.anyio


def break_document(documents, name: str) -> None:
    (documents / f"{name}.json").write_text("{ not json")


async def test_a_snapshot_has_one_revision_and_everything_under_it(make_settings, make_live):
    live = make_live(make_settings())
    assert not live.ready
    with pytest.raises(NotReady):
        _ = live.current
    assert await live.reload()
    snapshot = live.current
    assert snapshot.revision == snapshot.catalog.revision
    assert [one.name for one in snapshot.sources_for(LOCAL, Policy())] == ["mail", "shop"]
    assert not live.problems and live.failure is None


async def test_without_an_encoder_there_is_a_catalog_but_no_searcher(make_settings, make_live):
    live = make_live(make_settings(), encoder=None)
    await live.reload()
    assert live.current.searcher is None
    assert live.current.catalog.get("listOrders")


async def test_a_bad_source_is_reported_and_the_others_load(make_settings, make_live, documents):
    break_document(documents, "mail")
    live = make_live(make_settings())
    assert await live.reload()
    assert set(live.problems) == {"mail"}
    assert live.current.catalog.get("listOrders")


async def test_a_reload_swaps_what_has_changed(make_settings, make_live, documents):
    live = make_live(make_settings())
    await live.reload()
    before = live.current
    document = json.loads((documents / "mail.json").read_text())
    document["paths"]["/send"]["post"]["operationId"] = "postMail"
    (documents / "mail.json").write_text(json.dumps(document))
    assert await live.reload()
    assert live.current.revision != before.revision
    assert before.catalog.get("sendMail") and live.current.catalog.get("postMail")


async def test_a_source_that_had_loaded_and_now_fails_stays_as_it_was(make_settings, make_live, documents):
    live = make_live(make_settings())
    await live.reload()
    before = live.current
    break_document(documents, "mail")
    assert await live.reload()
    assert live.current.catalog is before.catalog
    assert set(live.problems) == {"mail"} and STAYS in live.problems["mail"]
    assert live.failure is None
    assert not await live.reload()


async def test_when_all_sources_fail_there_is_no_catalog(make_settings, make_live, documents):
    break_document(documents, "mail")
    break_document(documents, "shop")
    live = make_live(make_settings())
    with pytest.raises(NotReady) as waiting:
        _ = live.current
    assert waiting.value.retryable
    assert not await live.reload()
    assert not live.ready
    assert set(live.problems) == {"mail", "shop"}
    assert "stays" not in live.failure
    with pytest.raises(NotReady) as failed:
        _ = live.current
    assert not failed.value.retryable and "readyz" in failed.value.message


async def test_no_sources_are_an_empty_catalog(make_settings, make_live):
    live = make_live(make_settings(sources={}))
    assert await live.reload()
    assert live.current.catalog.operations == ()


@pytest.mark.parametrize(
    "error", [ModelError("no weights"), ConfigurationError("bad key"), RuntimeError("bug")]
)
async def test_a_build_that_fails_as_a_whole_says_why(error):
    async def build(only=None):
        raise error

    live = Live(build)
    assert not await live.reload()
    assert live.failure
    assert "bug" not in live.failure


async def test_a_command_gets_the_reason_raised(make_settings, make_live, documents):
    for name in ("mail", "shop"):
        break_document(documents, name)
    with pytest.raises(DocumentError):
        await make_live(make_settings()).reload(raising=True)

    async def build(only=None):
        raise ModelError("no weights")

    with pytest.raises(ModelError):
        await Live(build).reload(raising=True)


async def test_waiting_ends_with_the_first_attempt(make_settings, make_live):
    live = make_live(make_settings())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live.reload)
        with anyio.fail_after(10):
            await live.wait(60)
    assert live.ready


async def test_a_document_is_fetched_from_its_url_and_its_references_from_there(make_settings, make_live):
    pages = {
        "https://api.example/v1/openapi.json": {
            "openapi": "3.1.0",
            "info": {"title": "Remote", "version": "1"},
            "servers": [{"url": "/v1"}],
            "paths": {"/things": {"$ref": "things.json#/things"}},
        },
        "https://api.example/v1/things.json": {
            "things": {"get": {"operationId": "listThings", "responses": {"200": {"description": "ok"}}}}
        },
    }

    class Pages(Outbound):
        async def fetch(self, url: str, **_) -> Piece:
            if url not in pages:
                raise FetchFailed("gone", location=url)
            return Piece(json.dumps(pages[url]).encode())

    sources = {
        "remote": SourceConfig(location="https://api.example/v1/openapi.json"),
        "gone": SourceConfig(location="https://api.example/v1/gone.json"),
    }
    live = make_live(make_settings(sources=sources), outbound=Pages({}))
    assert await live.reload()
    operation = live.current.catalog.get("listThings")
    assert live.current.catalog.details(operation).base_url == "https://api.example/v1"
    assert set(live.problems) == {"gone"}


async def test_credentials_of_a_command_line_win(make_settings, make_live, upstream):
    live = make_live(make_settings(), credentials={"shop": {"api_key": "given"}})
    await live.reload()
    await live.current.executor.execute({"name": "createOrder", "body": {"item": "tea"}})
    assert ("X-Key", "given") in upstream.requests[0].headers


@pytest.fixture
def folder(make_settings, documents):
    """Settings over one source, a folder of two documents."""
    return lambda **fields: make_settings(sources={"team": SourceConfig(location=str(documents))}, **fields)


async def test_a_folder_is_known_and_called_by_its_configured_name(folder, make_live, upstream):
    live = make_live(folder())
    await live.reload()
    snapshot = live.current
    assert {one.source for one in snapshot.catalog.operations} == {"team.shop", "team.mail"}
    (summary,) = snapshot.sources_for(LOCAL, Policy())
    assert (summary.name, summary.operations, summary.title) == ("team", 5, "Shop API, Mail")
    everything = snapshot.mask(LOCAL, Policy())
    for name, count in (("team", 5), ("team.mail", 1), ("mail", 0)):
        assert snapshot.narrowed(everything, source=name, read_only=False).sum() == count
    answer = await snapshot.executor.execute({"name": "listOrders"})
    assert answer["body"] == {"source": "team"}


async def test_rules_for_a_folder_mean_the_same_with_one_document_and_with_two(folder, make_live, documents):
    rules = (RuleConfig(source="team"),)
    caller = replace(LOCAL, deny=(RuleConfig(source="team.shop"), RuleConfig(name="sendMail")))
    live = make_live(folder())
    await live.reload()
    assert live.current.mask(replace(LOCAL, allow=rules), Policy()).all()
    assert not live.current.mask(replace(caller, name="other"), Policy()).any()
    (documents / "mail.json").unlink()
    live = make_live(folder())
    await live.reload()
    assert live.current.mask(replace(LOCAL, allow=rules), Policy()).all()
    assert not live.current.mask(replace(caller, name="other"), Policy()).any()


async def test_what_has_no_use_is_logged_once_per_load(make_settings, make_live, documents, caplog):
    shop = SourceConfig(location=str(documents / "shop.json"), exclude=["name:zzz"])
    callers = {"bot": {"deny": [{"source": "shopp"}]}}
    await make_live(make_settings(callers, sources={"shop": shop})).reload()
    told = [record.msg for record in caplog.records if record.msg["event"] in {"rule.idle", "setting.idle"}]
    assert [one["event"] for one in told] == ["setting.idle", "rule.idle"]
    assert told[1]["caller"] == "bot" and "shopp" in told[1]["rule"]


async def test_the_mask_is_computed_once_per_caller(make_settings, make_live):
    live = make_live(make_settings())
    await live.reload()
    mask = live.current.mask(LOCAL, Policy())
    assert live.current.mask(LOCAL, Policy()) is mask
    assert mask.all() and len(mask) == 5


async def test_vectors_are_kept_between_builds(make_settings, make_live):
    encoded: list[str] = []

    class Counting(HashEncoder):
        def encode(self, texts):
            encoded.extend(texts)
            return super().encode(texts)

    settings = make_settings()
    await make_live(settings, encoder=Counting).reload()
    first = len(encoded)
    await make_live(settings, encoder=Counting).reload()
    assert first and len(encoded) == first
