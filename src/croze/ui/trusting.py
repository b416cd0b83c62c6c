"""What a project's files would do if they were trusted, as people are shown it before they decide."""

import re
from collections.abc import Iterable, Iterator, Sequence

from croze.app.acting import ActingFile, Effect
from croze.app.acting_text import difference, text_of
from croze.app.trust import Trust
from croze.text.display import exact, one_line, safe
from croze.ui.findings import REASONS
from croze.ui.i18n import _, mark
from croze.ui.reasons import translated

MOST_LINES = 2_000
"""Of one file's content, or of its diff."""

_PROBLEMS = (
    mark("it is no longer there"),
    mark("it is too large to be looked at each time"),
    mark("{path} can't be read: {why}"),
)
_ESCAPES = re.compile("[\x1b\x80-\x9f]")


def shown(text: str) -> str:
    """A text in which everything is seen: an escape sequence stands there instead of vanishing."""
    return safe(_ESCAPES.sub(_visible, text))


def letter_by_letter(text: str) -> str:
    """The same for a command or a value: what looks like something else has its code behind it."""
    return exact(_ESCAPES.sub(_visible, text)).replace("\n", "\n      ")


def survey_lines(files: Sequence[ActingFile]) -> Iterator[str]:
    """The files by what they would do, and each thing that they would do in full."""
    for effect, heading in _headings().items():
        of_effect = [each for each in files if each.effect == effect and not each.problem]
        if not of_effect:
            continue
        yield heading
        for each in of_effect:
            yield f"  {_named(each)}"
            plain = shown if effect == "tells" else letter_by_letter
            yield from (f"      {plain(line)}" for line in each.does)
    unfit = [each for each in files if each.problem]
    if unfit:
        yield _("Can't be trusted:")
        yield from (f"  {_path(each)}: {_problem(each)}" for each in unfit)


def gone_lines(gone: Iterable[str]) -> Iterator[str]:
    """Files that were trusted and are there no more."""
    for path in gone:
        yield "  " + _("{path}: was trusted and is gone", path=one_line(shown(path), 400))


def content_lines(each: ActingFile, trust: Trust) -> Iterator[str]:
    """What has changed since the file was trusted, or the whole of it where it never was."""
    before = trust.content(each.path) if each.state == "changed" else None
    yield f"--- {_named(each)}"
    now = None if each.data is None else text_of(each.data)
    if now is None:
        yield _(
            "{count} bytes that can't be shown; SHA-256 {digest}",
            count=each.size,
            digest=each.sha256,
        )
        return
    if before is not None and (old := text_of(before)) is not None:
        yield from shown(difference(old, now, each.path, MOST_LINES)).split("\n")
        return
    lines = shown(now).rstrip("\n").split("\n")
    yield from (f"+{line}" for line in lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield _("… and {count} more lines", count=len(lines) - MOST_LINES)


def _headings() -> dict[Effect, str]:
    return {
        "runs": _("Would run programs:"),
        "sets": _("Would set:"),
        "tells": _("Would tell agents what to do:"),
    }


def _named(each: ActingFile) -> str:
    states = {
        "trusted": _("trusted"),
        "changed": _("changed since it was trusted"),
        "new": _("not trusted"),
        "broken": _("not usable"),
    }
    about = [each.kind, states[each.state], _("{count} bytes", count=each.size)]
    if each.hidden:
        about.append(_("{count} characters that can't be seen", count=each.hidden))
    return f"{_path(each)} ({', '.join(about)})"


def _path(each: ActingFile) -> str:
    return one_line(letter_by_letter(each.path), 400)


def _problem(each: ActingFile) -> str:
    return one_line(shown(translated(each.problem, (*_PROBLEMS, *REASONS)) or each.problem), 400)


def _visible(match: "re.Match[str]") -> str:
    char = match.group()
    return "␛" if char == "\x1b" else f"\\x{ord(char):02x}"
