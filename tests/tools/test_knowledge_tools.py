"""Tools for modules, library documentation and guides; what read_file says of modules."""

from pathlib import Path

import pytest

from croze.knowledge.guides import GUIDES
from croze.knowledge.libraries import Libraries
from croze.tools.builtin.files import ReadFile
from croze.tools.builtin.knowledge import (
    MOST_CHARACTERS,
    AcModList,
    AcModRead,
    AcModWrite,
    LoadExtraDocument,
)
from croze.tools.registry import builtin
from tests.tools.conftest import FakeContext

TEXT = "# Billing\n\nInvoices.\n\n## Layout\n\n- [i](invoice.py)\n"


def put(ctx: FakeContext, path: str, text: str = TEXT) -> Path:
    file = ctx.workspace.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


async def test_modules_are_listed_with_what_they_are_for(fake_context: FakeContext) -> None:
    put(fake_context, "src/billing/.ac.mod.md")
    put(fake_context, ".ac.mod.md", "# All of it\n")
    put(fake_context, "node_modules/x/.ac.mod.md")
    result = await AcModList().run(fake_context)
    assert (result.message, result.text) == (
        "2 modules.", "./: All of it\nsrc/billing/: Billing: Invoices.",
    )  # fmt: skip
    assert (await AcModList(path="src").run(fake_context)).message == "1 module below src."
    assert not (await AcModList(path="nowhere").run(fake_context)).ok


async def test_a_module_is_read_by_its_folder_and_counts_as_seen(fake_context: FakeContext) -> None:
    put(fake_context, "src/billing/.ac.mod.md")
    result = fake_context.remember(await AcModRead(path="src/billing").run(fake_context))
    assert result.text == TEXT
    assert result.message == (
        "The module src/billing (src/billing/.ac.mod.md). Links that lead nowhere: invoice.py."
    )
    assert fake_context.seen("src/billing/.ac.mod.md") is not None


async def test_what_is_no_module_names_those_that_are(fake_context: FakeContext) -> None:
    put(fake_context, "src/billing/.ac.mod.md")
    result = await AcModRead(path="src/billing/deep").run(fake_context)
    assert (result.ok, result.code) == (False, "file_not_found")
    assert "There are: src/billing." in result.text
    assert (await AcModRead(path="../..").run(fake_context)).code != "file_not_found"


async def test_a_description_is_written_and_changed_like_any_file(
    fake_context: FakeContext,
) -> None:
    (fake_context.workspace.root / "src").mkdir()
    result = fake_context.remember(await AcModWrite(path="src", content=TEXT).run(fake_context))
    assert result.ok
    assert "Links that lead nowhere: invoice.py." in result.text
    file = fake_context.workspace.root / "src/.ac.mod.md"
    assert file.read_text() == TEXT
    diff = "<<<<<<< SEARCH\nInvoices.\n=======\nInvoices and numbers.\n>>>>>>> REPLACE"
    assert (await AcModWrite(path="src/.ac.mod.md", diff=diff).run(fake_context)).ok
    assert "Invoices and numbers." in file.read_text()
    assert [path for path, _, _ in fake_context.changes] == ["src/.ac.mod.md"] * 2
    fake_context.hashes["src/.ac.mod.md"] = "0" * 64
    refused = await AcModWrite(path="src", content="new").run(fake_context)
    assert refused.code == "file_changed"
    assert "numbers" in file.read_text()


async def test_a_description_needs_a_folder_and_one_kind_of_change(
    fake_context: FakeContext,
) -> None:
    put(fake_context, "a.py")
    assert (await AcModWrite(path="new", content="x").run(fake_context)).code == "not_a_folder"
    assert (await AcModWrite(path="a.py", content="x").run(fake_context)).code == "not_a_folder"
    assert not (fake_context.workspace.root / "new").exists()
    for given in ({}, {"content": "a", "diff": "b"}):
        with pytest.raises(ValueError, match="either content or diff"):
            AcModWrite(path="src", **given)


def test_rules_see_the_file_that_is_written() -> None:
    assert AcModWrite(path="src", content="x").path == "src/.ac.mod.md"
    assert not AcModWrite(path="src", content="x").access().read_only
    assert AcModRead(path="src").access().read_only


async def test_the_first_read_in_a_module_names_it(fake_context: FakeContext) -> None:
    put(fake_context, "src/billing/.ac.mod.md")
    put(fake_context, ".ac.mod.md")
    put(fake_context, "src/billing/invoice.py", "x = 1\n")
    put(fake_context, "src/other.py", "y = 1\n")
    first = await ReadFile(path="src/billing/invoice.py").run(fake_context)
    assert first.message == (
        "src/billing/invoice.py, lines 1-1 of 1. It lies in the modules src/billing and . (the root): "
        "ac_mod_read tells what for and how it is used."
    )
    assert first.text == "1\tx = 1"
    again = await ReadFile(path="src/billing/invoice.py").run(fake_context)
    other = await ReadFile(path="src/other.py").run(fake_context)
    assert "module" not in again.message + other.message
    fake_context.session = "another"
    named = await ReadFile(path="src/other.py").run(fake_context)
    assert "It lies in the module . (the root)" in named.message
    missing = await ReadFile(path="src/billing/none.py").run(fake_context)
    assert "module" not in missing.message


@pytest.fixture
def libraries(tmp_path: Path, fake_context: FakeContext) -> Libraries:
    place = tmp_path / "project/.venv/lib/python3.11/site-packages"
    info = place / "gears-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: gears\nVersion: 1.0\n\n" + "A line.\n" * 8_000)
    (info / "RECORD").write_text("gears.py,,\n")
    (place / "gears.py").write_text("def turn(): 'Turns.'\n")
    libraries = Libraries(
        cache=tmp_path / "cache",
        listed=tmp_path / "libraries.json",
        root=tmp_path / "project",
        env={},
    )
    libraries.add("python:gears")
    fake_context.libraries = libraries
    return libraries


async def test_a_librarys_name_lists_its_documents(
    fake_context: FakeContext, libraries: Libraries
) -> None:
    result = await LoadExtraDocument(name="gears").run(fake_context)
    assert result.message == "python:gears has 2 documents; load one by its name."
    assert result.text.split("\n")[1].startswith("python:gears/api/gears.md (about ")
    one = await LoadExtraDocument(name="gears/api/gears.md").run(fake_context)
    assert one.message == "python:gears/api/gears.md."
    assert "def turn()" in one.text


async def test_a_long_document_comes_in_parts_that_join(
    fake_context: FakeContext, libraries: Libraries
) -> None:
    lines: list[str] = []
    start = 1
    while True:
        tool = LoadExtraDocument(name="python:gears/README.md", start_line=start)
        result = await tool.run(fake_context)
        assert result.ok
        assert len(result.text) <= MOST_CHARACTERS
        lines += result.text.split("\n")
        if result.truncated is None:
            break
        start = int(result.truncated.rpartition("=")[2])
    assert "\n".join(lines) == libraries.documents("python:gears")[0].text.removesuffix("\n")
    beyond = await LoadExtraDocument(name="gears/README.md", start_line=99_999).run(fake_context)
    assert beyond.code == "no_such_lines"


async def test_guides_are_there_without_libraries(fake_context: FakeContext) -> None:
    for name, text in GUIDES.items():
        result = await LoadExtraDocument(name=name).run(fake_context)
        assert result.text == text.removesuffix("\n")
        assert len(text) < 4_000


async def test_an_unknown_document_says_what_there_is(
    fake_context: FakeContext, libraries: Libraries
) -> None:
    result = await LoadExtraDocument(name="gears/api/gear.md").run(fake_context)
    assert (result.ok, result.code) == (False, "unknown_document")
    assert "Did you mean python:gears/api/gears.md?" in result.text
    assert "Guides: modules, agents" in result.text
    assert "Libraries: python:gears." in result.text
    fake_context.libraries = None
    assert "none is added" in (await LoadExtraDocument(name="x").run(fake_context)).text


def test_none_of_these_is_part_of_the_core() -> None:
    core, others = builtin().docs()
    names = {"ac_mod_list", "ac_mod_read", "ac_mod_write", "load_extra_document"}
    assert names <= {doc.name for doc in others}
    assert not names & {doc.name for doc in core}
