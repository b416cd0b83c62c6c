"""What a sub-agent's first request has in common with its caller's and its siblings': the bytes that a
provider's cache can give back."""

from typing import Any

from croze.types.event import FactAdded, HeadSet
from tests.agent.conftest import Desk, bodies
from tests.agent.team_cast import Cast, opened, subagents
from tests.model_server import Request


def head_of(request: Request) -> tuple[Any, Any]:
    """Tools and system text."""
    sent = request.json
    system = sent.get("system") or sent["messages"][0]
    return sent.get("tools"), system


def messages(request: Request) -> list[Any]:
    sent = request.json["messages"]
    return [plain(message) for message in sent if message["role"] != "system"]


def plain(value: Any) -> Any:
    """Without the marks that tell a provider what to keep: they move as a conversation grows."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key != "cache_control"}
    return [plain(each) for each in value] if isinstance(value, list) else value


def shared(first: Request, second: Request) -> int:
    """How many messages are the same from the beginning on."""
    pairs = zip(messages(first), messages(second), strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), len(messages(first)))


async def test_a_child_with_all_tools_begins_as_its_caller_does(any_desk: Desk) -> None:
    desk = any_desk
    (desk.project / "AGENTS.md").write_text("Use tabs.\n")
    (desk.project / "src").mkdir()
    say = desk.reply
    cast = Cast(
        desk,
        [say("", [subagents("ask alpha", "ask beta")]), say("ok")],
        {"alpha": [say("a")], "beta": [say("b")]},
    )
    session, _ = await desk.run("go")
    main, alpha, beta = (cast.asked[role][0] for role in ("main", "alpha", "beta"))
    assert head_of(main) == head_of(alpha) == head_of(beta)
    # Law and tree, as pairs; then each has its own words.
    assert shared(main, alpha) == shared(main, beta) == 4
    assert messages(main)[:4] == messages(alpha)[:4]
    heads = {body.head for body in bodies(session.events, HeadSet)}
    for known in opened(session):
        log = await desk.log(known.child)
        assert {body.head for body in bodies(log, HeadSet)} == heads
        facts = {body.key: body.text for body in bodies(log, FactAdded)}
        own = {body.key: body.text for body in bodies(session.events, FactAdded)}
        assert {key: facts[key] for key in ("law", "tree", "environment")} == {
            key: own[key] for key in ("law", "tree", "environment")
        }


async def test_siblings_of_one_agent_are_the_same_up_to_their_tasks(any_desk: Desk) -> None:
    desk = any_desk
    (desk.project / "AGENTS.md").write_text("Use tabs.\n")
    say = desk.reply
    orders = [{"name": "explore", "task": f"look at {name}"} for name in ("alpha", "beta")]
    cast = Cast(
        desk,
        [say("", [subagents(*orders)]), say("ok")],
        {"alpha": [say("a")], "beta": [say("b")]},
    )
    await desk.run("go")
    main, alpha, beta = (cast.asked[role][0] for role in ("main", "alpha", "beta"))
    assert head_of(alpha) == head_of(beta) != head_of(main)
    one, other = alpha.body.decode(), beta.body.decode()
    same = next(at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    assert one[same:].startswith("alpha")
    assert other[same:].startswith("beta")


async def test_nothing_is_looked_at_again_for_a_child(desk: Desk) -> None:
    say = desk.reply
    Cast(
        desk,
        [say("", [subagents(*(f"ask alpha {n}" for n in range(5)))]), say("ok")],
        {"alpha": [say("a")] * 5},
    )
    async with desk.session() as session:
        await session.submit("go")
        stats = session._live.cache.stats
        assert stats.scans == 1


async def test_the_conversation_of_the_caller_is_not_the_childs(desk: Desk) -> None:
    say = desk.reply
    cast = Cast(
        desk,
        [say("I know it.", [subagents("ask alpha")]), say("ok")],
        {"alpha": [say("a")]},
    )
    await desk.run("the password is swordfish")
    sent = cast.asked["alpha"][0].body.decode()
    assert "swordfish" not in sent
    assert "I know it." not in sent
    assert "ask alpha" in sent
