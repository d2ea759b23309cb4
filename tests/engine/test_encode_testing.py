"""The encoder for tests is the same everywhere and puts texts with common words near each other."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.encode.testing import HashEncoder


@given(st.lists(st.text(), max_size=5))
def test_every_text_gets_a_finite_unit_vector(texts):
    vectors = HashEncoder(16).encode(texts)
    assert vectors.shape == (len(texts), 16)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_vectors_do_not_depend_on_the_process():
    code = (
        "from capdex_engine.encode.testing import HashEncoder\n"
        "print(HashEncoder(8).encode(['list users']).tolist())"
    )
    first, second = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
        for _ in range(2)
    )
    assert first == second == f"{HashEncoder(8).encode(['list users']).tolist()}\n"


def test_case_and_punctuation_do_not_matter():
    a, b, c = HashEncoder().encode(["listHTTPOrders", "list http orders", "LIST_HTTP-orders"])
    np.testing.assert_allclose(a, b, atol=1e-6)
    np.testing.assert_allclose(a, c, atol=1e-6)


@pytest.mark.parametrize("text", ["create an order", "createOrders", "make a new order"])
def test_texts_with_common_words_are_nearer_than_others(text):
    query, near, far = HashEncoder().encode(["new orders", text, "delete webhook"])
    assert query @ near > query @ far


def test_the_identity_names_the_dimension():
    assert HashEncoder(8).identity != HashEncoder(16).identity
