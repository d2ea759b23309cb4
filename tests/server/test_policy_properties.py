"""What a caller may not call is not there: not in any answer, nor in what shapes one.

The oracle is a catalog that was built from documents without the forbidden operations.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capdex_engine.catalog import Catalog, Source, build_catalog
from capdex_engine.documents import parse_document
from capdex_engine.encode import Encoder
from capdex_server.aliases import Aliases
from capdex_server.callers import Caller
from capdex_server.permissions import Permissions
from capdex_server.policy import Policy
from server.policy_support import (
    Row,
    caller,
    catalog_of,
    everything_said,
    service_of,
    snapshot_of,
    told,
)

METHODS = ("GET", "POST", "DELETE")
NOUNS = ("invoice", "refund", "quuxor", "webhook")
VERBS = {"GET": "list", "POST": "create", "DELETE": "drop"}
QUERIES: tuple[dict[str, Any], ...] = (
    {"query": "create an invoice", "limit": 20},
    {"query": "quuxer", "limit": 3},
    {"query": "drop the refnd, then list webhooks", "limit": 5},
    {"query": "GET /invoice", "limit": 1},
    {"query": "list_invoice_00 list-quuxor-01 createRefund02"},
    {"query": "everything", "readOnly": True},
    {"query": "list", "source": "mail"},
    {"query": "list", "source": "zzz"},
)


def row(number: int, source: str, method: str, noun: str, flat: bool, broken: bool, tag: str) -> Row:
    """Names are unique, so that none depends on another; paths may be another source's too."""
    path = f"/{noun}" if flat else f"/{noun}/{{id}}/{number}"
    name = f"{VERBS[method]}{noun.title()}{number:02}"
    return Row(source, method, path, name, f"{VERBS[method]} a {noun} {number}", tag, broken)


@st.composite
def catalogs(draw: st.DrawFn) -> list[Row]:
    count = draw(st.integers(1, 14))
    some = partial(st.sampled_from)
    rows = [
        row(
            number,
            draw(some(("shop", "mail", "hidden"))),
            draw(some(METHODS)),
            draw(some(NOUNS)),
            draw(st.booleans()),
            draw(st.integers(0, 7)) == 0,
            draw(some(("admin", "public"))),
        )
        for number in range(count)
    ]
    return list({(one.source, one.method, one.path): one for one in rows}.values())


FIELDS = {
    "source": ("shop", "mail", "hid*", "*"),
    "name": ("*Invoice*", "list*", "createRefund02", "*0[0-4]"),
    "method": ("get", "post", ["GET", "DELETE"]),
    "tag": ("admin", "pub*"),
    "path": ("/invoice*", "*/{id}/*", "/quuxor"),
    "readOnly": (True, False),
}
rules = st.lists(
    st.fixed_dictionaries({}, optional={name: st.sampled_from(globs) for name, globs in FIELDS.items()}),
    max_size=3,
)
callers = st.builds(lambda allow, deny: caller([*allow], deny), rules, rules)


def permitted_rows(rows: list[Row], who: Caller, policy: Policy) -> list[Row]:
    """Decide operation by operation; the service decides by columns of all."""
    catalog = catalog_of(rows)
    everything = (*catalog.operations, *catalog.kept_out)
    aliases = Aliases({}, everything)
    names = {operation.name for operation in everything if policy.allows(who, operation, aliases)}
    return [one for one in rows if one.name in names]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(rows=catalogs(), who=callers, read_only=st.booleans())
def test_nothing_that_a_caller_hears_depends_on_what_it_may_not_call(
    rows: list[Row], who: Caller, read_only: bool
) -> None:
    async def check() -> None:
        mine = permitted_rows(rows, who, Policy(read_only=read_only))
        names = [one.name for one in rows] + [f"{one.method} {one.path}" for one in rows] + ["listInvoice99"]
        whole, part = snapshot_of(catalog_of(rows)), snapshot_of(catalog_of(mine))
        said = await everything_said(await service_of(whole, read_only=read_only), who, QUERIES, names)
        alone = await everything_said(await service_of(part), who, QUERIES, names)
        assert said == alone
        agree(rows, mine, said)

    anyio.run(check)


def agree(rows: list[Row], mine: list[Row], said: dict[str, Any]) -> None:
    """Search, execute and GET /capabilities say the same of every operation; none names a forbidden one."""
    may = {one.name for one in mine}
    searched = {
        key: json.dumps(answer) for key, answer in said.items() if key.startswith(("search", "tools"))
    }
    for one in rows:
        answers = [said[f"execute {one.name}"], said[f"capability {one.name}"]]
        codes = {answer.get("error", {}).get("code") for answer in answers}
        if one.name in may:
            fine = {None, "invalid_capability_arguments"}
            assert codes == {"not_executable"} if one.broken else codes <= fine
        else:
            assert codes == {"unknown_capability"}
            assert not any(one.name in text for text in searched.values())
    for answer in said.values():
        error = answer.get("error", {}) if isinstance(answer, dict) else {}
        assert set(error.get("suggestions", ())) <= may
        matches = answer.get("matches", ()) if isinstance(answer, dict) else ()
        assert {match["name"] for match in matches} <= may


DOCKER = "docker-engine.swagger2.yaml"
REAL_QUERIES: tuple[dict[str, Any], ...] = tuple(
    {"query": query, "limit": 20}
    for query in (
        "start a stopped container",
        "which images are there",
        "remove unused volumes",
        "ContainerCreate",
        "POST /containers/create",
        "swarm secerts",
        "inspect the plugin, then upgrade it",
        "ein Netzwerk löschen",
        "send an email",
    )
)


@pytest.mark.parametrize(
    "who",
    [
        caller([{"tag": ["Container", "Image"]}]),
        caller([{}], [{"tag": ["Secret", "Swarm"]}, {"method": "DELETE"}]),
        caller([{"name": "ImageList"}]),
        caller([]),
    ],
    ids=["some tags", "all but some", "one operation", "nothing"],
)
@pytest.mark.anyio
async def test_a_real_catalog_is_to_its_callers_as_if_it_held_no_more(
    specs: Path, encoder: Encoder, who: Caller
) -> None:
    """With the encoder that serves: every answer is the same to the byte, scores and revision included."""
    data = (specs / DOCKER).read_bytes()
    whole = snapshot_of(build_catalog([Source("docker", DOCKER, data)]), encoder)
    names = [operation.name for operation in whole.catalog.operations]
    part = snapshot_of(without(data, whole.permissions(who, Policy())), encoder)
    said = await everything_said(await service_of(whole), who, REAL_QUERIES, names)
    assert said == await everything_said(await service_of(part), who, REAL_QUERIES, names)


def without(data: bytes, permitted: Permissions) -> Catalog:
    """Return the catalog of a document from which all that is not permitted was deleted."""
    tree = parse_document(data)
    for path, item in tree["paths"].items():
        for method in [
            one for one in item if permitted.find(f"{one} {path}") is None and one != "parameters"
        ]:
            del item[method]
    tree["paths"] = {path: item for path, item in tree["paths"].items() if set(item) - {"parameters"}}
    return build_catalog([Source("docker", DOCKER, json.dumps(tree, default=str).encode())])


@pytest.mark.anyio
async def test_a_forbidden_name_costs_the_work_of_an_unknown_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: the same question is asked of every operation, and no document is opened."""
    rows = [row(n, "shop", METHODS[n % 3], NOUNS[n % 4], False, False, "public") for n in range(60)]
    snapshot = snapshot_of(catalog_of(rows))
    service, who = await service_of(snapshot), caller([{"name": "list*"}])
    asked = 0
    plain = Permissions.__call__

    def counted(self: Permissions, operation: Any) -> bool:
        nonlocal asked
        asked += 1
        return plain(self, operation)

    def opened(*_: Any) -> None:
        raise AssertionError("opened a document")

    monkeypatch.setattr(Permissions, "__call__", counted)
    monkeypatch.setattr(snapshot.catalog, "details", opened)
    work: list[int] = []
    for name in ("createRefund01", "createRefund99", "listWebhook99", "zzzzzzzzzzzzzz"):
        for call in (service.execute(who, {"name": name}), service.capability(who, name)):
            asked = 0
            assert (await told(call))["error"]["code"] == "unknown_capability"
            work.append(asked)
    assert max(work) - min(work) <= 1 and min(work) >= len(rows)


@pytest.mark.anyio
async def test_a_path_that_only_a_forbidden_source_shares_is_the_callers_own() -> None:
    rows = [row(1, source, "GET", "invoice", True, False, "public") for source in ("shop", "mail")]
    rows = [Row(**{**vars(one), "name": f"{one.source}List"}) for one in rows]
    service = await service_of(snapshot_of(catalog_of(rows)))
    both, one = caller([{}]), caller([{"source": "mail"}])
    assert (await service.capability(one, "GET /invoice"))["name"] == "mailList"
    assert (await service.execute(one, {"name": "GET /invoice", "dryRun": True}))["method"] == "GET"
    refused = await told(service.capability(both, "GET /invoice"))
    assert set(refused["error"]["suggestions"]) == {"shopList", "mailList"}


@pytest.mark.anyio
async def test_a_revision_is_the_callers_own_and_that_of_all_for_who_may_call_all() -> None:
    rows = [row(n, "shop", METHODS[n % 3], NOUNS[0], False, False, "public") for n in range(6)]
    before, after = (snapshot_of(catalog_of(some)) for some in (rows[:5], rows))
    reader, owner = caller([{"readOnly": True}]), caller([{}])
    own = [one.permissions(reader, Policy()).revision for one in (before, after)]
    assert own[0] == own[1] not in (before.revision, after.revision)
    assert after.permissions(owner, Policy()).revision == after.revision != before.revision
