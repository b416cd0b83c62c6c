"""What a site asks of robots: robots.txt, read as RFC 9309 says (the longest rule wins, allow on a tie)."""

import re
from urllib.parse import quote, unquote

from msgspec import Struct

MOST_BYTES = 500 << 10
MOST_RULES = 5_000
_PLAIN = "/%:@!$&'()*+,;=~-._?"
_UPPER = re.compile(r"%[0-9a-fA-F]{2}")


class Rules(Struct, frozen=True):
    """The rules for one robot: (allowed, pattern)."""

    rules: tuple[tuple[bool, str], ...] = ()

    def allows(self, target: str) -> bool:
        """Whether a path with its query may be fetched. robots.txt itself always may."""
        wanted = _normal(target)
        if wanted == "/robots.txt":
            return True
        best, allowed = -1, True
        for allow, pattern in self.rules:
            if len(pattern) >= best and _matches(pattern, wanted):
                allowed = allow or (allowed and len(pattern) == best)
                best = len(pattern)
        return allowed


EVERYTHING = Rules()
NOTHING = Rules(((False, "/"),))


def parse(text: str, robot: str) -> Rules:
    """The rules of the groups that name `robot`, else of those for all."""
    mine: list[tuple[bool, str]] = []
    others: list[tuple[bool, str]] = []
    named = False
    agents: set[str] = set()
    in_rules = True
    for raw in text.splitlines():
        key, colon, value = raw.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "user-agent":
            if in_rules:
                agents, in_rules = set(), False
            agent = value.split("/")[0].strip().lower()
            agents.add(agent)
            named = named or agent == robot
        elif key in ("allow", "disallow"):
            in_rules = True
            if value and len(mine) + len(others) < MOST_RULES:
                rule = key == "allow", _normal(value)
                if robot in agents:
                    mine.append(rule)
                elif "*" in agents:
                    others.append(rule)
        elif key != "sitemap":
            in_rules = in_rules or bool(agents and key == "crawl-delay")
    return Rules(tuple(mine if named else others))


def _normal(target: str) -> str:
    """A path in one spelling: what need not be escaped isn't, escapes are in upper case."""
    plain = _UPPER.sub(_unescaped, target)
    return quote(plain, safe=_PLAIN)


def _unescaped(match: "re.Match[str]") -> str:
    char = unquote(match.group())
    return char if char.isascii() and (char.isalnum() or char in "-._~") else match.group().upper()


def _matches(pattern: str, target: str) -> bool:
    """`*` stands for anything, `$` at the end for the end; else a pattern matches a beginning."""
    whole = pattern.endswith("$")
    pieces = pattern.removesuffix("$").split("*")
    if not target.startswith(pieces[0]):
        return False
    at = len(pieces[0])
    if len(pieces) == 1:
        return not whole or at == len(target)
    for piece in pieces[1:-1]:
        at = target.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    last = pieces[-1]
    if whole:
        return target.endswith(last) and len(target) - len(last) >= at
    return target.find(last, at) >= 0
