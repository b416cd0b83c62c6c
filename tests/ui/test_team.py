"""What is shown of sub-agents: a line for each begin, call and end, under their names."""

from croze.app.family import Member
from croze.types.event import (
    Body,
    ChildClosed,
    ChildOpened,
    Event,
    ModelSaid,
    Notice,
    ToolReturned,
    ToolStarted,
)
from croze.types.news import ChildNews
from croze.types.parts import Text
from croze.types.stream import Delta
from croze.types.team import HUB, ChildReport, TeamSaid
from croze.types.tool import Access, View
from croze.ui.render import Screen
from croze.ui.team import TeamView, family_lines


def own(body: Body) -> Event:
    return Event(session="main", seq=1, at=0, body=body)


def news(body: Body, *path: tuple[str, str]) -> ChildNews:
    item = Event(session=path[-1][0], seq=1, at=0, body=body)
    return ChildNews(session="main", path=path, item=item)


def opened(
    child: str, agent: str = "explore", label: str = "", task: str = "a task"
) -> ChildOpened:
    return ChildOpened(child=child, agent=agent, task=task, label=label)


def closed(child: str, **fields: object) -> ChildClosed:
    given = {"agent": "explore", "session": child, "ok": True, "steps": 2, "cost": 0.01, **fields}
    return ChildClosed(child=child, report=ChildReport(**given))  # type: ignore[arg-type]  # any field


def texts(view: TeamView, *items: Event | Delta | ChildNews) -> list[str]:
    return [text for item in items for text, _style in view.lines(item)]


def test_begin_and_end_are_shown_with_what_it_took() -> None:
    view = TeamView()
    assert texts(view, own(opened("c1", label="a")), own(closed("c1"))) == [
        "◆ explore (a): a task",
        "◇ explore (a): done · 2 steps · $0.0100",
    ]


def test_how_many_files_it_changed_is_shown() -> None:
    (line,) = TeamView().lines(own(closed("c1", files=("a", "b"))))
    assert line[0] == "◇ explore: done · 2 steps · 2 files · $0.0100"


def test_a_talk_is_shown_by_who_says_what_to_whom() -> None:
    said = [
        TeamSaid(said_id="1", sender="main", text="Is it\nright?", group="review"),
        TeamSaid(said_id="2", sender="critic", text="No.", group="review", reply_to="1"),
        TeamSaid(said_id="3", sender="", text="The talk was ended.", group="review", error="x"),
        TeamSaid(said_id="4", sender="critic", text="", to="main", error="It failed."),
    ]
    member = opened("c1", agent="critic", label=HUB, task="main: Is it right?")
    ended = closed("c1", agent="critic", label=HUB)
    stopped = closed("c1", agent="critic", label=HUB, ok=False, reason="cancelled")
    told = [own(said[0]), own(member), own(ended), own(said[1]), own(said[2]), own(stopped)]
    assert texts(TeamView(), *told, own(said[3])) == [
        "main → review: Is it right?",
        "◆ critic",
        "critic → review: No.",
        "review: The talk was ended.",
        "◇ critic: stopped · 2 steps · $0.0100",
        "critic → main: It failed.",
    ]


def test_one_that_failed_says_why() -> None:
    failed = closed("c1", ok=False, reason="steps", error="The limit of 4 steps is reached.")
    (line,) = TeamView().lines(own(failed))
    assert line == (
        "◇ explore: its steps are used up · 2 steps · $0.0100 · The limit of 4 steps is reached.",
        "yellow",
    )


def test_two_of_one_agent_are_told_apart_and_a_name_is_free_again() -> None:
    view = TeamView()
    lines = texts(
        view,
        own(opened("c1")), own(opened("c2")), own(closed("c1")), own(opened("c3")),
        own(closed("c2")),
    )  # fmt: skip
    assert [line.partition(":")[0] for line in lines] == [
        "◆ explore", "◆ explore 2", "◇ explore", "◆ explore", "◇ explore 2",
    ]  # fmt: skip


def test_a_call_is_a_line_with_what_it_is_about() -> None:
    view = TeamView()
    path = (("c1", "explore"),)
    start = ToolStarted(call_id="x", name="read_file", access=Access(), args={"path": "a.py"})
    good = ToolReturned(
        call_id="x",
        message_id="m",
        name="read_file",
        ok=True,
        view=View(title="Read a.py (2 lines)"),
    )
    bad = ToolReturned(
        call_id="y", message_id="n", name="read_file", ok=False, message="no such file"
    )
    items = [own(opened("c1")), news(start, *path), news(good, *path), news(bad, *path)]
    assert texts(view, *items)[1:] == [
        "  explore · read_file a.py (2 lines)",
        "  explore · ✗ read_file no such file",
    ]


def test_a_child_of_a_child_stands_behind_its_caller() -> None:
    view = TeamView()
    inner = opened("c2", "general", task="deeper")
    lines = texts(view, own(opened("c1", label="a")), news(inner, ("c1", "explore")))
    assert lines[1] == "◆ explore (a) › general: deeper"
    warned = Notice(level="warning", code="x", text="mind this")
    assert texts(view, news(warned, ("c1", "explore"), ("c2", "general"))) == [
        "  explore (a) › general · mind this"
    ]


def test_what_it_says_is_shown_only_where_words_are_wanted() -> None:
    said = ModelSaid(message_id="m", step=1, model="m", parts=(Text(text="one\ntwo"),))
    item = news(said, ("c1", "explore"))
    assert texts(TeamView(), item) == []
    assert texts(TeamView(words=True), item) == ["  explore │ one", "  explore │ two"]


def test_pieces_of_text_are_no_lines_and_waiting_is_one() -> None:
    view = TeamView(words=True)
    path = (("c1", "explore"),)
    piece = ChildNews(session="main", path=path, item=Delta(kind="text", text="x", session="c1"))
    waits = ChildNews(
        session="main", path=path, item=Delta(kind="phase", name="wait", session="c1")
    )
    assert texts(view, piece) == []
    assert texts(view, waits) == ["  explore · waits for the command of another agent"]


def test_no_text_of_a_child_steers_the_terminal() -> None:
    shown: list[str] = []
    screen = Screen(shown.append, color=False, width=80)
    screen.watch(own(opened("c1", task="\x1b]0;title\x07 do it\nnow")))
    screen.watch(own(closed("c1", ok=False, reason="failed", error="\x1b[2Jgone")))
    assert "\x1b" not in "".join(shown)
    assert "\x07" not in "".join(shown)


def test_the_tree_is_drawn_with_states_and_costs() -> None:
    leaf = Member(session="33333333-3", agent="explore", task="deep", state="open")
    child = Member(
        session="22222222-2", agent="general", task="write", state="done", label="w", steps=3,
        cost=0.5, files=("a", "b"), children=(leaf,),
    )  # fmt: skip
    last = Member(session="44444444-4", agent="explore", task="x " * 99, state="died", cost=0.0)
    root = Member(
        session="11111111-1", agent="main", task="all", state="done", steps=9, cost=1.0,
        children=(child, last),
    )  # fmt: skip
    lines = list(family_lines(root, 90))
    assert lines[:3] == [
        "main · 11111111 · done · 9 steps · $1.00 · all",
        "├── general (w) · 22222222 · done · 3 steps · $0.5000 · 2 files · write",
        "│   └── explore · 33333333 · open · 0 steps · — · deep",
    ]
    assert lines[3].startswith("└── explore · 44444444 · its process ended · 0 steps · $0 · x x")
    assert len(lines[3]) <= 90
