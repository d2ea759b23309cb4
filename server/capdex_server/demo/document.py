"""The demo API's OpenAPI document, as it is packaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

DEMO_SOURCE_NAME: Final = "workforce"
"""Name of the source that capdex serves when it is given none."""

API_KEY_HEADER: Final = "X-Workforce-Key"
"""Header of the document's security scheme ``workforceKey``."""


def demo_document() -> bytes:
    """Return the bytes of ``workforce.yaml``; its server is ``/``, where the app is mounted."""
    return files(__package__).joinpath("workforce.yaml").read_bytes()


@contextmanager
def demo_location() -> Iterator[Path]:
    """Yield the path of ``workforce.yaml``, unpacked for the length of the block where it must be."""
    with as_file(files(__package__).joinpath("workforce.yaml")) as path:
        yield path


def demo_tables() -> str:
    """Return the SQL that creates the tables and views of the demo's database."""
    return files(__package__).joinpath("schema.sql").read_text("utf-8")
