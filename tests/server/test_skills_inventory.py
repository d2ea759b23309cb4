"""The inventory: who is asked for whom, how often, and what stays when a server fails."""

from __future__ import annotations

import anyio
import pytest

from capdex_engine.errors import UpstreamUnreachable
from capdex_engine.skills import Fault, Skill, SkillIndex
from capdex_server.skills import KEPT, SkillCatalog, SkillInventory, SkillServer

pytestmark = pytest.mark.anyio
DOWN = UpstreamUnreachable("It is down.")


def skill(name: str) -> Skill:
    return Skill(name, f"Does {name}.", f"skill:{name}", f"skill://{name}")


def index(*names: str, faults: tuple[Fault, ...] = ()) -> SkillIndex:
    return SkillIndex(tuple(map(skill, names)), faults)


class World:
    """Servers that answer what they are told to, and a clock that is set."""

    def __init__(self, *servers: SkillServer, **answers: object) -> None:
        self.now = 100.0
        self.answers = {name.replace("_", "."): answer for name, answer in answers.items()}
        self.reads: list[str] = []
        self.gate: anyio.Event | None = None
        self.inventory = SkillInventory(servers, read=self.read, clock=lambda: self.now, max_answers=3)

    async def read(self, server: SkillServer) -> SkillIndex:
        self.reads.append(server.name)
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers[server.name]
        if isinstance(answer, BaseException):
            raise answer
        assert isinstance(answer, SkillIndex)
        return answer

    async def names(self, tenant: str = "acme") -> list[str]:
        return [one.name for one in (await self.inventory.read_skill_catalog(tenant)).skills]


OWN = SkillServer("skills", "https://own.example/mcp")
A1 = SkillServer("skills.a1", "https://a1.example/mcp", "acme")
A2 = SkillServer("skills.a2", "https://a2.example/mcp", "acme")
B = SkillServer("skills.b", "https://b.example/mcp", "bolt")


async def test_no_configuration_no_skills():
    assert await World().inventory.read_skill_catalog("acme") == SkillCatalog()


async def test_the_servers_own_configuration_comes_first():
    world = World(OWN, A1, skills=index("own"), skills_a1=index("a"))
    assert await world.names() == ["own"] and world.reads == ["skills"]


async def test_the_first_workspace_that_answers_wins():
    world = World(OWN, A1, A2, skills=DOWN, skills_a1=DOWN, skills_a2=index("two"))
    found = await world.inventory.read_skill_catalog("acme")
    assert found.server == "skills.a2" and world.reads == ["skills", "skills.a1", "skills.a2"]
    assert world.inventory.problems == {"skills": "It is down.", "skills.a1": "It is down."}


async def test_an_empty_index_is_an_answer():
    world = World(OWN, A1, skills=index(), skills_a1=index("a"))
    assert await world.inventory.read_skill_catalog("acme") == SkillCatalog((), "skills")
    assert world.reads == ["skills"]


async def test_what_is_switched_off_is_not_asked_and_is_no_problem():
    off = SkillServer("skills", OWN.url, enabled=False)
    world = World(off, A1, skills=index("own"), skills_a1=index("a"))
    assert await world.names() == ["a"] and world.reads == ["skills.a1"]
    assert world.inventory.problems == {}


async def test_a_winning_workspace_is_asked_first_from_then_on():
    world = World(OWN, A1, A2, skills=DOWN, skills_a1=DOWN, skills_a2=index("two"))
    await world.names()
    world.answers = {"skills": index("own"), "skills.a1": index("one"), "skills.a2": index("two")}
    world.now += KEPT
    world.reads.clear()
    assert await world.names() == ["two"] and world.reads == ["skills.a2"]


async def test_a_promoted_workspace_that_fails_gives_way_and_comes_back():
    world = World(OWN, A1, skills=DOWN, skills_a1=index("one"))
    await world.names()
    world.answers = {"skills": index("own"), "skills.a1": DOWN}
    world.now += KEPT
    assert await world.names() == ["own"]
    world.answers["skills.a1"] = index("one")
    world.now += KEPT
    assert await world.names() == ["one"]


async def test_the_next_workspace_that_wins_takes_the_place_of_the_last():
    world = World(A1, A2, skills_a1=DOWN, skills_a2=index("two"))
    await world.names()
    world.answers = {"skills.a1": index("one"), "skills.a2": DOWN}
    world.now += KEPT
    assert await world.names() == ["one"]
    world.answers["skills.a2"] = index("two")
    world.now += KEPT
    assert await world.names() == ["one"]


async def test_a_promotion_is_for_its_tenant_alone():
    world = World(OWN, A1, B, skills=DOWN, skills_a1=index("a"), skills_b=index("b"))
    assert await world.names("acme") == ["a"]
    assert await world.names("bolt") == ["b"]
    assert await world.names("other") == []
    world.answers["skills"] = index("own")
    world.now += KEPT
    assert await world.names("acme") == ["a"]
    assert await world.names("other") == ["own"]


async def test_a_tenant_never_asks_with_anothers_configuration():
    world = World(A1, B, skills_a1=index("a"), skills_b=DOWN)
    await world.names("acme")
    world.reads.clear()
    world.now += KEPT
    assert await world.names("bolt") == [] and world.reads == ["skills.b"]
    assert world.inventory.may_know("skills.b", "bolt")
    assert not world.inventory.may_know("skills.b", "acme")


async def test_a_workspace_of_nobody_in_particular_serves_all():
    shared = SkillServer("skills.all", "https://all.example/mcp")
    world = World(shared, skills_all=index("x"))
    assert await world.names("acme") == await world.names("bolt") == ["x"]
    assert world.reads == ["skills.all"]


async def test_within_30_seconds_nothing_is_asked_again():
    world = World(OWN, skills=index("own"))
    for now in (100.0, 110.0, 129.99):
        world.now = now
        assert await world.names() == ["own"]
    assert world.reads == ["skills"]
    world.now = 130.0
    await world.names()
    assert world.reads == ["skills"] * 2


async def test_a_failure_counts_for_30_seconds_too():
    world = World(OWN, skills=DOWN)
    assert await world.names() == []
    world.answers["skills"] = index("own")
    world.now += KEPT - 0.01
    assert await world.names() == [] and world.reads == ["skills"]
    world.now += 0.01
    assert await world.names() == ["own"] and world.inventory.problems == {}


async def test_a_failed_refresh_empties_the_list():
    world = World(OWN, skills=index("own"))
    await world.names()
    world.answers["skills"] = DOWN
    world.now += KEPT
    assert await world.names() == [] == await world.names()
    assert world.reads == ["skills"] * 2


async def test_those_who_ask_at_once_share_one_read():
    world = World(OWN, skills=index("own"))
    world.gate = anyio.Event()
    found: list[list[str]] = []

    async def ask() -> None:
        found.append(await world.names())

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert world.reads == ["skills"] and found == []
        world.gate.set()
    assert found == [["own"]] * 5 and world.reads == ["skills"]


@pytest.mark.parametrize(("answer", "after"), [(index("new"), ["new"]), (DOWN, [])])
async def test_an_expired_list_is_served_only_while_it_is_refreshed(answer, after):
    world = World(OWN, skills=index("old"))
    await world.names()
    world.now += 10 * KEPT
    world.answers["skills"], world.gate = answer, anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.names)
        await anyio.wait_all_tasks_blocked()
        assert await world.names() == ["old"] == await world.names()
        assert world.reads == ["skills"] * 2
        world.gate.set()
    assert await world.names() == after and world.reads == ["skills"] * 2


async def test_one_who_leaves_while_asking_leaves_it_to_the_next():
    world = World(OWN, skills=index("own"))
    world.gate = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.names)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    world.gate = None
    assert await world.names() == ["own"] and world.reads == ["skills"] * 2


async def test_answers_are_bounded_and_the_oldest_goes_first():
    servers = [SkillServer(f"skills.{n}", "https://x.example", str(n)) for n in range(5)]
    world = World(*servers, **{f"skills_{n}": index(str(n)) for n in range(5)})
    for n in range(5):
        await world.names(str(n))
    assert len(world.inventory._entries) == 3
    world.reads.clear()
    assert await world.names("4") == ["4"] and world.reads == []
    assert await world.names("0") == ["0"] and world.reads == ["skills.0"]


async def test_a_key_holds_no_secret_and_tells_configurations_apart():
    with_token = SkillServer("skills", OWN.url, token=lambda: "S3CRET", held="env:TOKEN")
    keys = {
        OWN.key,
        with_token.key,
        SkillServer("skills", OWN.url, "acme").key,
        SkillServer("skills", OWN.url + "/").key,
        SkillServer("skills", OWN.url, enabled=False).key,
    }
    assert len(keys) == 5 and all(len(key) == 64 and "S3CRET" not in key for key in keys)
    assert "S3CRET" not in repr(with_token)


async def test_what_nobody_foresaw_is_an_empty_list_too(caplog):
    world = World(OWN, skills=ZeroDivisionError("S3CRET"))
    assert await world.names() == []
    assert "skills.internal_error" in caplog.text and "S3CRET" not in caplog.text


async def test_reasons_and_dropped_entries_are_logged_when_they_are_new(caplog):
    caplog.set_level("INFO")
    world = World(OWN, skills=index("own", faults=(Fault(3, "name: must be kebab-case."),)))
    for _ in range(3):
        await world.names()
        world.now += KEPT
    assert caplog.text.count("skills.entries_dropped") == 1 and "3: name: must be" in caplog.text
    assert world.inventory.faults["skills"][0].index == 3
    world.answers["skills"] = DOWN
    for _ in range(3):
        await world.names()
        world.now += KEPT
    assert caplog.text.count("skills.failed") == 1
    world.answers["skills"] = index("own")
    await world.names()
    assert caplog.text.count("skills.recovered") == 1 and not world.inventory.faults["skills"]
