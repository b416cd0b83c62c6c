"""The todo list: the whole of it stands in the log, each change is one event."""

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.digest import first
from croze.types.event import TodoItem, TodoSet
from croze.types.parts import ToolCall
from croze.types.tool import Access, ToolResult, View

Status = Literal["pending", "in_progress", "completed"]
MAX_TASKS = 200

_MARKS: dict[Status, str] = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
_BY_MARK: dict[str, Status] = {"x": "completed", ">": "in_progress", "~": "in_progress"}
_LINE = re.compile(
    r"\s*(?:[-*•]\s+)?(?:\d{1,3}[.)]\s+)?(?:\[([ xX>~])\]\s*)?(?:\d{1,3}[.)]\s+)?(.*\S)"
)


class TodoRead(Tool, frozen=True):
    """Read the todo list."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="todo_read", summary="read the todo list", access=Access()
    )

    async def run(self, ctx: ToolContext) -> ToolResult:
        return _recap(ctx.todo, "")

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return first(result, result.text.split("\n") if result.text else [], MAX_TASKS)


class TodoWrite(Tool, frozen=True):
    """Plan work of three or more steps and keep the list true: mark a task in progress before you
    begin it, completed as soon as it is done."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="todo_write",
        summary="plan the work and keep track of it",
        access=Access(),
        core=True,
    )

    action: Annotated[
        Literal["create", "add_task", "update", "mark_progress", "mark_completed"],
        Meta(description="create replaces the list"),
    ]
    content: Annotated[
        str | tuple[str, ...], Meta(description="tasks, one a line; update: the new text")
    ] = ""
    task_id: Annotated[int, Meta(ge=1, description="for update and mark_*")] | None = None
    status: Status | None = None
    notes: str | None = None

    async def run(self, ctx: ToolContext) -> ToolResult:
        before = ctx.todo
        after = self._changed(before)
        if isinstance(after, ToolResult):
            return after
        if after != before:
            await ctx.emit(TodoSet(items=after))
        done = {"create": "Created.", "add_task": "Added."}.get(self.action, "Updated.")
        return _recap(after, done if after != before else "Nothing changed.")

    @classmethod
    def digest(cls, call: ToolCall, result: ToolResult) -> str:
        return first(result, result.text.split("\n") if result.text else [], MAX_TASKS)

    def _changed(self, items: tuple[TodoItem, ...]) -> tuple[TodoItem, ...] | ToolResult:
        if self.action in ("create", "add_task"):
            kept = () if self.action == "create" else items
            tasks = self._tasks(first=max((item.id for item in kept), default=0) + 1)
            if not tasks:
                return _wrong(f"{self.action} needs the tasks in content, one a line.")
            if len(kept) + len(tasks) > MAX_TASKS:
                return _wrong(f"A todo list holds at most {MAX_TASKS} tasks.")
            return (*kept, *tasks)
        if self.task_id is None:
            return _wrong(f"{self.action} needs task_id.")
        if not any(item.id == self.task_id for item in items):
            known = ", ".join(str(item.id) for item in items)
            hint = f"The list has: {known}." if known else "The list is empty: create it first."
            return _wrong(f"There is no task {self.task_id}. {hint}", code="unknown_task")
        return tuple(self._updated(item) if item.id == self.task_id else item for item in items)

    def _updated(self, item: TodoItem) -> TodoItem:
        status = {"mark_progress": "in_progress", "mark_completed": "completed"}.get(
            self.action, self.status or item.status
        )
        text = self.content if isinstance(self.content, str) else "\n".join(self.content)
        return msgspec.structs.replace(
            item,
            status=status,
            text=" ".join(text.split()) or item.text,
            note=item.note if self.notes is None else " ".join(self.notes.split()),
        )

    def _tasks(self, first: int) -> list[TodoItem]:
        lines = _lines(self.content) if isinstance(self.content, str) else self.content
        tasks: list[TodoItem] = []
        for line in lines:
            found = _LINE.match(" ".join(line.split()))
            if not found:
                continue
            status = _BY_MARK.get((found[1] or "").lower(), self.status or "pending")
            note = " ".join((self.notes or "").split())
            tasks.append(TodoItem(id=first + len(tasks), text=found[2], status=status, note=note))
        return tasks


def _lines(content: str) -> Sequence[str]:
    if content.lstrip().startswith('["'):
        try:
            return msgspec.json.decode(content, type=tuple[str, ...])
        except msgspec.MsgspecError:
            pass  # then it is a line that begins so
    return content.splitlines()


def _recap(items: Sequence[TodoItem], done: str) -> ToolResult:
    """The list as text: one line a task, with its mark, number and note."""
    rows = [
        f"{_MARKS[item.status]} {item.id}. {item.text}" + (f" ({item.note})" if item.note else "")
        for item in items
    ]
    completed = sum(item.status == "completed" for item in items)
    count = f"{completed} of {len(items)} tasks completed." if items else "The todo list is empty."
    text = "\n".join(rows)
    return ToolResult(
        ok=True,
        message=f"{done} {count}".strip(),
        text=text,
        view=View(title=f"Todo: {completed}/{len(items)}", body=text, kind="list"),
        data={"items": msgspec.to_builtins(items)},
    )


def _wrong(message: str, code: str = "invalid_arguments") -> ToolResult:
    return ToolResult(ok=False, message=message, code=code)
