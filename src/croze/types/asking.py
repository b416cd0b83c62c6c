"""What is asked of the user, and the answer: events of the log."""

from typing import Literal

from msgspec import Struct

from croze.types.tool import View


class AskedPart(Struct, frozen=True, omit_defaults=True):
    """One simple command of a call that is asked about. `why` says why it needs the answer; empty: it
    needs none, because it only reads or a rule allows it."""

    text: str
    why: str = ""


class Asked(Struct, frozen=True, omit_defaults=True):
    """A question to the user: an approval of a call or a question that the agent asked.

    Of an approval: `rule` is what "always" would add, `access` the call's class (read, write, execute,
    network), `parts` a command's simple commands and `cwd` the folder that it would run in.
    """

    ask_id: str
    kind: Literal["approval", "question"]
    text: str
    call_id: str = ""
    options: tuple[str, ...] = ()
    view: View | None = None
    rule: str = ""
    access: str = ""
    parts: tuple[AskedPart, ...] = ()
    cwd: str = ""


class Answered(Struct, frozen=True, omit_defaults=True):
    """The answer: for approvals once, always or no, with the user's `note`; else its text.

    `by` says who decided: the user, a rule, the mode, or headless where no user is present.
    """

    ask_id: str
    answer: str
    note: str = ""
    by: Literal["user", "rule", "mode", "headless"] = "user"
