from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capdex_server import journal as module
from capdex_server.journal import Journal, all_of

BIG = 10_000


def written(path: Path) -> list[list[str]]:
    return [one.read_text().splitlines() for one in all_of(path)]


def test_lines_are_in_the_file_when_append_returns(tmp_path):
    path = tmp_path / "trail"
    one, other = (Journal(path, max_bytes=BIG, keep=1) for _ in range(2))
    one.append([b"a\n"])
    other.append([b"b\n", b"c\n"])
    one.append([b"d\n"])
    assert path.read_bytes() == b"a\nb\nc\nd\n"
    assert path.stat().st_mode & 0o077 == 0


def test_a_full_file_is_rotated_and_the_oldest_deleted(tmp_path):
    path = tmp_path / "trail"
    journal = Journal(path, max_bytes=8, keep=2)
    for number in range(9):
        journal.append([b"%03d\n" % number])
    assert written(path) == [["004", "005"], ["006", "007"], ["008"]]


def test_a_line_larger_than_a_file_is_written_all_the_same(tmp_path):
    journal = Journal(tmp_path / "trail", max_bytes=4, keep=1)
    journal.append([b"0123456789\n"])
    journal.append([b"x\n"])
    assert written(tmp_path / "trail") == [["0123456789"], ["x"]]


def test_rotated_files_are_read_by_age_and_not_by_name(tmp_path):
    path = tmp_path / "trail"
    for name in ("trail", "trail.2", "trail.10", "trail.lock", "trail.old", "trail.1"):
        (tmp_path / name).touch()
    assert [one.name for one in all_of(path)] == ["trail.10", "trail.2", "trail.1", "trail"]


def test_a_writer_follows_a_rotation_of_another_process(tmp_path):
    path = tmp_path / "trail"
    slow, busy = (Journal(path, max_bytes=8, keep=3) for _ in range(2))
    slow.append([b"a\n"])
    for _ in range(3):
        busy.append([b"bbbb\n"])
    slow.append([b"z\n"])
    assert written(path) == [["a", "bbbb"], ["bbbb"], ["bbbb", "z"]]


@pytest.mark.parametrize("how", ["moved", "deleted"])
def test_a_file_that_something_else_takes_away_is_made_anew(tmp_path, how):
    path = tmp_path / "trail"
    journal = Journal(path, max_bytes=BIG, keep=1)
    journal.append([b"a\n"])
    path.rename(tmp_path / "elsewhere") if how == "moved" else path.unlink()
    journal.append([b"b\n"])
    assert path.read_bytes() == b"b\n"


@pytest.mark.parametrize("opened", [False, True])
def test_a_torn_line_does_not_swallow_the_next(tmp_path, opened):
    path = tmp_path / "trail"
    journal = Journal(path, max_bytes=BIG, keep=1)
    if opened:
        journal.append([b"a\n"])
    with path.open("ab") as other:
        other.write(b"torn")
    journal.append([b"b\n"])
    assert path.read_text().splitlines()[-2:] == ["torn", "b"]


def test_opening_ends_a_torn_line(tmp_path):
    path = tmp_path / "trail"
    path.write_bytes(b"torn")
    Journal(path, max_bytes=BIG, keep=1).append([])
    assert path.read_bytes() == b"torn\n"


def test_what_does_not_fit_on_the_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "trail"
    journal = Journal(path, max_bytes=BIG, keep=1)
    journal.append([b"a\n"])
    real, calls = os.write, []

    def full(file: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return real(file, data[:3])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        journal.append([b"too long\n"])
    monkeypatch.undo()
    journal.append([b"b\n"])
    assert path.read_bytes() == b"a\nb\n"


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Journal(tmp_path / "no" / "trail", max_bytes=BIG, keep=1).append([])


def test_a_lock_that_is_never_freed_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LOCK_WAIT", 0.01)
    one, other = (Journal(tmp_path / "trail", max_bytes=BIG, keep=1) for _ in range(2))
    with one._alone(), pytest.raises(TimeoutError):
        other.append([b"a\n"])
    other.append([b"b\n"])
    assert written(tmp_path / "trail") == [["b"]]


def test_with_fsync_the_disk_is_waited_for(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    journal = Journal(tmp_path / "trail", max_bytes=BIG, keep=1, fsync=True)
    journal.append([b"a\n"])
    assert synced[-1] == 2


def test_a_closed_journal_opens_again(tmp_path):
    journal = Journal(tmp_path / "trail", max_bytes=BIG, keep=1)
    journal.close()
    for _ in range(2):
        journal.append([b"a\n"])
        journal.close()
    assert written(tmp_path / "trail") == [["a", "a"]]


WRITER = """
import sys
from pathlib import Path
from capdex_server.journal import Journal
journal = Journal(Path(sys.argv[1]), max_bytes=20_000, keep=1000)
for number in range(int(sys.argv[3])):
    journal.append([f"{sys.argv[2]} {number} {'x' * (number % 300)}\\n".encode()])
"""


def test_processes_that_write_one_file_tear_and_lose_nothing(tmp_path):
    path, count = tmp_path / "trail", 500
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(count)])
        for name in ("a", "b", "c")
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    files = all_of(path)
    lines = [line.split(" ") for one in files for line in one.read_text().splitlines()]
    assert len(files) > 5
    assert max(one.stat().st_size for one in files) <= 20_000
    for name in ("a", "b", "c"):
        mine = [(int(number), len(tail)) for who, number, tail in lines if who == name]
        assert mine == [(number, number % 300) for number in range(count)]
