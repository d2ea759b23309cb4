"""Spelling is corrected against the catalog's words and common English, and nothing else is touched."""

import pytest

from capdex_engine.rank.spelling import Speller, common_words, english_words
from capdex_engine.text import tokens

CATALOG = frozenset(
    tokens("create invoice, fork repository, label, webhooks, gastroenteritis codes, frobnicate widget")
)
speller = Speller(CATALOG)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("delte the invioce", "delete the invoice"),
        ("creat a nice repositry", "create a nice repository"),
        ("REMVOE ALL LABLES", "remove ALL labels"),
        ("serch by nmae", "search by name"),
        ("two widgts", "two widgets"),
    ],
)
def test_a_misspelt_word_is_read_as_the_nearest_known_one(written: str, meant: str) -> None:
    assert speller.correct(written) == meant


@pytest.mark.parametrize(
    "text",
    [
        "create an invoice for the new customer",
        "frobnicate the widgets",  # the catalog's own word, and a plural of one
        "unstar repos and resync backends",  # made of known words
        "ping Priya and Xochitl about it",  # names
        "set x-amz-acl on bucket qzx9-prd",  # codes
        "open https://exmaple.test/invoces",
        "send to custmer@exmaple.test",
        "call list_invioces with {custmer}",
        'add the tag "invioce"',
        "send SIGTERM",
        "GDPR erasure",
        "",
        "🦊 ¿qué?",
    ],
)
def test_what_is_right_or_no_plain_word_stays_as_it_is(text: str) -> None:
    assert speller.correct(text) == text


def test_the_catalogs_word_is_preferred_to_a_more_frequent_one() -> None:
    assert Speller(frozenset(tokens("lemma"))).correct("lema") == "lemma"
    assert Speller(frozenset(tokens("lease"))).correct("leese") == "lease"


def test_a_rare_word_gives_way_to_the_catalogs_word_one_letter_away_only() -> None:
    assert Speller(frozenset(tokens("message"))).correct("the messuage") == "the message"
    assert Speller(frozenset()).correct("the messuage") == "the messuage"


def test_correcting_twice_changes_nothing_more() -> None:
    for text in ("delte invioce", "updte the labl", "qwertyuiop zxcvb", "stp teh containr"):
        once = speller.correct(text)
        assert speller.correct(once) == once


def test_the_dictionary_is_there_and_words_of_computing_count_as_frequent() -> None:
    assert len(english_words()) > 50_000
    assert english_words()[:1] == ("the",)
    assert common_words()["webhook"] < 25_000
