"""What every test may ask for: the team's data folder, where it is present, and the real encoder."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest

from capdex_engine.encode import Encoder, load_encoder
from leaks import no_planted_secret_shows, pytest_configure, pytest_runtest_logreport, pytest_sessionfinish

__all__ = [
    "no_planted_secret_shows",
    "pytest_configure",
    "pytest_runtest_logreport",
    "pytest_sessionfinish",
]

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The team's data folder; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("CAPDEX_SHARED", ROOT.parent / "shared"))
    if not (folder / "specs").is_dir():
        pytest.skip("needs the team's data folder: set CAPDEX_SHARED")
    return folder


@pytest.fixture(scope="session")
def specs(shared: Path) -> Path:
    """Real third-party documents."""
    return shared / "specs"


@pytest.fixture(scope="session")
def cache() -> Path:
    """The cache that capdex itself would use, so that the export is shared with it."""
    return Path(os.environ.get("CAPDEX_CACHE") or platformdirs.user_cache_path("capdex"))


@pytest.fixture(scope="session")
def encoder(cache: Path) -> Encoder:
    """The pinned model as it is served."""
    return load_encoder(cache)
