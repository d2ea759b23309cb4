"""The canonical vector: a served encoder must give the numbers that models.lock pins. Needs no exporter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ModelError
from .lock import Model
from .protocol import Encoder


def require_canonical(model: Model, encoder: Encoder) -> None:
    """Refuse an int8 encoder that gives another vector than models.lock pins: ``ModelError``."""
    pinned = model.canonical
    require_vector(encoder, pinned.sentence, pinned.int8, pinned.int8_tolerance, "int8")


def require_vector(
    encoder: Encoder, sentence: str, pinned: Sequence[float], tolerance: float, kind: str
) -> None:
    """Compare the first numbers of a sentence's vector with ``pinned``; ``ModelError`` holds both.

    Args:
        encoder: Under test.
        sentence: To encode.
        pinned: As many numbers as are to be compared.
        tolerance: How far each may be off.
        kind: ``int8`` or ``float32``, for the message.
    """
    found = encoder.encode([sentence])[0, : len(pinned)]
    error = float(np.abs(found - np.array(pinned, dtype=np.float32)).max())
    if not error <= tolerance:
        raise ModelError(
            f"The {kind} vector of the canonical sentence is off by {error:.2g} (allowed {tolerance:.2g}): "
            "onnxruntime computes other vectors here than capdex was measured with. Install the versions of "
            "constraints.txt.",
            expected=list(pinned),
            found=[round(float(number), 6) for number in found],
        )
