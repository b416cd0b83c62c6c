"""The wires' own cost: the next request's body at several lengths, event-stream decoding, start.

.venv/bin/python bench/wire.py
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from croze.llm.anthropic import AnthropicModel
from croze.llm.anthropic_stream import AnthropicDecoder
from croze.llm.faults import Place
from croze.llm.ollama import OllamaModel
from croze.llm.openai import OpenAIModel
from croze.llm.openai_stream import OpenAIDecoder
from croze.llm.sse import SSEParser
from croze.types.context import Message, Prompt
from croze.types.model import ModelInfo
from croze.types.parts import CallResult, Text, ToolCall
from tests.model_server import Reply, ServerThread, anthropic_events, openai_events

MODELS = {"openai": OpenAIModel, "anthropic": AnthropicModel, "ollama": OllamaModel}
RESULT = "x = call(1, 'two')  # a line of a file\n" * 25
START = """
import sys, time
begin = time.process_time()
import asyncio
from croze.llm.open import open_model
from croze.types.context import Message, Prompt
from croze.types.model import ModelInfo
from croze.types.parts import Text
loaded = time.process_time()
async def main():
    info = ModelInfo(provider="x", model="m", window=9000, max_output=10, base_url=sys.argv[1])
    model = open_model(info, api_key="k", max_retries=0)
    body = model.encode(Prompt(system="s", messages=(Message(key=1, last=1, role="user", parts=(Text("hi"),)),)))
    async for chunk in model.stream(body):
        pass
    await model.aclose()
asyncio.run(main())
print(loaded - begin, time.process_time() - loaded)
"""


def report(name: str, value: float, unit: str, target: str) -> None:
    print(f"{name} {value:.3f} {unit} ({target})")


def median(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def transcript(count: int) -> list[Message]:
    out = []
    for key in range(count):
        if key % 2 == 0:
            result = CallResult(f"call{key - 1:05}", "read", ok=True, message="a.py", text=RESULT)
            parts: tuple[Text | CallResult | ToolCall, ...] = (result if key else Text("do it"),)
            out.append(Message(key=key, last=key, role="user", parts=parts))
        else:
            call = ToolCall(id=f"call{key:05}", name="read", args={"path": f"src/{key}.py"})
            out.append(
                Message(key=key, last=key, role="assistant", parts=(Text("I look at it."), call))
            )
    return out


def bench_encode() -> None:
    for wire, model_class in MODELS.items():
        for count in (100, 1_000, 2_000, 10_000):
            info = ModelInfo(
                provider=wire,
                model="m",
                window=10**6,
                max_output=4096,
                base_url="http://127.0.0.1:1/v1",
            )
            model = model_class(info, api_key=None)
            messages = transcript(count + 200)
            model.encode(Prompt(system="s" * 9000, messages=tuple(messages[:count])))
            end = count

            def step(model: object = model, messages: list[Message] = messages) -> None:
                nonlocal end
                end += 2
                model.encode(Prompt(system="s" * 9000, messages=tuple(messages[:end])))  # type: ignore[attr-defined]

            seconds = median(step, 99)
            target = "target < 1" if count <= 2_000 else "no target: 5 MB are copied"
            report(f"encode_next_{wire}_{count}", seconds * 1e3, "ms", target)


def bench_streams() -> None:
    reply = Reply(text="some words of a reply " * 20_000, chunk=20)
    place = Place("x", "m", "")
    for wire, events in (("openai", openai_events(reply)), ("anthropic", anthropic_events(reply))):
        raw = b"".join(events)
        blocks = [raw[i : i + 4096] for i in range(0, len(raw), 4096)]

        def parse(blocks: list[bytes] = blocks) -> None:
            parser = SSEParser()
            for block in blocks:
                parser.feed(block)

        def decode(wire: str = wire, blocks: list[bytes] = blocks) -> None:
            parser = SSEParser()
            make = OpenAIDecoder if wire == "openai" else AnthropicDecoder
            decoder = make(place, sent_tools=False)
            for block in blocks:
                for event in parser.feed(block):
                    decoder.feed(event)

        report(f"sse_parse_{wire}", len(raw) / 1e6 / median(parse, 5), "MB/s", "target > 50")
        report(f"sse_decode_{wire}", len(raw) / 1e6 / median(decode, 5), "MB/s", "target > 10")
        characters = len(reply.text) / median(decode, 5) / 1e6
        report(f"decode_text_{wire}", characters, "M characters/s", "target > 1")


def bench_start() -> None:
    with ServerThread([Reply(text="hello")], repeat=True) as server:
        runs = []
        for _ in range(7):
            done = subprocess.run(
                [sys.executable, "-c", START, server.url],
                capture_output=True,
                text=True,
                check=True,
            )
            runs.append([float(word) * 1e3 for word in done.stdout.split()])
    loaded, asked = (statistics.median(column) for column in zip(*runs, strict=True))
    report("import_cpu", loaded, "ms", "part of 250 of Q1; asyncio and msgspec included")
    report("first_request_cpu", asked, "ms", "part of 250 of Q1; was 190 with httpx2")


def main() -> None:
    bench_encode()
    bench_streams()
    bench_start()


if __name__ == "__main__":
    main()
