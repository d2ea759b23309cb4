"""Fitted numbers of the blend: feature -> gate -> weight (:mod:`capdex_engine.rank.blend`).

Fitted on training requests: 60 documents of own-written ones, four catalogs of 15 of these
documents each, and public training sets; a third of the documents and one public set at a time were
held out to choose features and regularisation.
"""

from collections.abc import Mapping
from typing import Final

WEIGHTS: Final[Mapping[str, Mapping[str, float]]] = {
    "meaning": {
        "always": 25.44,
        "short": 14.69,
        "known": -9.72,
        "best_words": 10.45,
        "best_meaning": -20.5,
        "foreign": -21.18,
    },
    "words": {
        "always": -0.6,
        "short": 0.15,
        "known": 0.12,
        "best_words": 0.72,
        "best_meaning": 0.35,
        "foreign": 0.07,
    },
    "words_share": {
        "always": -0.08,
        "short": -0.68,
        "known": 2.28,
        "best_words": -0.62,
        "best_meaning": 2.4,
        "foreign": 1.82,
    },
    "name_fill": {
        "always": -0.86,
        "short": -1.42,
        "known": 2.68,
        "best_words": -0.31,
        "best_meaning": 2.08,
        "foreign": 0.44,
    },
    "method": {"always": 0.5},
    "collection": {"always": 0.33},
    "deprecated": {"always": -0.3},
}
"""Listwise softmax over each request's candidates, L2 3e-4; ``deprecated`` is set by hand, small enough to
part twins only, since the training data marks none."""

CALIBRATION: Final[Mapping[str, float]] = {
    "utility": 0.839,
    "always": -5.014,
    "short": -3.537,
    "known": 2.299,
    "best_words": -6.318,
    "best_meaning": -4.48,
    "foreign": 3.265,
}
"""Logistic over the first ten of each request: the utility's slope, and each gate's shift."""

FLOOR: Final = 0.004
"""A first match below it, and nothing is returned: under it lie fewer than 1 in 100 answerable requests of
the training data, in any language."""
ENGLISH_FLOOR: Final = 0.02
"""The same for requests in English, whose scores are higher."""
