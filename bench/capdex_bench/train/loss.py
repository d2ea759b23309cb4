"""The contrastive loss in both directions, where a request or an operation may have several partners."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

_NEVER: Final = -1e4
"""In place of a similarity that does not count; no infinity, whose gradients are no numbers."""


def contrastive_loss(
    requests: Tensor, operations: Tensor, positive: Tensor, blocked: Tensor, temperature: float
) -> Tensor:
    """Return the mean of both directions' InfoNCE (van den Oord and others 2018) over the pairs.

    Each pair competes with the negatives of its row (its column, the other way) alone: the row's
    other right answers and what is ``blocked`` are left out.

    Args:
        requests: (rows, hidden), rows of length 1.
        operations: (columns, hidden), rows of length 1.
        positive: (rows, columns) bool; at least one is set.
        blocked: (rows, columns) bool.
        temperature: Divides the cosines.
    """
    logits = requests @ operations.T / temperature
    unusable = positive | blocked
    there = _direction(logits, positive, unusable)
    back = _direction(logits.T, positive.T, unusable.T)
    return (there + back) / 2


def _direction(logits: Tensor, positive: Tensor, unusable: Tensor) -> Tensor:
    rest = torch.logsumexp(logits.masked_fill(unusable, _NEVER), dim=1, keepdim=True)
    return functional.softplus(rest - logits)[positive].mean()
