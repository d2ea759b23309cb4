"""Hard negatives by made-up vectors: cosines that a test sets, so that it knows what must be found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.train_tiny import Row, corpus, operation_row
from capdex_bench.train.corpus import Corpus
from capdex_bench.train.mine import KEPT, MARGIN, MOST, load, nearest_wrong, save

RIGHT = 0.6


class Cosines:
    """An encoder for which each operation has a set cosine to every request."""

    def __init__(self, data: Corpus, cosines: Mapping[tuple[str, str], float]) -> None:
        keys = zip(data.documents, (one.key for one in data.operations), strict=True)
        self._cosines = {text: cosines[key] for text, key in zip(data.texts, keys, strict=True)}
        self.seen: list[str] = []

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.seen += texts
        along = np.array([self._cosines.get(text, 1.0) for text in texts])
        return np.stack([along, np.sqrt(1 - along**2)], axis=1).astype(np.float32)


def made(folder: Path, cosines: Mapping[str, float], requests: Sequence[Row]) -> tuple[Corpus, Cosines]:
    """Return operations ``GET /NAME`` of a.json by their cosines, and the encoder; b.json has one."""
    rows = [operation_row("a.json", f"GET /{name}", summary=f"about {name}") for name in cosines]
    rows.append(operation_row("b.json", "GET /stranger", summary="about strangers"))
    data = corpus(folder, rows, requests)
    known = {("a.json", f"GET /{name}"): value for name, value in cosines.items()}
    return data, Cosines(data, {**known, ("b.json", "GET /stranger"): RIGHT})


def names(data: Corpus, found: Sequence[int]) -> list[str]:
    return [data.operations[number].path.strip("/") for number in found]


def asked(*operations: str, document: str = "a.json", text: str = "do it") -> Row:
    return (document, " ; ".join(f"GET /{name}" for name in operations), "natural", text)


def test_the_nearest_wrong_ones_of_the_document_come_first(tmp_path: Path) -> None:
    data, encode = made(
        tmp_path, {"far": -0.2, "right": RIGHT, "close": 0.58, "middle": 0.3}, [asked("right")]
    )
    assert names(data, nearest_wrong(data, [0], encode)[0]) == ["close", "middle", "far"]


def test_no_more_are_kept_than_needed(tmp_path: Path) -> None:
    others = {f"other{number:02}": 0.5 - number / 100 for number in range(2 * KEPT)}
    data, encode = made(tmp_path, {"right": RIGHT, **others}, [asked("right")])
    assert names(data, nearest_wrong(data, [0], encode)[0]) == list(others)[:KEPT]


def test_what_is_far_nearer_than_the_right_one_is_rather_an_answer(tmp_path: Path) -> None:
    cosines = {"right": RIGHT, "answer": RIGHT + 2 * MARGIN, "rival": RIGHT + MARGIN / 2, "other": 0.1}
    data, encode = made(tmp_path, cosines, [asked("right")])
    assert names(data, nearest_wrong(data, [0], encode)[0]) == ["rival", "other"]


def test_the_nearest_right_answer_sets_the_margin_and_none_is_wrong(tmp_path: Path) -> None:
    cosines = {"one": 0.2, "two": 0.7, "three": 0.4, "rival": 0.72, "other": 0.1}
    data, encode = made(tmp_path, cosines, [asked("one", "two", "three")])
    assert names(data, nearest_wrong(data, [0], encode)[0]) == ["rival", "other"]


def test_what_answers_another_request_may_be_wrong_for_this_one(tmp_path: Path) -> None:
    requests = [asked("one"), asked("two", text="do the other")]
    data, encode = made(tmp_path, {"one": 0.5, "two": 0.5}, requests)
    found = nearest_wrong(data, [0, 1], encode)
    assert (names(data, found[0]), names(data, found[1])) == (["two"], ["one"])


def test_twins_of_a_right_answer_are_never_wrong(tmp_path: Path) -> None:
    rows = [
        operation_row("a.json", "GET /x", summary="Do it"),
        operation_row("a.json", "POST /x", summary="do it"),
        operation_row("a.json", "GET /y", summary="Else"),
    ]
    data = corpus(tmp_path, rows, [("a.json", "POST /x", "natural", "run the thing")])
    encode = Cosines(data, {("a.json", row["key"]): 0.5 for row in rows})  # type: ignore[misc]
    assert nearest_wrong(data, [0], encode) == {0: (2,)}


def test_requests_outside_the_pool_are_not_looked_at(tmp_path: Path) -> None:
    requests = [asked("one"), asked("two", text="do the other"), ("a.json", "-", "none", "sing")]
    data, encode = made(tmp_path, {"one": 0.5, "two": 0.5}, requests)
    assert list(nearest_wrong(data, [1], encode)) == [1]
    assert not {"do it", "sing"} & set(encode.seen)


def test_a_document_of_one_operation_has_no_wrong_one(tmp_path: Path) -> None:
    data, encode = made(tmp_path, {"one": 0.5}, [asked("stranger", document="b.json")])
    assert nearest_wrong(data, [0], encode) == {0: ()}


def test_of_a_large_document_those_with_requests_are_looked_at_first(tmp_path: Path) -> None:
    cosines = {f"op{number}": 0.1 for number in range(MOST + 20)}
    data, encode = made(tmp_path, {**cosines, "right": RIGHT, "asked": 0.3}, [asked("right"), asked("asked")])
    found = nearest_wrong(data, [0, 1], encode)
    assert len([text for text in encode.seen if text != "do it"]) == MOST
    assert names(data, found[0])[0] == "asked"


def test_every_right_answer_is_looked_at_however_many(tmp_path: Path) -> None:
    cosines = {f"op{number}": 0.5 for number in range(MOST + 20)}
    data, encode = made(tmp_path, cosines, [asked(name, text=f"do {name}") for name in cosines])
    found = nearest_wrong(data, range(len(cosines)), encode)
    assert all(len(own) == KEPT and number not in own for number, own in found.items())


def test_nothing_asked_nothing_found(tmp_path: Path) -> None:
    data, _ = made(tmp_path, {"one": 0.5}, [])
    assert nearest_wrong(data, [], lambda texts: np.zeros((len(texts), 2), dtype=np.float32)) == {}


@pytest.mark.parametrize("found", [{}, {3: (1, 7, 2), 0: (5,)}])
def test_what_was_mined_is_read_back_in_its_order(tmp_path: Path, found: Mapping[int, Sequence[int]]) -> None:
    save(tmp_path / "new" / "mined.npy", found)
    read = load(tmp_path / "new" / "mined.npy")
    assert read == found
    assert all(type(number) is int for own in read.values() for number in own)


def test_a_request_without_wrong_ones_is_not_stored(tmp_path: Path) -> None:
    save(tmp_path / "mined.npy", {0: (), 1: (2,)})
    assert load(tmp_path / "mined.npy") == {1: (2,)}
