"""A server that takes no tools: one notice, then the xml protocol from there on."""

from croze.types.event import HeadSet, ModelCalled, Notice, Stopped
from tests.agent.conftest import Desk, as_tags, bodies
from tests.model_server import Reply, Request

UNKNOWN = "openai:some-local-model"
WRITE = as_tags("write_to_file", {"path": "made.txt", "content": "made"})


def without_tools(texts: list[str]) -> object:
    """Refuses every request with tools, as some servers do; else the next of these texts."""
    left = iter(texts)

    def reply(request: Request) -> Reply:
        if "tools" in request.json:
            return Reply(fault="tools_refused")
        return Reply(text=next(left))

    return reply


async def test_a_refusal_of_tools_leads_to_xml_once_and_for_all(desk: Desk) -> None:
    server = desk.server
    server.replies = without_tools([f"I write.\n{WRITE}", "Written.", "Still here.", "Resumed."])  # type: ignore[assignment]
    async with desk.session(model=UNKNOWN, dialect=None) as session:
        assert session.dialect == "native"
        stopped = await session.submit("Write it.")
        assert stopped.text == "Written."
        assert session.dialect == "xml"
        await session.submit("And now?")
        notices = [n for n in bodies(session.events, Notice) if n.code == "tools_refused"]
        assert len(notices) == 1
        assert UNKNOWN in notices[0].text
        heads = bodies(session.events, HeadSet)
        assert [head.dialect for head in heads] == ["native", "xml"]
    assert (desk.project / "made.txt").read_text().strip() == "made"
    assert len(server.requests) == 4
    for model in (None, UNKNOWN):
        server.replies = without_tools(["Resumed."])  # type: ignore[assignment]
        async with desk.session(resume=session.id, model=model, dialect=None) as again:
            assert again.dialect == "xml"
            stopped = await again.submit("Go on.")
            assert stopped.text == "Resumed."
            assert len(bodies(again.events, HeadSet)) == 2
    assert ["tools" in request.json for request in server.requests] == [True, *[False] * 5]
    one_turn = bodies(session.events, Stopped)[0]
    assert one_turn.reason == "done"
    assert len({called.head for called in bodies(session.events, ModelCalled)}) == 2


async def test_whoever_asked_for_native_is_told_the_failure(desk: Desk) -> None:
    desk.server.replies = [Reply(fault="tools_refused")]
    session, (stopped,) = await desk.run("Write it.", model=UNKNOWN, dialect="native")
    assert stopped.reason == "failed"
    assert "does not support tools" in stopped.text
    assert [head.dialect for head in bodies(session.events, HeadSet)] == ["native"]
