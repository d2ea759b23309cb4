"""``[skills]`` and ``[workspaces]`` in capdex.toml."""

from __future__ import annotations

import pytest

from capdex_engine.errors import ConfigurationError
from capdex_server.config import load_settings
from capdex_server.config_skills import skill_servers

CALLER = """
[[callers]]
name = "ann"
tenant = "acme"
token_sha256 = "{}"
allow = [{{}}]
""".format("a" * 64)
WORKSPACE = """
[workspaces.payroll]
tenant = "acme"
[workspaces.payroll.skills]
url = "https://payroll.example/mcp"
"""


@pytest.fixture
def load(tmp_path):
    def loaded(text: str, **environ: str):
        path = tmp_path / "capdex.toml"
        path.write_text(text)
        return load_settings(path, environ)

    return loaded


def test_without_a_table_there_is_no_source_of_skills(load):
    assert load("").sources == {} and skill_servers(load(""), {}) == []


def test_the_servers_own_comes_first_then_workspaces_in_the_order_of_the_file(load):
    settings = load(
        CALLER
        + '[workspaces.z]\ntenant = "acme"\nskills.url = "https://z.example"\n'
        + WORKSPACE
        + '[skills]\nurl = "https://own.example/mcp"\n'
    )
    servers = skill_servers(settings, {})
    assert [(one.name, one.tenant) for one in servers] == [
        ("skills", None),
        ("skills.z", "acme"),
        ("skills.payroll", "acme"),
    ]
    assert settings.sources["skills"].kind == "skills"


def test_a_workspace_alone_is_enough(load):
    assert [one.name for one in skill_servers(load(CALLER + WORKSPACE), {})] == ["skills.payroll"]


def test_what_is_switched_off_is_no_source(load):
    assert load('[skills]\nurl = "https://x.example"\nenabled = false').sources == {}


def test_the_environment_will_do(load):
    settings = load("", CAPDEX_SKILLS__URL="https://x.example/mcp", CAPDEX_DEV_MODE="1")
    assert skill_servers(settings, {})[0].url == "https://x.example/mcp" and settings.dev_mode


def test_a_token_is_looked_up_when_it_is_needed(load, tmp_path):
    (tmp_path / "token").write_text("first\n")
    in_variable = '[skills]\nurl = "https://x.example"\ntoken = { env = "SKILLS_TOKEN" }'
    in_file = '[skills]\nurl = "https://x.example"\ntoken = { file = "token" }'
    assert skill_servers(load(in_variable), {"SKILLS_TOKEN": "S3CRET"})[0].token() == "S3CRET"
    (server,) = skill_servers(load(in_file), {})
    assert server.token() == "first"
    (tmp_path / "token").write_text("second")
    assert server.token() == "second"


@pytest.mark.parametrize("value", ["", "  ", "two words", "näh", "a\nb"])
def test_a_token_that_is_none_is_told_and_not_shown(load, value):
    (server,) = skill_servers(
        load('[skills]\nurl = "https://x.example"\ntoken = { env = "SKILLS_TOKEN" }'), {"SKILLS_TOKEN": value}
    )
    with pytest.raises(ConfigurationError) as error:
        server.token()
    assert "SKILLS_TOKEN" in error.value.message
    assert not value.strip() or value not in error.value.message


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[skills]\nulr = "x"', "skills.ulr"),
        ('[skills]\nexecute_tool = "a b"', "skills.execute_tool"),
        ('[skills]\ntoken = "S3CRET"', "skills.token"),
        ("[skills]\ntoken = {}", "skills.token"),
        ('[skills]\ntoken = { env = "A", file = "b" }', "skills.token"),
        ('[skills]\ntoken = { file = "absent" }', "skills.token.file"),
        (CALLER + '[workspaces.w]\nskills.url = "https://x.example"', "workspaces.w.tenant"),
        (CALLER + '[workspaces.w]\ntenant = "other"', "workspaces.w.tenant"),
        ('[workspaces.w]\ntenant = "acme"', "workspaces.w.tenant"),
        ('[workspaces."a b"]\n', "workspaces.a b"),
        (CALLER + WORKSPACE + "token = {}", "workspaces.payroll.skills.token"),
        ('[sources.skills]\nlocation = "."\n[skills]\nurl = "https://x.example"', "sources.skills"),
        ('[sources.x]\nlocation = "."\nkind = "skills"', "sources.x.kind"),
    ],
)
def test_each_mistake_names_its_key(load, text, key):
    with pytest.raises(ConfigurationError) as error:
        load(text)
    assert key in error.value.message and "S3CRET" not in error.value.message
