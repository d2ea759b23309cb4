"""OAuth2 client credentials through /mcp/agent, against a token endpoint and an API on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from integration.login_support import Login, caller, document, login_server, serving

pytestmark = pytest.mark.anyio
SECRET = "planted/secret+2236"
CONFIG = """
[sources.stock]
location = "stock.json"
server = "{login}/api"
security_schemes.login = { type = "oauth2", token_url = "{login}/token" }
"""
ENV = CONFIG + 'credentials.login = { env = "STOCK_SECRET", client_id = "capdex" }\n'
ENVIRON = {"STOCK_SECRET": SECRET}


@pytest.fixture
def login() -> Any:
    with login_server(capdex=SECRET) as found:
        yield found


def clean(*answers: dict[str, Any]) -> bool:
    text = json.dumps(answers)
    return SECRET not in text and "planted" not in text


async def test_one_token_serves_many_calls(login: Login, tmp_path: Path) -> None:
    async with serving(login, tmp_path, ENV, ENVIRON) as house:
        answers = [await house.call(name) for name in ("countStock", "addStock", "countStock")]
    assert [(one["status"], one["body"]) for one in answers] == [(200, {"client": "capdex"})] * 3
    assert login.asked == [
        {
            "grant_type": "client_credentials",
            "scope": "stock:read",
            "client_id": "capdex",
            "client_secret": SECRET,
            "method": "basic",
        }
    ]
    assert login.calls == [(method, "Bearer planted-token-1-capdex") for method in ("GET", "POST", "GET")]


async def test_calls_at_once_share_one_token(login: Login, tmp_path: Path) -> None:
    async with serving(login, tmp_path, ENV, ENVIRON) as house, anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(house.call)
    assert (len(login.asked), len(login.calls)) == (1, 10)


async def test_the_secret_may_stand_in_the_form_with_other_scopes(login: Login, tmp_path: Path) -> None:
    config = CONFIG + (
        'credentials.login = { env = "STOCK_SECRET", client_id = "capdex", scope = "all", '
        'token_auth = "client_secret_post", audience = "stock" }\n'
    )
    async with serving(login, tmp_path, config, ENVIRON) as house:
        assert (await house.call())["status"] == 200
    (form,) = login.asked
    assert "method" not in form
    assert (form["client_secret"], form["scope"], form["audience"]) == (SECRET, "all", "stock")


async def test_a_token_that_ends_is_got_anew(login: Login, tmp_path: Path) -> None:
    async with serving(login, tmp_path, ENV, ENVIRON) as house:
        await house.call()
        house.time.now += 3500
        assert (await house.call())["status"] == 200
        assert len(login.asked) == 1
        house.time.now += 50
        assert (await house.call())["status"] == 200
    assert len(login.asked) == 2
    assert login.calls[-1] == ("GET", "Bearer planted-token-2-capdex")


@pytest.mark.parametrize(("name", "method"), [("countStock", "GET"), ("addStock", "POST")])
async def test_a_token_that_the_api_refuses_is_got_anew_once(
    login: Login, tmp_path: Path, name: str, method: str
) -> None:
    async with serving(login, tmp_path, ENV, ENVIRON) as house:
        await house.call(name)
        login.valid.clear()
        answer = await house.call(name)
        assert (await house.call(name))["status"] == 200
    assert (answer["status"], answer["body"]) == (200, {"client": "capdex"})
    assert len(login.asked) == 2
    tokens = [authorization for _, authorization in login.calls]
    assert tokens == [f"Bearer planted-token-{number}-capdex" for number in (1, 1, 2, 2)]


async def test_a_second_refusal_is_the_apis_answer(login: Login, tmp_path: Path) -> None:
    login.stillborn = True
    async with serving(login, tmp_path, ENV, ENVIRON) as house:
        answer = await house.call()
    assert (answer["status"], len(login.asked), len(login.calls)) == (401, 2, 2)
    assert answer["body"] == {"error": "*** is not valid here"}
    assert answer["masked"] is True


async def test_a_refused_client_is_a_missing_credential(login: Login, tmp_path: Path) -> None:
    async with serving(login, tmp_path, ENV, {"STOCK_SECRET": "planted-wrong"}) as house:
        answers = [await house.call(), await house.call()]
    for answer in answers:
        error = answer["error"]
        assert (error["code"], error["scheme"], error["retryable"]) == ("missing_credentials", "login", False)
        assert (error["capability"], "invalid_client" in error["message"]) == ("countStock", True)
    assert clean(*answers)
    # The second call knows of the first one's refusal.
    assert (len(login.asked), login.calls) == (1, [])


@pytest.mark.parametrize(
    ("status", "headers", "body", "code"),
    [
        (307, {"Location": "/elsewhere"}, b"", "upstream_protocol_error"),
        (302, {"Location": "https://login.example/token"}, b"", "upstream_protocol_error"),
        (200, {}, b"<html>planted</html>", "upstream_protocol_error"),
        (200, {}, b'{"access_token": "' + b"x" * 100_000 + b'"}', "upstream_protocol_error"),
        (503, {}, b"planted", "upstream_unreachable"),
    ],
)
async def test_what_the_endpoint_says_instead_of_a_token_is_not_passed_on(
    login: Login, tmp_path: Path, status: int, headers: dict[str, str], body: bytes, code: str
) -> None:
    login.answers.append((status, headers, body))
    async with serving(login, tmp_path, ENV, ENVIRON) as house:
        answer = await house.call()
        assert (await house.call())["status"] == 200
    assert answer["error"]["code"] == code
    assert "token endpoint" in answer["error"]["message"]
    assert clean(answer)
    assert len(login.calls) == 1


async def test_a_document_sends_no_secret_to_a_private_address(login: Login, tmp_path: Path) -> None:
    config = ENV.replace("security_schemes", "# security_schemes").replace(
        "{login}/api", "http://127.0.0.1:9"
    )
    flows = {"clientCredentials": {"tokenUrl": login.url.replace("http", "https") + "/token", "scopes": {}}}
    for text in (document(login), document(login, **flows)):
        async with serving(login, tmp_path, config, ENVIRON, text) as house:
            answer = await house.call()
        assert answer["error"]["code"] == "address_refused"
        assert "127.0.0.1" not in answer["error"]["message"]
    assert (login.asked, login.calls) == ([], [])


async def test_a_document_without_the_flow_says_which_setting_is_missing(
    login: Login, tmp_path: Path
) -> None:
    config = ENV.replace("security_schemes", "# security_schemes")
    text = document(login, implicit={"authorizationUrl": "https://login.example/", "scopes": {}})
    async with serving(login, tmp_path, config, ENVIRON, text) as house:
        error = (await house.call())["error"]
    assert error["code"] == "missing_credentials"
    assert "token_url" in error["message"]


async def test_another_flow_is_served_by_a_token_that_is_configured(login: Login, tmp_path: Path) -> None:
    login.valid["planted-ready-token"] = "someone"
    config = CONFIG.replace("security_schemes", "# security_schemes") + 'credentials.login.env = "READY"\n'
    text = document(login, password={"tokenUrl": f"{login.url}/token", "scopes": {}})
    async with serving(login, tmp_path, config, {"READY": "planted-ready-token"}, text) as house:
        assert (await house.call())["body"] == {"client": "someone"}
        login.valid.clear()
        assert (await house.call())["status"] == 401
    assert (login.asked, len(login.calls)) == ([], 2)


TENANTS = f"""
{ENV}
tenant_credentials.acme.login = {{ env = "ACME_SECRET", client_id = "acme" }}
tenant_credentials.lost.login = {{ env = "LOST_SECRET", client_id = "lost" }}
{caller("acme", "token-of-acme")}
{caller("lost", "token-of-lost")}
{caller("plain", "token-of-plain")}
"""


async def test_tenants_call_under_credentials_of_their_own(login: Login, tmp_path: Path) -> None:
    login.clients["acme"] = "planted-acme-secret"
    environ = {**ENVIRON, "ACME_SECRET": "planted-acme-secret"}
    async with serving(login, tmp_path, TENANTS, environ) as house:
        for _ in range(2):
            assert (await house.call(token="token-of-acme"))["body"] == {"client": "acme"}
            assert (await house.call(token="token-of-plain"))["body"] == {"client": "capdex"}
        # Its own is configured but not set: it must not call under the common one.
        error = (await house.call(token="token-of-lost"))["error"]
        shown = await house.call(token="token-of-acme", dryRun=True)
    assert sorted(form["client_id"] for form in login.asked) == ["acme", "capdex"]
    assert error["code"] == "missing_credentials"
    assert shown["headers"]["Authorization"] == "Bearer ***"


async def test_a_secret_that_is_rotated_in_its_file_is_used_from_the_next_call_on(
    login: Login, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET + "\n")
    config = CONFIG + 'credentials.login = { file = "secret", client_id = "capdex" }\n'
    async with serving(login, tmp_path, config, {}) as house:
        assert (await house.call())["status"] == 200
        login.clients["capdex"], login.valid = "planted-fresh", {}
        (tmp_path / "new").write_text("planted-fresh\n")
        (tmp_path / "new").replace(tmp_path / "secret")
        assert (await house.call())["status"] == 200
    assert [form["client_secret"] for form in login.asked] == [SECRET, "planted-fresh"]
    assert login.calls[-1] == ("GET", "Bearer planted-token-2-capdex")
    assert len(login.calls) == 2


async def test_the_documents_of_a_folder_share_their_sources_client_and_token(
    login: Login, tmp_path: Path
) -> None:
    (tmp_path / "specs").mkdir()
    for name in ("one", "two"):
        text = document(login).replace("countStock", f"count{name}").replace("addStock", f"add{name}")
        (tmp_path / "specs" / f"{name}.json").write_text(text)
    config = ENV.replace('"stock.json"', '"specs"')
    async with serving(login, tmp_path, config, ENVIRON) as house:
        answers = [await house.call("countone"), await house.call("counttwo")]
    assert [one["status"] for one in answers] == [200, 200]
    assert len(login.asked) == 1
