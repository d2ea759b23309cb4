from __future__ import annotations

import pytest

from capdex_engine.errors import ConfigurationError
from capdex_server.config import CredentialConfig, Settings, SourceConfig
from capdex_server.credentials import DefaultCredentials, Held, explicit_credentials, parse_credential


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("abc\n", "abc"),
        ("", None),
        ("  ", None),
        ('["user", "pass"]', ("user", "pass")),
        ('{"client_id": "a", "client_secret": "b"}', {"client_id": "a", "client_secret": "b"}),
        ("[not json", "[not json"),
        ('["three", "of", "them"]', '["three", "of", "them"]'),
        ('{"a": 1}', '{"a": 1}'),
    ],
)
def test_a_credential_is_a_text_a_pair_or_an_object(text, value):
    assert parse_credential(text) == value


def settings(**credentials: CredentialConfig) -> Settings:
    return Settings(sources={"shop": SourceConfig(location="x", credentials=credentials)})


def test_credentials_come_from_variables_and_files(tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    held = explicit_credentials(
        settings(
            a=CredentialConfig(env="A"),
            b=CredentialConfig(file=tmp_path / "token"),
            c=CredentialConfig(user_env="U", password_env="P"),
            d=CredentialConfig(env="UNSET"),
        ),
        {"A": "key", "U": "me", "P": "[x"},
    )
    assert held == {"shop": {"a": "key", "b": "from-file", "c": ("me", "[x")}}


def test_an_unreadable_file_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigurationError):
        explicit_credentials(settings(a=CredentialConfig(file=tmp_path)), {})


def held(source: str, environ: dict[str, str], *sources: str) -> Held:
    return Held({}, DefaultCredentials(sources or [source], environ).of(source))


@pytest.mark.parametrize("scheme", ["api-key", "API_KEY", "api key"])
def test_a_default_variable_fits_every_spelling_of_a_scheme(scheme):
    assert held("pet-store", {"CAPDEX_CREDENTIAL_PET_STORE_API_KEY": "k"})[scheme] == "k"


@pytest.mark.parametrize("scheme", ["apikey", "myapi_key", ""])
def test_a_default_variable_fits_no_other_scheme(scheme):
    assert scheme not in held("pet-store", {"CAPDEX_CREDENTIAL_PET_STORE_API_KEY": "k"})


def test_a_named_credential_wins_over_a_default_variable():
    defaults = DefaultCredentials(["shop"], {"CAPDEX_CREDENTIAL_SHOP_KEY": "default"})
    assert Held({"key": "named"}, defaults.of("shop"))["key"] == "named"


def test_held_credentials_do_not_show_themselves():
    assert "hunter2" not in repr(Held({"key": "hunter2"}, {}))


def test_the_longest_source_name_owns_a_variable():
    environ = {"CAPDEX_CREDENTIAL_GIT_HUB_TOKEN": "k"}
    assert "hub_token" not in held("git", environ, "git", "git.hub")
    assert held("git.hub", environ, "git", "git.hub")["token"] == "k"


def test_a_variable_that_fits_two_sources_is_refused():
    with pytest.raises(ConfigurationError):
        DefaultCredentials(["a-b", "a.b"], {"CAPDEX_CREDENTIAL_A_B_KEY": "k"})


def test_another_sources_variable_is_not_used():
    assert "key" not in held("b", {"CAPDEX_CREDENTIAL_A_KEY": "k"}, "a", "b")
