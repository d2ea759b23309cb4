"""The traps: each fact on the catalog, and every strict validation against the schema handed out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import pytest
from jsonschema import Draft202012Validator

from call_support import Clock, Upstream
from capdex_engine.call import Executor
from capdex_engine.catalog import Catalog
from capdex_engine.documents import parse_document, refs_in
from capdex_engine.errors import CapdexError
from capdex_engine.operation import SLOTS, Operation
from catalog_support import catalog_of, load_file
from trap_support import (
    FOLDER,
    GENERATED_SIZE,
    Case,
    arguments,
    cases,
    catalog_for,
    counts,
    document,
    expectations,
    texts_in,
)
from trap_support import catalog as of_trap

METHOD_PATH: Final = re.compile(r"[A-Z]+ /")
NOTES: Final = {"note", "no_fetch_of"}
"""Not facts: texts, and what the test on references outside the folder shows."""
MEASURED: Final = {"loads_within_seconds", "peak_memory_mib"}
"""Seconds and memory, which ``python -m capdex_bench.load`` measures; no test asserts a time."""
FACTS: Final = [
    (trap, key, value)
    for trap, whole in expectations().items()
    for key, value in whole.get("catalog", {}).items()
    if key not in NOTES | MEASURED
]


def found(catalog: Catalog, key: str) -> Operation:
    operation = catalog.get(key)
    assert operation is not None, key
    return operation


def count(trap: str, value: Any) -> None:
    assert len(of_trap(trap).operations) == value


def names_are_unique(trap: str, value: Any) -> None:
    names = [operation.name for operation in (*of_trap(trap).operations, *of_trap(trap).kept_out)]
    assert value is True and len(set(names)) == len(names)


def names_are_not_empty(trap: str, value: Any) -> None:
    assert value is True and all(operation.name for operation in of_trap(trap).operations)


def names_are_stable(trap: str, value: Any) -> None:
    tree = parse_document(document(trap))
    turned = catalog_of({**tree, "paths": dict(reversed(tree["paths"].items()))})
    first = [(op.key, op.name, op.schema_digest) for op in of_trap(trap).operations]
    assert value is True and first
    assert [(op.key, op.name, op.schema_digest) for op in turned.operations] == first


def every_name_calls_its_own_operation(trap: str, value: Any) -> None:
    caller = Executor(of_trap(trap), transport=Upstream(), clock=Clock())
    for operation in of_trap(trap).operations:
        given = {name: "v" for name in operation.path_params}
        prepared = caller.prepare({"name": operation.name, "pathParams": given})
        path = re.sub(r"\{[^}]*\}", "v", operation.path)
        assert (prepared["method"], prepared["url"]) == (
            operation.method,
            "https://api.test" + quote(path, safe="/-_.~"),
        )
    assert value


def long_ids_stay_apart(trap: str, value: Any) -> None:
    assert value is True
    assert found(of_trap(trap), "GET /a").name != found(of_trap(trap), "GET /b").name


def the_original_id_is_kept(trap: str, value: Any) -> None:
    declared = {
        f"{method.upper()} {path}": str(operation["operationId"])
        for path, item in parse_document(document(trap))["paths"].items()
        for method, operation in item.items()
    }
    kept = {operation.key: operation.operation_id for operation in of_trap(trap).operations}
    assert value is True and kept == declared


def an_integer_id_is_text(trap: str, value: Any) -> None:
    operation = found(of_trap(trap), "GET /h")
    assert operation.operation_id == operation.name == json.loads(value)


def the_schema_is_json(trap: str, value: Any) -> None:
    assert value is True
    json.dumps(of_trap(trap).body_schema(found(of_trap(trap), "POST /n")))


def the_schema_stands_alone(trap: str, value: Any) -> None:
    schema = of_trap(trap).body_schema(found(of_trap(trap), "POST /n"))
    assert schema is not None and value
    refs = refs_in(schema).union(*map(refs_in, schema["$defs"].values()))
    assert refs and {ref.removeprefix("#/$defs/") for ref in refs} <= set(schema["$defs"])


def one_operation_is_bad(trap: str, value: str) -> None:
    assert [operation.key for operation in of_trap(trap).kept_out] == [value.split(" is ")[0]]


def is_not_required(trap: str, value: list[str]) -> None:
    schema = of_trap(trap).body_schema(found(of_trap(trap), "POST /n"))
    assert schema is not None and not set(schema.get("required", ())) & set(value)


def is_required(trap: str, value: list[str]) -> None:
    schema = of_trap(trap).body_schema(found(of_trap(trap), "POST /n"))
    assert schema is not None
    layers = [schema, *schema.get("allOf", ()), *schema.get("$defs", {}).values()]
    assert set(value) <= {name for layer in layers for name in layer.get("required", ())}


def fields_are_named(trap: str, value: list[str]) -> None:
    assert set(found(of_trap(trap), "POST /n").body_properties) == set(value)


def lists_no_parameter(trap: str, value: list[str]) -> None:
    operations = of_trap(trap).operations
    listed = {name for operation in operations for slot in SLOTS for name in operation.params(slot)}
    assert value and not listed & set(value)
    for operation in operations:
        schema = of_trap(trap).arguments_schema(operation)
        offered = {name for slot in schema["properties"].values() for name in slot["properties"]}
        assert not offered & set(value)


def secrets_stay_inside(trap: str, value: list[str]) -> None:
    caller = Executor(
        of_trap(trap),
        transport=Upstream(),
        clock=Clock(),
        credentials={"trap": expectations()[trap]["creds"]},
    )
    # "s" alone would be found in every word; as a whole text it is still looked for.
    for operation in of_trap(trap).operations:
        said = [of_trap(trap).describe(operation), of_trap(trap).arguments_schema(operation)]
        try:
            said.append(caller.prepare({"name": operation.name}))
            said.append(caller.prepare({"name": operation.name, "queryParams": {"no": 1}}))
        except CapdexError as error:
            said.append(error.payload())
        texts = list(texts_in(said))
        assert not [text for text in texts for secret in value if secret == text]
        assert not [text for text in texts for secret in value if len(secret) > 1 and secret in text]


def all_are_there(trap: str, value: list[str]) -> None:
    assert {operation.key for operation in of_trap(trap).operations} >= set(value)


def are_kept_out_with_a_reason(trap: str, value: list[str]) -> None:
    out = of_trap(trap).kept_out
    kept = {operation.key: operation.reason for operation in out}
    kept |= {operation.path: operation.reason for operation in out}
    assert all(kept[key] for key in value)


def loads(trap: str, value: Any) -> None:
    assert value is True and of_trap(trap).report.sources[0].error is None


def other_documents(trap: str, value: dict[str, int]) -> None:
    assert {name: len(of_trap(trap, name).operations) for name in value} == value


CHECKS: Final[dict[str, Callable[[str, Any], None]]] = {
    "count": count,
    "names_unique": names_are_unique,
    "names_non_empty": names_are_not_empty,
    "names_stable_when_paths_reordered": names_are_stable,
    "round_trip": every_name_calls_its_own_operation,
    "a_and_b_distinct_even_if_truncated": long_ids_stay_apart,
    "original_operationId_kept_for_search": the_original_id_is_kept,
    "integer_operationId_is_text": an_integer_id_is_text,
    "bodySchema_json_serialisable": the_schema_is_json,
    "bodySchema_self_contained": the_schema_stands_alone,
    "bad_operation": one_operation_is_bad,
    "bodySchema_should_not_require": is_not_required,
    "bodySchema_should_require": is_required,
    "required": is_required,
    "summary_of_fields_for_agent": fields_are_named,
    "must_not_list_parameters": lists_no_parameter,
    "never_in_output": secrets_stay_inside,
    "must_contain": all_are_there,
    "reachable": all_are_there,
    "flagged": are_kept_out_with_a_reason,
    "flagged_with_reason": are_kept_out_with_a_reason,
    "document_loads": loads,
    "docs": other_documents,
}


@pytest.mark.parametrize(("trap", "key", "value"), FACTS, ids=[f"{trap} {key}" for trap, key, _ in FACTS])
def test_a_fact_on_the_catalog_holds(trap: str, key: str, value: Any) -> None:
    if METHOD_PATH.match(key):
        row = of_trap(trap).describe(found(of_trap(trap), key))
        assert {name: row[name] for name in value} == value
    else:
        CHECKS[key](trap, value)


def test_every_fact_is_looked_at() -> None:
    keys = {key for whole in expectations().values() for key in whole.get("catalog", {})}
    assert {key for key in keys if not METHOD_PATH.match(key)} == CHECKS.keys() | NOTES | MEASURED
    assert len(FACTS) == 40


@pytest.mark.parametrize("trap", counts())
def test_operations_are_found_under_names_that_clients_accept(trap: str) -> None:
    built = of_trap(trap)
    assert built.report.sources[0].error is None
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", operation.name) for operation in built.operations)
    assert all(built.get(operation.name) is operation for operation in built.operations)
    assert all(built.get(operation.key) is operation for operation in built.operations)


@pytest.mark.parametrize(
    "case", [case for case in cases("validate") if case.strict], ids=lambda case: case.id
)
def test_the_schema_handed_out_judges_as_expected(case: Case) -> None:
    built = catalog_for(case)
    schema = built.arguments_schema(found(built, case.fields["op"]), with_body=True)
    Draft202012Validator.check_schema(schema)
    assert Draft202012Validator(schema).is_valid(arguments(case)) is case.fields["valid"]


def test_an_operation_that_refers_to_itself_is_no_part_of_a_cycle_s_definitions() -> None:
    catalog = load_file(FOLDER / "19-cyclic-schema" / "openapi.yaml")
    schema = catalog.body_schema(found(catalog, "POST /n"))
    assert schema is not None and set(schema["$defs"]) == {"Node", "Peer"}
    json.dumps(schema)


@pytest.mark.parametrize("name", ["openapi.yaml", "openapi-31.yaml"])
def test_server_made_fields_are_not_demanded(name: str) -> None:
    catalog = load_file(FOLDER / "23-readonly-writeonly" / name)
    schema = catalog.body_schema(found(catalog, "POST /n"))
    assert schema is not None and set(schema.get("required", ())) == {"name", "pw"}


@pytest.mark.parametrize(
    ("name", "url", "base"),
    [
        ("openapi.yaml", "https://host.test/specs/openapi.yaml", "https://host.test/v3"),
        ("relative.yaml", "https://host.test/specs/openapi.yaml", "https://host.test/specs/v3"),
        ("none.yaml", "https://host.test/specs/openapi.yaml", "https://host.test"),
        ("openapi.yaml", None, None),
    ],
)
def test_relative_servers_resolve_against_the_document(name: str, url: str | None, base: str | None) -> None:
    catalog = load_file(FOLDER / "13-relative-server" / name, document_url=url)
    operation = found(catalog, "GET /pets")
    assert catalog.details(operation).base_url == base
    assert operation.executable is (base is not None)


def test_no_reference_leaves_the_document_s_folder() -> None:
    catalog = load_file(FOLDER / "43-external-ref" / "openapi.yaml")
    assert {operation.key for operation in catalog.kept_out} == {"POST /evil1", "POST /evil2", "POST /evil3"}
    assert found(catalog, "GET /a").query_params == ("q",)
    schema = catalog.arguments_schema(found(catalog, "POST /b"), with_body=True)
    assert not Draft202012Validator(schema).is_valid({"body": {"self": {"owner": {"name": 5}}}})


def test_a_generated_document_shares_its_schemas() -> None:
    catalog = of_trap("46-large-document")
    assert len(catalog.operations) == GENERATED_SIZE
    response = catalog.details(found(catalog, f"GET /r{GENERATED_SIZE - 1}/{{id}}")).responses["200"]
    assert len(response["schema"]["$defs"]) == 500
