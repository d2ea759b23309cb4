"""A tiny pinned model, for the faults that the real one must not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdex_engine.encode.lock import LockedModel
from engine.encode_tiny import pin, write_model


@pytest.fixture(scope="session")
def tiny_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LockedModel]:
    """A folder for sys.path with the package ``tiny_model``, and its lock entry."""
    home = tmp_path_factory.mktemp("home")
    write_model(home / "tiny_model" / "model")
    (home / "tiny_model" / "__init__.py").touch()
    return home, pin(home / "tiny_model", tmp_path_factory.mktemp("scratch"))


@pytest.fixture
def tiny(tiny_home: tuple[Path, LockedModel], monkeypatch: pytest.MonkeyPatch) -> LockedModel:
    """A pinned, installed model of some kilobytes."""
    monkeypatch.syspath_prepend(tiny_home[0])
    return tiny_home[1]
