"""The skills of an index -> the same record and store as a document's operations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from capdex_engine.catalog.context import Reading
from capdex_engine.catalog.paths import Found
from capdex_engine.catalog.reader import read_document
from capdex_engine.catalog.report import KeptOut
from capdex_engine.catalog.source import Source
from capdex_engine.catalog.store import Store
from capdex_engine.catalog.texts import MAX_SUMMARY, clip
from capdex_engine.documents import References, Resolved
from capdex_engine.errors import DocumentError
from capdex_engine.operation import SKILL_METHOD
from capdex_engine.skills.entries import read_index

_BODY = {"description": "What the skill needs, in its own terms: any JSON value."}


def read_skills(source: Source, *, extra: dict[str, Any], path: Path | None) -> Store:
    """Read a source's skills into a store; arguments as for ``reader.read_document``.

    The source's bytes are what :meth:`capdex_engine.skills.SkillIndex.document` wrote.

    Raises:
        DocumentError: The source's bytes are no index.
    """
    found = read_index(source.data, location=source.location)
    skills = [skill.to_json() for skill in found.skills]
    dropped = json.loads(source.data).get("dropped", [])
    tree = {"openapi": "3.1.0", "info": {"title": "Skills"}, "skills": skills, "dropped": dropped}
    references = References(tree, source.location, _nothing_else)
    finders = (_find, _outside)
    return read_document(tree, references, source.location, extra=extra, path=path, finders=finders)


def _nothing_else(uri: str) -> bytes:
    raise DocumentError("an index of skills refers to nothing.", location=uri)


def _find(reading: Reading) -> Iterator[Found]:
    for index, skill in enumerate(reading.tree["skills"]):
        pointer = f"/skills/{index}"
        operation = Resolved(_operation(skill), reading.base, pointer)
        item = Resolved({}, reading.base, pointer)
        yield Found(SKILL_METHOD, skill["url"], item, operation, Resolved(skill, reading.base, pointer))


def _outside(reading: Reading, _: Iterable[Found]) -> Iterator[KeptOut]:
    for fault in reading.tree["dropped"]:
        index = fault["index"]
        yield KeptOut("skill", SKILL_METHOD, f"entry {index}", fault["reason"], f"/skills/{index}")


def _operation(skill: dict[str, str]) -> dict[str, Any]:
    """Return a skill as OpenAPI would describe it."""
    return {
        "operationId": skill["capability"],
        "summary": clip(f"{skill['title']}: {skill['description']}", MAX_SUMMARY),
        "description": skill["description"],
        "requestBody": {"required": False, "content": {"application/json": {"schema": _BODY}}},
    }
