"""What arguments a command may have and still only read: a small language for its options.

A `Reads` is a whitelist. An option that it doesn't name makes the command unknown, and so does anything
that could be read as another option: the value of an option is never a word that begins with `-`, unless
it is a number. Abbreviated long options are not known.
"""

import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

Operands = Literal["paths", "texts", "none", "pattern"]
"""What the words are that are no options: files, harmless texts, none at all, or a text and then files."""

GENERAL = "is not among the commands that are known to only read"
_NUMBER = re.compile(r"-\d+[A-Za-z]?\Z")


class Read(Struct, frozen=True):
    """An invocation that only reads. `paths` are the files and folders that it names; `only_files`: of
    a folder it would read what links in it lead to."""

    paths: tuple[str, ...] = ()
    only_files: bool = False


class Unknown(Struct, frozen=True):
    """Not known to be one that only reads; `why` completes "it …"."""

    why: str


Check = Callable[[tuple[str, ...]], Read | Unknown]
"""Looks at the arguments behind a command's name."""


class Reads(Struct, frozen=True, kw_only=True):
    """`flags` and `values` are letters of short options without and with a value, `longs` names without
    the dashes: `name` alone, `name=` with a value in any form, `name=?` alone or as `--name=value`.
    `most` bounds the operands. `numbers`: `-20` is an option too. `patterns` are options which, given,
    make the first operand of a `pattern` command a path. `only_files`: folders are no operands.
    """

    flags: str = ""
    values: str = ""
    longs: str = ""
    operands: Operands = "paths"
    most: int | None = None
    least: int = 0
    numbers: bool = False
    patterns: frozenset[str] = frozenset()
    only_files: bool = False

    def __call__(self, args: tuple[str, ...]) -> Read | Unknown:
        """Read the arguments as getopt_long does, operands and options mixed."""
        longs = {name.rstrip("=?"): name[len(name.rstrip("=?")) :] for name in self.longs.split()}
        operands: list[str] = []
        given: set[str] = set()
        at = 0
        while at < len(args):
            word = args[at]
            at += 1
            if word == "--":
                operands += args[at:]
                break
            if word == "-" or not word.startswith("-"):
                operands.append(word)
                continue
            if self.numbers and _NUMBER.match(word):
                continue
            if word.startswith("--"):
                name, equals, value = word[2:].partition("=")
                kind = longs.get(name)
                if kind is None or (equals and not kind):
                    return Unknown(f"has the option {word.partition('=')[0]}")
                wants = kind == "=" and not equals
            else:
                name, value, wants = self._letters(word[1:])
                if name and name not in self.flags + self.values:
                    return Unknown(f"has the option -{name}")
            given.add(name)
            if wants:
                if at == len(args):
                    return Unknown(f"has the option {word} without a value")
                value = args[at]
                at += 1
                if value.startswith("-") and value != "-" and not _NUMBER.match(value):
                    return Unknown(f"has the option {word} with the value {value}")
        return self._operands(operands, given)

    def _letters(self, letters: str) -> tuple[str, str, bool]:
        """The letter of a cluster that counts: the first that is unknown, or has a value; that value;
        whether it is the next word."""
        for index, letter in enumerate(letters):
            if letter in self.values:
                value = letters[index + 1 :]
                return letter, value, not value
            if letter not in self.flags:
                return letter, "", False
        return letters[-1], "", False

    def _operands(self, operands: list[str], given: set[str]) -> Read | Unknown:
        if self.operands == "none" and operands:
            return Unknown(f"has the argument {operands[0]}")
        if self.most is not None and len(operands) > self.most:
            return Unknown(f"has the further argument {operands[self.most]}")
        if len(operands) < self.least:
            return Unknown("lacks an argument")
        if self.operands == "texts":
            return Read()
        if self.operands == "pattern" and not given & self.patterns:
            operands = operands[1:]
        return Read(tuple(word for word in operands if word != "-"), self.only_files)


def exactly(*lines: str) -> Check:
    """Only these arguments, word for word."""
    allowed = {tuple(line.split()) for line in lines}

    def check(args: tuple[str, ...]) -> Read | Unknown:
        return Read() if args in allowed else Unknown(GENERAL)

    return check


def anything(args: tuple[str, ...]) -> Read:
    """Whatever the arguments are."""
    return Read()
