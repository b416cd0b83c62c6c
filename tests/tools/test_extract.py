"""extract_to_text: from a document, a page, a text, into a file of the workspace."""

import pytest

from croze.tools.approve import Approver
from croze.tools.builtin.extract import ExtractToText
from croze.tools.registry import builtin
from croze.types.parts import ToolCall
from croze.web.fetch import Fetcher
from croze.web.web import Web
from tests.documents.made import pdf
from tests.web.site import answer, resolver, serving


async def extract(ctx, source, destination="out.txt"):
    return ctx.remember(await ExtractToText(source=source, destination=destination).run(ctx))


def root(ctx):
    return ctx.workspace.root


async def test_a_document_of_the_workspace_becomes_a_text_file(fake_context):
    (root(fake_context) / "a.pdf").write_bytes(pdf("some words"))
    result = await extract(fake_context, "a.pdf", "notes/a.txt")
    assert result.ok, result.message
    assert (root(fake_context) / "notes/a.txt").read_text() == "--- page 1 of 1 ---\nsome words\n"
    assert "PDF document, 1 page" in result.message
    assert result.view.kind == "diff"
    assert [(path, before) for path, before, _ in fake_context.changes] == [("notes/a.txt", None)]


async def test_html_becomes_markdown(fake_context):
    (root(fake_context) / "a.html").write_text("<h1>Head</h1>" + "<p>Some words.</p>" * 20)
    assert (await extract(fake_context, "a.html", "a.md")).ok
    assert (root(fake_context) / "a.md").read_text().startswith("# Head\n")


async def test_a_text_in_another_encoding_becomes_utf_8(fake_context):
    (root(fake_context) / "a.txt").write_bytes("grün\r\n".encode("latin-1"))
    assert (await extract(fake_context, "a.txt")).ok
    assert (root(fake_context) / "out.txt").read_bytes() == "grün\n".encode()


async def test_a_page_becomes_a_file(fake_context):
    async with serving() as site:
        fake_context.web = Web(fetcher=Fetcher(resolver=resolver()))
        site.pages["/"] = answer("<h1>Head</h1>" + "<p>Some words.</p>" * 20)
        result = await extract(fake_context, site.url(), "page.md")
    assert result.ok, result.message
    assert (root(fake_context) / "page.md").read_text().startswith("# Head\n")


@pytest.mark.parametrize(
    ("source", "destination", "code"),
    [
        ("none.pdf", "out.txt", "file_not_found"),
        ("a.bin", "out.txt", "binary"),
        ("a.txt", "a.bin", "binary"),
        ("../a.txt", "out.txt", None),
        ("a.txt", "../out.txt", None),
        ("a.txt", ".git/hooks/x", None),
        (".env", "out.txt", "sensitive"),
        ("http://127.0.0.1/", "out.txt", "private_address"),
        ("http://localhost/", "out.txt", "private_address"),
    ],
)
async def test_what_can_not_be_done_is_told_and_nothing_is_written(
    fake_context, source, destination, code
):
    (root(fake_context) / "a.txt").write_text("text")
    (root(fake_context) / "a.bin").write_bytes(b"\0\1\2")
    (root(fake_context) / ".env").write_text("KEY=1")
    result = await extract(fake_context, source, destination)
    assert not result.ok
    assert code is None or result.code == code
    assert fake_context.changes == []
    assert not (root(fake_context) / "out.txt").exists()
    assert not (root(fake_context).parent / "out.txt").exists()
    assert (root(fake_context) / "a.bin").read_bytes() == b"\0\1\2"


async def test_a_file_that_has_changed_since_it_was_seen_is_not_overwritten(fake_context):
    (root(fake_context) / "a.txt").write_text("text")
    assert (await extract(fake_context, "a.txt")).ok
    (root(fake_context) / "out.txt").write_text("the user's own")
    (root(fake_context) / "a.txt").write_text("other text")
    result = await extract(fake_context, "a.txt")
    assert (result.ok, result.code) == (False, "file_changed")
    assert (root(fake_context) / "out.txt").read_text() == "the user's own"


def decided(source, mode="ask", **rules):
    tool = ExtractToText(source=source, destination="out.txt")
    call = ToolCall("c", "extract_to_text", {})
    return Approver(mode=mode, **rules).decide("extract_to_text", tool.access(), call, tool)


def test_a_file_is_a_write_and_a_url_the_network():
    assert (decided("a.pdf").verdict, decided("a.pdf").kind) == ("ask", "write")
    assert (decided("HTTPS://x.org/").verdict, decided("https://x.org/").kind) == ("ask", "network")
    assert decided("a.pdf", mode="auto-edit").verdict == "allow"
    assert decided("https://x.org/", mode="auto-edit").verdict == "ask"
    assert decided(" https://x.org/", mode="auto-edit").verdict == "ask"
    assert decided("a.pdf", mode="plan").verdict == "deny"
    assert decided("https://x.org/", allow=("extract_to_text(domain:x.org)",)).verdict == "allow"
    assert decided("https://evilx.org/", allow=("extract_to_text(domain:x.org)",)).verdict == "ask"


def test_rules_that_forbid_reading_or_writing_a_file_hold_for_its_extraction():
    assert decided("secret/a.pdf", mode="full", deny=("Read(secret/**)",)).verdict == "deny"
    assert decided("a.pdf", mode="full", deny=("Edit(out.txt)",)).verdict == "deny"
    assert decided("a.pdf", mode="auto-edit", ask=("Write(out.txt)",)).verdict == "ask"
    assert decided("a.pdf", allow=("Read", "Edit")).verdict == "ask"


def test_other_names_of_its_parameters_are_taken():
    call = ToolCall("c", "extract_to_text", {"source_path": "a.pdf", "target_path": "a.txt"})
    assert builtin().resolve(call).args == {"source": "a.pdf", "destination": "a.txt"}
