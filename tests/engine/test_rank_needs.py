"""Requests for several things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_engine.rank.languages import gloss
from capdex_engine.rank.needs import MOST_NEEDS, split_needs


@pytest.mark.parametrize(
    ("query", "needs"),
    [
        ("open an issue, then label it", ("open an issue", "label it")),
        (
            "Retrieve the status of all devices, check the alerts, and submit a report.",
            ("Retrieve the status of all devices", "check the alerts", "submit a report"),
        ),
        (
            "Look up the order. Please cancel the shipment!",
            ("Look up the order", "Please cancel the shipment"),
        ),
        (
            "draft a new bill and then email it, and list the open ones",
            ("draft a new bill", "email it", "list the open ones"),
        ),
    ],
)
def test_each_part_begins_with_its_own_verb(query: str, needs: tuple[str, ...]) -> None:
    assert split_needs(query) == needs


@pytest.mark.parametrize(
    "query",
    [
        "list issues",
        "search and replace",
        "issues and pull requests of a repository",
        "Task 5566 exists already; give it to the user with this login",
        "name, size and owner of a file",
        "create a user with first name, last name and email",
        "",
        "créer une facture et l'envoyer",
    ],
)
def test_one_need_stays_whole(query: str) -> None:
    assert split_needs(query) == (query,)


@given(st.text(max_size=300))
def test_any_text_gives_between_one_and_the_most_needs(query: str) -> None:
    found = split_needs(query)
    assert 1 <= len(found) <= MOST_NEEDS
    assert len(found) > 1 or found == (query,)


def test_very_long_lists_are_capped() -> None:
    assert len(split_needs(", ".join(f"create item{i} now" for i in range(30)))) == MOST_NEEDS


@pytest.mark.parametrize(
    "query",
    [
        "Erstelle eine Rechnung und sende sie dem Kunden",
        "crea una factura y envíala al cliente",
        "créer une facture puis l'envoyer au client",
        "crie uma fatura e envie ao cliente",
        "Crea una fattura e inviala al cliente",
        "maak een factuur en stuur die naar de klant",
        "создай счёт и отправь его клиенту",
        "创建发票，然后发送给客户",
    ],
)
def test_several_needs_in_another_language_are_told_apart(query: str) -> None:
    reading = gloss(query)
    assert reading is not None
    first, second = split_needs(reading.text)
    assert "invoice" in first and second.startswith("send")
