"""An image that a tool shows: its bytes on both wires, the same in every later request, in a replay and in
what the inspector rebuilds; none of them in the log."""

import asyncio
import base64
import json

import pytest

from croze.app.context import body
from croze.types.event import Compacted, ModelSaid, ToolReturned, encode_body
from tests.agent.conftest import BOUND, Desk, bodies
from tests.documents.made import pdf, png

PICTURE = png(40, 30)
DATA = base64.b64encode(PICTURE).decode()


async def test_an_image_is_sent_below_its_result_and_stands_there_ever_after(
    any_desk: Desk,
) -> None:
    desk = any_desk
    (desk.project / "a.png").write_bytes(PICTURE)
    (desk.project / "b.txt").write_text("plain\n")
    desk.says(
        desk.reply("I look.", [("read_file", {"path": "a.png"}), ("read_file", {"path": "b.txt"})]),
        desk.reply("And once more.", [("read_file", {"path": "b.txt", "start_line": "1"})]),
        desk.reply("It is red."),
        desk.reply("Still red."),
    )
    session, stopped = await desk.run("What is it?", "Sure?")
    assert [each.text for each in stopped] == ["It is red.", "Still red."]
    first, *later = desk.server.requests
    assert DATA not in first.body.decode()
    for request in later:
        sent = request.body.decode()
        assert sent.count(DATA) == 1
        assert sent.index("a.png is a PNG image") < sent.index(DATA)
        if desk.wire == "openai":
            assert f'"url":"data:image/png;base64,{DATA}"' in sent
        else:
            assert f'"data":"{DATA}","media_type":"image/png","type":"base64"' in sent
        messages = json.loads(sent)["messages"]
        (holder,) = [m for m in messages if DATA in json.dumps(m)]
        assert holder["role"] == "user"
    results = bodies(session.events, ToolReturned)
    (image,) = results[0].images
    assert (image.media_type, image.data) == ("image/png", "")
    assert results[0].blobs == (image.blob,)
    assert not any(DATA.encode() in encode_body(event.body) for event in session.events)
    async with desk.app() as app:
        for turn in ("2", "3", "4"):
            data, exact = await body(app, session.id, turn=turn)
            assert exact.exact, exact.text
            assert data is not None
            assert DATA.encode() in data


@pytest.mark.parametrize("how", ["digested", "replaced", "hidden"])
async def test_a_compaction_lets_go_of_an_image(desk: Desk, how: str) -> None:
    (desk.project / "a.png").write_bytes(PICTURE)
    desk.says(
        desk.reply("I look.", [("read_file", {"path": "a.png"})]),
        desk.reply("It is red."),
        desk.reply("I remember red."),
    )
    session, _ = await desk.run("What is it?")
    (result,) = bodies(session.events, ToolReturned)
    (asked, *_) = bodies(session.events, ModelSaid)
    changes = {
        "digested": {"digested": (result.call_id,)},
        "replaced": {"replaced": {result.call_id: "cleared"}},
        "hidden": {"hidden": (asked.message_id, result.message_id)},
    }
    await desk.write_log(session.id, Compacted(policy="batch", reason="a test", **changes[how]))
    async with desk.app() as app:
        resumed = await app.session(desk.options(resume=session.id))
        await asyncio.wait_for(resumed.submit("Well?"), BOUND)
        await app.leave(resumed)
    assert DATA in desk.server.requests[1].body.decode()
    assert "I remember" not in desk.server.requests[2].body.decode()
    assert DATA not in desk.server.requests[2].body.decode()


async def test_a_document_is_read_in_a_session_and_replayed(any_desk: Desk) -> None:
    desk = any_desk
    (desk.project / "a.pdf").write_bytes(pdf("words of the manual"))
    desk.says(
        desk.reply("I read.", [("read_file", {"path": "a.pdf"})]),
        desk.reply("Into a file.", [_extract(desk)]),
        desk.reply("Done."),
    )
    session, (stopped,) = await desk.run("Read it.")
    assert stopped.text == "Done."
    read, written = bodies(session.events, ToolReturned)
    assert "words of the manual" in read.text
    assert written.ok, written.message
    assert "words of the manual" in (desk.project / "a.txt").read_text()


def _extract(desk: Desk):
    args = {"source": "a.pdf", "destination": "a.txt"}
    if desk.dialect == "native":
        return ("call_tool", {"name": "extract_to_text", "arguments": args})
    return ("extract_to_text", args)
