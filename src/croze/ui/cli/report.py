"""What `croze run` shows: progress on standard error, the answer or JSON on standard output."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from croze.text.display import one_line
from croze.types.event import (
    Event,
    HooksRan,
    ModelCalled,
    Notice,
    PlanSet,
    Stopped,
    ToolReturned,
    ToolStarted,
)
from croze.types.news import ChildNews
from croze.types.outward import (
    CompletionObject,
    ErrorObject,
    FileChangedObject,
    MergedObject,
    NoticeObject,
    Outward,
    PrunedObject,
    ResultObject,
    RetryObject,
    SubAgentFinishedObject,
    TokenUsageObject,
    encode,
)
from croze.types.stream import Delta
from croze.types.translate import Translator
from croze.ui.calls import outcome, subject_of
from croze.ui.cli.exits import Exit
from croze.ui.cli.output import Output, dollars, thousands
from croze.ui.hooks import hook_lines
from croze.ui.i18n import _, explain_code
from croze.ui.merges import conflict_lines
from croze.ui.opening import opening_notices
from croze.ui.plan import PlanView
from croze.ui.sums import cache_parts, counted_files, counted_steps
from croze.ui.team import TeamView

if TYPE_CHECKING:
    from croze.app.app import Session


NOT_ALLOWED = "not_allowed"
"""The code of a refused call's result; its message names the flag that allows it."""


class Report:
    """Watches one session for `croze run` and writes what its format asks for.

    A closed standard output cancels the turn (`pipe_closed`): nobody reads on, and the log has it all.
    """

    def __init__(self, out: Output, output_format: str, *, verbose: bool) -> None:
        self._out = out
        self._format = output_format
        self._verbose = verbose
        self._translator: Translator | None = None
        self._session = ""
        self._model = ""
        self._usage: list[tuple[int | None, int | None]] = []
        self._files: dict[str, None] = {}
        self._subjects: dict[str, str] = {}
        self._last_problem = ""
        self._plan = PlanView()
        self._team = TeamView(words=verbose)
        self._open_line = False
        self.answer = ""
        self.pipe_closed = False
        self._told_flag = False
        self.cancel: Callable[[], None] | None = None
        self._added: Callable[[], Sequence[Event]] = tuple
        self._record: Callable[[], dict[str, Any]] = dict

    def begin(self, session: "Session") -> Callable[[], None]:
        """Start to watch; gives the function that ends it."""
        start = len(session.events)
        self._added = lambda: session.events[start:]
        self._record = lambda: _record(session, start)
        earlier = sum(
            isinstance(e.body, ModelCalled) and e.body.purpose == "main" for e in session.events
        )
        self._session, self._model = session.id, session.model.name
        self._translator = Translator(
            session.id, model=self._model, partial=self._verbose, rounds=earlier
        )
        self.note(_("model {model}, conversation {id}", model=self._model, id=session.id))
        self._object(self._translator.opening())
        for event in opening_notices(session.events):
            self._watch(event)
        return session.subscribe(self._watch)

    def late(self, item: Event | Delta | ChildNews) -> None:
        """A warning from the work after the last turn: a line, beside the result that is out."""
        assert self._translator is not None
        if isinstance(item, Event) and isinstance(item.body, Notice):
            for found in self._translator.of(item):
                self._take(found)

    def note(self, text: str) -> None:
        """A line of progress."""
        if self._open_line:
            self._out.note("")
            self._open_line = False
        self._out.note(f"croze: {text}")

    def end(self, stopped: Stopped, code: Exit, *, problem: str = "", data: Any = None) -> int:
        """Write the answer and the account of it; gives the exit code."""
        if self._format == "json":
            self._out.json(encode(self._result(stopped, code, problem, data)))
        elif problem and self._format == "stream-json":
            self._object(ErrorObject(session=self._session, code="output_schema", message=problem))
        if self._format == "text" and stopped.reason == "done" and not problem:
            self._out.line(self.answer)
        if problem:
            self.note(_("the answer does not satisfy the schema: {problem}", problem=problem))
        elif stopped.reason != "done":
            if stopped.text != self._last_problem:
                self.note(_("stopped ({reason}): {text}", reason=stopped.reason, text=stopped.text))
            resume = f"croze run --resume {self._session[:8]}"
            if stopped.reason != "hook" or stopped.steps:  # a dropped message leaves nothing
                self.note(_("everything so far is kept; `{command}` goes on", command=resume))
        self._account(stopped)
        return int(code)

    def _account(self, stopped: Stopped) -> None:
        count_in, count_out = self._tokens()
        self.note(
            _(
                "{steps}, {files} changed, {input} tokens in, {output} out, {cost}",
                steps=counted_steps(stopped.steps),
                files=counted_files(len(self._files)),
                input=thousands(count_in),
                output=thousands(count_out),
                cost=dollars(stopped.cost),
            )
        )
        self._account_cache()

    def _account_cache(self) -> None:
        """What the run's shared cache did, in one line; nothing where it did nothing."""
        from croze.app.stats import SHARED, stats_of

        added = self._added()
        if any(isinstance(e.body, Notice) and e.body.code == SHARED for e in added):
            return  # told already, of all agents together
        parts = cache_parts(stats_of(added))
        if parts:
            self.note("; ".join(parts))

    def _tokens(self) -> tuple[int | None, int | None]:
        return (
            _total([count_in for count_in, _out in self._usage]),
            _total([count_out for _in, count_out in self._usage]),
        )

    def _result(self, stopped: Stopped, code: Exit, problem: str, data: Any) -> ResultObject:
        count_in, count_out = self._tokens()
        return ResultObject(
            session=self._session,
            model=self._model,
            ok=code is Exit.DONE,
            exit_code=int(code),
            reason=stopped.reason,
            answer=self.answer,
            data=data,
            error=problem or (stopped.text if stopped.reason != "done" else None),
            steps=stopped.steps,
            seconds=stopped.seconds,
            input_tokens=count_in,
            output_tokens=count_out,
            cost=stopped.cost,
            refused=stopped.refused,
            files_changed=tuple(self._files),
            record=self._record(),
        )

    def _watch(self, item: Event | Delta | ChildNews) -> None:
        assert self._translator is not None
        for found in self._translator.of(item):
            self._take(found)
            self._object(found)
        for text, _style in self._team.lines(item):
            self.note(text)
        if isinstance(item, ChildNews):
            if isinstance(item.item, Event) and isinstance(item.item.body, ToolReturned):
                self._tell_flag(item.item.body)
            return
        if isinstance(item, Delta):
            if self._verbose and item.text and item.kind in ("text", "thinking", "output"):
                self._out.note(item.text, end="")
                self._open_line = not item.text.endswith("\n")
        elif isinstance(item.body, ToolStarted):
            self._subjects[item.body.call_id] = subject_of(item.body.args)
        elif isinstance(item.body, ToolReturned):
            self._tool(item.body)
        elif isinstance(item.body, HooksRan):
            for text, _style in hook_lines(item.body):
                self.note(text)
        elif isinstance(item.body, PlanSet):
            for text, _style in self._plan.take(item.body):
                self.note(text)

    def _tool(self, body: ToolReturned) -> None:
        title = one_line(outcome(body, self._subjects.pop(body.call_id, "")), 160)
        if body.ok:
            self.note(f"{body.name}: {title}")
        elif body.code == NOT_ALLOWED:
            self._refused(body)
        else:
            self.note(_("{tool} failed: {title}", tool=body.name, title=title))

    def _refused(self, body: ToolReturned) -> None:
        """The refusal; the first one names the flag that allows it, whole, to be copied."""
        flag = str(body.data.get("flag") or "") if isinstance(body.data, dict) else ""
        text = body.message.partition(f" The user can allow it with {flag}")[0] if flag else ""
        self.note(_("refused: {text}", text=one_line(text or body.message, 300)))
        self._tell_flag(body)

    def _tell_flag(self, body: ToolReturned) -> None:
        """Of the first refusal the flag that would allow the call, a sub-agent's too."""
        flag = ""
        if body.code == NOT_ALLOWED and isinstance(body.data, dict):
            flag = str(body.data.get("flag") or "")
        if flag and not self._told_flag:
            self._told_flag = True
            self._out.note("  " + _("to allow it beforehand: {flag}", flag=flag))

    def _object(self, item: Outward) -> None:
        if self._format != "stream-json" or self.pipe_closed:
            return
        try:
            self._out.json(encode(item))
        except BrokenPipeError:
            self.pipe_closed = True
            if self.cancel is not None:
                self.cancel()

    def _take(self, item: Outward) -> None:
        match item:
            case CompletionObject():
                self.answer = item.result
            case TokenUsageObject():
                self._usage.append((item.input_tokens, item.output_tokens))
            case SubAgentFinishedObject() if item.report.steps:
                self._usage.append((item.report.usage.input, item.report.usage.output))
            case MergedObject(conflicts=conflicts):
                for text in conflict_lines(conflicts):
                    self.note(text)
            case FileChangedObject():
                self._files[item.change.path] = None
            case RetryObject():
                self.note(
                    _(
                        "try {attempt} failed ({message}); the next in {delay} s",
                        attempt=item.attempt,
                        message=one_line(item.message, 120),
                        delay=f"{item.delay:.1f}",
                    )
                )
            case PrunedObject():
                self.note(
                    _(
                        "context shortened from {before} to {after} tokens ({policy})",
                        before=thousands(item.tokens_before),
                        after=thousands(item.tokens_after),
                        policy=item.policy,
                    )
                )
            case ErrorObject() | NoticeObject():
                self._last_problem = item.message
                hint = str(item.params.get("hint", ""))
                text, hint = explain_code(item.code, item.message, hint, item.params)
                self.note(text)
                if hint:
                    self._out.note(f"  {hint}")
            case _other:
                pass


def _total(counts: list[int | None]) -> int | None:
    """The sum; unknown when one of them is, or when there is none."""
    known = [c for c in counts if c is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def _record(session: "Session", start: int) -> dict[str, Any]:
    from croze.app.record import record

    return record(session.events, start)
