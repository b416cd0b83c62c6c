"""From process start to the first request, and the cost of a step, of the real program against a model
server on the loopback: `echo` runs between two requests, the sandbox is off.

Usage: python bench/start_and_step.py [STEPS]
"""

import asyncio
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from figures import figure, own_cpu_seconds, resident_mb

CROZE = Path(sys.executable).parent / "croze"
STARTS = 7
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(payload), payload)


def event(delta: str, reason: str = "null") -> bytes:
    return (
        'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m",'
        f'"choices":[{{"index":0,"delta":{delta},"finish_reason":{reason}}}]}}\n\n'
    ).encode()


USAGE = (
    b'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[],'
    b'"usage":{"prompt_tokens":100,"completion_tokens":10}}\n\ndata: [DONE]\n\n'
)


def call(step: int) -> bytes:
    arguments = f'{{\\"command\\": \\"echo step {step}\\", \\"requires_approval\\": false}}'
    delta = (
        f'{{"role":"assistant","content":"Step {step}.","tool_calls":[{{"index":0,"id":"c{step}",'
        f'"type":"function","function":{{"name":"execute_command","arguments":"{arguments}"}}}}]}}'
    )
    return event(delta) + event("{}", '"tool_calls"') + USAGE


DONE = event('{"role":"assistant","content":"done"}') + event("{}", '"stop"') + USAGE


@dataclass
class Record:
    """Times in seconds: when each request was complete, and when its reply's last byte was written."""

    requests: list[float] = field(default_factory=list)
    replies: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    on_request: Callable[[int], None] = lambda _number: None


class Server(asyncio.Protocol):
    """Answers each request at once, in one write."""

    def __init__(self, record: Record, steps: int) -> None:
        self.record = record
        self.steps = steps
        self.wanted = -1
        self.got = 0
        self.head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.wanted < 0:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return
            for line in self.head[:end].lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    self.wanted = int(line.partition(b":")[2])
            self.got = len(self.head) - end - 4
        else:
            self.got += len(data)
        if self.wanted >= 0 and self.got >= self.wanted:
            self.record.requests.append(time.perf_counter())
            self.record.sizes.append(self.wanted)
            number = len(self.record.requests)
            self.record.on_request(number)
            self.wanted, self.got, self.head = -1, 0, b""
            self.transport.write(HEAD + chunked(DONE if number > self.steps else call(number)))
            self.record.replies.append(time.perf_counter())


def environment(home: Path, port: int) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "OPENAI_API_KEY": "sk-bench",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
    }


async def run(
    home: Path, project: Path, steps: int, sandbox: str = "off"
) -> tuple[Record, dict[int, float], dict[int, float], float]:
    """One `croze run`; the record, CPU seconds and resident MB by request number, and the start time."""
    record = Record()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Server(record, steps), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    cpu: dict[int, float] = {}
    memory: dict[int, float] = {}
    marks = {1, 2, 51, 101, 151, 301, 951, 1001}
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        str(CROZE), "run", "go", "--model", "openai:gpt-4.1", "--dialect", "native",
        "--mode", "full", "--sandbox", sandbox,
        cwd=project, env=environment(home, port), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip

    def on_request(number: int) -> None:
        if number in marks:
            cpu[number] = own_cpu_seconds(process.pid)
            memory[number] = resident_mb(process.pid)

    record.on_request = on_request
    try:
        _out, err = await asyncio.wait_for(process.communicate(), 300)
    except TimeoutError:
        process.send_signal(signal.SIGKILL)
        raise
    ended = time.perf_counter()
    server.close()
    if process.returncode != 0:
        raise SystemExit(f"croze run ended with {process.returncode}:\n{err.decode()}")
    record.replies.append(ended)
    return record, cpu, memory, started


def overheads(record: Record) -> list[float]:
    """Milliseconds from the last byte of a reply to the next request, for each step."""
    pairs = zip(record.replies, record.requests[1:], strict=False)
    return [(request - reply) * 1000 for reply, request in pairs]


async def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder, "home"), Path(folder, "project")
        home.mkdir()
        project.mkdir()
        Path(project, "AGENTS.md").write_text("Say little.\n")
        starts, exits, first_cpu = [], [], []
        for number in range(STARTS + 1):
            record, cpu, memory, started = await run(home, project, 0)
            if number:
                starts.append((record.requests[0] - started) * 1000)
                exits.append((record.replies[1] - record.replies[0]) * 1000)
                first_cpu.append(cpu[1] * 1000)
        figure("start to first request, warm, median", statistics.median(starts), "ms", "<= 250")
        figure("start to first request, CPU, median", statistics.median(first_cpu), "ms")
        figure("last byte of the answer to exit, median", statistics.median(exits), "ms", "<= 50")
        figure("resident memory at the first request", memory[1], "MB", "<= 80")
        record, cpu, memory, _started = await run(home, project, steps)
        times = overheads(record)
        for at in (1, 100, 1000):
            if at <= steps:
                window = times[max(0, at - 50) : at] if at > 1 else times[:1]
                figure(
                    f"step overhead at step {at}, median", statistics.median(window), "ms", "<= 6"
                )
        for first, last in ((51, 101), (101, 151), (951, 1001)):
            if last in cpu and first in cpu:
                spent = (cpu[last] - cpu[first]) / (last - first) * 1000
                figure(f"CPU a step, steps {first} to {last}", spent, "ms", "<= 4")
        for at in (301, 1001):
            if at in memory:
                figure(f"resident memory at step {at - 1}", memory[at], "MB", "<= 80")
        figure(f"request body at step {steps}", record.sizes[-1] / 1000, "kB")


if __name__ == "__main__":
    asyncio.run(main())
