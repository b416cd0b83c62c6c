"""What a tool's result is by its name: the one table that tells a read from a listing or a log.

Only policies, summaries and receipts look here; tools aren't imported by the context. Names of other agents
stand beside ours, so that their sessions can be told by the same rules.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

ToolKind = Literal["read", "list", "search", "shell", "edit", "todo", "web", "talk", "other"]

_NAMES: Mapping[ToolKind, str] = MappingProxyType(
    {
        "read": "read_file read view open cat afs_read readfile open_file view_file read_result"
        " load_extra_document extract_to_text ac_mod_read read_multiple_files notebookread",
        "list": "list_files ls find_files glob list_dir afs_list repo_map ac_mod_list list_directory"
        " list_code_definition_names find find_file list directory_tree",
        "search": "search_files grep grep_search codebase_search use_rag_tool rg ripgrep search_dir"
        " search_file search code_search",
        "shell": "execute_command bash shell run_command terminal execute run exec cmd local_shell"
        " session_start session_interactive session_stop background_task run_terminal_cmd bashoutput"
        " execute_bash run_shell_command shell_command powershell",
        "edit": "write_to_file replace_in_file edit_file insert_in_file remove_lines replace_lines"
        " delete_file move_file write edit multiedit write_file apply_patch create_file str_replace"
        " str_replace_editor str_replace_based_edit_tool notebookedit ac_mod_write create insert"
        " search_replace",
        "todo": "todo_read todo_write todoread todowrite update_plan",
        "web": "web_search web_crawl websearch webfetch fetch browser",
        "talk": "ask_followup_question attempt_completion plan_mode_respond finish submit think"
        " exitplanmode",
    }
)
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_PATHS = (
    "path",
    "file_path",
    "target_file",
    "filename",
    "relative_workspace_path",
    "notebook_path",
)
_COMMANDS = ("command", "cmd", "script", "input")


def kind_of(name: str, args: Mapping[str, Any] | None = None) -> ToolKind:
    """The kind of a tool's results. Where one tool does several things its arguments decide."""
    kind = _KINDS.get(name.lower().replace("-", "_"), "other")
    if kind == "edit" and args and args.get("command") == "view":
        return "read"
    return kind


def unwrapped(name: str, args: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The tool and the arguments that are meant, where a call went through `call_tool`."""
    inner = args.get("name")
    if name != "call_tool" or not isinstance(inner, str):
        return name, args
    given = args.get("arguments")
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except msgspec.DecodeError:
            given = {}
    return inner, given if isinstance(given, dict) else {}


def path_of(args: Mapping[str, Any]) -> str:
    """The path that a call names, empty where it names none."""
    return _first(args, _PATHS)


def command_of(args: Mapping[str, Any]) -> str:
    """The command that a call of a shell runs."""
    return _first(args, _COMMANDS)


def _first(args: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = args.get(name)
        if isinstance(value, list):
            value = " ".join(str(word) for word in value)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""
