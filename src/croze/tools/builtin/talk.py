"""Speaking with the user: a question, the end of the task, the answer to a plan."""

from typing import Annotated, ClassVar

from msgspec import Meta

from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolResult, View

NO_USER = "No user is present: decide yourself and go on."


class AskFollowupQuestion(Tool, frozen=True):
    """Ask the user one question, when the task can't go on without an answer that the tools don't
    give. Where no user is present you are told to decide yourself."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="ask_followup_question",
        summary="ask the user a question",
        access=Access(),
        core=True,
    )

    question: Annotated[str, Meta(min_length=1)]
    options: Annotated[tuple[str, ...], Meta(description="2-5 answers to choose from")] = ()

    async def run(self, ctx: ToolContext) -> ToolResult:
        answer = await ctx.ask(self.question, self.options)
        if answer is None:
            return ToolResult(ok=True, message=NO_USER, data={"answer": None})
        return ToolResult(
            ok=True,
            message="The user answered.",
            text=answer,
            view=View(title=f"Answer: {answer}"),
            data={"answer": answer},
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return f"Question: {call.args.get('question', '')}\nAnswer: {result.text or result.message}"


class AttemptCompletion(Tool, frozen=True):
    """End the task with its result, once all calls have succeeded and the work is checked. The result
    stands for itself: no question, no offer of more."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="attempt_completion",
        summary="end the task with its result",
        access=Access(),
        core=True,
        ends_turn=True,
    )

    result: Annotated[str, Meta(min_length=1)]
    command: Annotated[str, Meta(description="shows the result; the user may run it")] | None = None

    async def run(self, ctx: ToolContext) -> ToolResult:
        return ToolResult(
            ok=True,
            message="The task is done.",
            text=self.result,
            view=View(title="Done", body=self.result),
            data={"result": self.result, "command": self.command},
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return result.message


class PlanModeRespond(Tool, frozen=True):
    """In plan mode: give the user your plan or your answer and wait for a reply. Explore with the
    reading tools first."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="plan_mode_respond",
        summary="in plan mode: give the user the plan and wait",
        access=Access(),
        ends_turn=True,
    )

    response: Annotated[str, Meta(min_length=1, description="the plan or answer, in Markdown")]
    options: Annotated[tuple[str, ...], Meta(description="answers to choose from")] = ()

    async def run(self, ctx: ToolContext) -> ToolResult:
        return ToolResult(
            ok=True,
            message="The user has the plan.",
            text=self.response,
            view=View(title="Plan", body=self.response),
            data={"response": self.response, "options": list(self.options)},
        )

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return result.message
