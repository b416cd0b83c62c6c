"""The todo list: what each action makes of it, as one event and a recap."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.tools.builtin.todo import MAX_TASKS, TodoRead, TodoWrite
from croze.tools.registry import builtin
from croze.types.event import TodoItem, TodoSet
from croze.types.parts import ToolCall


async def write(context: Any, **args: Any) -> Any:
    """A call as the runner makes it; the context's list follows the log, as a session's does."""
    kind = builtin().get("todo_write")
    assert kind is not None
    before = len(context.events)
    result = await kind.bind(args).run(context)
    for event in context.events[before:]:
        assert isinstance(event, TodoSet)
        context.todo = event.items
    return result


async def test_a_list_is_made_worked_through_and_read(fake_context: Any) -> None:
    result = await write(fake_context, action="create", content="- Read\n2. Fix it\n\n[ ] Test")
    assert result.message == "Created. 0 of 3 tasks completed."
    assert result.text == "[ ] 1. Read\n[ ] 2. Fix it\n[ ] 3. Test"
    await write(fake_context, action="mark_completed", task_id="1")
    await write(fake_context, action="mark_progress", task_id=2, notes="half\nway")
    await write(fake_context, action="add_task", content="Report", status="in_progress")
    result = await write(
        fake_context, action="update", task_id=3, content="Test all", status="pending"
    )
    assert result.text == ("[x] 1. Read\n[>] 2. Fix it (half way)\n[ ] 3. Test all\n[>] 4. Report")
    assert result.message == "Updated. 1 of 4 tasks completed."
    assert result.data["items"][1] == {
        "id": 2, "text": "Fix it", "status": "in_progress", "note": "half way",
    }  # fmt: skip
    assert len(fake_context.events) == 5
    read = await TodoRead().run(fake_context)
    assert (read.text, read.message) == (result.text, "1 of 4 tasks completed.")
    call = ToolCall("123456789", "todo_write")
    assert TodoWrite.digest(call, result) == f"{result.message}\n{result.text}"


@pytest.mark.parametrize("content", ['["a, b", "c"]', "a, b\nc", ["a, b", "c"]])
async def test_tasks_may_be_text_or_a_list(fake_context: Any, content: Any) -> None:
    await write(fake_context, action="create", content=content)
    assert [item.text for item in fake_context.todo] == ["a, b", "c"]


async def test_a_recap_can_be_given_back_as_the_list(fake_context: Any) -> None:
    first = await write(fake_context, action="create", content="[x] a\n[>] b\n[ ] c")
    again = await write(fake_context, action="create", content=first.text)
    assert again.text == first.text == "[x] 1. a\n[>] 2. b\n[ ] 3. c"
    assert again.message.startswith("Nothing changed.")
    assert len(fake_context.events) == 1


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"action": "create"}, "needs the tasks"),
        ({"action": "add_task", "content": " \n "}, "needs the tasks"),
        ({"action": "create", "content": "a\n" * (MAX_TASKS + 1)}, "at most 200"),
        ({"action": "update", "content": "x"}, "needs task_id"),
        ({"action": "mark_completed", "task_id": 7}, "There is no task 7. The list has: 1."),
    ],
)
async def test_what_is_missing_is_said_and_nothing_is_changed(
    fake_context: Any, args: dict[str, Any], says: str
) -> None:
    fake_context.todo = (TodoItem(id=1, text="a"),)
    result = await write(fake_context, **args)
    assert not result.ok
    assert says in result.message
    assert fake_context.events == []


async def test_an_empty_list_says_so(fake_context: Any) -> None:
    assert (await TodoRead().run(fake_context)).message == "The todo list is empty."
    result = await write(fake_context, action="mark_progress", task_id=1)
    assert "create it first" in result.message


async def test_ids_stay_unique_after_additions(fake_context: Any) -> None:
    fake_context.todo = (TodoItem(id=5, text="a"),)
    await write(fake_context, action="add_task", content="b\nc")
    assert [item.id for item in fake_context.todo] == [5, 6, 7]


@given(st.text(max_size=80))
def test_any_content_gives_tasks_of_one_line(content: str) -> None:
    tasks = TodoWrite(action="create", content=content)._tasks(first=1)
    assert [task.id for task in tasks] == list(range(1, len(tasks) + 1))
    for task in tasks:
        assert task.text == " ".join(task.text.split())
        assert task.text
    assert msgspec.json.decode(msgspec.json.encode(tasks), type=list[TodoItem]) == tasks
