"""External command-line tools as documentation: told once at the opening, and whole again where they change."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from croze.context.fence import fenced
from croze.text.display import one_line
from croze.text.tokens import estimate
from croze.types.event import FactAdded, ModelCalled

if TYPE_CHECKING:
    from croze.context.gather import GatherState
    from croze.knowledge.external_tools import ExternalTool

TOOLS = "tools"
MOST_CHARACTERS = 12_000
"""Of all helps together, and at most a tenth of the budget (a character is about a third of a token);
what has no room is left out, and that is told."""
MOST_NAMED = 100
_SHARE = 10

_ABOUT = """\
Command-line tools of this project and its user: {count}. Run them with execute_command, as `run` says, from \
the workspace's root; {help}. A built-in tool that does the same goes before them."""
_ASK = "the word help (or -h, --help) behind it tells all that one can do"
_CHANGED = "The external tools have changed. They now are, in place of what was told before:"
_GONE = "There are no external tools any more."
_MAKE = (
    "Where a command-line tool would save repeated work, describe_tools with case:external-tool tells how "
    "to make one."
)
_REPLY = "I will use these tools where they fit."


class ToolsSource(Protocol):
    """Where the tools of a session come from."""

    def now(self) -> "Sequence[ExternalTool]":
        """All files that would be tools, the higher first."""
        ...


async def gather_tools(state: "GatherState") -> Sequence[FactAdded]:
    """The tools that there are, and what they say of themselves as far as that is known by now."""
    if state.external_tools is None:
        return ()
    told = state.seen.get(TOOLS)
    tools = state.external_tools.now()
    text = listing(tools, state.root, state.budget)
    if (told is None and not text) or (
        told is not None and told.data.get("digest") == _digest(text)
    ):
        return ()
    begun = told is not None or any(isinstance(e.body, ModelCalled) for e in state.events)
    if told is not None:
        shown = f"<external_tools>\n{_CHANGED}\n{text}\n</external_tools>" if text else _GONE
    else:
        shown = f"<external_tools>\n{text}\n</external_tools>"
    reply = "" if begun else _REPLY
    fact = FactAdded(
        key=TOOLS,
        message_id=state.source.uuid(),
        text=shown,
        layer="documentation",
        reason="the external tools" + (" have changed" if told is not None else ""),
        origin="external tools",
        reply=reply,
        tokens=estimate(shown) + estimate(reply),
        data={"digest": _digest(text), "tools": [t.file for t in tools if t.usable]},
    )
    return (fact,)


def listing(tools: "Sequence[ExternalTool]", root: Path, budget: int) -> str:
    """What is told of the tools; nothing where there are none."""
    counting = [tool for tool in tools if tool.found.acts]
    failing = [tool for tool in tools if tool.found.state == "broken"]
    failing += [tool for tool in counting if tool.problem]
    usable = [tool for tool in counting if not tool.problem]
    if not counting:
        return ""
    count = f"{len(usable)} to be used" + (f", {len(failing)} that fail" if failing else "")
    lines = [_ABOUT.format(count=count, help=_ASK), *_folders(counting)]
    shown, left_out = fitting(usable, budget)
    lines += [_one(tool, root, shown.get(tool.found.path, "")) for tool in usable[:MOST_NAMED]]
    if len(usable) > MOST_NAMED:
        lines.append(f"… and {len(usable) - MOST_NAMED} more in these folders.")
    if left_out:
        names = ", ".join(tool.file for tool in left_out[:MOST_NAMED])
        lines.append(f"For want of room the help of these is not told, ask for it: {names}.")
    lines += [
        f"Not to be used: {one_line(tool.found.path, 200)} ({one_line(tool.problem or tool.found.reason, 200)})."
        for tool in failing[:MOST_NAMED]
    ]
    shadowed = [tool for tool in tools if tool.found.state == "shadowed"]
    if shadowed:
        names = ", ".join(one_line(tool.found.path, 200) for tool in shadowed[:MOST_NAMED])
        lines.append(f"Another of the same name goes before: {names}.")
    return "\n".join((*lines, _MAKE))


def fitting(
    usable: "Sequence[ExternalTool]", budget: int
) -> "tuple[dict[str, str], list[ExternalTool]]":
    """The helps that are told, by the tools' paths, the higher first; and those that there is no room for."""
    room = min(MOST_CHARACTERS, budget * 3 // _SHARE)
    shown: dict[str, str] = {}
    left_out = []
    for tool in usable[:MOST_NAMED]:
        text = tool.help.text
        if not text:
            continue
        if len(text) > room:
            left_out.append(tool)
            continue
        room -= len(text)
        shown[tool.found.path] = text
    return shown, left_out


def _folders(tools: "Sequence[ExternalTool]") -> list[str]:
    counts: dict[str, int] = {}
    for tool in tools:
        counts[tool.found.folder] = counts.get(tool.found.folder, 0) + 1
    each = ", ".join(f"{one_line(folder, 200)} ({count})" for folder, count in counts.items())
    return [f"Folders, the first goes before: {each}."]


def _one(tool: "ExternalTool", root: Path, text: str) -> str:
    return fenced(
        "tool",
        text or tool.help.problem or "(its help is not known yet)",
        name=tool.file,
        run=tool.command(root),
        source=tool.found.source,
        executable="yes" if tool.executable else "no",
    )


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
