"""A documentation set from its sources to its index, and again when they change."""

import json
from pathlib import Path

import pytest

from croze.app.app import App
from croze.teams.docs.values import DocsOptions
from croze.types.event import ChildClosed, FilesChanged, ModelCalled, Notice
from tests.teams.docs_fakes import FILES, HOOPS, PAGES, START, DocsStage, Made


@pytest.fixture(params=["native", "xml"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> DocsStage:
    return DocsStage(tmp_path, request.param)


@pytest.fixture
def plain(tmp_path: Path) -> DocsStage:
    return DocsStage(tmp_path)


def agents(made: Made) -> list[str]:
    """Who worked in the last turn, by name and page."""
    start = max(e.seq for e in made.events if type(e.body).__name__ == "UserSaid")
    reports = [
        e.body.report for e in made.events if isinstance(e.body, ChildClosed) and e.seq > start
    ]
    return sorted(f"{r.agent} {r.label}".strip() for r in reports)


def found(stage: DocsStage) -> set[str]:
    root = stage.project
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


async def test_a_set_is_written_from_its_sources_in_both_protocols(stage: DocsStage) -> None:
    made = await stage.make(DocsOptions())
    assert made.stopped.reason == "done", made.stopped
    assert agents(made) == [
        "docs-create", "docs-detail guide/start.md", "docs-detail hoops.md", "docs-structure",
    ]  # fmt: skip
    assert {page: stage.read(page) for page in PAGES} == PAGES
    assert "- [Getting started](guide/start.md): Make a first barrel." in stage.read("index.md")
    new = {"index.md", ".croze-docs.json", *PAGES}
    assert found(stage) == {*FILES, *(f"docs/reference/{name}" for name in new)}


async def test_a_pages_agent_gets_its_sources_and_the_other_pages_and_may_only_read(
    stage: DocsStage,
) -> None:
    stage.write("src/barrel.py", 'KEY = "sk-ant-api03-' + "a1B2" * 20 + '"\n')
    made = await stage.make(DocsOptions(prompt="Short pages."))
    page = next(done for done in made.state.done if done.path == "guide/start.md")
    events = await stage.log(page.child)
    said = next(str(e.body) for e in events if type(e.body).__name__ == "UserSaid")
    for text in ('<source path="README.md">', "# Cooper", "hoops.md: Hoops", "Short pages.", "KEY"):
        assert text in said
    assert "sk-ant" not in said
    head = next(e.body for e in events if type(e.body).__name__ == "HeadSet")
    tools = head.agent.tools  # type: ignore[union-attr]
    assert not {"write_to_file", "execute_command", "edit_file", "delete_file"} & set(tools or ())


async def test_again_nothing_is_asked_and_nothing_written(stage: DocsStage) -> None:
    await stage.make(DocsOptions())
    again = await stage.make(DocsOptions())
    assert set(again.states.values()) == {"unchanged"}
    assert agents(again) == []
    assert not any(isinstance(e.body, FilesChanged | ModelCalled) for e in again.events)


async def test_only_pages_whose_sources_have_changed_are_written_again(plain: DocsStage) -> None:
    await plain.make(DocsOptions())
    plain.write("src/hoops.py", "IRON = 2\n")
    plain.pages["hoops.md"] = ["# Hoops\n\nTwo iron ones.\n"]
    again = await plain.make(DocsOptions())
    assert again.states == {"guide/start.md": "unchanged", "hoops.md": "written"}
    assert agents(again) == ["docs-detail hoops.md"]
    assert plain.read("hoops.md") == "# Hoops\n\nTwo iron ones.\n"


async def test_new_files_are_a_reason_to_look_at_the_structure_again(plain: DocsStage) -> None:
    await plain.make(DocsOptions())
    plain.write("src/lid.py", "LID = 1\n")
    plain.structure = [json.dumps({"pages": [START, HOOPS, {**HOOPS, "path": "lids.md"}]})]
    plain.pages["lids.md"] = ["# Hoops\n\nLids.\n"]
    again = await plain.make(DocsOptions())
    assert again.states["lids.md"] == "written"
    assert agents(again) == ["docs-detail lids.md", "docs-structure"]


async def test_another_wish_is_another_set(plain: DocsStage) -> None:
    await plain.make(DocsOptions())
    again = await plain.make(DocsOptions(prompt="For coopers only."))
    assert set(again.states.values()) == {"written"}
    assert "docs-create" in agents(again)


async def test_pages_that_were_edited_by_hand_stay_unless_forced(plain: DocsStage) -> None:
    await plain.make(DocsOptions())
    plain.write("docs/reference/hoops.md", "# Hoops\n\nMine.\n")
    plain.write("docs/reference/index.md", "# Mine\n")
    plain.write("src/hoops.py", "IRON = 3\n")
    kept = await plain.make(DocsOptions())
    assert kept.states == {"guide/start.md": "unchanged", "hoops.md": "kept"}
    assert kept.state.index == "kept"
    assert "sources" not in kept.state.done[1].note
    assert "has changed since" in kept.state.done[1].note
    assert plain.read("hoops.md") == "# Hoops\n\nMine.\n"
    forced = await plain.make(DocsOptions(force=True))
    assert forced.states["hoops.md"] == "written"
    assert plain.read("hoops.md") == PAGES["hoops.md"]
    assert plain.read("index.md") != "# Mine\n"


async def test_a_file_that_is_not_ours_is_not_overwritten(plain: DocsStage) -> None:
    plain.write("docs/reference/hoops.md", "Notes.\n")
    made = await plain.make(DocsOptions())
    assert made.states == {"guide/start.md": "written", "hoops.md": "kept"}
    assert plain.read("hoops.md") == "Notes.\n"


async def test_pages_that_left_the_structure_go_and_links_to_them_too(plain: DocsStage) -> None:
    await plain.make(DocsOptions())
    plain.structure = [json.dumps({"pages": [START]})]
    again = await plain.make(DocsOptions(stage="structure"))
    assert again.state.gone == ("hoops.md",)
    assert not (plain.project / "docs/reference/hoops.md").exists()
    index = await plain.make(DocsOptions(stage="index"))
    assert [(n.target, n.state) for n in index.state.links] == [("../hoops.md", "removed")]
    assert plain.read("guide/start.md") == "# Getting started\n\nRun `barrel()`; see hoops.\n"
    assert "hoops" not in plain.read("index.md").lower()


async def test_a_page_that_left_the_structure_stays_where_it_was_edited(plain: DocsStage) -> None:
    await plain.make(DocsOptions())
    plain.write("docs/reference/hoops.md", "# Mine\n")
    plain.structure = [json.dumps({"pages": [START]})]
    again = await plain.make(DocsOptions(stage="structure"))
    assert again.state.gone == ()
    assert plain.read("hoops.md") == "# Mine\n"


async def test_broken_links_are_mended_by_the_pages_agent(plain: DocsStage) -> None:
    plain.pages["hoops.md"] = ["# Hoops\n\nSee [start](start.md) and [it](#none).\n"]
    plain.mended["start.md"] = ["# Hoops\n\nSee [start](guide/start.md) and [it](#none).\n"]
    made = await plain.make(DocsOptions())
    assert {(n.target, n.state) for n in made.state.links} == {
        ("start.md", "mended"), ("#none", "removed"),
    }  # fmt: skip
    assert plain.read("hoops.md") == "# Hoops\n\nSee [start](guide/start.md) and it.\n"
    again = await plain.make(DocsOptions())
    assert set(again.states.values()) == {"unchanged"}


async def test_a_wrong_structure_is_told_to_its_agent(stage: DocsStage) -> None:
    wrong = {"pages": [{**START, "sources": ["src/none.py", ".env"]}]}
    stage.write(".env", "X=1")
    stage.structure = [json.dumps(wrong), json.dumps({"pages": [START, HOOPS]})]
    made = await stage.make(DocsOptions())
    assert made.stopped.reason == "done"
    child = next(
        e.body.report.session
        for e in made.events
        if isinstance(e.body, ChildClosed) and e.body.report.agent == "docs-structure"
    )
    said = str([e.body for e in await stage.log(child) if type(e.body).__name__ == "UserSaid"])
    assert "'src/none.py' does not exist" in said
    assert "'.env' may hold secrets" in said


async def test_an_agent_that_never_gives_a_structure_ends_the_run_with_a_way_on(
    plain: DocsStage,
) -> None:
    plain.structure = ["I can't."] * 3
    made = await plain.make(DocsOptions())
    assert made.stopped.reason == "failed"
    notice = next(
        e.body for e in made.events if isinstance(e.body, Notice) and e.body.level == "error"
    )
    assert notice.code == "docs_answer"
    assert "has what it said" in notice.params["hint"]


async def test_a_page_that_fails_is_told_and_the_others_are_written(plain: DocsStage) -> None:
    plain.pages["hoops.md"] = [{"fault": "error_401"}]
    made = await plain.make(DocsOptions())
    assert made.stopped.reason == "failed"
    assert made.states == {"guide/start.md": "written", "hoops.md": "failed"}
    assert "hoops" not in plain.read("index.md").lower()
    plain.pages["hoops.md"] = [PAGES["hoops.md"]]
    again = await plain.make(DocsOptions())
    assert agents(again) == ["docs-detail hoops.md"]
    assert again.stopped.reason == "done"


async def test_a_page_that_is_no_page_is_asked_for_again(plain: DocsStage) -> None:
    plain.pages["hoops.md"] = ["Done.", "```markdown\nIron.\n\nRound.\n```"]
    await plain.make(DocsOptions())
    assert plain.read("hoops.md") == "# Hoops\n\nIron.\n\nRound.\n"


async def test_only_the_files_that_the_user_names_can_be_sources(plain: DocsStage) -> None:
    plain.structure = [json.dumps({"pages": [START]}), json.dumps({"pages": [HOOPS]})]
    made = await plain.make(DocsOptions(sources=("src/",)))
    assert [page.path for page in made.state.pages] == ["hoops.md"]


async def test_the_set_can_be_undone_with_the_turn(plain: DocsStage) -> None:
    made = await plain.make(DocsOptions())
    app = App.open(cwd=plain.project)
    try:
        session = await app.session(plain.options(resume=made.session))
        await session.rewinder().undo()
    finally:
        await app.aclose()
    assert found(plain) == set(FILES)


@pytest.mark.parametrize("out", ["/etc", "..", "../x", ".", "docs/../..", "README.md", ".git/x"])
async def test_nothing_is_written_outside_of_the_project_or_over_a_file(
    plain: DocsStage, out: str
) -> None:
    made = await plain.make(DocsOptions(out=out))
    assert made.stopped.reason == "failed"
    assert found(plain) == set(FILES)


async def test_in_the_mode_that_only_reads_nothing_is_written(plain: DocsStage) -> None:
    made = await plain.make(DocsOptions(), run=plain.options(mode="plan"))
    assert made.stopped.reason == "failed"
    assert "mode plan" in made.stopped.text
    assert found(plain) == set(FILES)
