"""The team's traps: every request case and every validation, through a real catalog.

Where a case is not strict, capdex's choice is:

- 05 delimiter-in-value: refused.
- 06 explode-omitted and nested-undefined: brackets.
- 07 default-encodes, 10 semicolon-colon-at, 48 odata: everything but unreserved is percent-encoded.
- 09 cookie-array: ``tags=a,b``; the caller's Authorization is ignored.
- 10 empty, nul-and-newline: refused.
- 27 null-optional: omitted; a required parameter with a default must be given.
- 28 a numeric enum takes its text. 29 a bare path is refused as a file's content, a file name is escaped.
- 31 null-body: null is sent; bytes are ``{"base64": ...}``.
- 21 null passes where an enum or allOf beside ``nullable`` forgot it.
- 25 one fitting branch of an overlapping ``oneOf`` is enough, whatever the discriminator says.
- 32 a body of GET and DELETE is sent wherever the document declares one.
- 33 xml-only: XML is passed as text, so an object is an argument error (not not_executable).
- 36 missing-credential: a dry run shows a placeholder, the call answers missing_credentials.
- 48 rfc6570-operator: slashes stay, dot segments are refused.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from call_support import Clock, Upstream
from capdex_engine.call import Executor
from capdex_engine.catalog import Catalog, Source, SourceSettings, build_catalog
from capdex_engine.documents import folder_retrieve
from capdex_engine.errors import CapdexError

FILES = {
    "<bytes 00 FF>": {"base64": "AP8="},
    "<base64 AP8=>": {"base64": "AP8="},
    "<bytes>": {"base64": "AP8="},
}
"""How the cases write bytes."""
CHOSEN_OTHERWISE = {
    ("33-content-type-choice", "xml-only"): "invalid_capability_arguments",
    ("36-security-schemes", "missing-credential"): None,
}
"""Cases that are not strict where the choice differs from the written expectation."""
GENERATED = {"46-large-document"}
SIZE = 300
"""Operations of a generated document; the trap itself has 20,000."""
UNDECIDED = {("11-server-basepath-variables", "outside-enum")}
"""What the catalog does with a wrong server variable is not for calls to say; no host is ever rewritten."""


@pytest.fixture(scope="session")
def compare(shared: Path) -> Any:
    found = importlib.util.spec_from_file_location("trap_compare", shared / "tools" / "compare.py")
    assert found is not None and found.loader is not None
    module: ModuleType = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.compare


def expected(shared: Path, key: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return (trap, whole file, case) of every case under ``key``."""
    return [
        (file.parent.name, whole, case)
        for file in sorted((shared / "traps").glob("*/expected.json"))
        for whole in [json.loads(file.read_text(encoding="utf-8").replace("r19999", f"r{SIZE - 1}"))]
        for case in whole.get(key, [])
    ]


@cache
def document(trap: Path, name: str) -> bytes:
    if trap.name in GENERATED:
        made = subprocess.run([sys.executable, trap / "gen.py", str(SIZE)], capture_output=True, check=True)
        return made.stdout
    return (trap / name).read_bytes()


@cache
def catalog(trap: Path, name: str, base: str | None, variables: tuple[tuple[str, str], ...]) -> Catalog:
    source = Source(
        name="trap",
        location=str(trap / name),
        data=document(trap, name),
        document_url=base,
        settings=SourceSettings(server_variables=dict(variables)),
    )
    return build_catalog([source], retrieve=lambda _: folder_retrieve(trap))


def executor(shared: Path, trap: str, whole: dict[str, Any], case: dict[str, Any]) -> Executor:
    base = case.get("base")
    variables = tuple(case.get("serverVariables", {}).items())
    built = catalog(shared / "traps" / trap, case.get("doc", "openapi.yaml"), base, variables)
    held = case.get("creds", whole.get("creds", {}))
    return Executor(built, transport=Upstream(), clock=Clock(), credentials={"trap": held})


def filled(value: Any) -> Any:
    """Replace how the cases write bytes by how capdex takes them."""
    if isinstance(value, str):
        return FILES.get(value, value)
    if isinstance(value, dict):
        return {key: filled(member) for key, member in value.items()}
    return value


def outcome(caller: Executor, call: dict[str, Any]) -> dict[str, Any]:
    """Return what compare.py judges: ``{url, headers, body}`` or ``{error}``."""
    try:
        shown = caller.prepare(call, show_credentials=True)
    except CapdexError as error:
        return {"error": error.code}
    body = shown.get("body")
    if "bodyBase64" in shown:
        return {**shown, "body": base64.b64decode(shown["bodyBase64"])}
    return {**shown, "body": None if body is None else body.encode()}


def request_faults(shared: Path, compare: Any) -> list[str]:
    faults = []
    for trap, whole, case in expected(shared, "cases"):
        actual = outcome(executor(shared, trap, whole, case), {"name": case["op"], **filled(case["args"])})
        key = (trap, case["id"])
        if key in UNDECIDED:
            assert "evil" not in str(actual)
        elif key in CHOSEN_OTHERWISE:
            if actual.get("error") != CHOSEN_OTHERWISE[key]:
                faults.append(f"{key}: {actual}")
        else:
            faults += [f"{key}: {fault}" for fault in compare(case, actual)]
    return faults


def validation_faults(shared: Path, *, strict: bool) -> list[str]:
    faults = []
    for trap, whole, case in expected(shared, "validate"):
        if case["strict"] is strict:
            arguments = {key: case[key] for key in ("pathParams", "queryParams", "body") if key in case}
            actual = outcome(executor(shared, trap, whole, case), {"name": case["op"], **arguments})
            if ("error" not in actual) is not case["valid"]:
                faults.append(f"{trap} {case['op']} {arguments}: {actual.get('error', 'accepted')}")
    return faults


def test_validations_that_are_not_strict_give_an_answer(shared):
    assert len(validation_faults(shared, strict=False)) == 4


def test_every_request_of_the_traps_is_as_expected(shared, compare):
    assert request_faults(shared, compare) == []


def test_every_strict_validation_of_the_traps_is_as_expected(shared):
    assert validation_faults(shared, strict=True) == []
