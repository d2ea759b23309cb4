"""What ranking asks of an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Encoder(Protocol):
    """Texts to unit vectors; safe to call from several threads."""

    @property
    def identity(self) -> str:
        """Changes whenever the vectors may change; cached vectors are kept under it."""
        ...

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, dimension), rows of length 1; (0, dimension) for no text."""
        ...
