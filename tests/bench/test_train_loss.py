from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from capdex_bench.train.loss import contrastive_loss


def unit(rows: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return functional.normalize(torch.randn(rows, 8, generator=generator), dim=1)


def mask(rows: int, columns: int, *pairs: tuple[int, int]) -> torch.Tensor:
    found = torch.zeros(rows, columns, dtype=torch.bool)
    for pair in pairs:
        found[pair] = True
    return found


def test_one_to_one_it_is_cross_entropy_in_both_directions():
    requests, operations = unit(5, 1), unit(5, 2)
    logits, target = requests @ operations.T / 0.1, torch.arange(5)
    expected = (functional.cross_entropy(logits, target) + functional.cross_entropy(logits.T, target)) / 2
    found = contrastive_loss(requests, operations, torch.eye(5, dtype=torch.bool), mask(5, 5), 0.1)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_another_right_answer_is_no_negative():
    requests, operations = unit(1, 1), unit(3, 2)
    both = contrastive_loss(requests, operations, mask(1, 3, (0, 0), (0, 1)), mask(1, 3), 0.1)
    logits = (requests @ operations.T / 0.1)[0]
    expected = [functional.cross_entropy(logits[[i, 2]], torch.tensor(0)) for i in (0, 1)]
    # Backwards, an operation with one request has no negative, and nothing to lose.
    assert both.item() == pytest.approx(sum(e.item() for e in expected) / 4, rel=1e-4)


def test_what_is_blocked_does_not_count():
    requests, operations = unit(2, 1), unit(3, 2)
    positive, blocked = mask(2, 3, (0, 0), (1, 1)), mask(2, 3, (0, 2), (1, 2))
    with_it = contrastive_loss(requests, operations, positive, blocked, 0.1)
    without = contrastive_loss(requests, operations[:2], positive[:, :2], blocked[:, :2], 0.1)
    assert with_it.item() == pytest.approx(without.item(), rel=1e-5)


def test_an_operation_nobody_asks_for_is_a_negative():
    requests, operations = unit(2, 1), unit(3, 2)
    positive = mask(2, 3, (0, 0), (1, 1))
    with_it = contrastive_loss(requests, operations, positive, mask(2, 3), 0.1)
    without = contrastive_loss(requests, operations[:2], positive[:, :2], mask(2, 2), 0.1)
    assert with_it > without


def test_gradients_are_numbers_even_without_any_negative():
    requests = unit(1, 1).requires_grad_()
    loss = contrastive_loss(requests, unit(2, 2), mask(1, 2, (0, 0)), mask(1, 2, (0, 1)), 0.04)
    loss.backward()
    assert torch.isfinite(requests.grad).all()
