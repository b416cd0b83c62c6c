"""What the xml protocol's tags look like: the registered names, and the steps inside a call."""

import re
from collections.abc import Iterable, Mapping

from croze.types.tool import ToolShape

BLANKS = " \t\r\n"
THINKING = "thinking"
RESULT = "tool_result"

_B = r"[ \t\r\n]*"
_NAME = r"[^<>/ \t\r\n]*"

TAG = re.compile(rf"<({_NAME})({_B})(>?)")
"""A tag from its `<` on, as far as it goes: name, blanks, close."""

NEXT = re.compile(rf"{_B}(?:(<)(/?)({_NAME})({_B})(>?))?")
"""What stands after a tool's opening tag: blanks, then perhaps a tag, as far as it goes."""

_PENDING = re.compile(
    rf"<(/?)({_NAME})({_B})(?:(>){_B}(?:(<)(/?)({_NAME})({_B}))?)?\Z",
)


def prefixes(names: Iterable[str]) -> frozenset[str]:
    """Every beginning of every name, the empty one and the whole one included."""
    return frozenset(name[:end] for name in names for end in range(len(name) + 1)) | {""}


class ToolGrammar:
    """The tags that mean something inside a call of one tool.

    `step` finds the next place where the call may take a step: a parameter's close with another
    parameter's opening or the tool's own close after it (groups: closed, next, `/`), or the tool's own
    tag with a parameter after it, which opens a nested example (group 4).
    """

    __slots__ = ("_own", "_param_starts", "_step", "params", "shape", "tag")

    def __init__(self, tag: str, shape: ToolShape) -> None:
        self.tag = tag
        self.shape = shape
        self.params = shape.params
        self._step: re.Pattern[str] | None = None
        self._own = prefixes((tag,))
        self._param_starts = prefixes(shape.params)

    @property
    def step(self) -> re.Pattern[str]:
        if self._step is None:
            own = re.escape(self.tag)
            names = "|".join(re.escape(name) for name in sorted(self.params)) or r"(?!)"
            self._step = re.compile(
                rf"<(?:/({names}){_B}>{_B}<(?:({names})|(/){own}){_B}>|{own}{_B}>{_B}<({names}){_B}>)"
            )
        return self._step

    def can_follow(self, slash: str, name: str, blanks: str) -> bool:
        """Whether an unfinished tag after the tool's opening tag can become one that makes it a call."""
        if slash:
            return name == self.tag if blanks else name in self._own
        return name in self.params if blanks else name in self._param_starts

    def pending(self, data: str, start: int) -> int:
        """Where the end of `data` may turn out to be the beginning of a step; its length if nowhere."""
        last = data.rfind("<", start)
        if last < 0:
            return len(data)
        before = data.rfind("<", start, last)
        if before >= 0 and self._may_become_step(data, before):
            return before
        return last if self._may_become_step(data, last) else len(data)

    def _may_become_step(self, data: str, start: int) -> bool:
        found = _PENDING.match(data, start)
        if found is None:
            return False
        slash, name, blanks, closed, second, slash2, name2, blanks2 = found.groups()
        if closed is None:
            if slash:
                return name in self.params if blanks else name in self._param_starts
            return name == self.tag if blanks else name in self._own
        if name not in self.params if slash else name != self.tag:
            return False
        if second is None:
            return True
        return self.can_follow(slash2, name2, blanks2)


class Grammar:
    """The tags that mean something in a reply's text: the tools, thinking and the result tag."""

    __slots__ = ("_tools", "starts", "tools")

    def __init__(self, tools: Mapping[str, ToolShape]) -> None:
        self.tools = tools
        self.starts = prefixes((*tools, THINKING, RESULT))
        self._tools: dict[str, ToolGrammar] = {}

    def tool(self, tag: str) -> ToolGrammar:
        known = self._tools.get(tag)
        if known is None:
            known = self._tools[tag] = ToolGrammar(tag, self.tools[tag])
        return known
