"""Command-line tools that the project and the user keep in folders: which there are, how each is run, and
what it says of itself."""

import asyncio
import os
import shlex
import shutil
import stat
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from croze.knowledge.find import UNTRUSTED, Finder, Found, overridden
from croze.knowledge.kept import Kept, key_of
from croze.knowledge.kinds import TOOLS
from croze.knowledge.tool_helps import Help, comments_of, tidy
from croze.types.errors import CrozeError
from croze.workspace.process import ProcessResult, child_environment, run
from croze.workspace.wrapper import Entrance

HELP_WORDS: tuple[Literal["help", "-h", "--help"], ...] = ("help", "-h", "--help")
SECONDS = 5.0
"""For each way of asking a tool for its help."""
PARALLEL = 4
_MOST_OUTPUT = 1 << 20
_KEPT = 40_000
RUNNERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    ".py": (("python3", "python"), "{program} {file}"),
    ".sh": (("bash", "sh"), "{program} {file}"),
    ".js": (("node",), "{program} {file}"),
    ".rb": (("ruby",), "{program} {file}"),
    ".pl": (("perl",), "{program} {file}"),
    ".php": (("php",), "{program} {file}"),
    ".go": (("go",), "{program} run {file}"),
    ".rs": (("rustc",), '{program} -o "${TMPDIR:-/tmp}"/{name} {file} && "${TMPDIR:-/tmp}"/{name}'),
}
"""What runs a file that doesn't run by itself. Go and Rust sources are compiled at each call: a finished
program beside them is better."""

Sandbox = Callable[[], Awaitable[tuple[bool, Entrance | None]]]
"""Gives whether tools may be asked at all, and the sandbox to do it in (None: the user waived it)."""


class ExternalTool(Struct, frozen=True, kw_only=True):
    """One tool. `file` is its name with the suffix, `path` where it really lies, `form` how it is run,
    with `{file}` for its path; where it can't be run, `problem` says why. `asked` tells that it was asked
    for its help, which else is from its comments."""

    found: Found
    path: Path
    form: str = ""
    problem: str = ""
    help: Help = Help()
    asked: bool = False

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def file(self) -> str:
        return os.path.basename(self.found.path)

    @property
    def usable(self) -> bool:
        return self.found.acts and not self.problem

    @property
    def executable(self) -> bool:
        return bool(self.found.mark[5] & 0o111)

    def command(self, root: Path | None = None) -> str:
        """What runs it in a shell that works in `root`, or anywhere."""
        if root is not None and self.path.is_relative_to(root):
            own = self.path.relative_to(root).as_posix()
            file = shlex.quote(own if "/" in own else f"./{own}")
        else:
            file = shlex.quote(str(self.path))
        return self.form.replace("{file}", file)


class ExternalTools:
    """The tools as they are: looked at each time, read where they have changed, asked for their help once
    a content. Nothing here raises for what the tools are or do."""

    def __init__(
        self,
        finder: Finder,
        cache: Path,
        env: Mapping[str, str],
        sandbox: Sandbox,
        trusted: Callable[[str], str],
    ) -> None:
        """`trusted` gives the hash of the content that the user trusts of a file of the project: others
        aren't read."""
        self._finder = finder
        self._trusted = trusted
        self._env = env
        self._sandbox = sandbox
        self._helps = Kept(cache / "tools.json", Help)
        self._known: dict[str, tuple[Found, str, ExternalTool]] = {}
        self._tried: set[str] = set()

    def look(self) -> list[ExternalTool]:
        """All files that would be tools, the higher first; `found.state` says which of them count. No
        program is run."""
        tools = []
        for found in self._finder.find(TOOLS):
            known = self._known.get(found.path)
            trusted = self._trusted(found.path) if found.source == "project" else ""
            if known is None or known[:2] != (found, trusted):
                known = self._known[found.path] = (found, trusted, self._read(found, trusted))
            tools.append(known[2])
        self._helps.save()
        states = overridden(tool.found for tool in tools)
        return [
            self._with_help(msgspec.structs.replace(tool, found=found))
            for tool, found in zip(tools, states, strict=True)
        ]

    def unasked(self, tools: Iterable[ExternalTool]) -> list[ExternalTool]:
        """Those whose help isn't known and was not tried to be had in this session."""
        return [
            tool
            for tool in tools
            if tool.usable and not tool.asked and key_of(tool.found) not in self._tried
        ]

    async def ask(self, tools: Sequence[ExternalTool]) -> None:
        """Ask these tools for their help, and keep it."""
        self._tried |= {key_of(tool.found) for tool in tools}
        gate = asyncio.Semaphore(PARALLEL)

        async def one(tool: ExternalTool) -> None:
            async with gate:
                help_ = await self._asked(tool)
            if help_ is not None:
                self._helps.put(tool.found, help_)

        await asyncio.gather(*map(one, tools))
        await asyncio.to_thread(self._helps.save)

    async def fresh(self, tool: ExternalTool) -> ExternalTool:
        """The tool with its help asked anew."""
        if tool.usable:
            await self.ask([tool])
        return self._with_help(tool)

    def _read(self, found: Found, trusted: str) -> ExternalTool:
        """A tool as its file shows it."""
        path = Path(os.path.realpath(self._finder.path(found)))
        if found.acts and found.source == "project" and not trusted:
            found = msgspec.structs.replace(found, state="untrusted", reason=UNTRUSTED)
        digest = self._helps.digest(found) if found.acts and found.source != "project" else ""
        if digest:  # it was read before, and nobody's trust is needed
            found = msgspec.structs.replace(found, sha256=digest)
            head = _head(path)
        else:
            found, data = self._finder.fetch(found, TOOLS.most)
            head = b"" if data is None else data[:_HEAD]
            if found.acts and found.source != "project":
                self._helps.remember(found)
        if not found.acts:
            return ExternalTool(found=found, path=path)
        form, problem = _form(found, head, self._env.get("PATH", os.defpath))
        comments = comments_of(found.path, head)
        return ExternalTool(found=found, path=path, form=form, problem=problem, help=comments)

    def _with_help(self, tool: ExternalTool) -> ExternalTool:
        known = self._helps.get(tool.found) if tool.found.acts else None
        if known is None:
            return tool
        if not known.text and tool.help.text:  # it didn't answer, but its comments do
            known = msgspec.structs.replace(tool.help, problem=known.problem)
        return msgspec.structs.replace(tool, help=known, asked=True)

    async def _asked(self, tool: ExternalTool) -> Help | None:
        """What the tool answers; None where it can't be asked here."""
        may, sandbox = await self._sandbox()
        if not may or not _is_still(tool):
            return None
        failures = []
        for word in HELP_WORDS:
            try:
                ended = await run(
                    ["/bin/sh", "-c", f"{tool.command()} {word}"],
                    cwd=tool.path.parent,
                    env=child_environment(self._env),
                    timeout=SECONDS,
                    output_limit=_KEPT,
                    on_output=_Limit().take,
                    sandbox=sandbox,
                )
            except CrozeError as error:
                return Help(problem=error.message.rstrip("."))
            text = tidy(ended.head)
            if ended.ended == "itself" and ended.exit_code == 0 and text:
                return Help(text=text, by=word) if _is_still(tool) else None
            failures.append(f"{word}: {_failure(ended)}")
        return Help(problem=f"it gives no help ({', '.join(failures)})")


class _Limit:
    """Ends a program that says too much."""

    def __init__(self) -> None:
        self._bytes = 0

    def take(self, chunk: bytes) -> bool:
        self._bytes += len(chunk)
        return self._bytes <= _MOST_OUTPUT


_HEAD = 16_000


def _head(path: Path) -> bytes:
    """How a file of the user's begins."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(handle, "rb") as stream:
        return stream.read(_HEAD) if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) else b""


def _is_still(tool: ExternalTool) -> bool:
    """Whether the file is the one that was looked at."""
    try:
        now = os.stat(tool.path)
    except OSError:
        return False
    mark = tool.found.mark
    return (now.st_dev, now.st_ino, now.st_mtime_ns, now.st_ctime_ns) == (*mark[:2], *mark[3:5])


def _form(found: Found, head: bytes, search: str) -> tuple[str, str]:
    """How a file is run, and why it can't be."""
    suffix = os.path.splitext(found.path)[1].lower()
    if head.startswith(b"#!") or suffix not in RUNNERS:
        if found.mark[5] & 0o111:
            return "{file}", _missing_interpreter(head, search)
        if suffix not in RUNNERS:
            return "", "it is not executable"
    programs, form = RUNNERS[suffix]
    program = next((each for each in programs if shutil.which(each, path=search)), "")
    if not program:
        return "", f"{programs[0]} is not installed"
    name = shlex.quote(found.name)
    return form.replace("{program}", program).replace("{name}", name), ""


def _missing_interpreter(head: bytes, search: str) -> str:
    """What the first line names and the system doesn't have; nothing where all is well."""
    if not head.startswith(b"#!"):
        return ""
    line = head[2:].partition(b"\n")[0]
    if line.endswith(b"\r"):
        return "its first line ends in CR LF, so the system doesn't find what runs it"
    words = line.decode("utf-8", "replace").split()
    if not words:
        return "its first line names no program"
    program = words[0]
    if os.path.basename(program) == "env":
        program = next((w for w in words[1:] if not w.startswith("-") and "=" not in w), program)
    if shutil.which(program, path=search) is None:
        return f"{program[:80]} is not installed"
    return ""


def _failure(ended: ProcessResult) -> str:
    if ended.ended == "timeout":
        return f"not done in {SECONDS:.0f} s"
    if ended.ended == "reader":
        return f"more than {_MOST_OUTPUT >> 20} MB"
    if ended.exit_code == 0:
        return "no output"
    return f"exit code {ended.exit_code}" if ended.signal is None else str(ended.signal)
