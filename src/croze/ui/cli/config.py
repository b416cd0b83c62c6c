"""`croze config`: show settings and where they come from, change them, open the file."""

import os
import shlex
from typing import Any

import click

from croze.app import config as configuration
from croze.app.config import Config
from croze.app.config_file import TEMPLATE, check_file, remove_value, set_value, write_checked
from croze.app.keypath import field_of, join, split
from croze.app.paths import Paths
from croze.types.errors import ConfigError, UsageError
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command, LazyGroup, Pick
from croze.ui.cli.state import State, pass_state
from croze.ui.i18n import _, mark

DESCRIPTIONS: dict[str, str] = {
    "model.model": mark("Main model, as provider:model; several are tried in turn"),
    "model.code": mark("Model that writes code"),
    "model.chat": mark("Model for plain chat"),
    "model.plan": mark("Model that plans"),
    "model.design": mark("Model for design work"),
    "model.edit": mark("Model that merges edit sketches"),
    "model.summarize": mark("Model that writes summaries"),
    "model.index": mark("Model that describes files for the index"),
    "model.embed": mark("Model that makes embeddings"),
    "model.vision": mark("Model that reads images"),
    "model.commit": mark("Model that writes commit messages"),
    "model.dialect": mark("How the model writes tool calls"),
    "model.max_retries": mark("Tries after a failed request; -1 is endless"),
    "model.max_continuations": mark("How often a reply cut by length is continued"),
    "model.temperature": mark("Sampling temperature; unset is the provider's own"),
    "store.storage_path": mark(
        "Folder of the session log; empty is one folder for each project in the data folder"
    ),
    "store.max_cache_size": mark("Conversations kept in memory; ten times as many messages"),
    "store.cache_ttl": mark("Seconds that an unused conversation stays in memory"),
    "store.lock_timeout": mark("Seconds that a writer waits for another"),
    "store.backup_enabled": mark("Back up the log when a session opens"),
    "store.backup_interval": mark("Seconds between backups"),
    "store.max_backups": mark("Backups kept; the oldest go first"),
    "store.enable_compression": mark("Compress large stored texts"),
    "store.journal_quota": mark("Megabytes kept of changed files for undo, per project"),
    "store.log_level": mark(
        "What goes into croze.log in the state folder: codes and durations, no text"
    ),
    "store.default_namespace": mark("Namespace where none is named"),
    "permissions.mode": mark("What runs without a question"),
    "permissions.allow": mark("Rules that allow calls, such as execute_command(make test)"),
    "permissions.ask": mark("Rules that want a question each time; they win over what is allowed"),
    "permissions.deny": mark("Rules that forbid calls; they win over all others"),
    "permissions.sandbox": mark("Where commands may write; unset is the best that the system has"),
    "permissions.network": mark("Network for commands in the sandbox"),
    "limits.max_turns": mark("Model requests in a turn"),
    "limits.max_cost": mark("US dollars in a turn"),
    "limits.max_time": mark("Seconds in a turn"),
    "context.policy": mark("When and how the context is made smaller"),
    "context.zone": mark(
        "Above what size: 80k, 1.5M, a number of tokens, a share such as 0.5, or auto"
    ),
    "context.low": mark("Share of that size that a batch goes down to"),
    "context.gain": mark("Least share of that size that a batch must free"),
    "workspace.tree": mark("Tell the model the project's folders when a session opens"),
    "workspace.tree_depth": mark("Levels of folders in it; unset suits the project's size"),
    "workspace.tree_characters": mark("Longest tree in characters; unset is 3,000"),
    "teams.parallel": mark("How many sub-agents work at a time"),
    "teams.depth": mark("How deep sub-agents call others"),
    "teams.replans": mark("How often a turn is planned again because tasks failed"),
    "knowledge.active_context": mark("Notes on folders: told, written after tasks, or both"),
    "knowledge.library_tokens": mark(
        "Tokens of added libraries' documentation that are told at the opening"
    ),
    "knowledge.library_repository": mark(
        "Where documentation of libraries is fetched from, by git"
    ),
    "ui.language": mark("Language of messages"),
    "ui.color": mark("When to use colours"),
    "plugins.tools": mark("Installed tool plugins to load, by name"),
    "plugins.hooks": mark("Installed hook plugins to load, by name"),
    "plugins.claude_hooks": mark("Run the hooks in Claude Code's settings, too"),
    "models.*.window": mark("Context window in tokens"),
    "models.*.max_output": mark("Longest reply in tokens"),
    "models.*.input_price": mark("Dollars a million input tokens"),
    "models.*.output_price": mark("Dollars a million output tokens"),
    "models.*.cached_price": mark("Dollars a million cached input tokens"),
    "models.*.cache_write_price": mark("Dollars a million tokens written to the cache"),
    "models.*.tools": mark("The model can call functions"),
    "models.*.vision": mark("The model can read images"),
    "models.*.reasoning": mark("The model thinks before it answers"),
    "models.*.prefill": mark("The server lets a reply be continued from its start"),
    "models.*.mid_system": mark("The server takes system messages amid the conversation"),
    "providers.*.base_url": mark("Address of the server's API"),
    "providers.*.api_key_env": mark("Environment variable that holds the key"),
    "providers.*.wire": mark("Protocol that the server speaks"),
    "groups.*.members": mark("Agents of the group"),
    "groups.*.description": mark("What the group is for"),
    "groups.*.max_messages": mark("Messages after which one of its talks is ended"),
    "groups.*.max_cost": mark("Dollars after which one of its talks is ended"),
}
"""What each setting is for; the tables' keys stand under `models.*`, `providers.*` and `groups.*`."""


@click.group(
    cls=LazyGroup,
    name="config",
    help=mark(
        "Show and change settings. Later sources win: built-in defaults, your config.toml, the "
        "project's .croze/config.toml (only where you trust it), environment variables such as "
        "CROZE_MODEL__MODEL, options on the command line."
    ),
)
def config() -> None:
    pass


def _load(state: State) -> Config:
    loaded = configuration.load(state.cwd, env=state.env, trust=state.trust)
    state.tell(loaded.notices)
    return loaded


def _shown(value: Any) -> str:
    """A value as one would write it on the command line."""
    match value:
        case None | ():
            return ""
        case bool():
            return "true" if value else "false"
        case tuple():
            return ", ".join(map(str, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)


@config.command(
    "list", cls=Command, help=mark("Show every setting with its value and where that comes from.")
)
@click.option("--changed", is_flag=True, help=mark("Only settings that are not at their default."))
@click.option("--describe", is_flag=True, help=mark("Say what each setting is for and may hold."))
@click.option(
    "--format", "form", type=Pick(("text", "json")), default="text", help=mark("How to print.")
)
@pass_state
def list_settings(state: State, changed: bool, describe: bool, form: str) -> int:
    loaded = _load(state)
    found = configuration.entries(loaded)
    if changed:
        found = {key: value for key, value in found.items() if loaded.source(key) != "default"}
    if form == "json":
        import msgspec

        rows = [{"key": k, "value": v, "source": loaded.source(k)} for k, v in found.items()]
        state.out.json(msgspec.json.encode(rows) + b"\n")
        return Exit.DONE
    if describe:
        for key in found:
            parts = split(key)
            allowed = field_of(parts, "").allowed
            state.out.line(f"{key}  [{allowed}]")
            state.out.line(f"    {_(DESCRIPTIONS[description_key(parts)])}")
    elif found:
        state.out.table([(key, _shown(found[key]), _source(loaded, key)) for key in found])
    return Exit.DONE


def description_key(parts: tuple[str, ...]) -> str:
    return join(parts) if len(parts) == 2 else f"{parts[0]}.*.{parts[2]}"


def _source(loaded: Config, key: str) -> str:
    names = {
        "default": _("default"),
        "user": _("your config.toml"),
        "project": _("the project's config.toml"),
        "environment": _("environment"),
        "argument": _("command line"),
    }
    return names[loaded.source(key)]


@config.command("get", cls=Command, help=mark("Print one setting's value."))
@click.argument("key")
@pass_state
def get(state: State, key: str) -> int:
    parts = split(key)
    field_of(parts, _("the command line"))
    found = configuration.entries(_load(state))
    state.out.line(_shown(found.get(join(parts))))
    return Exit.DONE


@config.command(
    "set",
    cls=Command,
    help=mark(
        "Change one setting in your config.toml. Comments stay; a wrong value is refused and nothing is "
        "written. An empty value of an optional setting removes it. Lists are separated by commas."
    ),
)
@click.argument("key")
@click.argument("value")
@pass_state
def set_setting(state: State, key: str, value: str) -> int:
    path = Paths.of(state.env).config_file
    written = set_value(path, key, value)
    name = join(split(key))
    state.out.note(_("{key} = {value} in {path}", key=name, value=_shown(written), path=path))
    present = configuration.load(state.cwd, env=state.env)
    if present.source(name) not in ("user", "default"):
        state.out.note(
            _("{source} sets {key} too and wins", source=_source(present, name), key=name)
        )
    return Exit.DONE


@config.command(
    "unset", cls=Command, help=mark("Take one setting out of your config.toml; its default holds.")
)
@click.argument("key")
@pass_state
def unset(state: State, key: str) -> int:
    path = Paths.of(state.env).config_file
    name = join(split(key))
    if remove_value(path, key):
        state.out.note(_("{key} is no longer set in {path}", key=name, path=path))
    else:
        state.out.note(_("{key} was not set in {path}", key=name, path=path))
    return Exit.DONE


@config.command(
    "edit",
    cls=Command,
    help=mark("Open your config.toml in $VISUAL or $EDITOR and check it after."),
)
@pass_state
def edit(state: State) -> int:
    path = Paths.of(state.env).config_file
    if not path.exists():
        write_checked(path, TEMPLATE.encode())
    run_editor(state, str(path))
    count = check_file(path)
    state.out.note(_("{path} is fine: {count} settings", path=path, count=count))
    return Exit.DONE


def run_editor(state: State, path: str) -> None:
    """Run the user's editor and wait for it."""
    editor = state.env.get("VISUAL") or state.env.get("EDITOR") or "vi"
    try:
        words = shlex.split(editor) or ["vi"]
        child = os.posix_spawnp(words[0], [*words, path], dict(state.env))
    except (OSError, ValueError) as error:
        raise UsageError(
            _("the editor {editor} can't be started: {reason}", editor=editor, reason=error),
            hint=_("set EDITOR, or change {path} by hand", path=path),
            code="no_editor",
        ) from error
    _pid, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        raise ConfigError(
            _("the editor {editor} ended with {code}", editor=editor, code=code),
            hint=_("look at {path}", path=path),
            code="editor_failed",
        )
