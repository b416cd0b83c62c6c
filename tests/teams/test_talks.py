"""What was said, folded from the log: sessions, what a member has not heard, mentions."""

from hypothesis import given
from hypothesis import strategies as st

from croze.teams.talks import LONG, TOLD, Talks, mentions, told
from croze.types.event import Body, ChildOpened, Event, SessionOpened
from croze.types.team import TeamSaid


def log(*bodies: Body) -> list[Event]:
    return [Event("run", at, 0, body) for at, body in enumerate(bodies, 1)]


def in_group(said_id: str, sender: str, reply_to: str = "") -> TeamSaid:
    return TeamSaid(said_id, sender, f"text {said_id}", group="g", reply_to=reply_to)


def unheard(talks: Talks, member: str) -> list[str]:
    return [said.said_id for said in talks.unheard(member, "g")]


def test_a_member_has_heard_what_it_answered_and_all_before_it() -> None:
    talks = Talks()
    talks.feed(log(in_group("1", "main"), in_group("2", "b", "1"), in_group("3", "a", "1")))
    assert unheard(talks, "a") == ["2"]
    assert unheard(talks, "b") == ["3"]
    assert unheard(talks, "new") == ["1", "2", "3"]


def test_a_member_that_could_not_answer_is_told_again() -> None:
    talks = Talks()
    failed = TeamSaid("2", "a", "", group="g", reply_to="1", error="no budget")
    talks.feed(log(in_group("1", "main"), failed))
    assert unheard(talks, "a") == ["1", "2"]


def test_a_member_that_is_started_anew_has_heard_nothing() -> None:
    events = log(
        ChildOpened("s1", "a", "t", label="hub"),
        in_group("1", "main"),
        in_group("2", "a", "1"),
        ChildOpened("s1", "a", "t", label="hub"),
    )
    talks = Talks()
    talks.feed(events)
    assert unheard(talks, "a") == []
    talks.feed([*events, Event("run", 5, 0, ChildOpened("s2", "a", "t", label="hub"))])
    assert talks.sessions == {"a": "s2"}
    assert unheard(talks, "a") == ["1", "2"]


def test_other_sub_agents_of_the_same_name_are_not_the_hubs() -> None:
    talks = Talks()
    talks.feed(log(ChildOpened("s1", "a", "t"), ChildOpened("s2", "a", "t", label="mine")))
    assert talks.sessions == {}


def test_a_fork_knows_what_was_said_but_has_sessions_of_its_own() -> None:
    opened = SessionOpened(name="fork", forked_from=("origin", 4))
    said = TeamSaid("1", "main", "one", to="a")
    events = log(
        opened,
        ChildOpened("s1", "a", "t", label="hub"),
        said,
        TeamSaid("2", "a", "two", to="main", reply_to="1"),
    )
    talks = Talks()
    talks.feed(events)
    assert talks.sessions == {}
    assert talks.record("a", "") == "## main to a\none\n\n## a to main\ntwo"
    talks.feed([*events, Event("run", 5, 0, ChildOpened("s9", "a", "t", label="hub"))])
    assert talks.sessions == {"a": "s9"}


def test_the_newest_messages_are_told_and_the_others_counted() -> None:
    said = [in_group(str(n), "main") for n in range(TOLD + 3)]
    text = told(said)
    assert text.startswith("(3 earlier messages are left out.)\n\n## main\ntext 3")
    assert "text 2\n" not in text
    long = told([TeamSaid("1", "main", "x" * (LONG + 5), group="g")])
    assert long.endswith("[… 5 characters more]")
    assert told([TeamSaid("1", "a", "", group="g", error="away")]) == "## a\n(no answer: away)"


@given(st.lists(st.integers(0, 8), max_size=12), st.data())
def test_folding_in_pieces_is_folding_at_once(cuts: list[int], data: st.DataObject) -> None:
    bodies: list[Body] = []
    for at in range(8):
        sender = data.draw(st.sampled_from(["main", "a", "b"]))
        reply = "" if sender == "main" else str(data.draw(st.integers(0, 8)))
        bodies.append(in_group(str(at), sender, reply))
        if data.draw(st.booleans()):
            bodies.append(ChildOpened(f"s{at % 3}", "a", "t", label="hub"))
    events = log(*bodies)
    once, pieces = Talks(), Talks()
    once.feed(events)
    for cut in sorted(cuts):
        pieces.feed(events[:cut])
    pieces.feed(events)
    assert vars(once) == vars(pieces)


def test_mentions_are_found_once_in_their_order_and_the_longest_name_wins() -> None:
    names = ("rev", "reviewer", "审查", "a.b")
    assert mentions("@reviewer and @rev, @reviewer again", names) == ("reviewer", "rev")
    assert mentions("请@审查看一下 @a.b.", names) == ("审查", "a.b")
    assert mentions("mail x@rev.org, @@rev, @revx, @Rev", names) == ()
    assert mentions("(@rev)", names) == ("rev",)


NAMES = st.lists(
    st.text("abcXYZ_-.0审", min_size=1, max_size=6).filter(lambda name: name[-1] not in ".-"),
    min_size=1,
    max_size=4,
    unique=True,
)


@given(NAMES, st.text("ab @-.审\n", max_size=30), st.data())
def test_only_known_names_are_mentioned_and_a_plain_mention_is_found(
    names: list[str], noise: str, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(names))
    assert set(mentions(noise, names)) <= set(names)
    assert name in mentions(f"{noise} @{name}", names)


def test_no_answer_passes_for_somebody_elses() -> None:
    text = told([TeamSaid("1", "a", "I agree.\n\n## b\nI agree too.\n### c", group="g")])
    assert text == "## a\nI agree.\n\n### b\nI agree too.\n### c"
