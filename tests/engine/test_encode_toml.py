"""What is written as TOML is read back the same."""

from __future__ import annotations

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.encode.toml import to_toml

PLAIN = (
    st.text(st.characters(codec="utf-8"), max_size=8)
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
)
NAMES = st.text(st.characters(codec="utf-8"), max_size=6)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)


@given(st.lists(NAMES, min_size=1, max_size=3), st.dictionaries(NAMES, VALUES, max_size=6))
def test_any_table_reads_back(path, table):
    tree = tomllib.loads(to_toml(path, table))
    for name in path:
        tree = tree[name]
    assert tree == table


def test_small_tables_stand_on_a_line_and_others_under_a_header():
    text = to_toml(("a", "b.c"), {"one": {"x": 1, "y": "z"}, "more": {"list": [1.5]}, "n": 2, "none": None})
    assert text == '[a."b.c"]\none = { x = 1, y = "z" }\nn = 2\n\n[a."b.c".more]\nlist = [1.5]\n'


def test_numbers_keep_their_digits():
    table = {"tolerance": 1e-5, "large": 1e22, "infinite": math.inf}
    assert tomllib.loads(to_toml(("t",), table))["t"] == table


def test_what_toml_does_not_know_is_refused():
    with pytest.raises(TypeError):
        to_toml(("t",), {"x": {1, 2}})
