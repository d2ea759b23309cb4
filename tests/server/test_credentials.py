from __future__ import annotations

from pathlib import Path

import pytest

from capdex_engine.errors import ConfigurationError
from capdex_server.config import CredentialConfig, Settings, SourceConfig
from capdex_server.credentials import (
    DefaultCredentials,
    Held,
    HeldByAny,
    Secrets,
    explicit_credentials,
    parse_credential,
    read_secrets,
)


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


def oauth(tmp_path, **options) -> CredentialConfig:
    (tmp_path / "secret").write_text("hush\n")
    return CredentialConfig(file=tmp_path / "secret", client_id="me", **options)


def test_a_client_id_beside_a_file_makes_an_oauth2_client_of_its_secret(tmp_path):
    where = oauth(tmp_path, token_auth="client_secret_post", scope="a b", audience="x", resource="r")
    assert explicit_credentials(settings(o=where), {})["shop"]["o"] == {
        "client_id": "me",
        "client_secret": "hush",
        "token_endpoint_auth_method": "client_secret_post",
        "scope": "a b",
        "audience": "x",
        "resource": "r",
    }


def test_what_a_secret_says_itself_wins_over_what_stands_beside_it():
    where = CredentialConfig(env="O", client_id="me", scope="a")
    text = '{"client_id": "own", "client_secret": "s", "scope": "b"}'
    assert explicit_credentials(settings(o=where), {"O": text})["shop"]["o"] == {
        "client_id": "own",
        "client_secret": "s",
        "scope": "b",
    }


def rotate(path: Path, text: str) -> None:
    """Replace a file as a secret's manager does: at once, by another."""
    new = path.with_name("new")
    new.write_text(text)
    new.replace(path)


def test_a_rotated_file_is_read_at_the_next_look(tmp_path):
    file = tmp_path / "key"
    file.write_text("one")
    held = read_secrets(settings(k=CredentialConfig(file=file)), {}).held("", "shop")
    assert held["k"] == "one"
    rotate(file, "two")
    assert (held["k"], list(held), "k" in held) == ("two", ["k"], True)


@pytest.mark.parametrize("content", [b"", b"  \n", b"\xff\xfe"])
def test_a_file_that_holds_no_secret_for_a_moment_leaves_the_last_good_one(tmp_path, content):
    file = tmp_path / "key"
    file.write_text("one")
    held = read_secrets(settings(k=CredentialConfig(file=file)), {}).held("", "shop")
    assert held["k"] == "one"
    file.write_bytes(content)
    assert held["k"] == "one"
    file.unlink()
    assert held["k"] == "one"
    rotate(file, "two")
    assert held["k"] == "two"


def test_a_file_that_was_empty_at_the_start_may_get_its_secret_later(tmp_path):
    file = tmp_path / "key"
    file.write_text("")
    held = read_secrets(settings(k=CredentialConfig(file=file)), {}).held("", "shop")
    assert "k" not in held
    rotate(file, "one")
    assert held["k"] == "one"


def test_a_rotated_secret_of_a_client_keeps_what_stands_beside_it(tmp_path):
    held = read_secrets(settings(o=oauth(tmp_path, scope="a")), {}).held("", "shop")
    rotate(tmp_path / "secret", "fresh")
    assert held["o"] == {"client_id": "me", "client_secret": "fresh", "scope": "a"}


def tenants(tmp_path, environ: dict[str, str]) -> Secrets:
    (tmp_path / "key").write_text("from-file")
    own = {
        "acme": {"k": CredentialConfig(env="ACME")},
        "umbra": {"f": CredentialConfig(file=tmp_path / "key")},
    }
    source = SourceConfig(
        location="x", credentials={"k": CredentialConfig(env="ALL")}, tenant_credentials=own
    )
    return read_secrets(Settings(sources={"shop": source}), environ)


def test_each_tenant_has_its_own_credentials(tmp_path):
    secrets = tenants(tmp_path, {"ALL": "common", "ACME": "acmes"})
    assert dict(secrets.held("", "shop")) == {"k": "common"}
    assert dict(secrets.held("acme", "shop")) == {"k": "acmes"}
    assert dict(secrets.held("umbra", "shop")) == {"f": "from-file"}
    assert dict(secrets.held("nobody", "shop")) == {}
    assert secrets.schemes() == {"shop": {"k", "f"}}


def test_a_tenants_credential_that_is_not_set_is_empty_rather_than_the_common_one(tmp_path):
    secrets = tenants(tmp_path, {"ALL": "common"})
    assert secrets.held("acme", "shop")["k"] == ""


def test_a_scheme_counts_as_held_where_anyone_has_a_credential_that_is_not_empty():
    held = HeldByAny(({"a": "", "b": "x"}, {"a": "", "c": ""}, {"c": "y"}))
    assert [scheme in held for scheme in "abcd"] == [False, True, True, False]


def test_a_command_lines_credential_wins_over_the_configured_file(tmp_path):
    file = tmp_path / "key"
    file.write_text("from-file")
    secrets = read_secrets(settings(k=CredentialConfig(file=file)), {}, {"shop": {"k": "typed"}})
    assert secrets.held("", "shop")["k"] == "typed"


def test_equal_secrets_are_equal_and_show_nothing(tmp_path):
    environ = {"ALL": "planted-common", "ACME": "planted-acme"}
    secrets = tenants(tmp_path, environ)
    assert secrets == tenants(tmp_path, environ)
    assert secrets != tenants(tmp_path, {**environ, "ACME": "other"})
    shown = repr(secrets) + repr(secrets.files) + repr(secrets.held("umbra", "shop"))
    assert not any(text in shown for text in ("planted", "from-file"))
