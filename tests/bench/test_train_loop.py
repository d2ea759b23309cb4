from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.helpers import ticking
from bench.train_tiny import apis, corpus
from capdex_bench.train.corpus import Corpus
from capdex_bench.train.loop import CHECKPOINT, Run, learning_rate
from capdex_bench.train.model import Model
from capdex_bench.train.pool import select
from capdex_bench.train.recipe import Settings
from capdex_engine.errors import ConfigurationError

SETTINGS = Settings(
    epochs=2, apis=3, requests=6, learning_rate=2e-3, dropout=0.1, precision="fp32", siblings=1
)

pytestmark = pytest.mark.usefixtures("one_thread")

Start = Callable[..., Run]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus(tmp_path_factory.mktemp("train"), *apis(6))


@pytest.fixture
def start(base: Path, data: Corpus) -> Start:
    pool = select(data, (), ())

    def make(folder: Path | None = None, *, settings: Settings = SETTINGS, fingerprint: str = "same") -> Run:
        return Run(Model(base), data, pool, settings, folder=folder, fingerprint=fingerprint)

    return make


def train(run: Run, *, every: float = 180.0, until: int | None = None) -> list[str]:
    said: list[str] = []
    run.train(say=said.append, clock=ticking(), every=every, until=until)
    return said


def weights(run: Run) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in run.model.weights.items()}


def test_a_run_that_was_cut_ends_as_one_that_was_not(start: Start, tmp_path: Path) -> None:
    whole = start()
    train(whole)
    first = start(tmp_path)
    assert not first.resume()
    train(first, until=7)
    second = start(tmp_path)
    assert second.resume()
    assert second.progress.step == 7
    train(second)
    assert second.progress.step == whole.steps > 10
    assert second.progress.losses == whole.progress.losses
    assert all(torch.equal(value, weights(second)[name]) for name, value in weights(whole).items())


def test_the_loss_falls(start: Start) -> None:
    run = start(
        settings=Settings(epochs=12, apis=3, requests=6, learning_rate=5e-3, dropout=0.0, precision="fp32")
    )
    train(run)
    assert run.progress.losses[-1] < 0.8 * run.progress.losses[0]


def test_bfloat16_trains_too(start: Start) -> None:
    run = start(settings=Settings(epochs=0.5, apis=3, requests=6))
    before = weights(run)
    train(run)
    assert all(math.isfinite(loss) for loss in run.progress.losses)
    assert not torch.equal(
        before["embeddings.word_embeddings.weight"], weights(run)["embeddings.word_embeddings.weight"]
    )
    assert {value.dtype for value in run.model.weights.values()} == {torch.float32}


def test_checkpoints_come_by_the_clock(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start(tmp_path)
    steps: list[int] = []
    monkeypatch.setattr(run, "_save", lambda: steps.append(run.progress.step))
    train(run, every=4.0, until=10)
    assert steps == [4, 8, 10]


def test_a_line_of_progress_says_where_it_is(start: Start) -> None:
    said = train(start())
    assert said[0].startswith("step 10/")
    assert "0 min left" in said[-1]


def test_nothing_but_the_checkpoint_is_left(start: Start, tmp_path: Path) -> None:
    train(start(tmp_path), until=2)
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]


def test_a_checkpoint_of_another_run_is_refused(start: Start, tmp_path: Path) -> None:
    train(start(tmp_path), until=1)
    with pytest.raises(ConfigurationError):
        start(tmp_path, fingerprint="other").resume()


def test_a_damaged_checkpoint_is_refused(start: Start, tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(ConfigurationError):
        start(tmp_path).resume()


def test_a_finished_run_has_nothing_left_to_do(start: Start, tmp_path: Path) -> None:
    run = start(tmp_path)
    train(run)
    again = start(tmp_path)
    assert again.resume()
    assert train(again) == []
    assert all(torch.equal(value, weights(again)[name]) for name, value in weights(run).items())


def test_part_of_an_epoch_is_its_first_batches(start: Start) -> None:
    assert start(settings=Settings(epochs=0.5, apis=3, requests=6)).steps * 4 == pytest.approx(
        start(settings=Settings(epochs=2, apis=3, requests=6)).steps, abs=3
    )


def test_the_rate_rises_falls_and_ends_with_the_run() -> None:
    settings = Settings(learning_rate=1.0, warm_up=0.1)
    rates = [learning_rate(settings, step, 100) for step in range(100)]
    assert rates[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert max(rates) == 1.0
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0 < rates[-1] < 0.02
    assert learning_rate(settings, 0, 1) > 0


@pytest.mark.parametrize(
    "fault", [{"precision": "fp8"}, {"epochs": 0.0}, {"apis": 1}, {"requests": 0}, {"dropout": 1.0}]
)
def test_settings_that_cannot_work_are_refused(fault: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Settings(**fault)
