"""The xml protocol: calls are tags in the reply's text, results a tag in the next user message."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from croze.dialect.base import Decoder, Reply
from croze.dialect.cache import EncodedMessages
from croze.dialect.faults import ESCAPE_TOOL
from croze.dialect.grammar import Grammar, ToolGrammar
from croze.dialect.render import one_liners, parameters, value_text
from croze.dialect.scan import Scanner
from croze.types.context import Context, Message, Prompt
from croze.types.parts import CallResult, Part, Text, Thinking, ToolCall
from croze.types.stream import Chunk, Delta, FinishChunk, RetryChunk, TextChunk, ThinkingChunk
from croze.types.tool import ToolDoc, ToolShape

_FORM = """\
Call a tool by writing its tag, with each parameter as a tag of its own in it:

<tool_name>
<parameter>value</parameter>
</tool_name>

- The call starts on a line of its own. In a code fence, in <thinking> or amid a sentence it is only text.
- Tags take no attributes. Values are literal: write <, > and & as they are, escape nothing. One newline \
right after a parameter's tag and one right before its close don't count.
- Give each parameter once; leave out an optional one that you don't need.
- Where a value holds the end of a call of the same tool, send the call through call_tool instead, its \
arguments as JSON in which each < is written \\u003c.
- Several calls may follow one another; they run in order. Then end the reply: the results come in the \
next message as <tool_result>. Never write that tag yourself."""

_OTHERS = """\
# More tools
They are called in the same way. Get the parameters with describe_tools first."""


class XmlDialect:
    """Tools as tags. One instance serves a session: it keeps the encoded form of its messages."""

    name: Literal["xml", "native"] = "xml"

    def __init__(self) -> None:
        self._encoded = EncodedMessages(_encode)
        self._grammar = Grammar({})

    def advertise(self, core: Sequence[ToolDoc], others: Sequence[ToolDoc]) -> str:
        """The form of a call, the core tools in full, one line for each other tool. Guidelines and
        examples stand with their tools; the part's heading is the head's."""
        parts = [_FORM, "# Tools", *(_describe(doc) for doc in core)]
        if others:
            parts.append(f"{_OTHERS}\n{one_liners(others)}")
        return "\n\n".join(parts)

    def describe(self, tools: Sequence[ToolDoc]) -> str:
        return "\n\n".join(_describe(doc) for doc in tools)

    def example(self, name: str, args: Mapping[str, object]) -> str:
        return _render_call(name, args)

    def encode(self, context: Context, *, prefill: bool = False) -> Prompt:
        """Calls as they were written, results as `<tool_result>` text. Thinking is left out but for
        what a provider signed; a message of which nothing is left is left out too."""
        messages = self._encoded.all(context.messages)
        return Prompt(system=context.system, messages=messages, prefill=prefill)

    def decoder(self, tools: Mapping[str, ToolShape], new_id: Callable[[], str]) -> Decoder:
        if self._grammar.tools != tools:
            self._grammar = Grammar(dict(tools))
        return XmlDecoder(self._grammar, new_id)


class XmlDecoder:
    """Reads one reply. After a finish for length it may be fed on with the reply's continuation."""

    def __init__(self, grammar: Grammar, new_id: Callable[[], str]) -> None:
        self._grammar = grammar
        self._new_id = new_id
        self._scanner = Scanner(grammar, new_id)
        self.halted = False

    def feed(self, chunk: Chunk) -> list[Delta]:
        if type(chunk) is TextChunk:
            out = self._scanner.feed(chunk.text)
            self.halted = self._scanner.halted
            return out
        if isinstance(chunk, ThinkingChunk):
            return self._scanner.think(chunk.text, chunk.opaque)
        if isinstance(chunk, RetryChunk):
            self._scanner = Scanner(self._grammar, self._new_id)
            self.halted = False
            return [Delta(kind="reset")]
        if isinstance(chunk, FinishChunk) and chunk.reason != "length":
            return self._scanner.flush()
        return []

    def finish(self, *, cut: bool) -> Reply:
        from croze.dialect.verdict import judge  # off the way to the first request

        segments = self._scanner.finish()
        return judge(segments, self._grammar, self._new_id, cut=cut, halted=self.halted)


def _describe(doc: ToolDoc) -> str:
    lines = [f"## {doc.name}", doc.description.strip()]
    if listed := parameters(doc, tags=True):
        lines.append(listed)
    if doc.guideline:
        lines.append(doc.guideline.strip())
    for example in doc.examples:
        lines.append(f"{example.title}:\n{_render_call(doc.name, example.args)}")
    if not doc.examples and not listed:
        lines.append(_render_call(doc.name, {}))
    return "\n".join(line for line in lines if line)


def _render_call(name: str, args: Mapping[str, object]) -> str:
    """A call as tags; through `call_tool` where tags can't carry a value."""
    values = {key: value_text(value) for key, value in args.items()}
    if name == ESCAPE_TOOL and not isinstance(args.get("arguments", ""), str):
        values["arguments"] = values["arguments"].replace("<", "\\u003c")
    elif name != ESCAPE_TOOL and any("<" in value for value in values.values()):
        step = ToolGrammar(name, ToolShape(name=name, params=frozenset(args))).step
        if any(step.search(value) for value in values.values()):
            return _render_call(ESCAPE_TOOL, {"name": name, "arguments": dict(args)})
    return "\n".join([f"<{name}>", *map(_render_parameter, values.items()), f"</{name}>"])


def _render_parameter(item: tuple[str, str]) -> str:
    name, value = item
    if "\n" in value or value.startswith("\r") or value.endswith("\r"):
        return f"<{name}>\n{value}\n</{name}>"
    return f"<{name}>{value}</{name}>"


def _render_result(result: CallResult) -> str:
    success = "true" if result.ok else "false"
    tool = result.name.replace('"', "'")
    body = f"<content>\n{result.text}\n</content>\n" if result.text else "<content></content>\n"
    return (
        f'<tool_result tool_name="{tool}" success="{success}">\n'
        f"<message>{result.message}</message>\n{body}</tool_result>"
    )


def _encode(message: Message) -> Message | None:
    parts: list[Part] = []
    joint = "" if message.role == "assistant" else "\n"
    for part in message.parts:
        if isinstance(part, ToolCall):
            text = part.raw if part.raw.startswith("<") else _render_call(part.name, part.args)
        elif isinstance(part, CallResult):
            text = _render_result(part)
        elif isinstance(part, Text):
            text = part.text
        else:
            if not isinstance(part, Thinking) or part.opaque is not None:
                parts.append(part)
            continue
        last = parts[-1] if parts else None
        if isinstance(last, Text):
            parts[-1] = Text(f"{last.text}{joint}{text}")
        else:
            parts.append(Text(text))
    kept = tuple(part for part in parts if not isinstance(part, Text) or part.text.strip())
    if not kept:
        return None
    if len(kept) == len(message.parts) and all(map(_is_same, kept, message.parts)):
        return message
    return msgspec.structs.replace(message, parts=kept)


def _is_same(one: Part, other: Part) -> bool:
    return one is other or (isinstance(one, Text) and one == other)
