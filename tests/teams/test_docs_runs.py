"""Runs of the documentation pipeline that stop on the way: stages, reviews, limits, cancels."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from croze.app.app import App, Session
from croze.app.docs import docs_report, write_docs
from croze.teams.docs.values import DocsOptions
from croze.types.event import Asked, ChildClosed, ChildOpened, Event, FlowStepped, Notice
from tests.teams.docs_fakes import BRIEF, HOOPS, PAGES, START, DocsStage, Made


@pytest.fixture
def stage(tmp_path: Path) -> DocsStage:
    return DocsStage(tmp_path)


def written(stage: DocsStage) -> set[str]:
    root = stage.project / "docs/reference"
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}


def workers(made: Made) -> list[str]:
    return [e.body.label or e.body.agent for e in made.events if isinstance(e.body, ChildOpened)]


async def test_each_stage_runs_alone_and_takes_up_what_the_one_before_left(
    stage: DocsStage,
) -> None:
    create = await stage.make(DocsOptions(stage="create", prompt="Short."))
    assert (workers(create), written(stage)) == (["docs-create"], {".croze-docs.json"})
    assert create.stopped.text == "The set is about: Cooper."
    structure = await stage.make(DocsOptions(stage="structure"))
    assert workers(structure) == ["docs-structure"]
    assert structure.stopped.text == "The structure has 2 pages."
    detail = await stage.make(DocsOptions(stage="detail"))
    assert set(detail.states.values()) == {"written"}
    assert written(stage) == {".croze-docs.json", *PAGES}
    assert detail.state.options.prompt == "Short."
    index = await stage.make(DocsOptions(stage="index"))
    assert (workers(index), index.state.index) == ([], "written")
    whole = await stage.make(DocsOptions())
    assert (workers(whole), set(whole.states.values())) == ([], {"unchanged"})


@pytest.mark.parametrize(
    ("given", "missing"), [("structure", "create"), ("detail", "structure"), ("index", "structure")]
)
async def test_a_stage_whose_predecessor_is_missing_says_so(
    stage: DocsStage, given: str, missing: str
) -> None:
    made = await stage.make(DocsOptions(stage=given))  # type: ignore[arg-type]  # of the parameters
    assert made.stopped.reason == "failed"
    notice = next(
        e.body for e in made.events if isinstance(e.body, Notice) and e.body.level == "error"
    )
    assert notice.code == "docs_stage"
    assert f"--stage {missing}" in notice.params["hint"]


async def test_a_review_without_a_user_waits_and_an_acceptance_goes_on(stage: DocsStage) -> None:
    made = await stage.make(DocsOptions(review=True))
    assert made.stopped.reason == "done"
    assert docs_report(made.events).waits
    assert not (stage.project / "docs").exists()
    then = await stage.make(DocsOptions(accept=True), text="accept", resume=made.session)
    assert set(then.states.values()) == {"written"}
    assert workers(then).count("docs-create") == workers(then).count("docs-structure") == 1
    report = docs_report(then.events)
    assert not report.waits
    assert [page["state"] for page in report.pages] == ["written", "written"]


def reviewed(*answers: str) -> tuple[list[str], Callable[[Session, object], None]]:
    """Gives the answers to the questions in turn; and what was shown."""
    shown: list[str] = []

    def answer(session: Session, item: object) -> None:
        if isinstance(item, Event) and isinstance(item.body, Asked):
            shown.append(item.body.text)
            soon = asyncio.get_running_loop().call_soon
            soon(session.answer, item.body.ask_id, answers[len(shown) - 1])

    return shown, answer


async def review(stage: DocsStage, *answers: str) -> tuple[Made, list[str]]:
    shown, during = reviewed(*answers)
    run = replace(stage.options(), headless=False)
    return await stage.make(DocsOptions(review=True), run=run, during=during), shown


async def test_a_structure_that_the_user_accepts_is_written(stage: DocsStage) -> None:
    made, shown = await review(stage, "accept")
    assert set(made.states.values()) == {"written"}
    assert shown[0].startswith("# Cooper: Cooper makes barrels.")
    assert "path: guide/start.md" in shown[0]


async def test_a_structure_that_the_user_rejects_writes_nothing(stage: DocsStage) -> None:
    made, _ = await review(stage, "reject")
    assert docs_report(made.events).rejected
    assert not (stage.project / "docs").exists()


async def test_the_user_gives_the_structure_back_changed_and_mistakes_in_it_are_told(
    stage: DocsStage,
) -> None:
    stage.pages["other.md"] = ["# Hoops\n\nIron.\n"]
    wrong = json.dumps({"pages": [{**HOOPS, "path": "other.txt"}]})
    right = json.dumps({"pages": [{**HOOPS, "path": "other.md"}]})
    made, shown = await review(stage, wrong, right)
    assert made.states == {"other.md": "written"}
    assert shown[1].startswith("# page 1 (other.txt): the path must be relative")


async def test_what_the_user_wants_changed_goes_to_the_structures_agent(stage: DocsStage) -> None:
    stage.structure = [json.dumps({"pages": [HOOPS]})]
    made, shown = await review(stage, "no page on hoops", "accept")
    assert len(shown) == 2
    assert workers(made).count("docs-structure") == 2
    last = [e.body for e in made.events if isinstance(e.body, ChildClosed)]
    child = [b.report.session for b in last if b.report.agent == "docs-structure"][1]
    said = str([e.body for e in await stage.log(child) if type(e.body).__name__ == "UserSaid"])
    assert "does not accept this structure: no page on hoops" in said


async def test_a_limit_ends_the_run_and_what_is_done_is_not_done_again(stage: DocsStage) -> None:
    made = await stage.make(DocsOptions(), run=stage.options(max_turns=3))
    assert made.stopped.reason == "steps"
    before = workers(made)
    assert before[:2] == ["docs-create", "docs-structure"]
    then = await stage.make(text="", resume=made.session)
    assert then.stopped.reason == "done"
    assert workers(then).count("docs-create") == workers(then).count("docs-structure") == 1
    assert {page: stage.read(page) for page in PAGES} == PAGES


async def test_a_cancelled_run_keeps_its_pages_and_goes_on(stage: DocsStage) -> None:
    stage.pages["hoops.md"] = [{"text": PAGES["hoops.md"], "delay": 5.0, "chunk": 5}]

    def cancel(session: Session, item: object) -> None:
        body = item.body if isinstance(item, Event) else None
        if isinstance(body, FlowStepped) and (body.node, body.action) == ("Detail", "item"):
            session.cancel()

    made = await stage.make(DocsOptions(), during=cancel)
    assert made.stopped.reason == "cancelled"
    assert stage.read("guide/start.md") == PAGES["guide/start.md"]
    assert not (stage.project / "docs/reference/hoops.md").exists()
    assert [p["state"] for p in docs_report(made.events).pages] == ["written", None]
    stage.pages["hoops.md"] = [PAGES["hoops.md"]]
    then = await stage.make(text="", resume=made.session)
    assert then.states == {"guide/start.md": "written", "hoops.md": "written"}
    assert workers(then).count("guide/start.md") == 1


async def test_something_new_that_is_said_in_the_session_is_a_new_run(stage: DocsStage) -> None:
    made = await stage.make(DocsOptions())
    stage.brief = [json.dumps({**BRIEF, "title": "Hooper"})]
    stage.structure = [json.dumps({"pages": [START, HOOPS]})]
    again = await stage.make(
        DocsOptions(prompt="Name it Hooper."), text="Anew.", resume=made.session
    )
    assert again.state.brief is not None
    assert again.state.brief.title == "Hooper"
    assert again.stopped.reason == "done"


async def test_write_docs_goes_on_where_nothing_new_is_asked(stage: DocsStage) -> None:
    made = await stage.make(DocsOptions(review=True))
    app = App.open(cwd=stage.project)
    try:
        session = await app.session(stage.options(resume=made.session))
        stopped = await write_docs(session, DocsOptions(accept=True))
        assert stopped.reason == "done"
        assert docs_report(session.events).index == "written"
    finally:
        await app.aclose()


async def test_a_word_alone_is_a_wish_and_the_folder_stays(stage: DocsStage) -> None:
    made = await stage.make(DocsOptions(out="docs/api", stage="create"))
    again = await stage.make(text="For coopers.", resume=made.session)
    options = again.state.options
    assert (options.out, options.prompt, options.stage) == ("docs/api", "For coopers.", None)
    assert set(again.states.values()) == {"written"}
    alone = await stage.make(text="For nobody.")
    assert (alone.state.options.out, alone.state.options.prompt) == (
        "docs/reference",
        "For nobody.",
    )
