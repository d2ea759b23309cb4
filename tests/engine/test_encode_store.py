"""Vectors are encoded once, kept on disk, and survive damage, races and full folders."""

from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.encode import VectorStore, shelf
from capdex_engine.encode.blocks import SUFFIX, Block, DamagedBlock, read_block, write_block
from capdex_engine.encode.testing import HashEncoder

DIMENSION = 8


class Counting(HashEncoder):
    """Remembers every text it had to encode."""

    def __init__(self, identity: str = "counting") -> None:
        super().__init__(DIMENSION)
        self.identity = identity
        self.seen: list[str] = []

    def encode(self, texts):
        self.seen += texts
        return super().encode(texts)


@pytest.fixture
def inner():
    return Counting()


def texts(count: int, start: int = 0) -> list[str]:
    return [f"operation number {i}" for i in range(start, start + count)]


def blocks(folder):
    return sorted(folder.rglob(f"*{SUFFIX}"))


def fresh(folder, wanted):
    """What another process would have to encode."""
    inner = Counting()
    np.testing.assert_array_equal(
        VectorStore(folder, inner).encode(wanted), HashEncoder(DIMENSION).encode(wanted)
    )
    return inner.seen


@given(st.lists(st.text(max_size=3), max_size=12), st.lists(st.text(max_size=3), max_size=12))
def test_cached_vectors_equal_uncached_ones(tmp_path_factory, first, second):
    folder = tmp_path_factory.mktemp("store")
    store = VectorStore(folder, Counting())
    for wanted in (first, second, [*second, *first]):
        np.testing.assert_array_equal(store.encode(wanted), HashEncoder(DIMENSION).encode(wanted))


def test_only_new_texts_are_encoded(tmp_path, inner):
    VectorStore(tmp_path, inner).encode(texts(5))
    assert inner.seen == texts(5)
    assert fresh(tmp_path, texts(7)) == texts(2, 5)
    assert fresh(tmp_path, texts(7)) == []


def test_a_repeated_text_is_encoded_once(tmp_path, inner):
    vectors = VectorStore(tmp_path, inner).encode(["a", "b", "a", "a"])
    assert inner.seen == ["a", "b"]
    np.testing.assert_array_equal(vectors[0], vectors[3])


def test_nothing_to_encode_gives_no_rows_and_writes_nothing(tmp_path, inner):
    assert VectorStore(tmp_path, inner).encode([]).shape == (0, DIMENSION)
    assert list(tmp_path.iterdir()) == []


def test_a_lone_surrogate_has_its_own_place(tmp_path, inner):
    VectorStore(tmp_path, inner).encode(["\ud800", "?"])
    assert inner.seen == ["\ud800", "?"]
    assert fresh(tmp_path, ["?", "\ud800"]) == []


def test_without_a_folder_everything_is_encoded_each_time(inner):
    store = VectorStore(None, inner)
    np.testing.assert_array_equal(store.encode(["a"]), store.encode(["a"]))
    assert inner.seen == ["a", "a"]


def test_encoders_do_not_share_vectors(tmp_path):
    one, other = Counting("one"), Counting("other")
    VectorStore(tmp_path, one).encode(["a"])
    VectorStore(tmp_path, other).encode(["a"])
    assert one.seen == other.seen == ["a"]


def test_progress_counts_different_texts_up_to_their_number(tmp_path, inner):
    told = []
    VectorStore(tmp_path, inner).encode(texts(300), progress=lambda *step: told.append(step))
    VectorStore(tmp_path, inner).encode([*texts(310), *texts(10)], progress=lambda *step: told.append(step))
    assert told == [(0, 300), (256, 300), (300, 300), (300, 310), (310, 310)]


def test_an_interrupted_build_keeps_what_it_has_saved(tmp_path, monkeypatch):
    monkeypatch.setattr("capdex_engine.encode.store._CHUNK", 4)
    monkeypatch.setattr("capdex_engine.encode.store._STEP", 2)

    class Stopped(Counting):
        def encode(self, texts):
            if len(self.seen) == 6:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt):
        VectorStore(tmp_path, Stopped()).encode(texts(10))
    assert fresh(tmp_path, texts(10)) == texts(6, 4)


def truncate(data: bytes) -> bytes:
    return data[:-1]


def flip(place: int):
    def change(data: bytes) -> bytes:
        altered = bytearray(data)
        altered[place] ^= 4
        return bytes(altered)

    return change


DAMAGE = {
    "cut short": truncate,
    "cut in the header": lambda data: data[:10],
    "emptied": lambda data: b"",
    "grown": lambda data: data + b"\0",
    "another format": lambda data: b"capdexv2" + data[8:],
    "flip in the dimension": flip(8),
    "flip in the checksum": flip(12),
    "flip in the count": flip(16),
    "flip in a key": flip(30),
    "flip in a vector": flip(-3),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_block_is_dropped_and_rebuilt(tmp_path, inner, damage, caplog):
    VectorStore(tmp_path, inner).encode(texts(3))
    VectorStore(tmp_path, inner).encode(texts(2, 3))
    broken = next(path for path in blocks(tmp_path) if len(read_block(path, DIMENSION).keys) == 3)
    broken.write_bytes(damage(broken.read_bytes()))
    assert fresh(tmp_path, texts(5)) == texts(3)
    assert str(broken) in caplog.text
    assert fresh(tmp_path, texts(5)) == []


def test_a_block_is_whole_or_absent(tmp_path, monkeypatch):
    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_block(tmp_path, Block([b"k" * 16], np.ones((1, 3), dtype=np.float32)))
    assert list(tmp_path.iterdir()) == []


def test_a_block_of_another_dimension_is_damaged(tmp_path):
    path = write_block(tmp_path, Block([b"k" * 16], np.ones((1, 3), dtype=np.float32)))
    with pytest.raises(DamagedBlock):
        read_block(path, 4)


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path, inner, caplog):
    (tmp_path / "file").write_text("in the way")
    vectors = VectorStore(tmp_path / "file", inner).encode(["a"])
    np.testing.assert_array_equal(vectors, HashEncoder(DIMENSION).encode(["a"]))
    assert "not cached" in caplog.text


def test_a_block_that_vanishes_while_it_is_read_is_encoded_again(tmp_path, inner, monkeypatch):
    VectorStore(tmp_path, inner).encode(["a"])

    def vanish(path, dimension):
        raise FileNotFoundError(path)

    monkeypatch.setattr(shelf, "read_block", vanish)
    assert fresh(tmp_path, ["a"]) == ["a"]


def test_many_blocks_become_one(tmp_path, inner):
    store = VectorStore(tmp_path, inner)
    for i in range(shelf.MAX_BLOCKS + 1):
        store.encode([f"text {i}"])
    assert len(blocks(tmp_path)) == 1
    assert fresh(tmp_path, [f"text {i}" for i in range(shelf.MAX_BLOCKS + 1)]) == []


def test_merging_sweeps_what_a_crash_left(tmp_path, inner):
    store = VectorStore(tmp_path, inner)
    store.encode(["first"])
    (blocks(tmp_path)[0].parent / "left.tmp").write_bytes(b"half")
    for i in range(shelf.MAX_BLOCKS):
        store.encode([f"text {i}"])
    assert [path.suffix for path in blocks(tmp_path)[0].parent.iterdir()] == [SUFFIX]


def test_above_the_capacity_the_oldest_go_and_the_wanted_stay(tmp_path, inner):
    store = VectorStore(tmp_path, inner, capacity=20)
    for start in range(0, 40, 4):
        store.encode([*texts(4), *texts(4, start)])
    kept = [key for path in blocks(tmp_path) for key in read_block(path, DIMENSION).keys]
    assert len(kept) == len(set(kept)) <= 20
    assert fresh(tmp_path, texts(4)) == []
    assert fresh(tmp_path, texts(4, 36)) == []
    assert fresh(tmp_path, texts(4, 4)) == texts(4, 4)


def test_a_catalog_above_the_capacity_is_kept_whole(tmp_path, inner):
    VectorStore(tmp_path, inner, capacity=10).encode(texts(50))
    assert fresh(tmp_path, texts(50)) == []


def test_folders_of_old_encoders_are_dropped_and_foreign_ones_stay(tmp_path):
    (tmp_path / "models").mkdir()
    for i in range(shelf.NEIGHBOURS + 3):
        VectorStore(tmp_path, Counting(f"encoder {i}")).encode(["a"])
    assert (tmp_path / "models").is_dir()
    assert len(list(tmp_path.iterdir())) == 1 + shelf.NEIGHBOURS + 1


def test_threads_that_save_at_once_lose_nothing(tmp_path):
    def build(start):
        VectorStore(tmp_path, Counting()).encode(texts(20, start))

    threads = [threading.Thread(target=build, args=(start,)) for start in (0, 10, 20, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fresh(tmp_path, texts(50)) == []


def _build(folder, start):
    store = VectorStore(folder, Counting())
    for i in range(start, start + 10):
        store.encode([f"operation number {i}"])


def test_processes_that_save_at_once_leave_no_damage(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_build, args=(tmp_path, start)) for start in (0, 10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    for path in blocks(tmp_path):
        read_block(path, DIMENSION)
    assert len(fresh(tmp_path, texts(20))) < 20
