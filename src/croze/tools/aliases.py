"""The one table of other names for tools and their parameters: accepted, never advertised.

They come from other agents' prompts and files, which models have learned; the same names are used in
permission rules, hooks and `allowed-tools`. Names: afs_* and write_file of older frameworks, LS to
WebSearch of Claude Code, grep_search to finish of Cursor.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

TOOLS: Mapping[str, str] = MappingProxyType(
    {
        "afs_list": "list_files",
        "afs_read": "read_file",
        "write_file": "write_to_file",
        "LS": "list_files",
        "Glob": "find_files",
        "Grep": "search_files",
        "Read": "read_file",
        "Edit": "replace_in_file",
        "MultiEdit": "replace_in_file",
        "Write": "write_to_file",
        "Bash": "execute_command",
        "BashOutput": "background_task",
        "KillShell": "background_task",
        "KillBash": "background_task",
        "TodoRead": "todo_read",
        "TodoWrite": "todo_write",
        "WebFetch": "web_crawl",
        "WebSearch": "web_search",
        "Task": "run_named_subagents",
        "grep_search": "search_files",
        "list_dir": "list_files",
        "finish": "attempt_completion",
        "access_mcp_resource": "read_mcp_resource",
        "ReadMcpResourceTool": "read_mcp_resource",
        "ListMcpResourcesTool": "read_mcp_resource",
        "Skill": "load_skill",
        "activate_skill": "load_skill",
    }
)
"""Another name of a tool → its tag."""

_PATH = {"target_file": "path", "relative_workspace_path": "path", "file_path": "path"}
_IGNORED = {"explanation": "", "description": ""}

PARAMS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "read_file": {**_PATH, **_IGNORED, "offset": "start_line"},
        "write_to_file": {**_PATH, **_IGNORED, "contents": "content"},
        "replace_in_file": {**_PATH, **_IGNORED},
        "edit_file": {"path": "target_file", "file_path": "target_file", **_IGNORED},
        "insert_in_file": {**_PATH, **_IGNORED},
        "remove_lines": {**_PATH, **_IGNORED},
        "replace_lines": {**_PATH, **_IGNORED, "new_content": "content"},
        "delete_file": {**_PATH, **_IGNORED},
        "list_files": {**_PATH, **_IGNORED},
        "find_files": {**_IGNORED, "query": "pattern", "relative_workspace_path": "path"},
        "search_files": {
            **_PATH,
            **_IGNORED,
            "query": "regex",
            "pattern": "regex",
            "include_pattern": "include",
            "exclude_pattern": "exclude",
            "file_pattern": "include",
            "glob": "include",
            "output_mode": "",
            "head_limit": "",
            "-n": "",
            "-C": "context",
        },
        "execute_command": {**_IGNORED, "cmd": "command", "run_in_background": "background"},
        "background_task": {**_IGNORED, "filter": ""},
        "attempt_completion": {**_IGNORED, "response": "result", "answer": "result"},
        "todo_write": {"task": "content", "tasks": "content", "id": "task_id", "note": "notes"},
        "describe_tools": {"tools": "names", "name": "names"},
        "web_crawl": {**_IGNORED, "prompt": "", "link": "url"},
        "web_search": {**_IGNORED, "q": "query", "max_results": "limit", "num_results": "limit"},
        "extract_to_text": _IGNORED,
        "call_tool": {"tool_name": "name", "args": "arguments"},
        "use_mcp_tool": {
            "server": "server_name",
            "tool": "tool_name",
            "name": "tool_name",
            "args": "arguments",
        },
        "read_mcp_resource": {"server": "server_name"},
        "get_mcp_prompt": {"server": "server_name", "name": "prompt_name", "args": "arguments"},
    }
)
"""A tool's tag → another name of a parameter → its name; empty where it is taken and ignored."""

OTHER_FORMS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "read_file": frozenset({"limit"}),
        "background_task": frozenset({"bash_id", "shell_id"}),
        "replace_in_file": frozenset({"old_string", "new_string", "replace_all", "edits"}),
        "search_files": frozenset({"-i"}),
        "todo_write": frozenset({"todos"}),
        "run_named_subagents": frozenset({"prompt", "subagent_type", "description"}),
    }
)
"""Parameters that `other_form` understands: several of them make one of ours."""

_READS = (
    "read_file",
    "search_files",
    "find_files",
    "list_files",
    "list_code_definition_names",
    "repo_map",
)
_EDITS = (
    "write_to_file",
    "replace_in_file",
    "edit_file",
    "insert_in_file",
    "remove_lines",
    "replace_lines",
    "delete_file",
    "move_file",
)
RULES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"Read": _READS, "Edit": _EDITS, "MultiEdit": _EDITS, "Write": _EDITS}
)
"""Names that in a permission rule stand for a whole kind of tools."""

_TASKS = {"bash_id": "monitor", "shell_id": "kill"}  # what BashOutput and KillShell name it
_MARKS = {"completed": "[x]", "in_progress": "[>]"}
_LONGEST_SECONDS = 3600


class OtherFormError(ValueError):
    """A call in another agent's form that has no counterpart here; the text is for the model."""


def rule_tools(name: str, *, forbidding: bool = False) -> tuple[str, ...]:
    """The tags that a name in a permission rule stands for. One that forbids, or wants a question, also
    stops what reads one file and writes another."""
    tools = RULES.get(name) or (TOOLS.get(name, name),)
    return (*tools, "extract_to_text") if forbidding and name in RULES else tools


def other_form(tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with another agent's combinations of them put into ours.

    Raises `OtherFormError` where ours can't say the same.
    """
    out = dict(args)
    if tool == "replace_in_file" and "diff" not in out:
        _blocks(out)
    elif tool == "read_file" and "limit" in out:
        start, count = _number(out.get("start_line", 1)), _number(out.pop("limit"))
        if start is not None and count is not None:
            out.setdefault("end_line", max(start, 1) + max(count, 1) - 1)
    elif tool == "search_files" and "-i" in out:
        out["case_sensitive"] = str(out.pop("-i")).strip().lower() not in ("true", "1")
    elif tool == "execute_command":
        timeout = _number(out.get("timeout"))
        if timeout is not None and timeout > _LONGEST_SECONDS:  # Bash takes milliseconds
            out["timeout"] = max(1, timeout // 1000)
    elif tool == "background_task":
        for name in _TASKS.keys() & out.keys():
            out.setdefault("task_id", out.pop(name))
            out.setdefault("action", _TASKS[name])
    elif tool == "run_named_subagents" and "subagents" not in out and "prompt" in out:
        order = {"name": out.pop("subagent_type", "") or "general", "task": out.pop("prompt")}
        order["label"] = out.pop("description", "")
        out["subagents"] = msgspec.json.encode({"subagents": [order]}).decode()
    elif tool == "todo_write" and "todos" in out:
        out["content"] = _tasks(out.pop("todos"))
        out.setdefault("action", "create")
    return out


def _blocks(args: dict[str, Any]) -> None:
    if "edits" in args:
        edits = _decoded(args.pop("edits"))
    elif "old_string" in args or "new_string" in args:
        names = ("old_string", "new_string", "replace_all")
        edits = [{name: args.pop(name) for name in names if name in args}]
    else:
        return
    if not isinstance(edits, list) or not all(isinstance(edit, dict) for edit in edits):
        raise OtherFormError("edits must be a list of objects with old_string and new_string")
    blocks = []
    for edit in edits:
        if str(edit.get("replace_all", False)).lower() == "true":
            raise OtherFormError("replace_all is not known: give one SEARCH/REPLACE block a place")
        old, new = str(edit.get("old_string", "")), str(edit.get("new_string", ""))
        parts = ["<<<<<<< SEARCH", old, "=======", new, ">>>>>>> REPLACE"]
        blocks.append("\n".join(part for at, part in enumerate(parts) if part or at not in (1, 3)))
    args["diff"] = "\n".join(blocks)


def _tasks(todos: Any) -> str:
    todos = _decoded(todos)
    if not isinstance(todos, list):
        return str(todos)
    lines = []
    for todo in todos:
        if isinstance(todo, dict):
            mark = _MARKS.get(str(todo.get("status")), "[ ]")
            lines.append(f"{mark} {todo.get('content', todo.get('text', ''))}")
        else:
            lines.append(str(todo))
    return "\n".join(lines)


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def _number(value: Any) -> int | None:
    try:
        return int(str(value).strip())
    except ValueError:
        return None
