"""Writing the project's law (`croze init`, `/init`): what the agent is asked for, whether what it wrote
is fit, and whether the user has been asked already."""

import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from croze.app.options import RunOptions
from croze.context.law import LAW_FILES
from croze.edit.source import read_source
from croze.types.errors import CrozeError, UsageError
from croze.types.event import Stopped
from croze.workspace.files import Files

if TYPE_CHECKING:
    from croze.app.app import App

NAMES = tuple(reversed(LAW_FILES))
"""The files that can be written, the default first."""
TITLE = "Repository Guidelines"
LEAST, MOST = 200, 400
"""Words."""
TRIES = 2
"""How often an unfit file is given back to the agent."""

_ENTRIES = 200
_ASKED = "asked.json"
_LAW = "law"
_OWN = (".git", ".croze")

_TASK = """\
Write {name} at the project's root: a short guide for whoever begins to work in this repository, a \
person or a coding agent.

First look round, with the tools that read (run no commands): the tree; README and CONTRIBUTING; the \
files that declare packages, builds, linters, tests and CI; some source files and tests of each kind. \
How commits are worded shows in the newest lines of .git/logs/HEAD, what a pull request needs in \
the templates below .github. Guides for other agents (CLAUDE.md, .cursor/rules, \
.github/copilot-instructions.md) may hold facts: check them before you take one over.

Then write the file with one call:
- Markdown under the heading `# {title}`, {least} to {most} words in all.
- A section for each of these as far as it applies here: how the project is laid out; the commands that \
build, run, lint and test it; style and naming; how tests are written and where they stand; commits and \
pull requests. Further sections only for what one must know here and would not guess.
- Only what you have seen: exact paths and commands, an example where it says more than a rule. No \
general advice, nothing that every project has, and nothing of what you could not find out.
{again}
Change no other file. End with one sentence on what the guide covers."""
_AGAIN = "- The file exists already: read it, and keep what is still true and particular to this project.\n"
_UNFIT = """\
{name} isn't as it was asked for: {problem}. Mend that, change no other file, and end with one sentence."""


class LawReport(Struct, frozen=True):
    """What stands in the written file: its words, and in `problem` (English, `code` for translations)
    what is wrong with it."""

    name: str
    words: int = 0
    code: str = ""
    problem: str = ""


def check_name(name: str) -> str:
    """The name of a law file, the default for none. Raises UsageError for another name."""
    if not name:
        return NAMES[0]
    for known in NAMES:
        if name.lower() == known.lower():
            return known
    raise UsageError(
        f"{name} is no name of a law file.",
        hint=f"The names are {' and '.join(NAMES)}.",
        code="law_name",
        name=name,
        names=", ".join(NAMES),
    )


def law_present(root: Path) -> tuple[str, ...]:
    """The law files that the project has."""
    return tuple(name for name in NAMES if os.path.lexists(root / name))


def check_free(root: Path, name: str) -> None:
    """Raises UsageError where the file is there already: it is rewritten only when asked."""
    if name in law_present(root):
        raise UsageError(
            f"{name} exists.",
            hint="croze init --force has it written anew.",
            code="law_exists",
            name=name,
        )


def task(root: Path, name: str) -> str:
    """What the agent is asked."""
    again = _AGAIN if name in law_present(root) else ""
    return _TASK.format(name=name, title=TITLE, least=LEAST, most=MOST, again=again)


def another_try(report: LawReport) -> str:
    """What the agent is asked where the file isn't fit."""
    return _UNFIT.format(name=report.name, problem=report.problem)


def init_options(options: RunOptions, name: str) -> RunOptions:
    """Options under which the agent may read everything and write this one file without a question."""
    from msgspec.structs import replace

    allow = tuple(f"{tool}(/{name})" for tool in ("write_to_file", "replace_in_file"))
    return replace(options, mode="ask", allow=(*options.allow, *allow), headless=True)


def read_law(root: Path, name: str) -> bytes | None:
    """The file as it stands; None where there is none that can be read."""
    try:
        return Files(Path(os.path.realpath(root)), kind="project").read(name).data
    except CrozeError:
        return None


def examine_law(root: Path, name: str, before: bytes | None) -> LawReport:
    """Whether the file has been written since it stood as `before`, with its title and its length."""
    data = read_law(root, name)
    if data is None or data == before:
        return LawReport(name, 0, "law_not_written", "it was not written")
    source = read_source(data)
    if source is None:
        return LawReport(name, 0, "law_binary", "it is no text")
    words = sum(any(map(str.isalnum, word)) for word in source.text.split())
    head = source.text.lstrip().partition("\n")[0]
    if head.strip("# ").casefold() != TITLE.casefold() or not head.startswith("# "):
        return LawReport(name, words, "law_title", f"its first line must be `# {TITLE}`")
    if not LEAST <= words <= MOST:
        what = f"it has {words} words; it must have {LEAST} to {MOST}"
        return LawReport(name, words, "law_length", what)
    return LawReport(name, words)


async def write_law(
    root: Path, name: str, submit: Callable[[str], Awaitable[Stopped]]
) -> tuple[LawReport, Stopped]:
    """Have the agent write the file, and mend it where it isn't fit; what came out, and the last turn."""
    before = read_law(root, name)
    stopped = await submit(task(root, name))
    report = examine_law(root, name, before)
    for _ in range(TRIES):
        if stopped.reason != "done" or not report.problem:
            break
        stopped = await submit(another_try(report))
        report = examine_law(root, name, before)
    return report, stopped


def law_question_due(app: "App") -> bool:
    """Whether the user should be asked if a law file is to be written: the project has something in it
    but no such file, and nobody was asked before."""
    root = app.config.project.root
    if law_present(root) or _LAW in _asked(app.config.store_folder):
        return False
    with suppress(OSError), os.scandir(root) as entries:
        return any(entry.name not in _OWN for entry in islice(entries, _ENTRIES))
    return False


def remember_law_asked(app: "App", answer: str) -> None:
    """Don't ask again in this project. A folder that can't be written costs only the memory of it."""
    folder = app.config.store_folder
    answers = {**_asked(folder), _LAW: answer}
    temporary = folder / f"{_ASKED}.{os.getpid()}.tmp"
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(answers, file)
        os.replace(temporary, folder / _ASKED)


def _asked(folder: Path) -> dict[str, str]:
    """The answers to questions that are put once a project; none where they can't be read."""
    try:
        answers = json.loads((folder / _ASKED).read_bytes())
    except (OSError, ValueError):
        return {}
    return answers if isinstance(answers, dict) else {}
