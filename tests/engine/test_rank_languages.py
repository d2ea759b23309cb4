"""Requests in ten languages are put into English words; English ones are left alone."""

import pytest

from capdex_engine.operation import Operation
from capdex_engine.rank.languages import LANGUAGES, gloss, read_lexicon
from capdex_engine.rank.lexical import LexicalIndex
from capdex_engine.rank.reading import RequestReader


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_list_holds_thousands_of_words_in_the_stated_form(language: str) -> None:
    lexicon = read_lexicon(language)
    assert len(lexicon) > 2_000
    assert all(foreign and foreign == foreign.strip().casefold() for foreign in lexicon)
    assert all(english.isascii() and english == english.lower() for english in lexicon.values())
    assert sum(not english for english in lexicon.values()) > 50  # function words


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("es", "Borra este archivo de la carpeta", {"delete", "file", "folder"}),
        ("de", "Lösche die Rechnung des Kunden", {"delete", "invoice", "customer"}),
        ("fr", "Envoie un message à l'équipe", {"send", "message", "team"}),
        ("pt", "Criar uma nova fatura para o cliente", {"create", "new", "invoice"}),
        ("it", "Elimina il messaggio dal canale", {"delete", "message", "channel"}),
        ("nl", "Verwijder de factuur van de klant", {"delete", "invoice"}),
        ("ru", "Удали сообщение из канала", {"delete", "message", "channel"}),
        ("zh", "删除这个文件", {"delete", "file"}),
        ("ja", "このファイルを削除して", {"file", "delete"}),
        ("ko", "파일을 삭제해 주세요", {"file", "delete"}),
    ],
)
def test_a_request_becomes_english_words(language: str, text: str, words: set[str]) -> None:
    found = gloss(text)
    assert found is not None
    assert found.language == language
    said = set(found.text.split())
    assert all(said & {word, "remove" if word == "delete" else word} for word in words), found
    assert 0.5 < found.known <= 1


@pytest.mark.parametrize(
    "text",
    [
        "create an invoice",
        "delte the invioce",
        "docker ps",
        "open a pull request",
        "list all portfolios in a workspace",
        "restaurant menu",
        "GET /repos/{owner}/{repo}",
        "",
        "12345",
        "🦊",
    ],
)
def test_english_and_no_language_at_all_are_left_alone(text: str) -> None:
    assert gloss(text) is None


def test_a_compound_is_read_by_its_parts() -> None:
    found = gloss("zeige meinen Rechnungsentwurf")
    assert found is not None
    assert {"invoice", "draft"} <= set(found.text.split())


def test_accents_may_be_left_out() -> None:
    assert gloss("eliminar la suscripcion del usuario") == gloss("eliminar la suscripción del usuario")
    assert gloss("losche die Uberweisung") is not None


def test_names_and_numbers_are_kept() -> None:
    found = gloss("Füge Priya zum Kanal 42 hinzu")
    assert found is not None
    assert {"priya", "42"} <= set(found.text.split())


def test_a_catalog_in_the_language_of_the_request_is_searched_by_the_request_itself() -> None:
    german = RequestReader(
        LexicalIndex(
            [Operation(name="rechnungErstellen", source="a", summary="Rechnung für Kunden erstellen")]
        )
    )
    english = RequestReader(
        LexicalIndex([Operation(name="createInvoice", source="a", summary="Create invoice")])
    )
    text = "Rechnung erstellen"
    assert german.read(text).texts == (text,)
    assert english.read(text).texts == (text, "invoice create")
