"""How a session looks in a terminal: streaming text, one line a tool call, diffs, questions, sums."""

from collections.abc import Callable, Mapping

from croze.text.display import one_line, safe, safe_styled
from croze.types.event import (
    Asked,
    BackgroundTask,
    Compacted,
    Event,
    FilesChanged,
    HooksRan,
    Merged,
    ModelCalled,
    ModelSaid,
    Notice,
    PlanSet,
    Retried,
    Stopped,
    ToolReturned,
    ToolStarted,
)
from croze.types.news import ChildNews
from croze.types.stream import Delta
from croze.ui.calls import ANSWERS, COMMAND, QUESTION, outcome, subject_of, task_line
from croze.ui.cli.output import cells
from croze.ui.hooks import hook_lines
from croze.ui.i18n import _, explain_code
from croze.ui.merges import conflict_lines
from croze.ui.plan import PlanView, tree
from croze.ui.plan import heading as heading_of
from croze.ui.question import command_lines, heading
from croze.ui.reasons import question
from croze.ui.sums import Sums, compaction_line
from croze.ui.team import TeamView

_STYLES = {
    "dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36",
}  # fmt: skip
MAX_DIFF_LINES, MAX_ASKED_LINES = 60, 400
HEAD_LINES, TAIL_LINES = 8, 4
"""How much of a command's output is shown: its beginning as it comes, then its end."""


class Screen:
    """Draws what happens in one session. Everything from outside passes `safe` first.

    With `live` (a terminal whose cursor can go back) a line at the bottom says what goes on meanwhile.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        *,
        color: bool,
        width: int = 100,
        live: bool = False,
    ) -> None:
        self.width = max(40, width)
        self.sums = Sums()
        self._plan = PlanView(self.width)
        self._team = TeamView()
        self._write = write
        self._color = color
        self._live = live
        self._at_start = True
        self._mode = ""
        self._passing = False
        self._subjects: dict[str, tuple[str, str]] = {}
        self._headed: dict[str, int] = {}
        self._diffs: dict[str, list[str]] = {}
        self._asked_about: set[str] = set()

    def watch(self, item: Event | Delta | ChildNews) -> None:
        """Draw one item of the session's stream."""
        if not isinstance(item, Delta):
            for text, style in self._team.lines(item, self.width):
                self.line(text, *filter(None, (style,)))
        if isinstance(item, ChildNews):
            return
        if isinstance(item, Delta):
            self._delta(item)
            return
        self.sums.take(item.body)
        match item.body:
            case ModelCalled(purpose="main"):
                self._pass("…")
            case ModelSaid():
                self._fresh()
            case ToolStarted():
                self._started(item.body)
            case ToolReturned():
                self._returned(item.body)
            case FilesChanged():
                own = [change.diff for change in item.body.changes if not change.by]
                self._diffs[item.body.call_id] = own
            case Asked():
                self._question(item.body)
            case HooksRan():
                for text, style in hook_lines(item.body):
                    self.line(text, style)
            case Retried():
                said = one_line(item.body.message, 100)
                delay = f"{item.body.delay:.1f}"
                self.line(
                    _("{message}; next try in {delay} s", message=said, delay=delay), "yellow"
                )
            case Notice():
                self.notice(item.body)
            case BackgroundTask() as task if told := task_line(task, self.width):
                self.line(told, "dim")
            case PlanSet():
                for text, style in self._plan.take(item.body):
                    self.line(text, *filter(None, (style,)))
            case Merged(conflicts=conflicts):
                for text in conflict_lines(conflicts):
                    self.line(text, "yellow")
            case Compacted() as body:
                self.line(compaction_line(body), "dim")
            case Stopped():
                self._stopped(item.body)
            case _:
                pass

    def line(self, text: str, *styles: str) -> None:
        """A whole line, begun on a fresh one."""
        self._fresh()
        self._write(self._styled(safe_styled(text), *styles) + "\n")
        self._mode = ""

    def plan(self, plan: PlanSet, spent: Mapping[str, tuple[int, float | None]]) -> None:
        """A plan as it stands, with what its workers have used."""
        self.line(heading_of(plan), "bold")
        for text, style in tree(plan, spent, self.width):
            self.line(text, *filter(None, (style,)))

    def interrupted(self) -> None:
        """The terminal has shown `^C`: what comes next begins on a line of its own."""
        self._at_start = False

    def _styled(self, text: str, *styles: str) -> str:
        if not self._color or not styles:
            return text
        codes = ";".join(_STYLES[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def _pass(self, text: str) -> None:
        """Say on the bottom line what goes on; the next thing drawn takes its place."""
        if not self._live:
            return
        self._fresh()
        self._write(self._styled(one_line_kept(text, self.width - 1), "dim"))
        self._passing = True

    def _clear(self) -> None:
        if self._passing:
            self._write("\r\x1b[K")
            self._passing = False

    def _fresh(self) -> None:
        self._clear()
        if not self._at_start:
            self._write("\n")
            self._at_start = True

    def _stream(self, kind: str, text: str, *styles: str) -> None:
        if self._mode != kind:
            text = text.lstrip("\n")
        if not text:
            return
        if self._mode != kind:
            self._fresh()
            self._mode = kind
        self._clear()
        shown = safe(text)
        self._write(self._styled(shown, *styles))
        self._at_start = shown.endswith("\n")

    def _delta(self, delta: Delta) -> None:
        match delta.kind:
            case "text":
                self._stream("text", delta.text)
            case "thinking":
                self._stream("thinking", delta.text, "dim")
            case "output":
                self._output(delta.call_id, delta.text)
            case "call" if delta.name and not delta.done:
                self._pass(f"● {delta.name} …")
                self._mode = ""
            case "reset":
                self.line(_("(the reply is tried again)"), "dim")
            case _:
                pass

    def _started(self, body: ToolStarted) -> None:
        answer = body.args.get(ANSWERS.get(body.name, ""))
        if isinstance(answer, str):
            self.line(safe(answer.strip()), "bold")
            return
        subject = subject_of(body.args)
        self._subjects[body.call_id] = body.name, subject
        if body.name == QUESTION:
            return
        if "command" in body.args:
            self._head(body.call_id)
        else:
            self._pass(f"● {body.name} {subject}")

    def _head(self, call_id: str) -> None:
        """The line above a running call's output."""
        name, subject = self._subjects.get(call_id, ("", ""))
        if name and call_id not in self._headed:
            text = one_line(subject, self.width - len(name) - 4)
            self.line(f"{self._styled('●', 'cyan')} {self._styled(name, 'bold')} {text}".rstrip())
            self._headed[call_id] = 0

    def _output(self, call_id: str, text: str) -> None:
        """A running call's output: its first lines as they come, then only the newest on the bottom
        line; its end is shown with the result."""
        self._head(call_id)
        for piece in text.splitlines(keepends=True):
            count = self._headed.get(call_id, 0)
            body = one_line_kept(piece.rstrip("\r\n"), self.width - 5)
            if count >= HEAD_LINES:
                self._pass(f"  │ … {body}")
            else:
                if self._mode != "output" or self._at_start:
                    self._fresh()
                    self._write(self._styled("  │ ", "dim"))
                    self._mode, self._at_start = "output", False
                self._write(self._styled(body, "dim"))
            if piece.endswith("\n"):
                self._headed[call_id] = count + 1
                if count < HEAD_LINES:
                    self._write("\n")
                    self._at_start = True

    def _tail(self, call_id: str, output: str) -> None:
        """The end of an output whose beginning alone was shown."""
        lines = output.rstrip("\n").splitlines()
        if self._headed.get(call_id, 0) <= HEAD_LINES or len(lines) <= HEAD_LINES:
            return
        last = lines[max(HEAD_LINES, len(lines) - TAIL_LINES) :]
        left_out = len(lines) - HEAD_LINES - len(last)
        if left_out:
            self.line("  │ " + _("… {count} more lines", count=left_out), "dim")
        for text in last:
            self.line("  │ " + one_line_kept(text, self.width - 4), "dim")

    def _returned(self, body: ToolReturned) -> None:
        name, subject = self._subjects.pop(body.call_id, (body.name, ""))
        if body.name == QUESTION or (body.ok and body.name in ANSWERS):
            self._clear()
            return
        seconds = f" ({body.seconds:.1f} s)" if body.seconds and body.seconds >= 0.1 else ""
        sign = self._styled("✓", "green") if body.ok else self._styled("✗", "red")
        if body.call_id in self._headed:
            self._tail(body.call_id, body.view.body if body.view else body.text)
            del self._headed[body.call_id]
            said = one_line(body.message, self.width - 14)
            seconds = "" if "(" in said else seconds
            self.line(f"  {sign} {said}{seconds}")
        else:
            # A failure may take some lines: what to do about it stands at its end.
            room = (self.width if body.ok else 4 * self.width) - len(name) - len(seconds) - 4
            said = one_line(outcome(body, subject), room)
            self.line(f"{sign} {self._styled(name, 'bold')} {said}{seconds}".rstrip())
        for diff in self._diffs.pop(body.call_id, ()):
            if body.call_id not in self._asked_about:
                self.diff(diff)
        self._asked_about.discard(body.call_id)
        if self._subjects:
            self._pass(f"● {' '.join(next(iter(self._subjects.values())))}")

    def diff(self, diff: str, *, most: int = MAX_DIFF_LINES) -> None:
        """A unified diff in colour, its first lines; the file is named by the line above it."""
        lines = [text for text in diff.splitlines() if not text.startswith(("+++ ", "--- "))]
        for text in lines[:most]:
            style = {"+": "green", "-": "red", "@": "blue"}.get(text[:1], "dim")
            self.line("  " + one_line_kept(text, self.width - 2), style)
        self._more(len(lines) - most)

    def asked_by(self, news: ChildNews, asked: Asked) -> None:
        """A sub-agent's question, with its name."""
        self.line(_("{agent} asks:", agent=self._team.name(news)), "yellow")
        self._question(asked)

    def _question(self, asked: Asked) -> None:
        if asked.kind == "question":
            self.line(f"? {safe(question(asked.text))}", "yellow")
            return
        self.line(f"? {heading(asked, self.width * 3)}", "yellow")
        view = asked.view
        if view is None:
            return
        if view.kind != "output" or view.title != COMMAND:
            self.line("  " + one_line(view.title, self.width - 2), "bold")
        if view.kind == "diff":
            self._asked_about.add(asked.call_id)
            self.diff(view.body, most=MAX_ASKED_LINES)
            return
        if view.kind == "output":
            for text, style in command_lines(asked, view.body, self.width):
                self.line(text, style)
            return
        lines = view.body.splitlines()
        for text in lines[:MAX_ASKED_LINES]:
            self.line("  " + safe(text), "bold")
        self._more(len(lines) - MAX_ASKED_LINES)

    def _more(self, left_out: int) -> None:
        if left_out > 0:
            self.line("  " + _("… {count} more lines", count=left_out), "dim")

    def notice(self, body: Notice) -> None:
        """What croze itself has to say, with the next step."""
        hint = str(body.params.get("hint", ""))
        text, hint = explain_code(body.code, body.text, hint, body.params)
        style = {"error": "red", "warning": "yellow"}.get(body.level, "dim")
        self.line(safe(text), style)
        if hint:
            self.line(f"  {safe(hint)}", "dim")

    def _stopped(self, body: Stopped) -> None:
        if body.reason == "cancelled":
            self.line(_("Stopped. What arrived is kept; go on by saying what to do."), "yellow")
        elif body.reason not in ("done", "failed", "retries_exhausted"):
            self.line(safe(body.text), "yellow")
        self.line(self.sums.line(body), "dim")
        self.sums = Sums()


def one_line_kept(text: str, width: int) -> str:
    """A line with its blanks kept, cut to `width` cells of the terminal."""
    shown = safe(text).replace("\n", " ").expandtabs(4)
    if cells(shown) <= width:
        return shown
    used, cut = 0, 0
    while used + cells(shown[cut]) < width:
        used += cells(shown[cut])
        cut += 1
    return shown[:cut] + "…"
