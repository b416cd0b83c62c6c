"""A conversation as text for the terminal."""

import json
from typing import Any

from croze.text.display import one_line
from croze.types.conversation import Content, Conversation, ConversationMessage
from croze.ui.calls import ANSWERS, QUESTION, subject_of
from croze.ui.cli.listing import SHORT, named
from croze.ui.cli.output import Output, dollars, local_time, thousands
from croze.ui.i18n import _
from croze.ui.sums import counted_steps

WIDTH = 160
"""Cells that a call or its result takes at most; `--format json` has them whole."""


def write_transcript(out: Output, conversation: Conversation) -> None:
    """A header with the totals, then every message with its id, which `session fork --at` takes. A
    call stands in one line with its result."""
    name = named(conversation.id, conversation.name)
    out.line(f"{name}  ({conversation.id})" if name else conversation.id)
    if conversation.description:
        out.line(conversation.description)
    out.line(
        _(
            "{model}, {steps}, {input} tokens in, {output} out, {cost}",
            model=conversation.model or "—",
            steps=counted_steps(conversation.steps),
            input=thousands(conversation.input_tokens),
            output=thousands(conversation.output_tokens),
            cost=dollars(conversation.cost),
        )
    )
    results = {
        str(message.metadata["call_id"]): message
        for message in conversation.messages
        if message.role == "tool" and "call_id" in message.metadata
    }
    shown: set[str] = set()
    open_section = False
    for message in conversation.messages:
        call_id = str(message.metadata.get("call_id", ""))
        if call_id in shown:
            continue
        if message.role == "tool" and call_id in results and open_section:
            out.line(_result(str(message.metadata.get("name", "")), "", message))
            continue
        out.line()
        when = local_time(message.created_at)
        out.line(f"── {message.role}  {when}  {message.message_id[:SHORT]}")
        for text in _content(message.content, results, shown):
            out.line(text.rstrip("\n"))
        open_section = message.role == "assistant"


def _content(
    content: Content, results: dict[str, ConversationMessage], shown: set[str]
) -> list[str]:
    """Texts as they are, a call with its result on one line, everything else as JSON. The calls whose
    results stand here are added to `shown`."""
    if isinstance(content, str):
        return [content]
    if isinstance(content, list):
        return [line for item in content if item for line in _content(item, results, shown)]
    text = content.get("text")
    if isinstance(text, str) and set(content) <= {"type", "kind", "text"}:
        return [text] if text.strip() else []
    if content.get("type") == "call":
        return [_call(content, results, shown)]
    return [json.dumps(content, ensure_ascii=False, indent=2)]


def _call(content: dict[str, Any], results: dict[str, ConversationMessage], shown: set[str]) -> str:
    name, call_id = str(content.get("name", "")), str(content.get("id", ""))
    args = content.get("args")
    given = args if isinstance(args, dict) else {}
    answer = given.get(ANSWERS.get(name, ""))
    result = results.get(call_id)
    if result is not None:
        shown.add(call_id)
        if isinstance(answer, str) and result.metadata.get("ok"):
            return answer
        return _result(name, subject_of(given), result)
    return one_line(f"→ {name} {subject_of(given)}", WIDTH)


def _result(name: str, subject: str, message: ConversationMessage) -> str:
    """`✓ read_file a.py: 12 lines`, or ✗ where the call failed."""
    sign = "✓" if message.metadata.get("ok") else "✗"
    first = message.content if isinstance(message.content, str) else ""
    head, _newline, rest = first.partition("\n")
    said = one_line(rest if name == QUESTION and rest else head, WIDTH)
    about = one_line(subject, WIDTH // 2)
    if about and about in said:
        about = ""
    return f"{sign} {name} {': '.join(part for part in (about, said) if part)}".rstrip()
