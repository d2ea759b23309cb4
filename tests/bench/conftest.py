"""What several test files of the trainer start from; torch is imported where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Hold torch to one thread: the last digits depend on their number."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny model to start from."""
    from bench.train_tiny import write_base

    return write_base(tmp_path_factory.mktemp("base"))
