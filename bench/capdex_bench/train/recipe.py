"""What a training run is made of: its settings, and the record it leaves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from capdex_engine.errors import ConfigurationError

FORMAT: Final = 1
PACKAGES: Final = ("torch", "tokenizers", "safetensors", "numpy", "sentence-transformers", "transformers")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that changes the trained weights, the data apart."""

    seed: int = 0
    epochs: float = 2.0
    """A part of an epoch is its first batches; the learning rate ends with the run all the same."""
    apis: int = 8
    """Different APIs per batch."""
    requests: int = 8
    """Requests per API and batch, at most."""
    siblings: int = 0
    """Further operations per API and batch, as negatives only."""
    mined: float = 0.0
    """Nearest wrong operations per request, in the mean, as negatives only; mined once, before all steps."""
    unserved: int = 0
    """Requests that nothing serves, per API and batch: what operations must stay away from."""
    typos: float = 0.0
    """Share of the requests that get a spelling mistake."""
    glossed: float = 0.0
    """Share of the requests in other languages that are shown as searching reads them, word by word."""
    bare: float = 0.0
    """Share of the operations that are shown without summary and description."""
    temperature: float = 0.04
    learning_rate: float = 6e-5
    """The highest, after the warm-up; it then falls evenly to 0."""
    warm_up: float = 0.1
    """Share of the steps."""
    weight_decay: float = 0.01
    """On matrices only."""
    clip: float = 1.0
    """Longest gradient."""
    dropout: float = 0.1
    """Share of the hidden states dropped after each block; attention keeps all."""
    request_tokens: int = 64
    operation_tokens: int = 128
    precision: str = "bf16"
    """Of matrix products: ``bf16`` or ``fp32``. Weights, sums and the loss are float32 always."""

    def __post_init__(self) -> None:
        """Refuse what cannot be trained with; ``ConfigurationError``."""
        if self.precision not in ("bf16", "fp32"):
            raise ConfigurationError(f"no precision {self.precision!r}: know bf16, fp32")
        if not (self.epochs > 0 and self.apis > 1 and self.requests > 0 and 0 <= self.dropout < 1):
            raise ConfigurationError("epochs and requests must be above 0, apis above 1, dropout in 0..1")
        if min(self.siblings, self.mined, self.unserved) < 0:
            raise ConfigurationError("siblings, mined and unserved must be 0 or more")
        if not all(0 <= share <= 1 for share in (self.typos, self.glossed, self.bare)):
            raise ConfigurationError("typos, glossed and bare are shares: 0..1")


def fingerprint(settings: Settings, base: str, texts: Iterable[str]) -> str:
    """Return a short hex over what a checkpoint depends on: settings, base weights, and every text."""
    digest = hashlib.sha256(json.dumps([FORMAT, asdict(settings), base], sort_keys=True).encode())
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """Return the versions of the packages that do the work."""
    return {name: version(name) for name in PACKAGES}


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write ``value`` for people and programs, replacing the file at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)
