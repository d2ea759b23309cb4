"""Fitted numbers of the blend (:mod:`capdex_engine.rank.blend`), by ``capdex bench tune``.

Fitted on requests for APIs that the encoder never saw (whole documents): 4688 alone, 1831 merged, 1025
public training sets. Encoder: capdex-minilm:5486d78848a9d7a6.
"""

from collections.abc import Mapping
from typing import Final

WEIGHTS: Final[Mapping[str, Mapping[str, float]]] = {
    "meaning": {
        "always": 25.2,
        "short": 14.2,
        "known": -4.42,
        "best_words": 1.19,
        "best_meaning": -13.05,
        "foreign": 1.96,
    },
    "words": {
        "always": -0.66,
        "short": 1.03,
        "known": 0.18,
        "best_words": 1.79,
        "best_meaning": -0.98,
        "foreign": 0.28,
    },
    "words_share": {
        "always": 1.12,
        "short": -1.07,
        "known": 1.62,
        "best_words": -0.66,
        "best_meaning": -1.16,
        "foreign": 0.93,
    },
    "name_fill": {
        "always": 0.44,
        "short": -1.2,
        "known": 1.25,
        "best_words": -1.86,
        "best_meaning": -0.96,
        "foreign": 0.04,
    },
    "summary_fill": {
        "always": -0.18,
        "short": -0.4,
        "known": -0.14,
        "best_words": 0.02,
        "best_meaning": 0.2,
        "foreign": 0.17,
    },
    "same": {"always": 5.0},
    "method": {"always": 0.04},
    "collection": {"always": 0.04},
    "deprecated": {"always": -0.3},
}
"""Feature -> gate -> weight: listwise softmax over each request's
candidates, L2 0.0003. ``same`` and ``deprecated`` are set by hand, since the training requests hold
too few of either."""

CALIBRATION: Final[Mapping[str, float]] = {
    "utility": 1.415,
    "rivals": -1.436,
    "always": -0.1,
    "known": 0.222,
    "best_meaning": 2.876,
    "part": 0.635,
}
"""Logistic over what a caller sees of each request: slopes of an
operation's utility and of its rivals' together, and each gate's shift."""

SERVED: Final[Mapping[str, float]] = {
    "rivals": 0.533,
    "always": -6.246,
    "best_meaning": 3.582,
    "foreign": -1.036,
}
"""Below 0, and nothing is returned: logistic over the utility of all
candidates together and the gates, its constant such that 5% of the served requests
for single training APIs lie below."""
