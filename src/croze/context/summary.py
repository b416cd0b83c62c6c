"""The history summary: what is asked of the model for it, the form it has to have, and the same form by
plain code."""

import re
from collections.abc import Mapping, Sequence

from croze.context.account import Account, account
from croze.context.project import SUMMARY_HEADING
from croze.context.prompt import Variables, prompt
from croze.context.receipt import short
from croze.context.transcript import transcript
from croze.text.tokens import RATIO, estimate
from croze.types.event import Event

FIELDS = (
    "Overall Goal",
    "Current Plan & Progress",
    "Environment / Files",
    "Key Knowledge / Insights",
    "Recent Actions",
    "Left-off Point",
)
RECENT = "Recent Actions"
SUMMARY_TOKENS = 800
"""What a summary should take at most; `check` lets an estimate pass that is a quarter higher."""
LONG_TOKENS = 700
"""An earlier summary above this is handed over as goal, plan, files and open work only."""
REQUEST_TOKENS = 6_000
"""What the prompt for a summary takes at most: it fits a window of 8k with its reply."""

_LONGEST_WORD = 300
_ADDRESS = re.compile(r"https?://|/|\\")
_MARKUP = re.compile(
    r"</?(?:[a-z]+(?:_[a-z]+)+|thinking|invoke|antml:\w+)\b[^>\n]{0,200}>|<\|[a-z_]+\|>|\"tool_calls\"\s*:",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^[\s#>*_]*\[\s*history summary\s*\][\s*_:]*$", re.IGNORECASE)
_FENCE = re.compile(r"^\s*(?:```|~~~)[\w-]*\s*$")
_NOTHING = re.compile(r"^[\W_]*$|^<[^<>]*>$|^\[[^\[\]]*\]$")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|;\s+")


def _pattern(field: str) -> re.Pattern[str]:
    words = [re.escape(word) for word in re.findall(r"[A-Za-z]+(?:-[A-Za-z]+)?", field)]
    name = r"(?:\s*[&/]\s*|\s+and\s+|\s+or\s+|\s+)".join(words)
    return re.compile(
        rf"^\s*(?:[-*+•]|\d+[.)]|#+)?\s*[*_`]*{name}[*_`]*\s*[:：][*_`]*\s*(.*)$", re.IGNORECASE
    )


_PATTERNS = {field: _pattern(field) for field in FIELDS}


@prompt("summary.md.j2")
def _system(words: int) -> Variables:
    return {"heading": SUMMARY_HEADING, "fields": FIELDS, "words": words}


@prompt("summary_request.md.j2")
def _question(earlier: str, transcript: str, todo: Sequence[str]) -> Variables:
    return {"heading": SUMMARY_HEADING, "earlier": earlier, "transcript": transcript, "todo": todo}


def request(
    events: Sequence[Event], until: int, earlier: str, *, limit: int = REQUEST_TOKENS
) -> tuple[str, str]:
    """System text and question for a summary of the log up to the event `until`.

    Together at most about `limit` tokens (never below what the form itself takes): the user's words and
    the newest steps first, what lies between is left out and said to be. What the earlier summary
    covers is not told again; it is handed over as it is.
    """
    found = account(events, until)
    system = _system.prompt(SUMMARY_TOKENS // 2)
    handed = carried(earlier)
    todo = [f"{item.status}: {short(item.text)}" for item in found.pending[:10]]
    frame = _question.prompt(handed, "", todo)
    left = max(200, limit - estimate(system) - estimate(frame))
    since = found.since if earlier else 0
    text = transcript(events, since, until, round(left * RATIO * 0.98))
    return system, _question.prompt(handed, text, todo)


def carried(earlier: str) -> str:
    """What of an earlier summary is handed on: all of it, unless it has grown too long; then goal, plan,
    files and open work, each shortened to a share of what a summary may take."""
    if not earlier or estimate(earlier) <= LONG_TOKENS:
        return earlier
    found = fields_of(earlier)
    kept = [field for field in FIELDS if field not in ("Key Knowledge / Insights", RECENT)]
    characters = round(LONG_TOKENS * RATIO * 0.9 / len(kept))
    lines = [f"- {field}: {short(found[field], characters)}" for field in kept if found.get(field)]
    if not lines:
        return short(earlier, round(LONG_TOKENS * RATIO * 0.9))
    return "\n".join([SUMMARY_HEADING, *lines])


def normalise(text: str) -> str:
    """`text` in the summary's exact form where only its dress differs: a code fence round it, words
    before or after it, bold marks, missing or other dashes, CRLF, a field on several lines. What isn't a
    summary comes back as it is but for its line ends."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").strip("\ufeff \n\t")
    lines = [line for line in plain.split("\n") if not _FENCE.match(line)]
    start = next((i for i, line in enumerate(lines) if _HEADING.match(line)), None)
    if start is None:
        return plain
    found = _collect(lines[start + 1 :])
    if not found:
        return plain
    return _render(found)


def check(text: str) -> str | None:
    """None where `text` (after `normalise`) is a summary; else what is wrong with it."""
    lines = text.split("\n")
    if lines[0] != SUMMARY_HEADING:
        return f"it doesn't begin with the line {SUMMARY_HEADING}"
    found = _collect(lines[1:])
    missing = [field for field in FIELDS if field not in found]
    if missing:
        return f"it lacks the field {missing[0]}"
    for field, values in found.items():
        if all(_NOTHING.match(value) for value in values):
            return f"its field {field} says nothing"
    if _render(found) != text:
        return "its fields don't stand one a line in the order of the form"
    if len({" ".join(values) for values in found.values()}) == 1:
        return "all its fields say the same"
    if "```" in text or "~~~" in text:
        return "it holds a block of code"
    if _MARKUP.search(text):
        return "it holds a tool call or its markup"
    for word in text.split():
        if len(word) > _LONGEST_WORD and not _ADDRESS.search(word):
            return f"it holds data of {len(word):,} characters that isn't prose"
    tokens = estimate(text)
    if tokens > SUMMARY_TOKENS * 5 // 4:
        return f"it has about {tokens:,} tokens instead of {SUMMARY_TOKENS:,} at most"
    return None


def fields_of(summary: str) -> dict[str, str]:
    """The fields of a summary by their names; a field on two lines comes as one."""
    return {field: "; ".join(values) for field, values in _collect(summary.split("\n")).items()}


def one_sentence(summary: str) -> str:
    """The summary with each of its fields cut to its first sentence."""
    found = fields_of(summary)
    if not found:
        return summary
    return _render({field: [_first_sentence(value)] for field, value in found.items()})


def fallback(events: Sequence[Event], until: int, earlier: str) -> str:
    """The summary of the log up to the event `until` by plain code, in the same form.

    The knowledge of an earlier summary is taken over, since no code can read it out of a log.
    """
    return fallback_of(account(events, until), earlier)


def fallback_of(found: Account, earlier: str) -> str:
    """The summary by plain code of an account."""
    old = fields_of(earlier) if earlier else {}
    knowledge = [short(old["Key Knowledge / Insights"], 500)] if old.get(FIELDS[3]) else []
    knowledge += [
        f"{short(failure.title, 60)} failed: {short(failure.reason, 100)}"
        for failure in list(found.failures.values())[-4:]
    ]
    actions = found.actions[-6:]
    half = (len(actions) + 1) // 2
    recent = [_joined(actions[:half], 90), _joined(actions[half:], 90)]
    values = {
        FIELDS[0]: [_goal(found, old)],
        FIELDS[1]: [_progress(found, old)],
        FIELDS[2]: [_files(found, old)],
        FIELDS[3]: ["; ".join(knowledge) or "none noted"],
        FIELDS[4]: [line for line in recent if line] or ["no tool was called"],
        FIELDS[5]: [_left_off(found)],
    }
    return _render({key: [_plain(line) for line in lines] for key, lines in values.items()})


def _goal(found: Account, old: Mapping[str, str]) -> str:
    if not found.requests:
        return old.get(FIELDS[0]) or "not said by the user"
    first, last = short(found.requests[0][1], 300), short(found.requests[-1][1], 300)
    if first == last:
        return first or "not said in words"
    return f"{first or 'not said in words'}; now: {last or 'not said in words'}"


def _progress(found: Account, old: Mapping[str, str]) -> str:
    if found.todo:
        done = len(found.todo) - len(found.pending)
        text = f"{done} of {len(found.todo)} items done"
        if found.pending:
            items = [short(item.text, 70) for item in found.pending[:6]]
            text += f"; next: {', '.join(items)}"
        return text
    calls = sum(found.counts.values())
    text = f"{calls} tool calls, {len(found.files)} files changed"
    plan = old.get(FIELDS[1])
    return f"{text}; earlier: {short(plan, 300)}" if plan else text


def _files(found: Account, old: Mapping[str, str]) -> str:
    changed = [
        f"{short(record.path)} ({record.kind} +{record.added} -{record.removed})"
        for record in list(found.files.values())[-10:]
    ]
    read = [short(path) for path in found.read if path not in found.files][-10:]
    groups = []
    if changed:
        groups.append(f"changed: {', '.join(changed)}")
    if read:
        groups.append(f"read: {', '.join(read)}")
    return "; ".join(groups) or short(old.get(FIELDS[2], ""), 300) or "no file touched"


def _left_off(found: Account) -> str:
    if found.failures:
        failure = list(found.failures.values())[-1]
        blocked = f"open: {short(failure.title, 60)}: {short(failure.reason, 100)}"
    else:
        blocked = ""
    said = short(_first_sentence(found.reply), 240) if found.reply else ""
    both = [text for text in (said, blocked) if text]
    return "; ".join(both) or "nothing was said yet"


def _joined(actions: Sequence[str], limit: int) -> str:
    return "; ".join(short(action, limit) for action in actions)


def _plain(text: str) -> str:
    """`text` without anything that could be taken for markup, code or a field's end."""
    line = " ".join(text.replace("```", "'''").replace("~~~", "---").split())
    line = _MARKUP.sub(lambda found: found[0].replace("<", "‹").replace(">", "›"), line)
    line = line.replace('"tool_calls"', "tool_calls")
    words = (short(w, _LONGEST_WORD) if len(w) > _LONGEST_WORD else w for w in line.split())
    line = " ".join(words).strip("* ").lstrip("-•").strip()
    return line if not _NOTHING.match(line) else f"«{line}» as it stands in the log"


def _first_sentence(text: str) -> str:
    line = " ".join(text.split())
    return _SENTENCE.split(line, maxsplit=1)[0]


def _collect(lines: Sequence[str]) -> dict[str, list[str]]:
    """The fields with their lines, in the order in which they first stand. Lines before the first field
    are left out; so is what follows an empty line behind the last field."""
    found: dict[str, list[str]] = {}
    current = ""
    gap = False
    for line in lines:
        if not line.strip():
            gap = True
            continue
        for field, pattern in _PATTERNS.items():
            match = pattern.match(line)
            if match:
                current, gap = field, False
                found.setdefault(field, [])
                value = match[1].strip().strip("*").strip()
                if value:
                    found[field].append(value)
                break
        else:
            if current and not (gap and len(found) == len(FIELDS)):
                found[current].append(line.strip().lstrip("-*•").strip())
    return found


def _render(found: Mapping[str, Sequence[str]]) -> str:
    out = [SUMMARY_HEADING]
    for field in FIELDS:
        if field not in found:
            continue
        values = [value for value in found[field] if value]
        if field == RECENT and len(values) > 1:
            values = ["; ".join(values[:-1]), values[-1]]
            out += [f"- {field}: {values[0]}", f"  {values[1]}"]
        else:
            out.append(f"- {field}: {'; '.join(values)}".rstrip())
    return "\n".join(out)
