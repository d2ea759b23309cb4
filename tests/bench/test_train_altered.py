"""What a run shows of a text: misspelt, glossed or bare, and what it mines; cut and taken up again."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.helpers import ticking
from bench.train_tiny import apis, corpus
from capdex_bench.train import loop
from capdex_bench.train.corpus import Corpus
from capdex_bench.train.loop import CHECKPOINT, Run
from capdex_bench.train.mine import load
from capdex_bench.train.model import Model
from capdex_bench.train.pool import Pool, select
from capdex_bench.train.recipe import Settings
from capdex_engine.rank.languages import gloss

MINED = loop.MINED.format("same")
FOREIGN = ("muestra todos los usuarios", "zeige alle Rechnungen", "列出所有用户")
PLAIN = Settings(epochs=1, apis=3, requests=6, learning_rate=2e-3, precision="fp32")
ALL = replace(PLAIN, epochs=2, siblings=1, mined=1.5, unserved=1, typos=0.4, glossed=0.5, bare=0.3)

pytestmark = pytest.mark.usefixtures("one_thread")

Start = Callable[..., Run]
Shown = Callable[[Settings], tuple[list[str], list[str]]]
"""Settings -> requests and operations' texts."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    operations, requests = apis(6)
    foreign = [("api0.test.json", "GET /users", "foreign", text) for text in FOREIGN]
    return corpus(tmp_path_factory.mktemp("train"), operations, [*requests, *foreign])


@pytest.fixture(scope="module")
def pool(data: Corpus) -> Pool:
    return select(data, (), ())


@pytest.fixture
def start(base: Path, data: Corpus, pool: Pool) -> Start:
    def make(settings: Settings, folder: Path | None = None) -> Run:
        return Run(Model(base), data, pool, settings, folder=folder, fingerprint="same")

    return make


@pytest.fixture
def shown(start: Start, monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Train one epoch, and return the requests and the operations' texts that the model was shown."""

    def watch(settings: Settings) -> tuple[list[str], list[str]]:
        run = start(settings)
        calls: list[Sequence[str]] = []
        tokens = run.model.tokens

        def spy(texts: Sequence[str], limit: int) -> list[list[int]]:
            calls.append(texts)
            return tokens(texts, limit)

        monkeypatch.setattr(run.model, "tokens", spy)
        train(run)
        return [t for texts in calls[::2] for t in texts], [t for texts in calls[1::2] for t in texts]

    return watch


def train(run: Run, until: int | None = None) -> list[str]:
    said: list[str] = []
    run.train(say=said.append, clock=ticking(), until=until)
    return said


def losses(run: Run) -> list[float]:
    return [*run.progress.losses, *run.progress.recent]


def texts_of(data: Corpus) -> set[str]:
    return {request.text for request in data.requests}


def test_without_any_share_texts_are_shown_as_they_are(shown: Shown, data: Corpus) -> None:
    requests, operations = shown(PLAIN)
    assert set(requests) == {request.text for request in data.requests if request.answers}
    assert set(operations) <= set(data.texts)


def test_requests_are_misspelt_but_those_in_other_languages(shown: Shown, data: Corpus) -> None:
    requests, operations = shown(replace(PLAIN, typos=1.0))
    assert set(FOREIGN) <= set(requests)
    assert set(requests) & texts_of(data) == set(FOREIGN)
    assert set(operations) <= set(data.texts)


def test_a_share_of_the_requests_is_misspelt(shown: Shown, data: Corpus) -> None:
    requests, _ = shown(replace(PLAIN, typos=0.3))
    misspelt = [text for text in requests if text not in texts_of(data)]
    assert 0.15 < len(misspelt) / len(requests) < 0.45


def test_requests_in_other_languages_are_shown_as_searching_reads_them(shown: Shown, data: Corpus) -> None:
    requests, _ = shown(replace(PLAIN, glossed=1.0))
    read = {found.text for text in FOREIGN if (found := gloss(text))}
    assert len(read) == len(FOREIGN)
    assert read <= set(requests)
    assert not set(FOREIGN) & set(requests)
    assert set(requests) - read <= texts_of(data)


def test_what_cannot_be_glossed_keeps_its_text(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "gloss", lambda _: None)
    requests, _ = shown(replace(PLAIN, glossed=1.0))
    assert set(FOREIGN) <= set(requests)


def test_operations_are_shown_bare(shown: Shown, data: Corpus) -> None:
    requests, operations = shown(replace(PLAIN, bare=1.0))
    assert set(operations) <= set(data.bare_texts)
    assert not set(operations) & set(data.texts)
    assert set(requests) <= texts_of(data)


def test_a_share_of_the_operations_is_bare(shown: Shown, data: Corpus) -> None:
    _, operations = shown(replace(PLAIN, bare=0.3))
    bare = [text for text in operations if text in data.bare_texts]
    assert 0.15 < len(bare) / len(operations) < 0.45


def test_unserved_requests_are_shown(shown: Shown, data: Corpus) -> None:
    requests, _ = shown(replace(PLAIN, unserved=1))
    assert {request.text for request in data.requests if not request.answers} <= set(requests)


def test_what_is_shown_follows_the_seed(shown: Shown) -> None:
    one, two, other = (shown(replace(ALL, epochs=1, seed=seed)) for seed in (4, 4, 5))
    assert one == two != other


def test_a_run_with_everything_that_was_cut_ends_as_one_that_was_not(start: Start, tmp_path: Path) -> None:
    whole = start(ALL)
    train(whole)
    for until in (3, 11):
        run = start(ALL, tmp_path)
        run.resume()
        train(run, until)
    last = start(ALL, tmp_path)
    assert last.resume()
    assert last.progress.step == 11 < last.steps
    train(last)
    assert losses(last) == losses(whole)
    assert last.model.digest() == whole.model.digest()


def test_mining_goes_by_the_base_and_is_kept_for_the_lives_to_come(
    start: Start, data: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(start(ALL, tmp_path), 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [CHECKPOINT, MINED]
    for number, wrong in load(tmp_path / MINED).items():
        request = data.requests[number]
        assert not set(wrong) & set(request.answers)
        assert {data.documents[n] for n in wrong} == {request.document}
    monkeypatch.setattr(loop, "nearest_wrong", mined_again)
    assert start(ALL, tmp_path).resume()


def mined_again(*_: object) -> dict[int, tuple[int, ...]]:
    raise AssertionError("mined again")


def test_what_another_run_mined_is_not_taken_up(start: Start, tmp_path: Path) -> None:
    (tmp_path / "mined-other.npy").write_bytes(b"torn")
    (tmp_path / ".mined-same.npy.new").write_bytes(b"torn")
    run = start(ALL, tmp_path)
    assert not run.resume()
    train(run, 3)
    whole = start(ALL)
    train(whole, 3)
    assert losses(run) == losses(whole)
    assert load(tmp_path / MINED)


def test_a_lost_file_of_mined_ones_is_mined_again_the_same(start: Start, tmp_path: Path) -> None:
    train(start(ALL, tmp_path), 2)
    before = load(tmp_path / MINED)
    (tmp_path / MINED).unlink()
    assert start(ALL, tmp_path).resume()
    assert load(tmp_path / MINED) == before


def test_nothing_is_mined_where_nothing_is_asked_for(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "nearest_wrong", mined_again)
    train(start(replace(ALL, mined=0.0), tmp_path), 1)
    assert not (tmp_path / MINED).exists()


def test_mined_negatives_change_what_is_trained(start: Start) -> None:
    first: list[float] = []
    for settings in (PLAIN, replace(PLAIN, mined=2.0)):
        run = start(replace(settings, dropout=0.0))
        train(run, 1)
        first += losses(run)
    assert first[0] < first[1]


def test_the_worlds_own_chance_is_left_alone(start: Start) -> None:
    random.seed(1)
    before = random.getstate()
    train(start(ALL), 2)
    assert random.getstate() == before
