"""The store: what goes in comes out, and damage is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.catalog.store import Store, StoreWriter, write_atomically


def filled(entries: list[bytes]) -> tuple[StoreWriter, list[int]]:
    writer = StoreWriter()
    return writer, [writer.add(entry) for entry in entries]


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_entries_come_back_by_number(entries: list[bytes]) -> None:
    writer, numbers = filled(entries)
    store = writer.finish({"a": [1]}, None)
    assert [store[number] for number in numbers] == entries
    assert store.meta == {"a": [1]}


def test_equal_entries_are_kept_once() -> None:
    writer, numbers = filled([b"x", b"y", b"x"])
    assert numbers == [0, 1, 0]
    assert len(writer.finish(None, None)) == 2


def test_a_file_holds_the_same_as_memory(tmp_path: Path) -> None:
    writer, numbers = filled([b"one", b"", b"three"])
    path = tmp_path / "deep" / "a.store"
    written = writer.finish({"k": "v"}, path)
    opened = Store.open(path)
    assert opened is not None
    for store in (written, opened):
        assert [store[number] for number in numbers] == [b"one", b"", b"three"]
        assert store.meta == {"k": "v"}


def test_an_unknown_number_is_an_index_error() -> None:
    store = filled([b"x"])[0].finish(None, None)
    for number in (-1, 1):
        with pytest.raises(IndexError):
            store[number]


def test_no_file_is_no_store(tmp_path: Path) -> None:
    assert Store.open(tmp_path / "missing") is None


@pytest.mark.parametrize("position", [0, 17, 25, 60, 90, -1])
def test_one_damaged_byte_is_noticed(tmp_path: Path, position: int) -> None:
    path = tmp_path / "a.store"
    filled([b"some bytes", b"more"])[0].finish({"m": 1}, path)
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    assert Store.open(path) is None


@pytest.mark.parametrize("kept", [0, 10, 80, -1])
def test_a_file_cut_short_is_noticed(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "a.store"
    filled([b"some bytes"])[0].finish({"m": 1}, path)
    path.write_bytes(path.read_bytes()[:kept])
    assert Store.open(path) is None


def test_a_folder_that_cannot_be_written_costs_the_file_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = filled([b"x"])[0].finish({"m": 1}, tmp_path / "file" / "a.store")
    assert store[0] == b"x"


def test_a_failing_write_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    (target / "inside").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        write_atomically(target, [b"x"])
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
