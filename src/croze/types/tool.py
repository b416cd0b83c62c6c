"""What a tool is to the rest: its access, its description, its result."""

from typing import Any, Literal

from msgspec import Struct, field

from croze.types.parts import Image


class Access(Struct, frozen=True, omit_defaults=True):
    """What a call touches. A call that only reads may run beside others and is never asked about."""

    read: bool = False
    write: bool = False
    exec: bool = False
    net: bool = False

    @property
    def read_only(self) -> bool:
        return not (self.write or self.exec or self.net)


class View(Struct, frozen=True, omit_defaults=True):
    """What a person sees of a result: a one-line title and, folded, a body of some kind."""

    title: str
    body: str = ""
    kind: Literal["text", "diff", "output", "list"] = "text"


class FileChange(Struct, frozen=True, omit_defaults=True):
    """One changed file. Hashes are SHA-256 in hex, None where the file did not or does not exist.

    A link's content is its target. The modes are `st_mode`, None where there was or is no file, or
    where they weren't looked at. `made` names the folders that were made for the file. `lost` says
    that its old content could not be kept, so that the change can't be undone. `by` is the session of the
    sub-agent that made the change, empty where the log's own did.
    """

    path: str
    kind: Literal["added", "modified", "deleted", "moved"]
    before: str | None = None
    after: str | None = None
    diff: str = ""
    added: int = 0
    removed: int = 0
    moved_from: str | None = None
    mode_before: int | None = None
    mode_after: int | None = None
    made: tuple[str, ...] = ()
    lost: bool = False
    by: str = ""


class Look(Struct, frozen=True, omit_defaults=True):
    """What a call that only looked was shown, and what the run's shared cache spared it.

    `key` is `read:` or `list:` and the path; `digest` tells one content of it from another. The lines
    `first` to `last` stand whole in the result (0: none do). `hit`: the disk was asked for no more than
    the stat. `unchanged` is the message that shows the same, where the result refers to that instead of
    showing it again; `saved` is the estimate of tokens that this spared.
    """

    key: str
    digest: str = ""
    first: int = 0
    last: int = 0
    hit: bool = False
    unchanged: str = ""
    saved: int = 0

    def covers(self, other: "Look") -> bool:
        """Whether this shows everything that `other` shows, with the same content."""
        same = self.key == other.key and self.digest == other.digest != ""
        return same and 0 < self.first <= other.first and other.last <= self.last


class ToolResult(Struct, frozen=True, omit_defaults=True):
    """The outcome of a call, for three audiences.

    `message` (one line) and `text` are for the model, `view` for the user, `data` (JSON values) for
    programs. `code` is the error code where `ok` is false. `truncated` says what was left out and how
    to get it. `observed` maps workspace-relative paths to the SHA-256 that the agent has now seen.
    `whole` is all of the text where `text` is only a part of it and the rest can be read again.
    `images` are shown to a model that sees them, below the text; `image_tokens` is what they cost.
    """

    ok: bool
    message: str = ""
    text: str = ""
    view: View | None = None
    data: Any = None
    code: str | None = None
    truncated: str | None = None
    whole: str = ""
    observed: dict[str, str] = field(default_factory=dict)
    blobs: tuple[str, ...] = ()
    look: Look | None = None
    images: tuple[Image, ...] = ()
    image_tokens: int = 0


class ToolExample(Struct, frozen=True):
    """A worked example: a title and the arguments of a call; each protocol renders it its way."""

    title: str
    args: dict[str, Any]


class ToolDoc(Struct, frozen=True, omit_defaults=True):
    """What the model is told of a tool. `parameters` is a JSON Schema object, all references inlined.

    `summary` is the one line that stands for a tool outside the core.
    """

    name: str
    summary: str
    description: str
    parameters: dict[str, Any]
    access: Access = Access()
    examples: tuple[ToolExample, ...] = ()
    guideline: str = ""
    core: bool = False
    ends_turn: bool = False


class ToolShape(Struct, frozen=True):
    """What a decoder must know of a tool: its tag and its parameters' tags (aliases included)."""

    name: str
    params: frozenset[str]
