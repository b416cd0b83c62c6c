"""The script of a model: replies as a YAML list that people write and the recorder writes.

```yaml
- thinking: Look first.
  text: I read the file.
  calls: [{name: read_file, args: {path: src/a.py}}]
  chunk: 20            # characters a chunk (0: all at once), delay: seconds between chunks
- expect: "def add"    # what came since the last reply must hold it; matches: a regular expression
  text: Done.
  finish: stop         # stop, length, tool_calls …; usage: {input: 10, output: 3} or none
- fault: error_500     # see Fault; after: characters that still come; error: a failure in full
```

`parts` instead of thinking, text and calls gives them in any order. The file may also be a mapping with
`replies` and, for all of them, `chunk` and `delay`; and with the replies of sub-agents, by the agent's
name and (where several are told apart) a text that its first request holds:

```yaml
replies: [{calls: [{name: run_named_subagents, args: {subagents: …}}]}, {text: Done.}]
agents:
  - {agent: explore, task: the parser, replies: [{text: It is in parse.py.}]}
  - {agent: explore, replies: [{text: Nothing found.}]}
```
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from croze.types.errors import ModelError, RetriesExhausted, UsageError
from croze.types.model import Usage
from croze.types.stream import FinishReason

Fault = Literal[
    "cut", "reset", "timeout", "stall", "malformed_stream", "malformed_call", "empty",
    "error_401", "error_429", "error_500", "error_503", "overflow", "tools_refused",
]  # fmt: skip


_BLOCK_TEXT = re.compile(
    r"[^\s\x00-\x1f](?:[^\x00-\x09\x0b-\x1f\x7f-\xa0\u2028\u2029\ufeff]*\S)?\n?"
)
"""What a YAML literal block gives back as it stands, whatever follows it."""


class Failure(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A model error in full."""

    message: str
    code: str = "model"
    status: int | None = None
    retryable: bool = False
    retry_after: float | None = None
    overflow: bool = False
    tools_refused: bool = False
    hint: str = ""

    @classmethod
    def of(cls, error: ModelError) -> "Failure":
        return cls(
            message=error.message,
            code=error.code,
            status=error.status,
            retryable=error.retryable,
            retry_after=error.retry_after,
            overflow=error.overflow,
            tools_refused=error.tools_refused,
            hint=error.hint,
        )

    def error(self) -> ModelError:
        kind = RetriesExhausted if self.code == RetriesExhausted.code else ModelError
        return kind(
            self.message,
            code=self.code,
            status=self.status,
            retryable=self.retryable,
            retry_after=self.retry_after,
            overflow=self.overflow,
            tools_refused=self.tools_refused,
            hint=self.hint,
        )


FAILURES: Mapping[str, Failure] = {
    "reset": Failure("The connection was reset (scripted).", code="reset", retryable=True),
    "timeout": Failure("The model fell silent (scripted).", code="idle_timeout", retryable=True),
    "malformed_stream": Failure(
        "The stream was malformed (scripted).", code="malformed_stream", retryable=True
    ),
    "error_401": Failure("The key was refused (scripted).", code="unauthorized", status=401),
    "error_429": Failure(
        "Too many requests (scripted).", code="rate_limited", status=429, retryable=True
    ),
    "error_500": Failure(
        "The server failed (scripted).", code="server_error", status=500, retryable=True
    ),
    "error_503": Failure(
        "The server is overloaded (scripted).", code="overloaded", status=503, retryable=True
    ),
    "overflow": Failure(
        "The context is too long (scripted).", code="overflow", status=400, overflow=True
    ),
    "tools_refused": Failure(
        "Tools are not supported (scripted).", code="tools_refused", status=400, tools_refused=True
    ),
}
"""What is raised for a fault; the other faults change the reply instead."""


class ScriptedCall(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tool call. `args` are values, or the argument JSON verbatim (it may be broken)."""

    name: str
    args: dict[str, Any] | str = {}
    id: str | None = None


class ScriptedRetry(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    attempt: int
    delay: float
    code: str
    message: str


class ScriptedPart(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of text, thinking (with the provider's `opaque` form), a call, a retry."""

    text: str | None = None
    thinking: str | None = None
    opaque: str | None = None
    call: ScriptedCall | None = None
    retry: ScriptedRetry | None = None

    def __post_init__(self) -> None:
        thinks = self.thinking is not None or self.opaque is not None
        given = [self.text is not None, thinks, self.call is not None, self.retry is not None]
        if sum(given) != 1:
            raise ValueError("a part has exactly one of text, thinking, call and retry")


class ScriptedReply(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One reply, as the module's text shows it.

    `finish` None is tool_calls where the reply has native calls, else stop. `usage` None is an
    estimate, "none" that the model does not tell. `after` None is nothing for errors with a status,
    else the whole reply.
    """

    thinking: str = ""
    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    parts: tuple[ScriptedPart, ...] = ()
    finish: FinishReason | None = None
    usage: Usage | Literal["none"] | None = None
    chunk: int | None = None
    delay: float | None = None
    fault: Fault | None = None
    after: int | None = None
    error: Failure | None = None
    expect: str | tuple[str, ...] = ()
    matches: str | None = None

    def __post_init__(self) -> None:
        if self.parts and (self.thinking or self.text or self.calls):
            raise ValueError("parts stands instead of thinking, text and calls")
        if self.fault == "malformed_call" and not any(p.call for p in self.in_order()):
            raise ValueError("malformed_call needs a call")

    def in_order(self) -> tuple[ScriptedPart, ...]:
        """The reply's parts, whichever form it was written in."""
        if self.parts:
            return self.parts
        parts = [ScriptedPart(thinking=self.thinking)] if self.thinking else []
        if self.text:
            parts.append(ScriptedPart(text=self.text))
        return (*parts, *(ScriptedPart(call=call) for call in self.calls))


class Role(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The replies of a sub-agent's session: of each of this `agent` whose first request holds `task`."""

    agent: str
    replies: tuple[ScriptedReply, ...]
    task: str = ""


class Script(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Replies in order; `chunk` (characters, 0 for all at once) and `delay` (seconds) where a reply has
    none of its own."""

    replies: tuple[ScriptedReply, ...]
    chunk: int = 0
    delay: float = 0.0
    agents: tuple[Role, ...] = ()

    def play(self, agent: str, request: str) -> tuple[ScriptedReply, ...]:
        """The replies to a session's first `request` (its text): its own ones, or those of a sub-agent. The
        first role that fits; none where nothing does."""
        if not agent:
            return self.replies
        fits = (each for each in self.agents if each.agent == agent and each.task in request)
        return next((each.replies for each in fits), ())


def load_script(path: Path) -> Script:
    """Read a script. Raises `UsageError` naming file, place and fault where it can't be used."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"The script {path} can't be read: {error.strerror or error}.",
            hint="Name a script as scripted:PATH.",
            code="script",
        ) from error
    return parse_script(data, str(path))


def parse_script(data: bytes, name: str) -> Script:
    """The script in `data` (UTF-8 YAML); `name` stands for it in errors."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = yaml.load(data, Loader=loader)  # noqa: S506 (a safe loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _unusable(f"{name}:{line}", error.problem or "not YAML") from error
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise _unusable(name, " ".join(str(error).split())) from error
    if value is None:
        value = []
    if isinstance(value, list):
        value = {"replies": value}
    try:
        return msgspec.convert(value, Script)
    except msgspec.ValidationError as error:
        raise _unusable(name, str(error)) from error


def dump_reply(reply: ScriptedReply) -> bytes:
    """One reply as an item of a script's list."""
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc]
        """Its own class, so that the representer stays here."""

    def text(dumper: Any, value: str) -> Any:
        style = None
        if "\n" in value:
            style = "|" if _BLOCK_TEXT.fullmatch(value) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    dumped = yaml.dump(
        [msgspec.to_builtins(reply)],
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        encoding="utf-8",
    )
    assert isinstance(dumped, bytes)
    return dumped


def _unusable(where: str, why: str) -> UsageError:
    return UsageError(
        f"The script {where} can't be used: {why}.",
        hint="A script is a list of replies with text, thinking, calls, finish, fault …",
        code="script",
    )
