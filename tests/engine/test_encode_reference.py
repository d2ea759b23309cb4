"""sentence-transformers is the yardstick of the export, and loads any other local model."""

from __future__ import annotations

import dataclasses
import os
import shutil
import threading

import numpy as np
import pytest

from capdex_engine.encode import load_encoder
from capdex_engine.encode.artefact import EXACT
from capdex_engine.encode.export import write_exact
from capdex_engine.encode.gates import PARITY_SENTENCES, open_graph
from capdex_engine.encode.lock import TOKENIZER, model_folder, read_lock
from capdex_engine.encode.reference import SentenceTransformerEncoder
from capdex_engine.errors import ModelError


@pytest.fixture(scope="module")
def reference():
    return SentenceTransformerEncoder()


@pytest.fixture(scope="module")
def served(cache):
    """The same weights as they are served."""
    return load_encoder(cache, pinned=read_lock().base)


def cosines(one, other, texts=PARITY_SENTENCES):
    return np.sum(one.encode(texts) * other.encode(texts), axis=1)


def test_the_served_encoder_is_near_the_reference(served, reference):
    settings = read_lock().base_model.export
    found = cosines(served, reference)
    assert found.mean() >= settings.parity_mean
    assert found.min() >= settings.parity_min


def test_ordinary_sentences_are_within_a_cosine_of_098(served, reference):
    texts = [
        "Create an invoice for a customer.",
        "how can I see which pull requests wait for my review?",
        "DELETE /projects/{project_id}/members/{user_id}",
        "Send a text message to a phone number.",
    ]
    assert cosines(served, reference, texts).min() >= 0.98


def test_the_exact_graph_is_torch_to_six_digits(reference, tmp_path):
    model = read_lock().base_model
    source = model_folder(model)
    write_exact(model, source, tmp_path / EXACT)
    shutil.copyfile(source / TOKENIZER, tmp_path / TOKENIZER)
    exact = open_graph(model, tmp_path, EXACT)
    np.testing.assert_allclose(exact.encode(PARITY_SENTENCES), reference.encode(PARITY_SENTENCES), atol=2e-6)


def test_the_pinned_float32_vector_is_torchs(reference):
    pinned = read_lock().base_model.canonical
    np.testing.assert_allclose(
        reference.encode([pinned.sentence])[0, :8], pinned.fp32, atol=pinned.fp32_tolerance
    )


def test_a_local_folder_is_loaded_and_known_by_its_content(reference, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(model_folder(read_lock().base_model), folder)
    encoder = load_encoder(tmp_path / "cache", model=str(folder))
    assert encoder.identity == reference.identity
    np.testing.assert_array_equal(encoder.encode(["list users"]), reference.encode(["list users"]))
    (folder / "README.md").write_text("trained further")
    assert SentenceTransformerEncoder(folder).identity != encoder.identity
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("name", ["missing", "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_a_name_that_is_no_local_model_is_refused_not_downloaded(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError) as caught:
        load_encoder(tmp_path, model=name)
    assert caught.value.code == "model_error"


def test_a_folder_with_broken_files_is_a_model_error(tmp_path):
    (tmp_path / "modules.json").write_text("{")
    with pytest.raises(ModelError):
        SentenceTransformerEncoder(tmp_path)


def test_an_altered_pinned_model_is_refused(monkeypatch):
    lock = read_lock()
    config = dataclasses.replace(lock.base_model.files["config.json"], sha256="0" * 64)
    other = dataclasses.replace(lock.base_model, files={**lock.base_model.files, "config.json": config})
    monkeypatch.setattr(
        "capdex_engine.encode.reference.read_lock",
        lambda: dataclasses.replace(lock, models={**lock.models, lock.base: other}),
    )
    with pytest.raises(ModelError):
        SentenceTransformerEncoder()


def test_odd_texts_and_no_text_are_fine(reference):
    assert reference.encode([]).shape == (0, reference.dimension)
    vectors = reference.encode(["", "\ud800", "word " * 2000])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_threads_may_share_the_reference(reference):
    expected, found = reference.encode(["list users"]), []
    workers = [
        threading.Thread(target=lambda: found.append(reference.encode(["list users"]))) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(np.concatenate(found), np.repeat(expected, 3, axis=0))


def test_the_libraries_are_told_to_stay_offline(reference):
    assert os.environ["HF_HUB_OFFLINE"] == "1"
