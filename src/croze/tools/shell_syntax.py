"""A shell command taken apart, where it can be read in one way only; else why it can't.

Two readings have to agree. A lexer of our own knows a small, regular part of the shell's language: plain
words, quotes without expansions, `;`, `&&`, `||`, `|`, line ends, and output sent to /dev/null. The tree of
tree-sitter-bash has to consist of the node types below and to give the same words. Whatever is beyond
either of them (expansions, redirections, assignments, control structures, comments) is not understood.

What is understood is exactly what bash would run: nothing is guessed, and a command that is too long to
be looked at is not understood.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from croze.edit.grammar import Node, parse

MOST = 50_000
"""Characters of a command that is looked at; a longer one is not understood."""


class Simple(Struct, frozen=True):
    """One program with its arguments, as the shell hands them over. `text` is as it was written.

    `quoted` says that a part of its first word was quoted: then it is no keyword. `joined` is the
    operator before it, empty for the first.
    """

    argv: tuple[str, ...]
    text: str
    joined: str = ""
    quoted: bool = False


class Script(Struct, frozen=True):
    """The simple commands in order."""

    parts: tuple[Simple, ...]


class Opaque(Struct, frozen=True):
    """A command that was not understood; `why` completes "it …"."""

    why: str


_REDIRECT = re.compile(r"(?:(?:[12]?>|&>) ?/dev/null|2>&1|1?>&2)(?=[ ;|\n]|&&|\Z)")
_OPERATOR = re.compile(r"&&|\|\||\||;|\n")
_PIECE = re.compile(
    r"""(?P<plain>(?:[A-Za-z0-9_@%+=:,./^-]|(?<=[A-Za-z0-9_^~.-])~)+)"""
    r"""|'(?P<raw>[^'\n]*)'|"(?P<soft>[^"$`\\!\n]*)\""""
)
_BLANKS = re.compile(r" +")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")

KEYWORDS = frozenset(
    [
        "!",
        "[[",
        "]]",
        "{",
        "}",
        "case",
        "coproc",
        "do",
        "done",
        "elif",
        "else",
        "esac",
        "fi",
        "for",
        "function",
        "if",
        "in",
        "select",
        "then",
        "time",
        "until",
        "while",
    ]
)
"""Bash's reserved words: as the first word they begin something else than a program."""

DECLARES = frozenset({"export", "declare", "typeset", "readonly", "local", "unset", "unsetenv"})
"""Builtins with a grammar of their own, which change what the shell knows."""

_NODES = frozenset(
    [
        "program",
        "list",
        "pipeline",
        "command",
        "command_name",
        "word",
        "number",
        "raw_string",
        "string",
        "string_content",
        "concatenation",
        "redirected_statement",
        "file_redirect",
        "file_descriptor",
    ]
)
_TOKENS = frozenset(["&&", "||", "|", ";", "\n", ">", "&>", ">&", '"'])
_WHYS = (
    ("$(", "contains a command substitution"),
    ("`", "contains a command substitution"),
    ("<(", "contains a process substitution"),
    (">(", "contains a process substitution"),
    ("<<", "contains a here-document"),
    ("$", "contains an expansion"),
    (">", "sends output somewhere"),
    ("<", "takes input from somewhere"),
    ("\\", "contains a backslash"),
    ("(", "contains brackets that the shell reads"),
    (")", "contains brackets that the shell reads"),
    ("{", "contains brackets that the shell reads"),
    ("*", "contains a pattern that the shell expands"),
    ("?", "contains a pattern that the shell expands"),
    ("[", "contains a pattern that the shell expands"),
    ("~", "contains a ~ that the shell expands"),
    ("&", "goes on in the background"),
    ("#", "contains a comment"),
    ("!", "contains a !"),
)
_UNCLEAR = "could not be read in one way only"


def read(command: str) -> Script | Opaque:
    """Take `command` apart. Linear in its length, and never raises."""
    if len(command) > MOST:
        return Opaque("is too long to be looked at")
    if not command.isascii():
        return Opaque("contains characters that are not ASCII")
    if not command.replace("\n", "").isprintable():
        return Opaque("contains characters that don't print")
    text = command.strip(" \n")
    parts = _lex(text)
    if isinstance(parts, str):
        return Opaque(parts)
    if not parts:
        return Opaque("is empty")
    for part in parts:
        if not part.quoted and part.argv[0] in KEYWORDS:
            return Opaque(f"begins a part with the shell's word {part.argv[0]}")
        if part.argv[0] in DECLARES:
            return Opaque(f"changes the shell itself with {part.argv[0]}")
        if not part.quoted and _ASSIGNMENT.match(part.argv[0]):
            return Opaque("sets a variable")
    if not _agrees(text, parts):
        return Opaque(_UNCLEAR)
    return Script(tuple(parts))


def _lex(text: str) -> list[Simple] | str:
    """The simple commands by our own reading, or why there is none."""
    parts: list[Simple] = []
    words: list[str] = []
    joined, quoted = "", False
    at, start, end = 0, 0, 0
    while at < len(text):
        if blanks := _BLANKS.match(text, at):
            at = blanks.end()
            continue
        if operator := _OPERATOR.match(text, at):
            sign = operator.group()
            if words:
                parts.append(Simple(tuple(words), text[start:end], joined, quoted))
                words, joined, quoted = [], sign, False
            elif sign != "\n":
                return _UNCLEAR  # two operators in a row; a line may be empty
            at = operator.end()
            continue
        if words and (redirect := _REDIRECT.match(text, at)):
            at = end = redirect.end()
            continue
        if not words:
            start = at
        word = []
        first = at
        while piece := _PIECE.match(text, at):
            word.append(piece[piece.lastgroup or 0])
            quoted = quoted or (not words and piece.lastgroup != "plain")
            at = piece.end()
        if at == first or not _ends_word(text, at):
            return _why(text, at)
        words.append("".join(word))
        end = at
    if words:
        parts.append(Simple(tuple(words), text[start:end], joined, quoted))
    elif parts and joined not in (";", "\n"):
        return _UNCLEAR
    return parts


def _ends_word(text: str, at: int) -> bool:
    return at == len(text) or text[at] in " ;|\n" or text.startswith("&&", at)


def _why(text: str, at: int) -> str:
    for sign, why in _WHYS:
        if text.startswith(sign, at):
            return why
    if text[at : at + 1] == '"':
        body = text[at + 1 :].partition('"')[0]
        for sign, why in _WHYS:
            if sign in "$(`\\!" and sign in body:
                return why
    if text[at : at + 1] in ("'", '"'):
        return "contains quotes over several lines, or without an end"
    return _UNCLEAR


def _agrees(text: str, parts: list[Simple]) -> bool:
    """Whether tree-sitter's tree is one of known nodes, and has the same words in the same commands."""
    root = parse(text, "bash")
    if root is None or root.has_error:
        return False
    found = _commands(root)
    return found is not None and found == [part.argv for part in parts]


def _commands(root: Node) -> list[tuple[str, ...]] | None:
    """The words of each command of the tree, in order; None where there is anything else in it."""
    commands: list[tuple[str, ...]] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if node.is_missing or node.is_error or node.type not in _NODES:
            if node.type in _TOKENS and not node.is_missing:
                continue
            return None
        if node.type == "command":
            words = list(_words(node))
            if not words or None in words:
                return None
            commands.append(tuple(word for word in words if word is not None))
        elif node.type != "file_redirect":
            pending.extend(reversed(node.children))
    return commands


def _words(command: Node) -> Iterator[str | None]:
    for child in command.children:
        if child.type == "command_name":
            if len(child.children) != 1:
                yield None
            else:
                yield _word(child.children[0])
        elif child.type != "file_redirect":
            yield _word(child)


def _word(node: Node) -> str | None:
    """The value of one word, None where it isn't a plain one."""
    text = (node.text or b"").decode("ascii", "replace")
    if node.is_missing or node.is_error:
        return None
    if node.type in ("word", "number"):
        return text if not node.children else None
    if node.type == "raw_string":
        return text[1:-1]
    if node.type == "string":
        known = all(child.type in ('"', "string_content") for child in node.children)
        return text[1:-1] if known else None
    if node.type == "concatenation":
        pieces = [_word(child) for child in node.children]
        return None if None in pieces else "".join(piece or "" for piece in pieces)
    return None
