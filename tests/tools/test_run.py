"""The runner: every call gets one result, in order, whatever the tool, the user or a cancel does."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.tools.approve import Approver
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.bound import bounded
from croze.tools.builtin.describe import CallTool
from croze.tools.builtin.shell import ExecuteCommand
from croze.tools.builtin.stored import ReadResult
from croze.tools.builtin.talk import AttemptCompletion
from croze.tools.registry import Registry
from croze.tools.run import PARALLEL, Outcome, run_calls
from croze.types.errors import StoreFull, UsageError
from croze.types.event import Answered, Asked, Body, FilesChanged, ToolReturned, ToolStarted
from croze.types.parts import CallError, ToolCall
from croze.types.tool import Access, FileChange, ToolResult, View

SECRET = "sk-proj-a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ"


class Host:
    """The session's side in memory; `answers` are given in turn, without one nobody is present."""

    def __init__(self, context: Any, answers: Sequence[tuple[str, str]] = ()) -> None:
        self.log: list[Body] = []
        self.durable: list[Body] = []
        self.answers = list(answers)
        self.ids = 0
        self.changed: dict[str, FilesChanged] = {}
        self._context = context

    async def append(self, *bodies: Body, durable: bool = False) -> None:
        await asyncio.sleep(0)
        self.log.extend(bodies)
        if durable:
            self.durable.extend(bodies)

    async def started(self, *starts: ToolStarted, reading: Collection[str], durable: bool) -> None:
        del reading
        await self.append(*starts, durable=durable)

    def context(self, call: ToolCall) -> ToolContext:
        self._context.call = call
        context: ToolContext = self._context
        return context

    async def decide(self, asked: Asked) -> Answered:
        if self.answers:
            answer, note = self.answers.pop(0)
            answered = Answered(ask_id=asked.ask_id, answer=answer, note=note)
        else:
            answered = Answered(ask_id=asked.ask_id, answer="no", by="headless")
        await self.append(asked, answered)
        return answered

    def new_message_id(self) -> str:
        self.ids += 1
        return f"m{self.ids}"

    def explain(self, call: ToolCall) -> str:
        return f"the right form of {call.name}"

    async def changes(self, call: ToolCall) -> FilesChanged | None:
        return self.changed.pop(call.id, None)

    def of(self, kind: type[Any]) -> list[Any]:
        return [body for body in self.log if isinstance(body, kind)]


@pytest.fixture
def host(fake_context: Any) -> Host:
    return Host(fake_context)


def tool(
    name: str, work: Callable[..., Any], access: Access, *, ends_turn: bool = False
) -> type[Tool]:
    """A tool class whose run is `work(ctx, text)`, a coroutine function or a plain one."""

    class Made(Tool, frozen=True):
        """Made for a test."""

        spec: ClassVar[ToolSpec] = ToolSpec(name, "", access, ends_turn=ends_turn)
        text: str = ""
        requires_approval: bool = False

        async def run(self, ctx: ToolContext) -> ToolResult:
            done = work(ctx, self.text)
            result: ToolResult = await done if asyncio.iscoroutine(done) else done
            return result

        def preview(self, ctx: ToolContext) -> View:
            return View(title=f"{name} {self.text}", body=f"password: hunter2 {self.text}")

    return Made


def say(_: ToolContext, text: str) -> ToolResult:
    return ToolResult(ok=True, message=f"said {text}", text=text)


def fail(_: ToolContext, text: str) -> ToolResult:
    return ToolResult(ok=False, message="no", code="odd")


READ = tool("look", say, Access(read=True))
WRITE = tool("touch", say, Access(write=True))
EXEC = tool("exec", say, Access(exec=True))
FAIL = tool("fail", fail, Access(read=True))


def call(number: int, tool_name: str, /, **args: Any) -> ToolCall:
    return ToolCall(f"call{number:05}", tool_name, args)


async def run(
    host: Host, calls: Sequence[ToolCall], *tools: type[Tool], mode: Any = "full", **more: Any
) -> Outcome:
    registry = Registry([READ, WRITE, EXEC, FAIL, AttemptCompletion, CallTool, *tools])
    approver = more.pop("approver", Approver(mode=mode))
    return await run_calls(calls, registry=registry, approver=approver, host=host, **more)


def assert_paired(host: Host, calls: Sequence[ToolCall]) -> None:
    returned = [body.call_id for body in host.of(ToolReturned)]
    assert sorted(returned) == sorted(each.id for each in calls)


async def test_a_call_is_recorded_before_its_effect_and_its_result_after(host: Host) -> None:
    logged: list[str] = []

    def work(ctx: ToolContext, text: str) -> ToolResult:
        logged.extend(type(body).__name__ for body in host.log)
        host.changed["call00001"] = FilesChanged(
            "call00001", (FileChange("a", "modified", diff=f"+key={SECRET}"),)
        )
        return ToolResult(ok=True, message="done\nnow", data={"n": 1}, observed={"a": "b"})

    outcome = await run(
        host, [call(1, "work", text=SECRET)], tool("work", work, Access(write=True))
    )
    assert logged == ["ToolStarted"]
    started, changed, returned = host.log
    assert isinstance(started, ToolStarted)
    assert started in host.durable
    assert (started.name, started.access, started.args) == (
        "work", Access(write=True), {"text": "<REDACTED>"},
    )  # fmt: skip
    assert isinstance(changed, FilesChanged)
    assert changed.changes[0].diff == "+key=<REDACTED>"
    assert outcome.results == (returned,)
    assert isinstance(returned, ToolReturned)
    assert (returned.ok, returned.message, returned.data) == (True, "done now", {"n": 1})
    assert returned.observed == {"a": "b"}
    assert returned.seconds is not None
    assert returned.seconds >= 0
    assert returned in host.durable


async def test_calls_that_only_read_run_side_by_side_and_others_alone(host: Host) -> None:
    running: list[str] = []
    most: dict[str, int] = {}
    gate = asyncio.Event()

    async def work(ctx: ToolContext, text: str) -> ToolResult:
        running.append(text)
        if len(running) == 3:
            gate.set()
        if text.startswith("r"):
            await asyncio.wait_for(gate.wait(), 5)
        most[text] = len(running)
        running.remove(text)
        return ToolResult(ok=True, text=text)

    reader, writer = tool("r", work, Access(read=True)), tool("w", work, Access(write=True))
    names = ["r1", "r2", "r3", "w1", "r4"]
    calls = [call(n, name[0], text=name) for n, name in enumerate(names)]
    outcome = await run(host, calls, reader, writer)
    assert [result.text for result in outcome.results] == names
    assert [body.text for body in host.of(ToolReturned)] == names
    assert max(most["r1"], most["r2"], most["r3"]) == 3
    assert most["w1"] == most["r4"] == 1


async def test_no_more_than_eight_run_at_once(host: Host) -> None:
    running = 0
    most = 0

    async def work(ctx: ToolContext, text: str) -> ToolResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return ToolResult(ok=True)

    calls = [call(n, "r") for n in range(3 * PARALLEL)]
    await run(host, calls, tool("r", work, Access(read=True)))
    assert most == PARALLEL
    assert_paired(host, calls)


async def test_what_a_tool_raises_becomes_its_result(host: Host) -> None:
    def boom(ctx: ToolContext, text: str) -> ToolResult:
        raise ValueError(f"bad {SECRET}")

    def known(ctx: ToolContext, text: str) -> ToolResult:
        raise UsageError("not so", hint="try so", code="odd")

    async def own_cancel(ctx: ToolContext, text: str) -> ToolResult:
        raise asyncio.CancelledError

    tools = [tool(f.__name__, f, Access(read=True)) for f in (boom, known, own_cancel)]
    calls = [call(n, each.spec.name) for n, each in enumerate(tools)]
    first, second, third = (await run(host, calls, *tools)).results
    assert (first.ok, first.code) == (False, "tool_error")
    assert first.message == "The tool failed: ValueError: bad <REDACTED>"
    assert (second.code, second.message, second.text) == ("odd", "not so", "try so")
    assert third.code == "tool_error"
    assert_paired(host, calls)


async def test_a_store_that_fails_ends_the_run(host: Host) -> None:
    def full(ctx: ToolContext, text: str) -> ToolResult:
        raise StoreFull("no space")

    for count in (1, 3):
        with pytest.raises(StoreFull):
            await run(
                host, [call(n, "full") for n in range(count)], tool("full", full, Access(read=True))
            )


async def test_wrong_calls_are_told_what_is_wrong_and_shown_the_right_form(host: Host) -> None:
    calls = [
        call(1, "lok"),
        call(2, "look", txt="a"),
        ToolCall("call00003", "look", {}, error=CallError("truncated", "cut off")),
        call(4, "call_tool", name="look", arguments="{"),
        call(5, "nothing_like_it"),
        call(6, "look", text="fine"),
    ]
    one, two, three, four, five, six = (await run(host, calls)).results
    assert (one.code, one.message) == (
        "unknown_tool",
        "There is no tool named 'lok'. Did you mean look?",
    )
    assert two.code == "invalid_arguments"
    assert two.message == "look: there is no parameter 'txt' (did you mean text?)."
    assert two.text == "the right form of look"
    assert (three.code, three.message, three.text) == (
        "truncated",
        "cut off",
        "the right form of look",
    )
    assert (four.code, four.text) == ("malformed", "the right form of call_tool")
    assert (five.code, five.message) == (
        "unknown_tool",
        "There is no tool named 'nothing_like_it'.",
    )
    assert six.ok
    assert [body.call_id for body in host.of(ToolStarted)] == ["call00006"]
    assert_paired(host, calls)


async def test_call_tool_runs_the_tool_that_it_names(host: Host) -> None:
    calls = [call(1, "call_tool", name="look", arguments='{"text": "a"}')]
    (result,) = (await run(host, calls)).results
    assert (result.name, result.text, result.call_id) == ("look", "a", "call00001")


async def test_a_tool_that_cannot_be_used_now_says_why(host: Host) -> None:
    (result,) = (
        await run(host, [call(1, "look")], unavailable={"look": "its server died."})
    ).results
    assert (result.code, result.message) == (
        "unavailable",
        "look can't be used now: its server died.",
    )


async def test_without_a_user_what_would_ask_is_refused_with_the_flag(host: Host) -> None:
    calls = [call(1, "execute_command", command="npm test"), call(2, "touch"), call(3, "look")]
    outcome = await run(host, calls, ExecuteCommand, mode="ask")
    one, two, three = outcome.results
    assert (one.code, two.code, three.ok) == ("not_allowed", "not_allowed", True)
    assert "--allow 'execute_command(npm test:*)'" in one.message
    assert "--mode auto-edit" in two.message
    assert outcome.refused == 2
    assert len(host.of(Asked)) == 2


async def test_plan_mode_refuses_without_a_question(host: Host) -> None:
    outcome = await run(host, [call(1, "touch")], mode="plan")
    assert (outcome.results[0].code, outcome.refused, host.of(Asked)) == ("not_allowed", 1, [])


async def test_the_user_answers_once_always_or_no_and_why(fake_context: Any) -> None:
    host = Host(fake_context, [("once", ""), ("no", "use the other file")])
    outcome = await run(host, [call(1, "exec", text="a"), call(2, "exec", text="b")], mode="ask")
    one, two = outcome.results
    assert one.ok
    assert (two.code, two.message) == ("refused", "The user refused this call. use the other file")
    assert outcome.refused == 1
    asked = host.of(Asked)[0]
    assert (asked.call_id, asked.options, asked.rule) == ("call00001", ("once", "no"), "")
    assert asked.view == View(title="exec a", body="password: <REDACTED> a")


async def test_always_covers_the_calls_that_follow_in_the_same_reply(fake_context: Any) -> None:
    class Path(Tool, frozen=True):
        """Writes."""

        spec: ClassVar[ToolSpec] = ToolSpec("put", "", Access(write=True))
        path: str

        async def run(self, ctx: ToolContext) -> ToolResult:
            return ToolResult(ok=True)

    host = Host(fake_context, [("always", "")])
    calls = [call(n, "put", path=f"src/{n}") for n in range(3)] + [call(4, "put", path="x")]
    outcome = await run(host, calls, Path, mode="ask")
    assert [result.ok for result in outcome.results] == [True, True, True, False]
    assert [asked.rule for asked in host.of(Asked)] == ["put(/src/**)", "put(/x)"]


async def test_completion_runs_last_and_ends_the_turn(host: Host) -> None:
    calls = [call(1, "attempt_completion", result="All done."), call(2, "look", text="a")]
    outcome = await run(host, calls)
    assert [result.call_id for result in outcome.results] == ["call00001", "call00002"]
    assert [body.call_id for body in host.of(ToolReturned)] == ["call00002", "call00001"]
    assert outcome.ended is outcome.results[0]
    assert outcome.ended.text == "All done."


@pytest.mark.parametrize("other", ["fail", "nothing", "touch"])
async def test_completion_is_refused_when_another_call_failed(host: Host, other: str) -> None:
    calls = [call(1, "attempt_completion", result="x"), call(2, other)]
    outcome = await run(host, calls, mode="ask")
    assert outcome.ended is None
    assert outcome.results[0].code == "completion_refused"
    assert [body.call_id for body in host.of(ToolStarted)] == (
        ["call00002"] if other == "fail" else []
    )


async def test_secrets_leave_every_part_of_a_result(host: Host) -> None:
    def leak(ctx: ToolContext, text: str) -> ToolResult:
        return ToolResult(
            ok=True,
            message=f"m {SECRET}",
            text=f"t {SECRET}",
            view=View(title=f"v {SECRET}", body=SECRET),
            data={"d": [SECRET], "password": "letmein"},
        )

    (result,) = (await run(host, [call(1, "leak")], tool("leak", leak, Access(read=True)))).results
    assert SECRET not in repr(host.log)
    assert "letmein" not in repr(host.log)
    assert (result.message, result.text) == ("m <REDACTED>", "t <REDACTED>")


async def test_a_long_result_is_cut_and_kept_without_half_a_secret(
    host: Host, fake_context: Any
) -> None:
    whole = "\n".join(f"line {n} {SECRET}" for n in range(1000))

    def long(ctx: ToolContext, text: str) -> ToolResult:
        return ToolResult(ok=True, text=whole, truncated="the file goes on")

    (result,) = (await run(host, [call(1, "long")], tool("long", long, Access(read=True)))).results
    clean = whole.replace(SECRET, "<REDACTED>")
    assert len(result.text) < 8_200
    assert result.text.startswith("line 0 <REDACTED>\n")
    assert result.text.endswith("\nline 999 <REDACTED>")
    assert "sk-" not in result.text
    assert result.truncated is not None
    assert result.truncated.startswith("the file goes on; ")
    assert [fake_context.kept[blob].decode() for blob in result.blobs] == [clean]
    assert result.tokens > 1000


async def test_what_a_tool_shows_a_part_of_is_kept_whole_and_the_way_to_it_told(
    host: Host, fake_context: Any
) -> None:
    whole = "\n".join(f"line {n} {SECRET}" for n in range(1, 1001))
    part = f"line 1 {SECRET}\nline 2 {SECRET}\n[… left out]\nline 1000 {SECRET}"

    def long(ctx: ToolContext, text: str) -> ToolResult:
        return ToolResult(ok=True, message="Done.", text=part, whole=whole)

    kind = tool("long", long, Access(read=True))
    (result,) = (await run(host, [call(1, "long")], kind)).results
    assert result.message == "Done."
    host.log.clear()
    (result,) = (await run(host, [call(1, "long")], kind, ReadResult)).results
    assert (
        result.message
        == "Done. Lines left out: read_result with id m2 and start_line 3 gives them."
    )
    assert fake_context.kept[result.whole].decode() == whole.replace(SECRET, "<REDACTED>")
    assert result.blobs == (result.whole,)
    assert result.text == part.replace(SECRET, "<REDACTED>")


async def test_a_digest_that_fails_does_not_lose_the_result(host: Host) -> None:
    class Odd(READ, frozen=True):  # type: ignore[valid-type, misc]
        """Odd."""

        spec: ClassVar[ToolSpec] = ToolSpec("odd", "", Access(read=True))

        @classmethod
        def digest(cls, call: ToolCall, result: ToolResult) -> str:
            raise KeyError("x")

    (result,) = (await run(host, [call(1, "odd", text="a" * 99)], Odd)).results
    assert (result.ok, result.digest) == (True, "(KeyError in its digest)")


async def started(reached: asyncio.Event) -> None:
    await asyncio.wait_for(reached.wait(), 5)


@pytest.mark.parametrize("access", [Access(read=True), Access(write=True)])
async def test_a_cancel_leaves_one_result_for_every_call(host: Host, access: Access) -> None:
    reached = asyncio.Event()

    async def hang(ctx: ToolContext, text: str) -> ToolResult:
        reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    calls = [
        call(1, "look"),
        call(2, "touch"),
        call(3, "hang"),
        call(4, "touch"),
        call(5, "nothing"),
    ]
    task = asyncio.create_task(run(host, calls, tool("hang", hang, access)))
    await started(reached)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert_paired(host, calls)
    codes = {body.call_id: body.code for body in host.of(ToolReturned)}
    assert [codes[each.id] for each in calls] == [None, None, "interrupted", "not_run", "not_run"]


async def test_a_cancel_while_the_user_is_asked_runs_nothing(host: Host) -> None:
    reached = asyncio.Event()

    async def decide(asked: Asked) -> Answered:
        reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    host.decide = decide  # type: ignore[method-assign]
    task = asyncio.create_task(run(host, [call(1, "exec")], mode="ask"))
    await started(reached)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    (result,) = host.of(ToolReturned)
    assert result.code == "not_run"
    assert host.of(ToolStarted) == []


async def test_a_cancel_at_any_moment_leaves_exactly_one_result_a_call(fake_context: Any) -> None:
    names = ["look", "look", "touch", "nothing", "look", "attempt_completion"]
    for moment in range(60):
        host = Host(fake_context)
        calls = [
            call(n, name, **({"result": "x"} if "att" in name else {}))
            for n, name in enumerate(names)
        ]
        task = asyncio.create_task(run(host, calls))
        for _ in range(moment):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert task.done()
        if moment:  # before its first step a task runs nothing at all
            assert_paired(host, calls)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["look", "touch", "fail", "nothing", "attempt_completion", "exec"]),
        max_size=12,
    )
)
def test_results_stand_in_the_order_of_the_calls(names: list[str]) -> None:
    host = Host(SimpleNamespace(workspace=SimpleNamespace(confinement=None, mask=None)))
    calls = [
        call(n, name, **({"result": "x"} if "att" in name else {})) for n, name in enumerate(names)
    ]
    outcome = asyncio.run(run(host, calls, approver=Approver(mode="auto-edit")))
    assert [result.call_id for result in outcome.results] == [each.id for each in calls]
    assert_paired(host, calls)
    assert outcome.refused == names.count("exec")
    failed = {"fail", "nothing", "exec"} & set(names)
    assert (outcome.ended is not None) == ("attempt_completion" in names and not failed)


@given(st.text(alphabet="ab\n", max_size=3000), st.integers(50, 2500))
def test_a_bounded_text_is_head_and_tail_of_the_whole(text: str, cap: int) -> None:
    cut, left_out = bounded(text, cap)
    if len(text) <= cap:
        assert (cut, left_out) == (text, 0)
        return
    head, _, rest = cut.partition("[… ")
    note, _, tail = rest.partition(" left out …]\n")
    assert text.startswith(head.removesuffix("\n"))
    assert text.endswith(tail)
    assert note.startswith(f"{left_out:,} characters")
    assert len(head.removesuffix("\n")) + len(tail) <= cap
    assert len(text) - cap <= left_out
