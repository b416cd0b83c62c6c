"""The mark of a hidden secret never takes the secret's place in a file, whatever tool writes it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.text.redact import redact
from croze.tools.builtin.marks import copies_mark
from croze.tools.registry import builtin

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
FILE = (
    f'import os\nimport sys\n\nTOKEN = "{SECRET}"\n\nLIMIT = 3\nWIDTH = 4\n\n\n'
    "def send():\n    return TOKEN\n"
)
SEEN = redact(FILE)[0]
BLOCK = "<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"


PROSE = "<p>How this service is set up, in some more words than a button or a menu has.</p>"
PAGE = (
    f"<html><body><article>{PROSE * 5}<p>The key is &lt;REDACTED&gt;.</p></article></body></html>"
)

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "whole": ("write_to_file", {"path": "a.py", "content": SEEN.replace("send", "post")}),
    "new file": ("write_to_file", {"path": "b.py", "content": 'KEY = "<REDACTED>"\n'}),
    "appended": (
        "write_to_file", {"path": "a.py", "content": "K = '<REDACTED>'\n", "mode": "append"},
    ),
    "blocks": (
        "replace_in_file",
        {"path": "a.py", "diff": BLOCK.format(old="import os", new='import os\nK = "<REDACTED>"')},
    ),
    "sketch": (
        "edit_file",
        {
            "target_file": "a.py", "instructions": "x",
            "code_edit": "import os\nimport sys\n\n" 'TOKEN = "<REDACTED>"\n\nLIMIT = 3\n'
            "WIDTH = 4\n\n# ... existing code ...\n",
        },
    ),
    "inserted": ("insert_in_file", {"path": "a.py", "content": "# <REDACTED>", "line_number": 1}),
    "inserted new": ("insert_in_file", {"path": "c.py", "content": "# <REDACTED>"}),
    "lines": (
        "replace_lines",
        {"path": "a.py", "start_line": 4, "end_line": 4, "content": 'TOKEN = "<REDACTED>"'},
    ),
    "module": ("ac_mod_write", {"path": ".", "content": "# A\n\n<REDACTED>\n"}),
    "extracted": ("extract_to_text", {"source": "page.html", "destination": "c.py"}),
}  # fmt: skip


@pytest.mark.parametrize("what", CALLS)
async def test_no_tool_writes_the_mark(fake_context: Any, what: str) -> None:
    root = fake_context.workspace.root
    (root / "a.py").write_text(FILE)
    (root / "page.html").write_text(PAGE)
    name, args = CALLS[what]
    kind = builtin().get(name)
    assert kind is not None
    result = await kind.bind(args).run(fake_context)
    assert (result.ok, result.code) == (False, "redacted")
    assert "nothing was written" in result.message
    assert (root / "a.py").read_text() == FILE
    assert not (root / "b.py").exists()
    assert not (root / "c.py").exists()
    assert not (root / ".ac.mod.md").exists()
    assert fake_context.changes == []


async def test_every_tool_that_writes_text_is_tried_here() -> None:
    writing = {
        name
        for name in builtin().names
        if (kind := builtin().get(name)) is not None and kind.doc.access.write
    }
    tried = {name for name, _ in CALLS.values()}
    assert writing - tried == {"remove_lines", "delete_file", "move_file"}


async def test_lines_round_a_secret_can_be_changed(fake_context: Any) -> None:
    path = fake_context.workspace.root / "a.py"
    path.write_text(FILE)
    kind = builtin().get("replace_in_file")
    assert kind is not None
    args = {"path": "a.py", "diff": BLOCK.format(old="def send():", new="def post():")}
    assert (await kind.bind(args).run(fake_context)).ok
    assert path.read_text() == FILE.replace("send", "post")


OWN = 'MARK = "<REDACTED>"\nsay("<REDACTED>", x)\n'
KEY = f'key = "{SECRET}"\n'


@pytest.mark.parametrize(
    ("old", "new", "copied"),
    [
        (OWN, OWN + "x\n", False),
        (OWN, 'say("<REDACTED>", x)\nMARK = "<REDACTED>"\n', False),
        (OWN, '    MARK = "<REDACTED>"\n', False),
        (OWN, OWN.replace(", x", ", y"), False),
        (OWN, "", False),
        (OWN, OWN + 'other = "<REDACTED>"\n', True),
        (OWN, OWN + OWN, True),
        (OWN, 'say("<REDACTED>", "<REDACTED>")\n', True),
        (OWN + KEY, redact(OWN + KEY)[0], True),
        (OWN + KEY, 'say("<REDACTED>", x)\nkey = "<REDACTED>"\n', True),
        (OWN + KEY, 'say("<REDACTED>", x)\nkey2 = "<REDACTED>"\n', True),
        (OWN + KEY, OWN.replace("say", "print") + KEY, False),
        ("a\n", "b\n", False),
        ("", "<REDACTED>", True),
    ],
)
def test_what_the_file_says_itself_may_stay_move_and_be_edited(
    old: str, new: str, copied: bool
) -> None:
    assert copies_mark(old, new) is copied


LINES = st.lists(st.sampled_from(["x", 'MARK = "<REDACTED>"', KEY.strip(), "say('<REDACTED>')"]))


@given(LINES)
def test_a_file_as_it_was_seen_is_written_back_only_where_nothing_was_hidden(
    lines: list[str],
) -> None:
    old = "\n".join(lines)
    seen, hidden = redact(old)
    assert not copies_mark(old, old)
    assert copies_mark(old, seen) is (hidden > 0)


@pytest.mark.parametrize("secret", [SECRET, "-----BEGIN PRIVATE KEY-----"])
async def test_the_edit_agent_sees_no_secret(fake_context: Any, secret: str) -> None:
    key = "\n".join([secret, *["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"] * 4])
    text = f'TOKEN = "{SECRET}"\n' if secret == SECRET else f"{key}\n-----END PRIVATE KEY-----\n"
    (fake_context.workspace.root / "a.py").write_text(text + "a = 1\nb = 2\n")
    seen: list[str] = []

    async def edit_agent(_path: str, text: str, *_more: str) -> None:
        seen.append(text)

    fake_context.edit_agent = edit_agent
    kind = builtin().get("edit_file")
    assert kind is not None
    args = {"target_file": "a.py", "instructions": "x", "code_edit": "a = 2\n# ...\nc = 9\n"}
    assert (await kind.bind(args).run(fake_context)).code == "undecided_sketch"
    assert all(SECRET not in text and "MII" not in text for text in seen)
    assert len(seen) == (1 if secret == SECRET else 0)  # lines that don't agree aren't shown at all
