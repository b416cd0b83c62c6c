"""`croze doctor`: is everything there that croze needs, and what to do where it is not."""

import asyncio
import os
import platform
import re
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterable, Mapping

import click

from croze import __version__
from croze.app.config import Config, load
from croze.app.doctor import examine_sandbox
from croze.app.keys import stored_keys
from croze.app.options import Finding
from croze.app.paths import Paths
from croze.types.errors import ConfigError, CrozeError
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command
from croze.ui.cli.state import State, pass_state
from croze.ui.i18n import _, explain, explain_code, mark

_SIGNS = {"ok": "ok", "warning": "warn", "error": "FAIL"}
_SQLITE = (3, 35, 0)
_KEY_NAMES = re.compile(r"^[A-Z0-9_]+_API_KEY$")


@click.command(
    cls=Command,
    name="doctor",
    help=mark(
        "Check Python, programs, folders, configuration, keys and the conversation store. Nothing is "
        "sent over the network unless you ask for --online. Keys are never shown."
    ),
)
@click.option(
    "--online", is_flag=True, help=mark("Ask the configured model's server for an answer.")
)
@pass_state
def doctor(state: State, online: bool) -> int:
    findings = [*_system(state.env), *_folders(state.env), *_application(state)]
    if online:
        findings.append(_reach(state))
    for finding in findings:
        text, hint = explain_code(finding.code, finding.text, finding.hint, finding.params)
        state.out.line(f"{_SIGNS[finding.level]:<5}{finding.topic}: {text}")
        if hint and finding.level != "ok":
            state.out.line(f"     {hint}")
    return Exit.FAILED if any(f.level == "error" for f in findings) else Exit.DONE


def _system(env: Mapping[str, str]) -> Iterable[Finding]:
    yield _ok("croze", __version__)
    yield _ok("python", f"{platform.python_version()} ({sys.executable})")
    fts = _has_full_text()
    yield Finding(
        level="ok" if sqlite3.sqlite_version_info >= _SQLITE and fts else "error",
        topic="sqlite",
        text=sqlite3.sqlite_version + (" with FTS5" if fts else _(" without FTS5")),
        hint=_("use a Python whose SQLite is at least {version} with FTS5", version="3.35"),
    )
    for name, hint in (
        ("rg", _("ripgrep's wheel is used; searching is slower where it is missing too")),
        ("git", _("install git: diffs and history need it")),
        ("bash", _("install bash: commands run in it")),
    ):
        found = shutil.which(name, path=env.get("PATH"))
        yield _ok(name, found) if found else _bad("warning", name, _("not found on PATH"), hint)


def _has_full_text() -> bool:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


def _folders(env: Mapping[str, str]) -> Iterable[Finding]:
    paths = Paths.of(env)
    for topic, path in (("data", paths.data), ("state", paths.state), ("config", paths.config)):
        nearest = path
        while not nearest.exists() and nearest != nearest.parent:
            nearest = nearest.parent
        if not os.access(nearest, os.W_OK | os.X_OK):
            text = _("{path} can't be written", path=path)
            yield _bad("error", topic, text, _("fix: {fix}", fix=f"chmod u+rwx {nearest}"))
        elif path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            text = _("{path} can be read by other users", path=path)
            yield _bad("warning", topic, text, _("fix: {fix}", fix=f"chmod 700 {path}"))
        else:
            yield _ok(topic, str(path))


def _application(state: State) -> Iterable[Finding]:
    """Configuration, keys and store, as far as they can be opened."""
    try:
        config = load(state.cwd, env=state.env)
    except CrozeError as error:
        yield _bad("error", "config", *explain(error))
        return
    yield from config.notices
    where = config.paths.config_file
    yield _ok("config", str(where) if where.exists() else _("no file, defaults hold"))
    yield from asyncio.run(examine_sandbox(config, state.env))
    yield _keys(config, state.env)
    try:
        yield from asyncio.run(_examine(state))
    except CrozeError as error:
        yield _bad("error", "store", *explain(error))


def _keys(config: Config, env: Mapping[str, str]) -> Finding:
    """Which keys there are: names only."""
    try:
        stored = stored_keys(config.paths.keys_file)
    except ConfigError as error:
        return _bad("error", "keys", *explain(error))
    names = sorted({n for n, v in env.items() if _KEY_NAMES.match(n) and v.strip()} | set(stored))
    if names:
        return _ok("keys", _("set: {names}", names=", ".join(names)))
    return _ok(
        "keys", _("none set, neither in the environment nor in {path}", path=config.paths.keys_file)
    )


async def _examine(state: State) -> "list[Finding]":
    app = state.opener(cwd=state.cwd, overrides={}, env=state.env)
    try:
        return await app.doctor()
    finally:
        await app.aclose()


def _reach(state: State) -> Finding:
    """One tiny request to the configured model."""
    from croze.app.options import RunOptions

    async def ask() -> Finding:
        app = state.opener(cwd=state.cwd, overrides={}, env=state.env)
        try:
            options = RunOptions(headless=True, mode="plan", max_turns=1, name="croze doctor")
            session = await app.session(options)
            try:
                stopped = await session.submit("Answer with the single word: ok")
            finally:
                await session.close()
                await app.conversations.delete(session.id)
            if stopped.reason in ("done", "steps"):
                return _ok("model", _("{model} answers", model=session.model.name))
            return _bad("error", "model", f"{session.model.name}: {stopped.text}", "")
        except CrozeError as error:
            return _bad("error", "model", *explain(error))
        finally:
            await app.aclose()

    return asyncio.run(ask())


def _ok(topic: str, text: str) -> Finding:
    return Finding(level="ok", topic=topic, text=text)


def _bad(level: str, topic: str, text: str, hint: str) -> Finding:
    return Finding(
        level="error" if level == "error" else "warning", topic=topic, text=text, hint=hint
    )
