"""Library documentation and modules in whole sessions, in both protocols."""

import os
from pathlib import Path

from croze.app import libraries as work
from croze.app.app import App
from croze.app.options import RunOptions
from croze.types.event import FactAdded, FilesChanged
from tests.knowledge.test_library_repository import Served
from tests.scenarios.conftest import Played, Stage, croze

WIDGETS = "github.com/acme/widgets"
ASKS = f"""
- calls: [{{name: call_tool, args: {{name: load_extra_document, arguments: {{name: widgets}}}}}}]
- calls: [{{name: call_tool, args: {{name: load_extra_document, arguments: {{name: {WIDGETS}/api.md}}}}}}]
- calls: [{{name: call_tool, args: {{name: load_extra_document, arguments: {{name: nothing}}}}}}]
- text: Done.
"""
MODULES = """
- calls: [{name: read_file, args: {path: src/billing/invoice.py}}]
- calls: [{name: call_tool, args: {name: ac_mod_read, arguments: {path: src/billing}}}]
- calls:
  - name: call_tool
    args:
      name: ac_mod_write
      arguments:
        path: src/billing
        diff: |-
          <<<<<<< SEARCH
          Invoices.
          =======
          Invoices and their numbers.
          >>>>>>> REPLACE
- calls: [{name: call_tool, args: {name: ac_mod_write, arguments: {path: src, content: "# Source"}}}]
- calls: [{name: call_tool, args: {name: ac_mod_list, arguments: {}}}]
- text: Done.
"""


def serve(root: Path) -> Served:
    served = Served(root / "served")
    served.root.mkdir()
    served.git("init", "-q")
    api = "# API\n\n" + "\n".join(f"## widget_{n}\n\n{'about it ' * 30}" for n in range(200))
    served.put({f"{WIDGETS}/README.md": "# Widgets\n", f"{WIDGETS}/api.md": api})
    served.commit()
    return served


async def add(stage: Stage, served: Served, name: str = "widgets") -> App:
    app = App.open(cwd=stage.project)
    libraries = work.open_libraries(app.config, os.environ)
    await work.add(libraries, name, str(served.root), lambda _line: None)
    return app


def told(played: Played) -> list[FactAdded]:
    bodies = [event.body for event in played.events]
    return [body for body in bodies if isinstance(body, FactAdded) and body.key == "libraries"]


async def test_added_documentation_is_told_at_the_opening_and_given_in_full_by_name(
    stage: Stage, tmp_path: Path
) -> None:
    await (await add(stage, serve(tmp_path))).aclose()
    played = await stage.play(ASKS, "What does widget_117 do?")
    (fact,) = told(played)
    assert "## widget_117" in fact.text
    assert 1_000 < fact.tokens < 8_500
    assert fact.data["left_out"] > 5_000
    listed, document, unknown = played.results
    assert f"{WIDGETS}/api.md (about " in listed.text
    assert document.text.startswith("# API")
    assert "go on with start_line=" in document.message
    assert unknown.code == "unknown_document"
    assert await stage.divergence(played.session) is None


async def test_a_resumed_session_keeps_what_it_was_told(stage: Stage, tmp_path: Path) -> None:
    served = serve(tmp_path)
    app = await add(stage, served)
    first = await stage.play("- text: One.\n")
    served.put({f"{WIDGETS}/README.md": "# Widgets, new\n"})
    served.commit()
    libraries = work.open_libraries(app.config, os.environ)
    await work.refresh(libraries, str(served.root), lambda _line: None)
    again = await stage.play("- text: Two.\n", resume=first.session)
    assert len(told(again)) == 1
    fresh = await stage.play("- text: Three.\n")
    assert "# Widgets, new" in told(fresh)[0].text
    await app.aclose()


async def test_a_running_conversation_is_told_what_is_new_when_it_is_asked_for(
    stage: Stage, tmp_path: Path
) -> None:
    served = serve(tmp_path)
    app = await add(stage, served)
    phases: list[str] = []
    app.on("post_llm_friendly_packages_loaded", lambda _item: phases.append("loaded"))
    options = RunOptions(
        model=stage.script("- text: One.\n- text: Two.\n"),
        dialect="xml" if stage.dialect == "xml" else "native",
        sandbox="off",
        headless=True,
    )
    session = await app.session(options)
    assert await work.tell(app, session) is False
    await session.submit("First.")
    assert phases
    assert await work.tell(app, session) is False
    served.put({f"{WIDGETS}/README.md": "# Widgets, new\n"})
    served.commit()
    libraries = work.open_libraries(app.config, os.environ)
    await work.refresh(libraries, str(served.root), lambda _line: None)
    assert await work.tell(app, session) is True
    assert await work.tell(app, session) is False
    await session.submit("Second.")
    facts = [e.body for e in session.events if isinstance(e.body, FactAdded)]
    assert [fact.key for fact in facts].count("libraries") == 2
    await app.aclose()


async def test_modules_are_named_read_and_written(stage: Stage) -> None:
    stage.write("src/billing/.ac.mod.md", "# Billing\n\nInvoices.\n")
    stage.write("src/billing/invoice.py", "x = 1\n")
    played = await stage.play(MODULES)
    read, module, changed, written, listed = played.results
    assert "It lies in the module src/billing" in read.message
    assert module.text == "# Billing\n\nInvoices.\n"
    assert changed.ok
    assert written.ok
    assert listed.text == "src/: Source\nsrc/billing/: Billing: Invoices and their numbers."
    changes = [e.body for e in played.events if isinstance(e.body, FilesChanged)]
    assert [each.path for body in changes for each in body.changes] == [
        "src/billing/.ac.mod.md", "src/.ac.mod.md",
    ]  # fmt: skip
    assert await stage.divergence(played.session) is None


async def test_writing_a_module_needs_approval(stage: Stage) -> None:
    stage.write("src/x.py", "x = 1\n")
    script = (
        "- calls: [{name: call_tool, args: {name: ac_mod_write, arguments: {path: src, content: A}}}]\n"
        "- text: Done.\n"
    )
    played = await stage.play(script, mode="ask")
    assert played.results[0].code == "not_allowed"
    assert not (stage.project / "src/.ac.mod.md").exists()
    played = await stage.play(script, mode="ask", allow=["ac_mod_write(src/**)"])
    assert played.results[0].ok
    assert (stage.project / "src/.ac.mod.md").read_text() == "A\n"


async def test_a_description_that_leads_to_a_secret_file_needs_approval(stage: Stage) -> None:
    stage.write(".env", "PASSWORD=x\n")
    (stage.project / "src").mkdir()
    (stage.project / "src/.ac.mod.md").symlink_to("../.env")
    script = (
        "- calls: [{name: call_tool, args: {name: ac_mod_read, arguments: {path: src}}}]\n"
        "- calls: [{name: call_tool, args: {name: ac_mod_list, arguments: {}}}]\n"
        "- text: Done.\n"
    )
    played = await stage.play(script, mode="ask")
    assert played.results[0].code == "not_allowed"
    assert "PASSWORD" not in str(played.results)


def test_a_description_can_be_undone(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    script = tmp_path / "script.yaml"
    script.write_text(
        "- calls: [{name: call_tool, args: {name: ac_mod_write, arguments: {path: src, content: A}}}]\n"
        "- text: Done.\n"
    )
    model = f"scripted:{script}"
    ran = croze(project, "run", "go", "--model", model, "--mode", "full", "--sandbox", "off")
    assert ran.returncode == 0, ran.stderr
    assert (project / "src/.ac.mod.md").exists()
    assert croze(project, "undo").returncode == 0
    assert not (project / "src/.ac.mod.md").exists()
