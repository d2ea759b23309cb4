"""Hostile documents end in an error or in a catalog without what is bad, within bounded time and memory.

Each is read by a process of its own that may use so many seconds of CPU and so much memory and no more.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

import hostile_documents
from capdex_engine.catalog.paths import MAX_PATH

CPU_SECONDS: Final = 60
"""Ten times what the worst of them takes; before they were bounded, several took hours."""
MEMORY_BYTES: Final = 3 * 1024**3
MAX_SHOWN: Final = 2 * 1024 * 1024
"""Bytes of one operation's description."""
REFUSED: Final = {
    "alias_bomb": "aliases expand to more than",
    "alias_bomb_of_merges": "aliases expand to more than",
    "deep_json": "nested deeper than 500 levels",
    "deep_flow_yaml": "nested deeper than 500 levels",
    "deep_block_yaml": "nested deeper than 500 levels",
    "deep_sequence_yaml": "nested deeper than 500 levels",
}
"""Documents that are no use at all, with a part of the reason."""
KEPT_OUT: Final = {
    "deep_schema": (1, "nested deeper than 48 levels"),
    "long_chain_of_references": (2000, "more than 100 in a row"),
    "cyclic_path_items": (4, "leads back to itself"),
    "files_that_include_each_other": (1, "leads back to itself"),
    "storm_of_files": (1, "more than 10000 files"),
    "hundred_megabyte_key": (1, f"longer than {MAX_PATH} characters"),
    "megabyte_names": (1, f"longer than {MAX_PATH} characters"),
    "many_path_variables": (2, f"longer than {MAX_PATH} characters"),
}
"""Documents of which so many operations are no use, with a part of the first one's reason."""


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


@cache
def read(name: str) -> dict[str, Any]:
    command = [sys.executable, str(Path(hostile_documents.__file__)), name]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=_limit)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", REFUSED)
def test_a_document_beyond_all_bounds_is_refused_with_a_reason(name: str) -> None:
    found = read(name)
    assert found["error"]["code"] == "document_error"
    assert REFUSED[name] in found["error"]["message"]
    assert found["operations"] == found["outside"] == 0


@pytest.mark.parametrize("name", sorted(hostile_documents.MADE.keys() - REFUSED))
def test_the_good_operation_of_a_hostile_document_is_offered(name: str) -> None:
    found = read(name)
    assert found["error"] is None
    assert "good" in found["names"]
    assert found["longest"] < MAX_SHOWN or name == "huge_required_and_enum"


@pytest.mark.parametrize("name", KEPT_OUT)
def test_a_bad_operation_is_kept_out_with_a_reason_of_bounded_length(name: str) -> None:
    count, reason = KEPT_OUT[name]
    found = read(name)
    assert found["outside"] == count
    assert reason in found["keptOut"][0]
    assert all(len(text) < 600 for text in found["keptOut"])


def test_operations_that_can_be_told_apart_all_get_names() -> None:
    assert read("many_operations_of_one_name")["operations"] == 50_001
    assert read("names_that_mean_something_elsewhere")["names"][:2] == ["__proto__", "constructor"]
    assert read("broken_characters")["operations"] == 2
