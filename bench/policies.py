"""What each context policy costs and keeps: long made-up sessions through `python -m croze.context`'s adapter.

Run: python bench/policies.py [--quick]. Cost is in base input tokens (reads from the cache at 0.1, writes
at 1.25); kept is the share of what later calls quote that still stood in the context when they did.
"""

import json
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

from croze.context.adapter import Adapter
from croze.text.tokens import estimate
from figures import figure

CALLS = 300
TOKENS = 400_000
STATIC = 5_000
READ, WRITE = 0.1, 1.25
SESSIONS = 3

Quotes = list[str]
Step = tuple[list[dict[str, Any]], Quotes]


class Project:
    """Files with lines that nobody else has, so that a quote has one source."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.files = {
            f"src/{folder}/{name}_{n}.py": [
                f"    {name}_{n}_{k} = {folder}.compute_{k}(value_{k}, limit={k * 7})"
                for k in range(chance.randint(60, 420))
            ]
            for n, (folder, name) in enumerate(
                (folder, name)
                for folder in ("core", "net", "store", "view", "tools")
                for name in (
                    "loader",
                    "table",
                    "index",
                    "cache",
                    "parser",
                    "model",
                    "panel",
                    "queue",
                )
            )
        }
        self.seen: list[str] = []

    def recent(self) -> str:
        """A file that was read: mostly one of the last, now and then an early one."""
        if self.chance.random() < 0.05:
            return self.chance.choice(self.seen)
        return self.seen[-1 - min(int(self.chance.expovariate(0.25)), len(self.seen) - 1)]


def session(seed: int, calls: int, tokens: int) -> Iterator[Step]:
    """The messages that are new before each call, and what the call's reply will quote."""
    chance = random.Random(seed)
    project = Project(chance)
    number = 0
    size = tokens / calls

    def message(role: str, content: str, **more: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        return {"id": number, "role": role, "content": content, **more}

    new = [
        message("system", "You are an agent."),
        message("user", "Make the loaders strict. " * 20),
    ]
    for step in range(calls):
        name, args, result, quotes = act(project, chance, step, size)
        yield new, quotes
        call = {"id": f"t{step}", "name": name, "args": args}
        new = [
            message("assistant", f"Step {step}: I look further. " * 3, tool_calls=[call]),
            message("tool", result, tool_call_id=f"t{step}"),
        ]
        if step % 60 == 59:
            new.append(message("user", f"Also keep requirement {step} in mind."))


def act(
    project: Project, chance: random.Random, step: int, size: float
) -> tuple[str, dict[str, Any], str, Quotes]:
    """A call with its arguments and its result, and the lines that it quotes from earlier results."""
    kind = chance.choices(
        ["Read", "Grep", "LS", "Bash", "Edit"], [34, 12, 6, 26, 22 if project.seen else 0]
    )[0]
    if not project.seen:
        kind = "Read"
    if kind == "Read":
        fresh = [path for path in project.files if path not in project.seen]
        again = bool(project.seen) and (not fresh or chance.random() < 0.3)
        path = project.recent() if again else chance.choice(fresh)
        project.seen.append(path)
        lines = project.files[path]
        count = min(len(lines), max(20, int(size * 3.3 / 62 * chance.uniform(1.0, 3.6))))
        text = "\n".join(f"{n + 1:>5}\t{line}" for n, line in enumerate(lines[:count]))
        return "Read", {"file_path": path}, text, []
    if kind == "Grep":
        rows = [
            f"{path}:{chance.randint(1, 99)}: hit_{step}_{n}"
            for n, path in enumerate(project.files)
        ]
        return "Grep", {"pattern": f"hit_{step}"}, "\n".join(rows * max(1, int(size / 900))), []
    if kind == "LS":
        return "LS", {"path": "src"}, "\n".join(project.files) * max(1, int(size / 900)), []
    if kind == "Bash":
        failed = chance.random() < 0.3
        log = [
            f"tests/test_{step}.py::case_{n} {'ok' if n % 7 else 'slow'}"
            for n in range(int(size / 14))
        ]
        end = f"exit code {1 if failed else 0}"
        return "Bash", {"command": f"pytest -q -k part_{step % 9}"}, "\n".join([*log, end]), []
    path = project.recent()
    lines = project.files[path]
    line = lines[chance.randrange(min(len(lines), 40))].strip()
    args = {"file_path": path, "old_string": line, "new_string": f"{line}  # strict since {step}"}
    return "Edit", args, f"Edited {path}.", [line]


def play(policy: str, zone: int | None, seed: int, calls: int, tokens: int) -> dict[str, float]:
    """One session under a policy."""
    adapter = Adapter(policy)
    start: dict[str, Any] = {"type": "start", "static_tokens": STATIC}
    start["prices"] = {"input": 1.0, "cache_read": READ, "cache_write": WRITE, "output": 5.0}
    if zone is not None:
        start["zone"] = zone
    adapter.answer(json.dumps(start).encode())
    texts: dict[int, str] = {}
    before: list[str] = []
    known = ""
    sums = dict.fromkeys(
        ("cost", "tokens", "quoted", "kept", "seconds", "peak", "breaks", "summaries"), 0.0
    )
    for new, quotes in session(seed, calls, tokens):
        for message in new:
            texts[message["id"]] = message["content"] + json.dumps(message.get("tool_calls", ""))
        line = json.dumps({"type": "call", "new": new}).encode()
        began = time.process_time()
        answer = adapter.answer(line)
        sums["seconds"] += time.process_time() - began
        assert answer is not None
        shaped = json.loads(answer)["messages"]
        summary = next((m["content"] for m in shaped if "id" not in m), "")
        sums["summaries"] += summary != known
        known = summary
        sent = [
            m["content"] + json.dumps(m.get("tool_calls", "")) if "content" in m else texts[m["id"]]
            for m in shaped
        ]
        same = 0
        while same < min(len(before), len(sent)) and before[same] == sent[same]:
            same += 1
        cached = (STATIC if before else 0) + sum(map(estimate, sent[:same]))
        written = (0 if before else STATIC) + sum(map(estimate, sent[same:]))
        sums["cost"] += READ * cached + WRITE * written
        sums["tokens"] += cached + written
        sums["peak"] = max(sums["peak"], cached + written)
        sums["breaks"] += bool(before) and same < len(before)
        whole = "\n".join(sent)
        sums["quoted"] += len(quotes)
        sums["kept"] += sum(quote in whole for quote in quotes)
        before = sent
    return sums


def main() -> None:
    quick = "--quick" in sys.argv
    calls, tokens = (60, 80_000) if quick else (CALLS, TOKENS)
    plain = 0.0
    runs: list[tuple[str, str, int | None]] = [("none", "none", None)]
    runs += [(name, name, None) for name in ("batch", "digest", "zone")]
    runs.append(("digest_80k", "digest", 80_000))
    for label, policy, zone in runs:
        found = [
            play(policy, zone, seed, calls, tokens) for seed in range(1 if quick else SESSIONS)
        ]
        cost = sum(sums["cost"] for sums in found)
        plain = plain or cost
        quoted = sum(sums["quoted"] for sums in found)
        kept = sum(sums["kept"] for sums in found) / quoted if quoted else 1.0
        count = len(found)
        figure(f"policies.{label}.cost", cost / count / 1e6, "M tokens")
        target = "0.75" if label == "batch" else ""
        figure(f"policies.{label}.cost_share", cost / plain, "of none", target)
        figure(f"policies.{label}.kept", 100 * kept, "%", "90" if label == "batch" else "")
        figure(f"policies.{label}.peak", max(s["peak"] for s in found), "tokens")
        figure(f"policies.{label}.breaks", sum(s["breaks"] for s in found) / count, "calls")
        figure(f"policies.{label}.summaries", sum(s["summaries"] for s in found) / count, "calls")
        spent = sum(sums["seconds"] for sums in found) / count / calls
        figure(f"policies.{label}.decide_and_answer", 1_000 * spent, "ms CPU", "2")


if __name__ == "__main__":
    main()
