"""The traps: own documents with one difficulty each, and what is right about them (traps/README.md)."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from call_support import Clock, Upstream
from capdex_engine.call import Executor
from capdex_engine.catalog import Catalog, Source, SourceSettings, build_catalog
from capdex_engine.documents import folder_retrieve
from capdex_engine.errors import CapdexError

FOLDER = Path(__file__).resolve().parent / "traps"
GENERATED_SIZE = 300
"""Operations of trap 46 in tests; the trap itself has 20,000, which ``capdex_bench.load`` measures."""

_SLOTS = ("pathParams", "queryParams", "headerParams", "cookieParams", "body")
_BYTES = {"<bytes 00 FF>": "AP8=", "<base64 AP8=>": "AP8=", "<bytes>": "AP8="}
"""How the cases write bytes -> base64."""


@dataclass(frozen=True, slots=True)
class Case:
    """One entry of an ``expected.json``: a request, or a validation."""

    trap: str
    number: int
    kind: str
    """``cases`` or ``validate``."""
    whole: dict[str, Any]
    fields: dict[str, Any]

    @property
    def id(self) -> str:
        """What the case is called in test ids and in CHOICES.md."""
        if self.kind == "cases":
            return f"{self.trap} {self.fields['id']}"
        return f"{self.trap} validate[{self.number}] {self.fields['op']}"

    @property
    def strict(self) -> bool:
        return bool(self.fields["strict"])


def expectations() -> dict[str, dict[str, Any]]:
    """Return trap -> its ``expected.json``, for a generated document of :data:`GENERATED_SIZE`."""
    return {
        file.parent.name: json.loads(
            file.read_text(encoding="utf-8")
            .replace("20000", str(GENERATED_SIZE))
            .replace("r19999", f"r{GENERATED_SIZE - 1}")
        )
        for file in sorted(FOLDER.glob("*/expected.json"))
    }


def cases(kind: str) -> list[Case]:
    """Return every case of one kind, in the order of the folders."""
    return [
        Case(trap, number, kind, whole, fields)
        for trap, whole in expectations().items()
        for number, fields in enumerate(whole.get(kind, ()))
    ]


def counts() -> dict[str, tuple[int, int, int]]:
    """Return trap -> how many request cases, validations, and strict ones of both, by README.md."""
    rows = re.findall(
        r"(?m)^\| (\d\d-\S+) \| (\d+) \| (\d+) \| (\d+) \|", (FOLDER / "README.md").read_text("utf-8")
    )
    return {trap: (int(requests), int(checks), int(strict)) for trap, requests, checks, strict in rows}


@dataclass(frozen=True, slots=True)
class Chosen:
    """What capdex answers where a case leaves room."""

    answer: str
    """``accepted`` or ``refused``; of requests ``METHOD url`` or the code of the error."""
    as_expected: bool
    """Whether the trap names this answer among the right ones."""


def choices() -> dict[str, Chosen]:
    """Return case -> answer, of the cases that are not strict, by CHOICES.md."""
    text = (FOLDER / "CHOICES.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| (\d\d-.+?) \| `(.+?)` \| (same|other) \| .+ \|$", text)
    assert len(rows) == text.count("\n| ") - 1, "a row of CHOICES.md is not understood"
    return {case: Chosen(answer, mark == "same") for case, answer, mark in rows}


@cache
def document(trap: str, name: str = "openapi.yaml") -> bytes:
    script = FOLDER / trap / "gen.py"
    if script.exists():
        command = [sys.executable, script, str(GENERATED_SIZE)]
        return subprocess.run(command, capture_output=True, check=True).stdout
    return (FOLDER / trap / name).read_bytes()


@cache
def catalog(
    trap: str,
    name: str = "openapi.yaml",
    base: str | None = None,
    variables: tuple[tuple[str, str], ...] = (),
) -> Catalog:
    settings = SourceSettings(server_variables=dict(variables))
    location = str(FOLDER / trap / name)
    source = Source("trap", location, document(trap, name), base, settings)
    return build_catalog([source], retrieve=lambda _: folder_retrieve(FOLDER / trap))


def catalog_for(case: Case) -> Catalog:
    fields = case.fields
    variables = tuple(fields.get("serverVariables", {}).items())
    return catalog(case.trap, fields.get("doc", "openapi.yaml"), fields.get("base"), variables)


def executor(case: Case) -> Executor:
    held = case.fields.get("creds", case.whole.get("creds", {}))
    return Executor(catalog_for(case), transport=Upstream(), clock=Clock(), credentials={"trap": held})


def arguments(case: Case) -> dict[str, Any]:
    """Return the argument object of a case, with bytes as capdex takes them."""
    given = case.fields["args"] if case.kind == "cases" else case.fields
    return {key: _filled(given[key]) for key in (*_SLOTS, "contentType") if key in given}


def outcome(case: Case) -> dict[str, Any]:
    """Return what a dry run with credentials shown prepares; ``{"error": code}`` where it is refused."""
    try:
        shown = executor(case).prepare({"name": case.fields["op"], **arguments(case)}, show_credentials=True)
    except CapdexError as error:
        return {"error": error.code}
    body = shown.get("body")
    if "bodyBase64" in shown:
        return {**shown, "body": base64.b64decode(shown["bodyBase64"])}
    return {**shown, "body": None if body is None else body.encode()}


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text inside a JSON value, keys too."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from texts_in(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from texts_in(member)
    elif isinstance(value, str):
        yield value


def _filled(value: Any) -> Any:
    if isinstance(value, str) and value in _BYTES:
        return {"base64": _BYTES[value]}
    if isinstance(value, dict):
        return {key: _filled(member) for key, member in value.items()}
    return value
