"""Arguments and schemas that multiply each other end in issues, or pass, within bounded time and memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import hostile_arguments
from capdex_engine.call.issues import MAX_ISSUES

CPU_SECONDS: Final = 60
MEMORY_BYTES: Final = 3 * 1024**3
KEYWORDS: Final = {
    "many_different_objects_that_must_be_unique": set(),
    "many_objects_of_which_two_are_equal": {"uniqueItems"},
    "many_items_and_many_alternatives": {"required"},
    "alternatives_that_multiply_by_reference": set(),
    "alternatives_that_multiply_by_depth": set(),
    "many_items_and_a_huge_enum": {"enum"},
    "everything_is_missing": {"required"},
    "every_name_is_unknown": {"additionalProperties"},
    "many_names_and_many_patterns": set(),
    "texts_for_a_catastrophic_pattern": {"pattern"},
    "many_texts_where_objects_are_wanted": set(),
    "evaluated_members_through_many_ways": set(),
    "objects_ten_thousand_levels_deep": {"maxDepth"},
    "lists_ten_thousand_levels_deep": {"maxDepth"},
}
"""Case -> keywords of its issues; none where checking ends without an answer, and the upstream decides."""


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def issues(name: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(Path(hostile_arguments.__file__)), name]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=_limit)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", hostile_arguments.MADE)
def test_checking_hostile_arguments_ends(name: str) -> None:
    found = issues(name)
    assert {each["keyword"] for each in found} == KEYWORDS[name]
    assert len(found) <= MAX_ISSUES + 1
    assert all(len(each["message"]) < 1000 for each in found)
