"""The adapter answers each call with the whole context to send: well formed, deterministic, without a look
ahead."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.context.adapter import Adapter
from croze.context.policies import POLICIES, decide
from croze.context.summary import check

NAMES = sorted(POLICIES)
LOG = "line of a log\n" * 150


class Talk:
    """Speaks with an adapter and looks at every answer."""

    def __init__(self, policy: str, **start: Any) -> None:
        self.adapter = Adapter(policy)
        self.given: dict[Any, dict[str, Any]] = {}
        self.sent: list[dict[str, Any]] = []
        assert self.say({"type": "start", **start}) is None

    def say(self, value: dict[str, Any]) -> dict[str, Any] | None:
        answer = self.adapter.answer(json.dumps(value).encode())
        return None if answer is None else json.loads(answer)

    def call(self, *new: dict[str, Any]) -> list[dict[str, Any]]:
        answer = self.say({"type": "call", "new": list(new)})
        assert answer is not None
        assert set(answer) == {"messages", "aux"}, answer
        self.given |= {message["id"]: message for message in new}
        self.sent = answer["messages"]
        return self.sent

    def number(self) -> int:
        return len(self.given) + 1

    def well_formed(self, *, users: bool = True) -> None:
        """The system text, the user's words and the last message stay, order and pairs are kept, ids are
        known, what is the policy's own says so."""
        ids = [message["id"] for message in self.sent if "id" in message]
        order, there = list(self.given), set(ids)
        assert ids == [known for known in order if known in there]
        for known, message in self.given.items():
            if message["role"] == "system" or (users and message["role"] == "user"):
                assert {"id": known} in self.sent
        if order:
            assert ids[-1] == order[-1]
        own = [message for message in self.sent if "id" not in message]
        assert len(own) <= 1
        for message in own:
            assert message["role"] == "user"
            assert check(message["content"].partition("\n\n[Receipt]")[0]) is None
        calls: list[str] = []
        for message in self.sent:
            if "id" not in message:
                assert calls == []
                continue
            original = self.given[message["id"]]
            if original["role"] == "assistant":
                assert calls == []
                shown = message.get("tool_calls", original.get("tool_calls") or [])
                calls = [call["id"] for call in shown]
            elif original["role"] == "tool":
                assert calls.pop(0) == original["tool_call_id"]
        assert calls == []


def step(n: int, text: str, name: str = "Bash", **args: Any) -> tuple[dict[str, Any], ...]:
    call = {"id": f"t{n}", "name": name, "args": args or {"command": f"make {n}"}}
    return (
        {"id": f"a{n}", "role": "assistant", "content": f"step {n}", "tool_calls": [call]},
        {"id": f"r{n}", "role": "tool", "content": text, "tool_call_id": f"t{n}"},
    )


OPENING = (
    {"id": "s", "role": "system", "content": "You are an agent."},
    {"id": "u", "role": "user", "content": "Make it work."},
)


def test_without_a_policy_every_message_goes_as_it_came() -> None:
    talk = Talk("none", zone=10, static_tokens=5)
    talk.call(*OPENING)
    for n in range(5):
        assert talk.call(*step(n, LOG)) == [{"id": known} for known in talk.given]


def test_an_answer_says_what_the_policy_itself_spent() -> None:
    talk = Talk("digest")
    assert talk.say({"type": "call", "new": list(OPENING)}) == {
        "messages": [{"id": "s"}, {"id": "u"}],
        "aux": {"input": 0, "cached": 0, "output": 0},
    }


def test_zone_clears_the_oldest_result_and_names_it() -> None:
    talk = Talk("zone", zone=4_000, static_tokens=500)
    talk.call(*OPENING)
    for n in range(8):
        talk.call(*step(n, LOG))
        talk.well_formed()
    cleared = [m for m in talk.sent if "content" in m]
    assert [m["id"] for m in cleared] == ["r0", "r1", "r2"]
    assert cleared[0]["content"].startswith("[cleared to save room: Bash make 0, about ")


def test_zone_cuts_long_arguments_and_tells_the_calls_as_they_stand() -> None:
    talk = Talk("zone", zone=2_000)
    talk.call(*OPENING)
    for n in range(9):
        talk.call(*step(n, "ok", "Write", path=f"{n}.py", content="x = 1\n" * 300))
    rewritten = [m for m in talk.sent if "tool_calls" in m]
    assert rewritten[0]["id"] == "a0"
    assert rewritten[0]["content"] == "step 0"
    (call,) = rewritten[0]["tool_calls"]
    assert (call["id"], call["name"], call["args"]["path"]) == ("t0", "Write", "0.py")
    assert call["args"]["content"].endswith("more characters cut to save room]")
    talk.well_formed()


def test_digest_puts_a_summary_between_what_stays_and_the_last_rounds() -> None:
    talk = Talk("digest", zone=8_000, static_tokens=1_000)
    talk.call(*OPENING)
    for n in range(14):
        talk.call(*step(n, LOG, "Read", file_path=f"src/f{n}.py"))
        talk.well_formed()
    kinds = ["own" if "id" not in m else str(m["id"]) for m in talk.sent]
    assert kinds[:3] == ["s", "u", "own"]
    own = talk.sent[2]
    assert own["content"].startswith("[History Summary]\n- Overall Goal: Make it work.")
    assert "src/f0.py" in own["content"]
    assert len(kinds) >= 3 + 10


def test_a_list_of_parts_and_calls_in_the_wires_own_form_are_taken() -> None:
    talk = Talk("zone", zone=100)
    talk.call(*OPENING)
    for n in range(8):
        function = {"name": "read_file", "arguments": json.dumps({"path": f"{n}.py"})}
        talk.call(
            {
                "id": 2 * n,
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "same", "type": "function", "function": function}],
            },
            {
                "id": 2 * n + 1,
                "role": "tool",
                "tool_call_id": "same",
                "content": [{"type": "text", "text": LOG}, {"type": "image", "data": "…"}],
            },
        )
    assert "read_file 0.py" in talk.sent[3]["content"]
    talk.well_formed()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", "can't be read"),
        (b"\xff\xfe{}", "can't be read"),
        (b'{"type":"other"}', "can't be read"),
        (b'{"type":"call"}', "can't be read"),
        (b'{"type":"call","new":[{"role":"user"}]}', "can't be read"),
        (b'{"type":"call","new":[{"id":9,"role":"dog","content":""}]}', "role 'dog' is none of"),
        (b'{"type":"call","new":[{"id":"u","role":"user","content":""}]}', "with this id already"),
        (
            b'{"type":"call","new":[{"id":9,"role":"assistant","tool_calls":[{"id":1}]}]}',
            "without a name",
        ),
        (b"[" * 100_000, "can't be read"),
    ],
)
def test_a_bad_line_is_answered_with_an_error_and_changes_nothing(line: bytes, reason: str) -> None:
    talk = Talk("batch", zone=1_000)
    talk.call(*OPENING)
    answer = talk.adapter.answer(line)
    assert answer is not None
    assert reason in json.loads(answer)["error"]
    assert [m["id"] for m in talk.call(*step(1, "fine"))] == ["s", "u", "a1", "r1"]


def test_a_bad_message_takes_none_of_its_line() -> None:
    talk = Talk("none")
    talk.call(*OPENING)
    bad = [{"id": 1, "role": "user", "content": "x"}, {"id": 2, "role": "dog"}]
    answer = talk.say({"type": "call", "new": bad})
    assert answer is not None
    assert "error" in answer
    assert talk.call(bad[0]) == [{"id": "s"}, {"id": "u"}, {"id": 1}]


@pytest.mark.parametrize(
    "start", [{"zone": 0}, {"static_tokens": -1}, {"prices": {"input": -1}}, {"window": 0}]
)
def test_a_start_that_makes_no_sense_is_refused(start: dict[str, Any]) -> None:
    talk = Talk("none")
    answer = talk.say({"type": "start", **start})
    assert answer is not None
    assert "error" in answer


def test_nothing_outlives_a_start_or_an_end() -> None:
    talk = Talk("digest", zone=3_000)
    first = [talk.call(*OPENING)] + [talk.call(*step(n, LOG)) for n in range(6)]
    talk.say({"type": "start", "zone": 3_000})
    assert [talk.call(*OPENING)] + [talk.call(*step(n, LOG)) for n in range(6)] == first
    assert talk.say({"type": "end"}) is None
    answer = talk.say({"type": "call", "new": []})
    assert answer == {"error": "a call before any start"}


TEXTS = {
    "none": "",
    "short": "short",
    "log": LOG,
    "long log": LOG * 10,
    "code": "x = 1\n" * 600,
    "error": "error: no such file",
    "chinese": "值" * 900,
}
CONTENTS = st.sampled_from(list(TEXTS))
TOOLS = st.sampled_from(["Read", "Bash", "Grep", "read_file", "Write", "todo_write", "mystery"])


def spelled(new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with the texts that they name (a failing case stays readable so)."""
    out = []
    for given_message in new:
        message = {**given_message, "content": TEXTS[given_message["content"]]}
        if "tool_calls" in message:
            message["tool_calls"] = [
                {**call, "args": {k: TEXTS.get(v, v) for k, v in call["args"].items()}}
                for call in message["tool_calls"]
            ]
        out.append(message)
    return out


@st.composite
def talks(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    count = 0

    def fresh(**more: Any) -> dict[str, Any]:
        nonlocal count
        count += 1
        return {"id": count, **more}

    system = [fresh(role="system", content=draw(CONTENTS))]
    lines = [[*system, fresh(role="user", content="short")]]
    for _ in range(draw(st.integers(0, 14))):
        calls = [
            {
                "id": f"c{count}-{k}",
                "name": draw(TOOLS),
                "args": {
                    "path": draw(st.sampled_from(["a.py", "b.py"])),
                    draw(st.sampled_from(["content", "command", "x"])): draw(CONTENTS),
                },
            }
            for k in range(draw(st.integers(0, 3)))
        ]
        new = [fresh(role="assistant", content=draw(CONTENTS), tool_calls=calls)]
        new += [
            fresh(role="tool", tool_call_id=call["id"], content=draw(CONTENTS)) for call in calls
        ]
        if not calls or draw(st.integers(0, 3)) == 0:
            new.append(fresh(role="user", content=draw(CONTENTS)))
        if draw(st.integers(0, 3)) == 0:
            lines[-1] += new
        else:
            lines.append(new)
    return lines


@settings(max_examples=120, deadline=None)
@given(talks(), st.sampled_from(NAMES), st.sampled_from([None, 300, 2_500, 12_000]))
def test_every_answer_is_well_formed(
    lines: list[list[dict[str, Any]]], policy: str, zone: int | None
) -> None:
    start = {"static_tokens": 200, "prices": {"input": 1, "cached": 0.1, "cache_write": 1.25}}
    if zone is not None:
        start["zone"] = zone
    talk, again = Talk(policy, **start), Talk(policy, **start)
    for new in lines:
        before = talk.sent
        sent = talk.call(*spelled(new))
        talk.well_formed()
        assert again.call(*spelled(new)) == sent
        if policy == "none":
            assert sent[: len(before)] == before


@settings(max_examples=60, deadline=None)
@given(talks(), st.sampled_from(NAMES), st.sampled_from([1_500, 4_000]))
def test_where_the_window_is_full_the_newest_stays_and_pairs_are_kept(
    lines: list[list[dict[str, Any]]], policy: str, window: int
) -> None:
    talk = Talk(policy, window=window, static_tokens=100)
    for new in lines:
        talk.call(*spelled(new))
        talk.well_formed(users=False)


@settings(max_examples=60, deadline=None)
@given(talks(), st.sampled_from([300, 2_500, 12_000]))
def test_between_compactions_batch_keeps_the_prefix(
    lines: list[list[dict[str, Any]]], zone: int
) -> None:
    compacted: list[Any] = []

    def watched(state: Any) -> Any:
        decision = decide(state)
        compacted.append(decision)
        return decision

    talk = Talk("batch", zone=zone)
    talk.adapter = Adapter("batch", decides=watched)
    talk.say({"type": "start", "zone": zone})
    for new in lines:
        before = talk.sent
        sent = talk.call(*spelled(new))
        if compacted[-1] is None:
            assert sent[: len(before)] == before


def test_ten_thousand_messages_in_one_line_and_one_by_one_come_through() -> None:
    for policy in NAMES:
        talk = Talk(policy, zone=50_000)
        talk.call(*OPENING)
        many = [message for n in range(5_000) for message in step(n, "some text " * 20)]
        talk.call(*many)
        talk.well_formed()
        talk.call(*step(5_000, "end"))
        talk.well_formed()


def test_the_program_answers_each_line_at_once_and_ends_with_its_input() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = subprocess.Popen(
        [sys.executable, "-m", "croze.context", "--policy", "none"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    try:
        program.stdin.write(b'{"type":"start"}\n')
        line = {"type": "call", "new": [{"id": 7, "role": "user", "content": "hi"}]}
        program.stdin.write(json.dumps(line).encode() + b"\n")
        program.stdin.flush()
        answer = json.loads(program.stdout.readline())
        assert answer["messages"] == [{"id": 7}]
        program.stdin.close()
        assert program.stdout.read() == b""
        assert program.wait(timeout=60) == 0
    finally:
        program.kill()
        program.wait()
        program.stdout.close()
