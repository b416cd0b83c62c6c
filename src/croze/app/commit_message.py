"""The message of a commit: by the `commit` model where one is configured and answers, else plain."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from croze.agent.aside import Record, ask_aside
from croze.app.models import choose_model, environment_with_keys, open_catalog, open_model
from croze.text.redact import redact
from croze.types.errors import CrozeError
from croze.types.tool import FileChange

if TYPE_CHECKING:
    from croze.app.app import App

SUBJECT = 72
"""Characters of a message's first line."""

LIMIT = 45.0
"""Seconds that the model has."""

MOST_DIFF = 24_000
MOST_FILES = 40

_SYSTEM = """\
You write the message of a git commit. The first line is a summary in the imperative mood, at most 72 \
characters, without a full stop. Where the reasons are not plain from it, a blank line follows, then at \
most five short lines that say why. Answer with the message alone: no quotes, no code fence."""


@dataclass(frozen=True, slots=True)
class Written:
    """The model's message, or why there is none."""

    text: str
    problem: str = ""


def plain_message(titles: Sequence[str], changes: Sequence[FileChange]) -> str:
    """A message from what the user asked for, and the files."""
    title = next((title for title in titles if title.strip()), "Changes made with croze")
    subject = title.strip()
    if len(subject) > SUBJECT:
        subject = subject[: SUBJECT - 1].rsplit(" ", 1)[0].rstrip(" ,;:.") + "…"
    lines = [subject, ""]
    lines += [f"- {title}" for title in titles[1:] if title.strip()]
    if len(lines) > 2:
        lines.append("")
    for change in changes[:MOST_FILES]:
        name = f"{change.moved_from} -> {change.path}" if change.moved_from else change.path
        lines.append(f"{change.kind}: {name} (+{change.added} -{change.removed})")
    if len(changes) > MOST_FILES:
        lines.append(f"and {len(changes) - MOST_FILES} more files")
    return "\n".join(lines).strip() + "\n"


async def written_message(
    app: "App", record: Record, plain: str, changes: Sequence[FileChange]
) -> Written:
    """Ask the `commit` model, recorded in the session as a step of its own kind. Nothing that fails there
    fails the commit."""
    text = redact(_request(plain, changes))[0]
    try:
        async with asyncio.timeout(LIMIT):
            answer = await _ask(app, record, text)
    except TimeoutError:
        return Written("", f"no answer within {LIMIT:g} s")
    except (CrozeError, OSError) as error:
        return Written("", str(error))
    message = _cleaned(answer)
    return Written(message, "" if message else "the answer was empty")


def _request(plain: str, changes: Sequence[FileChange]) -> str:
    parts = [f"What was asked for, and the files:\n{plain}", "The changes:"]
    room = MOST_DIFF
    for change in changes:
        diff = change.diff or f"{change.kind}: {change.path} (binary)"
        parts.append(diff[:room])
        room -= len(diff)
        if room <= 0:
            parts.append("(more left out)")
            break
    return "\n\n".join(parts)


async def _ask(app: "App", record: Record, text: str) -> str:
    keyed = environment_with_keys(app.config, app.env)
    catalog = open_catalog(app.config, keyed)
    info = await choose_model(catalog, app.config.settings.model.commit, keyed)
    model = await open_model(catalog, info, keyed, max_retries=1)
    try:
        return await ask_aside(record, model, "commit", _SYSTEM, text)
    finally:
        await model.aclose()


def _cleaned(answer: str) -> str:
    """The message without what models like to put round it."""
    text = redact(answer)[0].strip()
    fenced = re.fullmatch(r"```\w*\n(.*?)\n?```", text, re.DOTALL)
    text = (fenced[1] if fenced else text).strip().strip('"`')
    return f"{text}\n" if text else ""
