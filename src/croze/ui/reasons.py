"""Why a call is asked about, in the user's language.

The reasons come from the core in English; those with something of the command in them are told by the
fixed words round it.
"""

import re
from functools import cache

from croze.ui.i18n import _, mark

REASONS = (
    mark("it changes files"),
    mark("it runs a command"),
    mark("it uses the network"),
    mark("it runs outside of the sandbox, and the mode full never asks"),
    mark("it runs outside of the sandbox"),
    mark("it reads"),
    mark("it only reads"),
    mark("the model asks for your approval"),
    mark("a hook wants a question: {why}"),
    mark("a hook asks"),
    mark("there is no sandbox here, so every command is asked about"),
    mark("rules allow each part"),
    mark("plan mode only reads; the user has to leave it before anything is changed or run"),
    mark("the rule «{rule}» wants a question, and the mode full never asks"),
    mark("the rule «{rule}» wants a question"),
    mark("the rule «{rule}» forbids it"),
    mark("the rule «{rule}»"),
    mark("mode {mode}"),
)
WHYS = (
    mark("is not among the commands that are known to only read"),
    mark("is too long to be looked at"),
    mark("contains characters that are not ASCII"),
    mark("contains characters that don't print"),
    mark("is empty"),
    mark("contains a command substitution"),
    mark("contains a process substitution"),
    mark("contains a here-document"),
    mark("contains an expansion"),
    mark("contains a backslash"),
    mark("contains brackets that the shell reads"),
    mark("contains a pattern that the shell expands"),
    mark("contains a ~ that the shell expands"),
    mark("contains a comment"),
    mark("contains a !"),
    mark("contains quotes over several lines, or without an end"),
    mark("sends output somewhere"),
    mark("takes input from somewhere"),
    mark("goes on in the background"),
    mark("could not be read in one way only"),
    mark("sets a variable"),
    mark("sets the clock"),
    mark("runs another command"),
    mark("lacks an argument"),
    mark("begins a part with the shell's word {word}"),
    mark("changes the shell itself with {word}"),
    mark("comes after {word}, which changes the shell"),
    mark("has the option {option} without a value"),
    mark("has the option {option} with the value {value}"),
    mark("has the option {option}"),
    mark("has the argument {word}"),
    mark("has the further argument {word}"),
    mark("has the expression {word}"),
    mark("has the test {word}"),
    mark("has options before git's command"),
    mark("has a format with %G, which runs gpg"),
    mark("has a filter that reads other files"),
    mark("is git {word}, which is not among those that are known to only read"),
    mark("is another use of {form}"),
    mark("names its program by a path"),
    mark("names {word}, which is not on PATH"),
    mark("would run {word} from a relative folder of PATH"),
    mark("would run {word} from the workspace"),
    mark("would run {word} from {folder}, where others may write"),
    mark("would run {word}, which belongs to another user"),
    mark("would read a repository above the workspace, if any"),
    mark("would read a repository that is not whole"),
    mark("would read a repository whose configuration can't be read"),
    mark("may run a hook of the repository"),
    mark("may run what the repository's configuration names ({line})"),
    mark("may run what a submodule's configuration names"),
    mark("may run what another repository's configuration names"),
    mark("runs in a folder that can't be told beforehand"),
    mark("reads {path}, which is outside of the workspace"),
    mark("reads {path}, which may hold secrets"),
    mark("reads {path}, which is a folder"),
)
"""Each completes "it …"; of several that fit, the first counts."""


QUESTIONS = (
    mark("The skill {skill} would like to use these without a question, in this session: {rules}"),
)


def question(text: str) -> str:
    """A question of croze's own in the user's language; any other as it is."""
    return translated(text, QUESTIONS) or text


def reason(text: str) -> str:
    """A decision's reason in the user's language; as it is where it isn't a known one."""
    if found := translated(text, REASONS):
        return found
    if text.startswith("it "):
        return _("it {why}", why=why(text.removeprefix("it ")))
    return text


def why(text: str) -> str:
    """What a part of a command does, in the user's language; as it is where it isn't a known one."""
    return translated(text, WHYS) or text


def translated(text: str, known: tuple[str, ...]) -> str:
    """A text that fits one of the known ones, in the user's language; empty where none fits."""
    for template in known:
        if found := _pattern(template).fullmatch(text):
            return _(template, **found.groupdict())
    return ""


@cache
def _pattern(template: str) -> "re.Pattern[str]":
    parts = re.split(r"{(\w+)}", template)
    return re.compile(
        "".join(f"(?P<{p}>.*?)" if at % 2 else re.escape(p) for at, p in enumerate(parts)),
        re.DOTALL,
    )
