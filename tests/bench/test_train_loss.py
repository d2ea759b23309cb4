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


def test_one_to_one_it_is_cross_entropy_in_both_directions() -> None:
    requests, operations = unit(5, 1), unit(5, 2)
    logits, target = requests @ operations.T / 0.1, torch.arange(5)
    expected = (functional.cross_entropy(logits, target) + functional.cross_entropy(logits.T, target)) / 2
    found = contrastive_loss(requests, operations, torch.eye(5, dtype=torch.bool), mask(5, 5), 0.1)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_another_right_answer_is_no_negative() -> None:
    requests, operations = unit(1, 1), unit(3, 2)
    both = contrastive_loss(requests, operations, mask(1, 3, (0, 0), (0, 1)), mask(1, 3), 0.1)
    logits = (requests @ operations.T / 0.1)[0]
    expected = [functional.cross_entropy(logits[[i, 2]], torch.tensor(0)) for i in (0, 1)]
    # Backwards, an operation with one request has no negative, and nothing to lose.
    assert both.item() == pytest.approx(sum(e.item() for e in expected) / 4, rel=1e-4)


def test_what_is_blocked_does_not_count() -> None:
    requests, operations = unit(2, 1), unit(3, 2)
    positive, blocked = mask(2, 3, (0, 0), (1, 1)), mask(2, 3, (0, 2), (1, 2))
    with_it = contrastive_loss(requests, operations, positive, blocked, 0.1)
    without = contrastive_loss(requests, operations[:2], positive[:, :2], blocked[:, :2], 0.1)
    assert with_it.item() == pytest.approx(without.item(), rel=1e-5)


def test_an_operation_nobody_asks_for_is_a_negative() -> None:
    requests, operations = unit(2, 1), unit(3, 2)
    positive = mask(2, 3, (0, 0), (1, 1))
    with_it = contrastive_loss(requests, operations, positive, mask(2, 3), 0.1)
    without = contrastive_loss(requests, operations[:2], positive[:, :2], mask(2, 2), 0.1)
    assert with_it > without


def gradient(
    requests: torch.Tensor,
    operations: torch.Tensor,
    positive: torch.Tensor,
    blocked: torch.Tensor,
    temperature: float = 0.1,
) -> torch.Tensor:
    """Return where the loss grows, by the requests."""
    own = requests.clone().requires_grad_()
    loss = contrastive_loss(own, operations, positive, blocked, temperature)
    (found,) = torch.autograd.grad(loss, [own])
    return found


def test_gradients_are_numbers_even_without_any_negative() -> None:
    found = gradient(unit(1, 1), unit(2, 2), mask(1, 2, (0, 0)), mask(1, 2, (0, 1)), 0.04)
    assert torch.isfinite(found).all()


def test_a_request_that_nothing_serves_is_pushed_away_from_what_others_ask_for() -> None:
    # Nobody asks for the third operation, and nothing serves the third request.
    requests, operations, positive = unit(3, 1), torch.eye(8)[:3], mask(3, 3, (0, 0), (1, 1))
    uphill = gradient(requests, operations, positive, mask(3, 3))[2]
    assert (uphill[:2] > 0).all()
    assert not uphill[2:].any()
    nearer, farther = (
        contrastive_loss(
            torch.stack([*requests[:2], requests[2] + step * uphill]), operations, positive, mask(3, 3), 0.1
        )
        for step in (0.1, -0.1)
    )
    assert farther < nearer


def test_operations_are_pushed_away_from_a_request_that_nothing_serves() -> None:
    requests, positive = torch.eye(8)[:3], mask(3, 2, (0, 0), (1, 1))
    operations = unit(2, 2).requires_grad_()
    loss = contrastive_loss(requests, operations, positive, mask(3, 2), 0.1)
    (uphill,) = torch.autograd.grad(loss, [operations])
    assert (uphill[:, 2] > 0).all()


def test_a_request_that_nothing_serves_is_judged_in_one_direction_only() -> None:
    requests, operations = unit(3, 1), unit(2, 2)
    positive = mask(3, 2, (0, 0), (1, 1))
    logits, target = requests @ operations.T / 0.1, torch.arange(2)
    there = functional.cross_entropy(logits[:2], target)
    back = functional.cross_entropy(logits.T, target)
    found = contrastive_loss(requests, operations, positive, mask(3, 2), 0.1)
    assert found.item() == pytest.approx(((there + back) / 2).item(), rel=1e-5)


def test_a_blocked_operation_does_not_push_the_unserved_request() -> None:
    positive, blocked = mask(3, 3, (0, 0), (1, 1)), mask(3, 3, (2, 0))
    uphill = gradient(unit(3, 1), torch.eye(8)[:3], positive, blocked)[2]
    assert uphill[0].item() == pytest.approx(0, abs=1e-12)
    assert uphill[1] > 0
