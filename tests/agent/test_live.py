"""What a live session folds and counts by itself."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from croze.agent.live import BodyDigest
from croze.types.event import ModelCalled, ModelSaid
from tests.agent.conftest import Desk, bodies
from tests.model_server import Reply

PIECES = st.sampled_from([b"", b"]", b"]}", b"a", b"ab", b'{"m":[', b"x" * 100])


@given(st.lists(st.lists(PIECES, max_size=5).map(b"".join), max_size=8))
def test_the_digest_of_a_body_is_its_sha256_whatever_came_before(given_bodies: list[bytes]) -> None:
    digest = BodyDigest()
    grown = b""
    for piece in given_bodies:
        for body in (piece, grown + piece + b"]}"):
            assert digest(body) == hashlib.sha256(body).hexdigest()
        grown += piece


async def test_estimates_learn_from_what_the_provider_counts_also_after_a_pause(desk: Desk) -> None:
    counted = 0

    def reply(request: object) -> Reply:
        nonlocal counted
        counted = len(getattr(request, "body", b"")) // 6
        return Reply(text="Yes.", input=counted)

    desk.server.replies = reply
    session, _ = await desk.run("One.", "Two.", "Three.")
    off = [
        abs(called.tokens - (said.usage.input or 0)) / called.tokens
        for called, said in zip(
            bodies(session.events, ModelCalled), bodies(session.events, ModelSaid), strict=True
        )
    ]
    assert off[2] < off[0]
    async with desk.session(resume=session.id) as again:
        await again.submit("Four.")
        last = bodies(again.events, ModelCalled)[-1]
    assert abs(last.tokens - counted) / last.tokens <= off[2]


async def test_a_session_without_a_word_leaves_no_trace(desk: Desk) -> None:
    async with desk.app() as app:
        session = await app.session(desk.options())
        await app.leave(session)
        await app.leave(session)
        assert await app.conversations.list() == []
