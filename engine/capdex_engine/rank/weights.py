"""Fitted numbers of the blend (:mod:`capdex_engine.rank.blend`), by ``capdex bench tune``.

Fitted on requests for APIs that the encoder never saw (their operations in the training data): 3728
alone, 1831 merged, 1025 public training sets. Encoder: capdex-minilm:a8ce04032eb33496.
"""

from collections.abc import Mapping
from typing import Final

WEIGHTS: Final[Mapping[str, Mapping[str, float]]] = {
    "meaning": {
        "always": 26.03,
        "short": 10.92,
        "known": -7.09,
        "best_words": -0.38,
        "best_meaning": -12.03,
        "foreign": -3.89,
    },
    "words": {
        "always": -0.63,
        "short": 0.76,
        "known": -0.09,
        "best_words": 1.28,
        "best_meaning": -1.09,
        "foreign": 0.03,
    },
    "words_share": {
        "always": 1.2,
        "short": -0.27,
        "known": 2.01,
        "best_words": -0.63,
        "best_meaning": -1.59,
        "foreign": 0.43,
    },
    "name_fill": {
        "always": 0.72,
        "short": -0.99,
        "known": 1.77,
        "best_words": -1.67,
        "best_meaning": -1.15,
        "foreign": 0.14,
    },
    "summary_fill": {
        "always": -0.12,
        "short": -0.54,
        "known": 0.42,
        "best_words": -0.63,
        "best_meaning": -0.09,
        "foreign": 0.12,
    },
    "same": {"always": 5.0},
    "method": {"always": -0.01},
    "collection": {"always": -0.02},
    "deprecated": {"always": -0.3},
}
"""Feature -> gate -> weight: listwise softmax over each request's
candidates, L2 0.0003. ``same`` and ``deprecated`` are set by hand, since the training requests hold
too few of either."""

CALIBRATION: Final[Mapping[str, float]] = {
    "utility": 1.483,
    "rivals": -1.522,
    "always": 0.57,
    "known": 0.078,
    "best_meaning": 2.555,
    "part": 0.641,
}
"""Logistic over what a caller sees of each request: slopes of an
operation's utility and of its rivals' together, and each gate's shift."""

SERVED: Final[Mapping[str, float]] = {
    "rivals": 0.478,
    "always": -4.742,
    "short": -0.71,
    "known": 3.504,
    "best_words": 0.664,
    "best_meaning": 2.198,
    "foreign": 0.599,
}
"""Below 0, and nothing is returned: logistic over the utility of all
candidates together and the gates, its constant such that 1% of the served training
requests lie below."""
