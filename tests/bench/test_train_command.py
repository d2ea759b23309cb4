from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from bench.helpers import WordEncoder, write_jsonl
from bench.train_tiny import apis, write_base, write_train
from capdex_bench.cli import app
from capdex_bench.train import command
from capdex_bench.train.command import run_training
from capdex_bench.train.corpus import read_corpus
from capdex_bench.train.recipe import Settings, fingerprint
from capdex_bench.train.split import held_out_sets
from capdex_bench.train.validate import dense_results, figures
from capdex_engine.encode import load_encoder
from capdex_engine.errors import ConfigurationError, ModelError

SETTINGS = Settings(epochs=1, apis=3, requests=6, learning_rate=1e-3, precision="fp32")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_train(tmp_path / "data" / "train", *apis(6))
    write_jsonl(
        tmp_path / "data" / "datasets" / "a" / "queries.jsonl", [{"id": "a", "text": "quick list user of 0"}]
    )
    return tmp_path / "data"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_base(tmp_path / "base")


@pytest.fixture(autouse=True)
def held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "read_held_out", lambda: ("api4.test.json", "api5.test.json"))


@pytest.mark.filterwarnings("ignore")  # what the libraries warn of when they are imported is theirs
def test_a_run_leaves_a_folder_that_the_engine_loads_and_its_recipe(
    data: Path, base: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    said: list[str] = []
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
    assert set(recipe["data"]) == {"requests.tsv", "operations.jsonl", "more.tsv", "none.tsv"}
    assert recipe["wholeDocuments"] is False
    assert set(recipe["heldOut"]) == {"before", "after"}
    assert str(tmp_path) not in (out / "recipe.json").read_text()
    assert "nDCG@10" in last
    assert [line.split(":")[0] for line in said if line.startswith(("before", "after"))] == [
        "before",
        "after",
    ]

    again: list[str] = []
    run_training(data, out, SETTINGS, say=again.append, base=base, threads=1)
    assert any("going on" in line for line in again)
    assert not any(line.startswith("step") for line in again)
    figures_of = json.loads((out / "recipe.json").read_text())
    assert figures_of["weights"] == recipe["weights"]
    assert figures_of["heldOut"] == recipe["heldOut"]


def test_a_run_that_starts_from_another_ones_model_says_so(
    data: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_check", lambda *_: None)
    first, second = tmp_path / "first", tmp_path / "second"
    run_training(data, first, SETTINGS, say=lambda _: None, base=base, threads=1)
    run_training(data, second, SETTINGS, say=lambda _: None, base=first / "model", threads=1)
    earlier, later = (json.loads((run / "recipe.json").read_text()) for run in (first, second))
    assert "startedFrom" not in earlier
    assert later["startedFrom"] == {name: value for name, value in earlier.items() if name != "losses"}
    assert later["base"] == earlier["weights"]


def test_another_recipe_needs_another_folder(
    data: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_check", lambda *_: None)
    run_training(data, tmp_path / "run", SETTINGS, say=lambda _: None, base=base, threads=1)
    with pytest.raises(ConfigurationError):
        run_training(
            data, tmp_path / "run", Settings(epochs=1, seed=5), say=lambda _: None, base=base, threads=1
        )


def test_a_folder_whose_vectors_are_others_is_refused(
    data: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "load_encoder", lambda *_, **__: WordEncoder32())
    with pytest.raises(ModelError):
        run_training(data, tmp_path / "run", SETTINGS, say=lambda _: None, base=base, threads=1)


class WordEncoder32(WordEncoder):
    dimension = 32


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["train", "--out", str(tmp_path / "run"), "--data", str(tmp_path)])
    assert found.exit_code == 1
    assert not (tmp_path / "run").exists()


Called = Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]

OPTIONS: dict[str, Any] = {
    "seed": 3,
    "epochs": 1.5,
    "siblings": 2,
    "apis": 5,
    "requests": 7,
    "mined": 1.25,
    "unserved": 4,
    "typos": 0.1,
    "glossed": 0.2,
    "bare": 0.3,
    "rate": 2e-5,
    "dropout": 0.05,
    "precision": "fp32",
}


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Called:
    """Call ``train`` with options; return what ``run_training`` is given."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def record(*args: Any, **options: Any) -> str:
        calls.append((args, options))
        return "done"

    monkeypatch.setenv("CAPDEX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(command, "run_training", record)

    def call(**options: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
        line = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        shown = CliRunner().invoke(app, ["train", "--out", "run", "--data", str(tmp_path), *line])
        assert (shown.exit_code, shown.output.splitlines()[-1:]) == (0, ["done"])
        return calls[-1]

    return call


def test_every_option_reaches_the_settings(called: Called) -> None:
    (_, out, settings), _ = called(**OPTIONS)
    assert out == Path("run")
    renamed = {"learning_rate" if name == "rate" else name: value for name, value in OPTIONS.items()}
    assert settings == Settings(**renamed)
    defaults = asdict(Settings())
    assert all(value != defaults[name] for name, value in renamed.items())


def test_without_options_the_settings_are_their_own_defaults(called: Called) -> None:
    (_, _, settings), options = called()
    assert settings == Settings()
    assert (options["documents"], options["threads"], options["base"]) == (None, None, None)


def test_documents_base_threads_and_the_cache_reach_the_run(called: Called, tmp_path: Path) -> None:
    (data, _, _), options = called(documents=tmp_path / "api", base=tmp_path / "base", threads=2, minutes=1)
    assert data == tmp_path
    assert options["documents"] == tmp_path / "api"
    assert options["cache"] == tmp_path / "cache"
    assert (options["base"], options["threads"], options["minutes"]) == (tmp_path / "base", 2, 1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mined", -1), ("unserved", -1), ("siblings", -1), ("typos", 1.1), ("typos", -0.1),
        ("glossed", 2), ("bare", -1), ("apis", 1), ("requests", 0), ("rate", -1),
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused_before_anything_is_read(name: str, value: float) -> None:
    found = CliRunner().invoke(app, ["train", "--out", "run", f"--{name}", str(value)])
    assert found.exit_code == 2


@pytest.mark.filterwarnings("ignore")  # what the libraries warn of when they are imported is theirs
def test_a_run_with_everything_reads_whole_documents_and_goes_on(
    data: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "read_corpus", partial(read_corpus, own=tmp_path / "own"))
    monkeypatch.setattr(command, "_check", lambda *_: None)
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Whole", "version": "1"},
        "paths": {"/users": {"get": {"summary": "All of them", "responses": {}}}},
    }
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "api0.test.json").write_text(json.dumps(document))
    settings = replace(SETTINGS, siblings=1, mined=1.0, unserved=1, typos=0.2, glossed=0.5, bare=0.2)
    out = tmp_path / "run"
    said: list[str] = []
    kept: dict[str, Any] = {
        "documents": tmp_path / "api",
        "cache": tmp_path / "cache",
        "base": base,
        "threads": 1,
    }
    for _ in range(2):
        run_training(data, out, settings, say=said.append, **kept)
    recipe = json.loads((out / "recipe.json").read_text())
    assert recipe["settings"] == asdict(settings)
    assert recipe["requests"]["without an answer"] == 4
    assert any("going on" in line for line in said)
    with pytest.raises(ConfigurationError):  # the texts of the rows are others
        run_training(data, out, settings, say=said.append, base=base, threads=1)


def test_help_imports_no_torch() -> None:
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom capdex_bench.cli import app\n"
        "import capdex_bench.train\n"
        "assert CliRunner().invoke(app, ['train', '--help']).exit_code == 0\n"
        "assert not {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_validation_is_cosine_alone(data: Path) -> None:
    sets = held_out_sets(data / "train", held_out=["api4.test.json", "api5.test.json"])
    encoder = WordEncoder()
    results = dense_results(sets, encoder.encode)
    found = figures(results)
    assert set(found["kinds"]) == {"natural", "terse", "typo", "multi"}
    assert 0.8 < found["nDCG@10"] <= 1.0
    assert len(results) == 2
    assert encoder.calls == sum(len(one.catalog()) + len(one.queries) for one in sets)


def test_a_fingerprint_knows_settings_base_and_every_text() -> None:
    marks = {
        fingerprint(SETTINGS, "base", ["a", "b"]),
        fingerprint(SETTINGS, "other", ["a", "b"]),
        fingerprint(SETTINGS, "base", ["ab"]),
        fingerprint(SETTINGS, "base", ["b", "a"]),
        fingerprint(Settings(), "base", ["a", "b"]),
    }
    assert len(marks) == 5


def test_threads_are_the_callers(
    data: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr(command, "_check", lambda *_: None)
    run_training(data, tmp_path / "run", SETTINGS, say=lambda _: None, base=base, threads=1)
    assert chosen == [1]
