"""An exported model on disk: its layout, its manifest, and how it is put in place."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .lock import MODEL, TOKENIZER, LockedModel, sha256_file

MANIFEST_FORMAT: Final = 1
"""Raised whenever the exporter's graph or the layout changes: older exports are then made anew."""

EXACT: Final = "fp32.onnx"  # only while an export is made
MANIFEST: Final = "manifest.json"

_ATTEMPTS: Final = 20  # another process may publish between our two renames, but not for ever


@dataclass(frozen=True, slots=True)
class Artefact:
    """A verified export; ``digest`` is the sha256 over the hashes of its files."""

    folder: Path
    digest: str

    @property
    def model(self) -> Path:
        """The int8 graph."""
        return self.folder / MODEL

    @property
    def tokenizer(self) -> Path:
        """The tokenizer, as the model's package has it."""
        return self.folder / TOKENIZER


class DamagedArtefact(Exception):
    """The folder holds no usable export; the message says why."""


def artefact_folder(cache: Path, model: LockedModel) -> Path:
    """Return the folder of a model's export: ``cache/models/<name>-<key>``."""
    return cache / "models" / f"{model.name}-{model.key}"


def open_artefact(folder: Path, model: LockedModel) -> Artefact:
    """Verify an export against its manifest, sizes first.

    Raises:
        DamagedArtefact: Something is missing, altered, or belongs to another lock entry.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if (manifest["format"], manifest["key"]) != (MANIFEST_FORMAT, model.key):
            raise DamagedArtefact("it was made by another capdex")
        for name in (MODEL, TOKENIZER):
            _verify(folder / name, manifest["outputs"][name])
        return Artefact(folder, str(manifest["outputs"][MODEL]["sha256"]))
    except FileNotFoundError as error:
        raise DamagedArtefact(f"{Path(str(error.filename)).name} is missing") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedArtefact(f"its manifest cannot be read: {error!r}") from error


def write_manifest(folder: Path, model: LockedModel, facts: Mapping[str, Any]) -> None:
    """Write the manifest over the files in ``folder``; ``facts`` are added for people to read."""
    manifest = {
        "format": MANIFEST_FORMAT,
        "key": model.key,
        "model": model.name,
        "requirement": model.requirement,
        "inputs": {name: pin.sha256 for name, pin in model.files.items()},
        "outputs": {name: _describe(folder / name) for name in (MODEL, TOKENIZER)},
        **facts,
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


@contextlib.contextmanager
def workshop(target: Path, is_good: Callable[[], bool]) -> Iterator[Path]:
    """Yield a fresh folder beside ``target``; it takes ``target``'s place when the block ends well.

    Two processes may do this at once: whole folders are renamed, and where another process was first
    (``is_good()`` accepts what lies in ``target``) its folder stays.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    rooms = Path(tempfile.mkdtemp(prefix=".export-", dir=target.parent))
    try:
        new = rooms / "new"
        new.mkdir()
        yield new
        _publish(new, target, rooms, is_good)
    finally:
        shutil.rmtree(rooms, ignore_errors=True)


def _publish(new: Path, target: Path, rooms: Path, is_good: Callable[[], bool]) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            os.rename(new, target)
            return
        except OSError as error:
            failure = error
        if is_good():
            return
        with contextlib.suppress(FileNotFoundError):
            os.rename(target, rooms / f"old{attempt}")
    raise failure


def _describe(path: Path) -> dict[str, Any]:
    return {"sha256": sha256_file(path), "bytes": path.stat().st_size}


def _verify(path: Path, expected: Mapping[str, Any]) -> None:
    if path.stat().st_size != expected["bytes"] or sha256_file(path) != expected["sha256"]:
        raise DamagedArtefact(f"{path.name} is not as its manifest says")
