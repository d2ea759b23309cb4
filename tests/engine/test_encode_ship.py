"""A trained folder becomes two files and an entry: the same every time, and only when every gate passes."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from capdex_engine.encode.lock import MODEL, TOKENIZER, LockedModel, ShippedModel, sha256_file
from capdex_engine.encode.onnx import OnnxEncoder
from capdex_engine.encode.reference import SentenceTransformerEncoder
from capdex_engine.encode.ship import WEIGHTS, _digest, entry_toml, main, ship
from capdex_engine.errors import ModelError
from engine.encode_tiny import HIDDEN, MAX_TOKENS, write_trained

SENTENCES = ["Find the user", "delete a webhook", "user " * 60]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "model"
    write_trained(folder)
    return folder


def write_recipe(path: Path, **fields) -> Path:
    path.write_text(json.dumps({"settings": {"seed": 3}, "losses": [2.0, 1.0], **fields}))
    return path


def refused(call, *args, **keywords) -> ModelError:
    with pytest.raises(ModelError) as caught:
        call(*args, **keywords)
    return caught.value


def read_back(name: str, entry: dict) -> ShippedModel:
    table = tomllib.loads(entry_toml(name, entry))["models"][name]
    assert table.pop("kind") == "shipped"
    return ShippedModel.parse(name, table)


def test_the_same_folder_gives_the_same_bytes_and_the_same_entry(trained, tiny, tmp_path):
    entries = [ship(trained, tmp_path / place, "tiny", base=tiny) for place in ("a", "b")]
    assert entry_toml("tiny", entries[0]) == entry_toml("tiny", entries[1])
    for file in (MODEL, TOKENIZER):
        a, b = ((tmp_path / place / "tiny" / file).read_bytes() for place in ("a", "b"))
        assert a == b


def test_an_entry_reads_back_and_pins_what_was_written(trained, tiny, tmp_path):
    entry = ship(trained, tmp_path, "tiny-1", base=tiny)
    model = read_back("tiny-1", entry)
    assert (model.dimension, model.max_tokens, model.licence) == (HIDDEN, MAX_TOKENS, tiny.licence)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny-1"]
    assert {path.name for path in (tmp_path / "tiny-1").iterdir()} == set(model.files) == {MODEL, TOKENIZER}
    for name, pin in model.files.items():
        path = tmp_path / "tiny-1" / name
        assert (pin.sha256, pin.bytes) == (sha256_file(path), path.stat().st_size)
    assert model.canonical.sentence == tiny.canonical.sentence
    assert model.provenance["weights_sha256"] == sha256_file(trained / WEIGHTS)
    assert model.provenance["parity"]["mean"] >= tiny.export.parity_mean


def test_what_is_shipped_gives_the_vectors_of_sentence_transformers(trained, tiny, tmp_path):
    model = read_back("tiny", ship(trained, tmp_path, "tiny", base=tiny))
    files = tmp_path / "tiny"
    served = OnnxEncoder(files / MODEL, files / TOKENIZER, identity="", max_tokens=model.max_tokens)
    cosines = np.sum(served.encode(SENTENCES) * SentenceTransformerEncoder(trained).encode(SENTENCES), axis=1)
    assert cosines.min() > 0.9


def test_a_model_of_the_same_name_is_replaced(trained, tiny, tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "old").touch()
    ship(trained, tmp_path, "tiny", base=tiny)
    assert {path.name for path in (tmp_path / "tiny").iterdir()} == {MODEL, TOKENIZER}


@pytest.mark.parametrize("name", ["", "Tiny", "a/b", "../up", ".hidden", "a.b", "a b"])
def test_a_name_that_is_no_plain_folder_is_refused(trained, tiny, tmp_path, name):
    refused(ship, trained, tmp_path, name, base=tiny)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limits", [{"parity_mean": 1.01}, {"parity_min": 1.01}])
def test_a_model_that_loses_too_much_to_int8_leaves_the_old_one_alone(trained, tiny, tmp_path, limits):
    (tmp_path / "tiny").mkdir()
    strict = dataclasses.replace(tiny, export=dataclasses.replace(tiny.export, **limits))
    refused(ship, trained, tmp_path, "tiny", base=strict)
    assert [path.name for path in tmp_path.rglob("*")] == ["tiny"]


@pytest.mark.parametrize(
    ("file", "value"),
    [
        ("1_Pooling/config.json", {"word_embedding_dimension": HIDDEN, "pooling_mode_cls_token": True}),
        (
            "config_sentence_transformers.json",
            {"prompts": {"query": "find the "}, "default_prompt_name": "query"},
        ),
    ],
    ids=["pooling", "prompt"],
)
def test_a_model_that_the_graph_cannot_follow_is_refused(tiny, tmp_path, file, value):
    write_trained(tmp_path / "model")
    (tmp_path / "model" / file).write_text(json.dumps(value))
    refused(ship, tmp_path / "model", tmp_path / "out", "tiny", base=tiny)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_is_no_model_is_refused(tiny, tmp_path):
    refused(ship, tmp_path, tmp_path / "out", "tiny", base=tiny)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["{}", "[1]", "{"])
def test_a_folder_without_its_length_is_refused(tiny, tmp_path, monkeypatch, text):
    write_trained(tmp_path / "model")
    (tmp_path / "model" / "sentence_bert_config.json").write_text(text)
    monkeypatch.setattr("capdex_engine.encode.ship.SentenceTransformerEncoder", lambda folder: None)
    refused(ship, tmp_path / "model", tmp_path / "out", "tiny", base=tiny)


def test_the_recipe_becomes_provenance_and_the_base_is_named_when_it_is_the_locks(trained, tiny, tmp_path):
    recipe = write_recipe(tmp_path / "recipe.json", weights=_digest(trained), base=_digest(trained))
    provenance = read_back(
        "tiny", ship(trained, tmp_path / "out", "tiny", base=tiny, recipe=recipe)
    ).provenance
    assert provenance["recipe"]["settings"] == {"seed": 3}
    assert "losses" not in provenance["recipe"]
    assert provenance["recipe_sha256"] == sha256_file(recipe)
    assert (provenance["base"], provenance["base_sha256"]) == ("tiny", tiny.files[WEIGHTS].sha256)


def test_a_run_that_started_elsewhere_does_not_claim_the_locks_base(trained, tiny, tmp_path):
    recipe = write_recipe(tmp_path / "recipe.json", weights=_digest(trained), base="0" * 64)
    provenance = ship(trained, tmp_path / "out", "tiny", base=tiny, recipe=recipe)["provenance"]
    assert "base" not in provenance
    assert provenance["recipe"]["base"] == "0" * 64


def test_the_recipe_of_another_run_is_refused_with_both_digests(trained, tiny, tmp_path):
    recipe = write_recipe(tmp_path / "recipe.json", weights="0" * 64)
    error = refused(ship, trained, tmp_path / "out", "tiny", base=tiny, recipe=recipe)
    assert (error.details["expected"], error.details["found"]) == ("0" * 64, _digest(trained))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["", "[1]", "3"])
def test_a_recipe_that_cannot_be_read_is_refused(trained, tiny, tmp_path, text):
    (tmp_path / "recipe.json").write_text(text)
    refused(ship, trained, tmp_path / "out", "tiny", base=tiny, recipe=tmp_path / "recipe.json")


def test_the_digest_covers_what_is_trained_only(trained, tmp_path):
    tensors = load_file(trained / WEIGHTS)
    save_file({**tensors, "pooler.dense.weight": np.ones((2, 2), np.float32)}, tmp_path / WEIGHTS)
    assert _digest(tmp_path) == _digest(trained)
    name = "embeddings.LayerNorm.bias"
    save_file({**tensors, name: tensors[name] + 1}, tmp_path / WEIGHTS)
    assert _digest(tmp_path) != _digest(trained)


def test_the_command_line_gives_the_entry_to_paste(trained, tiny, tmp_path, monkeypatch):
    class Lock:
        base_model: LockedModel = tiny

    monkeypatch.setattr("capdex_engine.encode.ship.read_lock", Lock)
    told: list[str] = []
    text = main([str(trained), "tiny-2", "--target", str(tmp_path)], told.append)
    assert list(tomllib.loads(text)["models"]) == ["tiny-2"]
    assert (tmp_path / "tiny-2" / MODEL).is_file()
    assert told


def test_run_as_a_module_it_ends_with_a_reason_not_a_trace(tmp_path):
    command = [sys.executable, "-m", "capdex_engine.encode.ship", str(tmp_path), "tiny"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr
