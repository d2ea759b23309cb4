from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from bench.helpers import WordEncoder, write_jsonl
from bench.train_tiny import apis, write_base, write_train
from capdex_bench.cli import app
from capdex_bench.train import command
from capdex_bench.train.command import run_training
from capdex_bench.train.recipe import Settings, fingerprint
from capdex_bench.train.split import held_out_sets
from capdex_bench.train.validate import dense_results, figures
from capdex_engine.encode import load_encoder
from capdex_engine.errors import ConfigurationError, ModelError

SETTINGS = Settings(epochs=1, apis=3, requests=6, learning_rate=1e-3, precision="fp32")


@pytest.fixture
def data(tmp_path):
    write_train(tmp_path / "data" / "train", *apis(6))
    write_jsonl(
        tmp_path / "data" / "datasets" / "a" / "queries.jsonl", [{"id": "a", "text": "quick list user of 0"}]
    )
    return tmp_path / "data"


@pytest.fixture
def base(tmp_path):
    return write_base(tmp_path / "base")


@pytest.fixture(autouse=True)
def held_out(monkeypatch):
    monkeypatch.setattr(command, "read_held_out", lambda: ("api4.test.json", "api5.test.json"))


@pytest.mark.filterwarnings("ignore")  # what the libraries warn of when they are imported is theirs
def test_a_run_leaves_a_folder_that_the_engine_loads_and_its_recipe(data, base, tmp_path):
    out, said = tmp_path / "run", []
    last = run_training(data, out, SETTINGS, say=said.append, base=base, threads=1)
    encoder = load_encoder(tmp_path, model=str(out / "model"))
    assert encoder.dimension == 32
    assert encoder.encode(["list the users"]).shape == (1, 32)
    recipe = json.loads((out / "recipe.json").read_text())
    assert recipe["settings"]["precision"] == "fp32"
    assert recipe["requests"]["held out"] == 40
    assert recipe["requests"]["near a judging request"] == 1
    assert recipe["steps"] > 0
    assert recipe["base"] != recipe["weights"]
    assert set(recipe["data"]) == {"requests.tsv", "operations.jsonl"}
    assert set(recipe["heldOut"]) == {"before", "after"}
    assert str(tmp_path) not in (out / "recipe.json").read_text()
    assert "nDCG@10" in last
    assert [line.split(":")[0] for line in said if line.startswith(("before", "after"))] == [
        "before",
        "after",
    ]

    again = []
    run_training(data, out, SETTINGS, say=again.append, base=base, threads=1)
    assert any("going on" in line for line in again)
    assert not any(line.startswith("step") for line in again)
    figures_of = json.loads((out / "recipe.json").read_text())
    assert figures_of["weights"] == recipe["weights"]
    assert figures_of["heldOut"] == recipe["heldOut"]


def test_another_recipe_needs_another_folder(data, base, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_check", lambda *_: None)
    run_training(data, tmp_path / "run", SETTINGS, say=lambda _: None, base=base, threads=1)
    with pytest.raises(ConfigurationError):
        run_training(
            data, tmp_path / "run", Settings(epochs=1, seed=5), say=lambda _: None, base=base, threads=1
        )


def test_a_folder_whose_vectors_are_others_is_refused(data, base, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "load_encoder", lambda *_, **__: WordEncoder32())
    with pytest.raises(ModelError):
        run_training(data, tmp_path / "run", SETTINGS, say=lambda _: None, base=base, threads=1)


class WordEncoder32(WordEncoder):
    dimension = 32


def test_the_command_says_what_is_missing(tmp_path):
    found = CliRunner().invoke(app, ["train", "--out", str(tmp_path / "run"), "--data", str(tmp_path)])
    assert found.exit_code == 1
    assert not (tmp_path / "run").exists()


def test_help_imports_no_torch():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom capdex_bench.cli import app\n"
        "import capdex_bench.train\n"
        "assert CliRunner().invoke(app, ['train', '--help']).exit_code == 0\n"
        "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_validation_is_cosine_alone(data):
    sets = held_out_sets(data / "train", held_out=["api4.test.json", "api5.test.json"])
    encoder = WordEncoder()
    results = dense_results(sets, encoder.encode)
    found = figures(results)
    assert set(found["kinds"]) == {"natural", "terse", "typo", "multi"}
    assert 0.8 < found["nDCG@10"] <= 1.0
    assert len(results) == 2
    assert encoder.calls == sum(len(one.catalog()) + len(one.queries) for one in sets)


def test_a_fingerprint_knows_settings_base_and_every_text():
    marks = {
        fingerprint(SETTINGS, "base", ["a", "b"]),
        fingerprint(SETTINGS, "other", ["a", "b"]),
        fingerprint(SETTINGS, "base", ["ab"]),
        fingerprint(SETTINGS, "base", ["b", "a"]),
        fingerprint(Settings(), "base", ["a", "b"]),
    }
    assert len(marks) == 5


def test_threads_are_the_callers(data, base, tmp_path, monkeypatch):
    chosen = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr(command, "_check", lambda *_: None)
    run_training(data, tmp_path / "run", SETTINGS, say=lambda _: None, base=base, threads=1)
    assert chosen == [1]
