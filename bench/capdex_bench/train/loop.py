"""Steps, learning rate, checkpoints: a run that may be cut at any time and goes on as if it had not been."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capdex_engine.errors import ConfigurationError
from capdex_engine.rank.languages import gloss

from .augment import misspell
from .batches import Batch, Extras, epoch_batches
from .corpus import Corpus, Request
from .loss import contrastive_loss
from .mine import load, nearest_wrong, save
from .model import Model
from .pool import Pool
from .recipe import Settings

CHECKPOINT: Final = "checkpoint.pt"
MINED: Final = "mined-{}.npy"
"""Name of the file by the run's fingerprint: same weights, texts and settings, same negatives."""
TOKENS: Final = 128
"""Of a text that is looked at for mining."""
SPOKEN: Final = 10
"""Steps between two lines of progress; the loss in a line is their mean."""

Clock = Callable[[], float]
Say = Callable[[str], None]


@dataclass
class Progress:
    """How far a run is."""

    step: int = 0
    losses: list[float] = field(default_factory=list)
    """Mean loss of each :data:`SPOKEN` steps."""
    recent: list[float] = field(default_factory=list)
    seconds: float = 0.0
    """Spent in steps, over all of the run's lives."""


class Run:
    """One training run.

    Args:
        model: Its weights are trained in place.
        corpus: Requests and operations.
        pool: The requests to train on.
        settings: The recipe.
        folder: Where the checkpoint lies; ``None`` keeps none.
        fingerprint: A checkpoint of another fingerprint is not this run's.
    """

    def __init__(
        self,
        model: Model,
        corpus: Corpus,
        pool: Pool,
        settings: Settings,
        *,
        folder: Path | None = None,
        fingerprint: str = "",
    ) -> None:
        self.model = model
        self.settings = settings
        self.progress = Progress()
        self._corpus = corpus
        self._pool = pool
        self._checkpoint = folder / CHECKPOINT if folder else None
        self._fingerprint = fingerprint
        self._optimizer = _optimizer(model, settings)
        self._extras = self._negatives()
        self._epoch: tuple[int, list[Batch]] = (0, self._batches(0))
        self._per_epoch = len(self._epoch[1])
        self.steps = max(1, round(settings.epochs * self._per_epoch))
        torch.manual_seed(settings.seed)

    def resume(self) -> bool:
        """Take up the checkpoint, where there is one; ``ConfigurationError`` for another run's."""
        if self._checkpoint is None or not self._checkpoint.is_file():
            return False
        state = _load(self._checkpoint)
        if state["fingerprint"] != self._fingerprint:
            raise ConfigurationError(
                f"{self._checkpoint} belongs to a run with other settings, data or base weights. Name "
                "another folder, or delete it to start anew."
            )
        with torch.no_grad():
            for name, value in self.model.weights.items():
                value.copy_(state["weights"][name])
        self._optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        self.progress = Progress(**state["progress"])
        return True

    def train(self, *, say: Say, clock: Clock, every: float = 180.0, until: int | None = None) -> None:
        """Go on to step ``until`` (default: the end), with a checkpoint each ``every`` seconds and last."""
        saved = before = clock()
        first, last = self.progress.step, min(self.steps, until or self.steps)
        start = before
        while self.progress.step < last:
            self._step()
            now = clock()
            self.progress.seconds += now - before
            before = now
            if self.progress.step % SPOKEN == 0 or self.progress.step == self.steps:
                self._speak(say, (now - start) / (self.progress.step - first))
            if now - saved >= every:
                self._save()
                saved = now
        self._save()

    def _step(self) -> None:
        batch = self._batch(self.progress.step)
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(self.settings, self.progress.step, self.steps)
        loss = self._loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.weights.values(), self.settings.clip)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.progress.step += 1
        self.progress.recent.append(float(loss.detach()))

    def _loss(self, batch: Batch) -> Tensor:
        ids = self._tokens(batch, random.Random(f"{self.settings.seed}/{self.progress.step}"))  # noqa: S311
        vectors = self.model.embed(ids, precision=self.settings.precision, dropout=self.settings.dropout)
        requests, operations = vectors.split_with_sizes([len(batch.requests), len(batch.operations)])
        positive, blocked = (_mask(batch, pairs) for pairs in (batch.positives, batch.blocked))
        return contrastive_loss(requests, operations, positive, blocked, self.settings.temperature)

    def _tokens(self, batch: Batch, order: random.Random) -> list[list[int]]:
        requests = [self._altered(self._corpus.requests[i], order) for i in batch.requests]
        operations = [
            (self._corpus.bare_texts if order.random() < self.settings.bare else self._corpus.texts)[j]
            for j in batch.operations
        ]
        return [
            *self.model.tokens(requests, self.settings.request_tokens),
            *self.model.tokens(operations, self.settings.operation_tokens),
        ]

    def _altered(self, request: Request, order: random.Random) -> str:
        chance = order.random()
        if request.kind == "foreign":
            found = gloss(request.text) if chance < self.settings.glossed else None
            return found.text if found else request.text
        return misspell(request.text, order) if chance < self.settings.typos else request.text

    def _negatives(self) -> Extras:
        nothing: dict[str, list[int]] = {}
        for number in self._pool.unserved:
            nothing.setdefault(self._corpus.requests[number].document, []).append(number)
        settings = self.settings
        nearest = self._mined() if settings.mined else {}
        return Extras(settings.siblings, settings.mined, nearest, settings.unserved, nothing)

    def _mined(self) -> dict[int, tuple[int, ...]]:
        path = self._checkpoint.with_name(MINED.format(self._fingerprint)) if self._checkpoint else None
        if path and path.is_file():
            return load(path)
        found = nearest_wrong(self._corpus, self._pool.numbers, self._mining_vectors)
        if path:
            save(path, found)
        return found

    def _mining_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.model.vectors(texts, TOKENS, "bf16")

    def _batch(self, step: int) -> Batch:
        epoch, place = divmod(step, self._per_epoch)
        if self._epoch[0] != epoch:
            self._epoch = (epoch, self._batches(epoch))
        return self._epoch[1][place]

    def _batches(self, epoch: int) -> list[Batch]:
        settings = self.settings
        return epoch_batches(
            self._corpus,
            self._pool.numbers,
            apis=settings.apis,
            requests=settings.requests,
            seed=f"{settings.seed}/{epoch}",
            extras=self._extras,
        )

    def _speak(self, say: Say, pace: float) -> None:
        progress = self.progress
        progress.losses.append(math.fsum(progress.recent) / len(progress.recent))
        progress.recent.clear()
        left = pace * (self.steps - progress.step) / 60
        say(
            f"step {progress.step}/{self.steps}  loss {progress.losses[-1]:.4f}  "
            f"{pace:.2f} s/step  {left:.0f} min left"
        )

    def _save(self) -> None:
        if self._checkpoint is None:
            return
        self._checkpoint.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._checkpoint.with_name(f".{CHECKPOINT}.new")
        torch.save(self._state(), temporary)
        temporary.replace(self._checkpoint)

    def _state(self) -> dict[str, Any]:
        return {
            "fingerprint": self._fingerprint,
            "weights": {name: value.detach() for name, value in self.model.weights.items()},
            "optimizer": self._optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "progress": vars(self.progress),
        }


def learning_rate(settings: Settings, step: int, steps: int) -> float:
    """Return the rate of a step (from 0): up evenly over the warm-up, then evenly down to 0 at the end."""
    warm = max(1, round(settings.warm_up * steps))
    share = (step + 1) / warm if step < warm else (steps - step) / max(1, steps - warm)
    return settings.learning_rate * min(1.0, share)


def _optimizer(model: Model, settings: Settings) -> torch.optim.AdamW:
    matrices = [value for value in model.weights.values() if value.dim() > 1]
    others = [value for value in model.weights.values() if value.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)


def _mask(batch: Batch, pairs: Sequence[tuple[int, int]]) -> Tensor:
    mask = torch.zeros(len(batch.requests), len(batch.operations), dtype=torch.bool)
    if pairs:
        rows, columns = zip(*pairs, strict=True)
        mask[list(rows), list(columns)] = True
    return mask


def _load(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = torch.load(path, weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise ConfigurationError(f"{path} cannot be read ({error}); delete it to start anew.") from error
    return state
