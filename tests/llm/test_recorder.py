import stat
from contextlib import aclosing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from croze.llm.recorder import RecordingModel
from croze.llm.script import Script, ScriptedReply, dump_reply, load_script, parse_script
from croze.llm.scripted import ScriptedModel
from croze.types.context import Prompt
from croze.types.errors import ModelError, RetriesExhausted, UsageError
from croze.types.model import ModelInfo, Usage
from croze.types.stream import (
    CallChunk,
    FinishChunk,
    RetryChunk,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
)
from croze.types.tool import ToolDoc

INFO = ModelInfo(provider="openai", model="gpt", window=9, max_output=9)
TOOL = ToolDoc(name="t", summary="s", description="d", parameters={"type": "object"})
PROMPT = Prompt(system="s", messages=(), tools=(TOOL,))


class Canned:
    """A model with given streams: lists of chunks, an exception where the stream fails."""

    def __init__(self, streams):
        self.info = INFO
        self.streams = list(streams)
        self.closed = 0

    def encode(self, prompt):
        return prompt.system.encode()

    async def stream(self, body):
        try:
            for item in self.streams.pop(0):
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed += 1

    async def aclose(self):
        self.closed = -1


async def listen(model, prompt=PROMPT):
    """What a model streams, with its error as the last item."""
    items = []
    try:
        async for chunk in model.stream(model.encode(prompt)):
            items.append(chunk)
    except ModelError as error:
        items.append(error)
    return items


def content(items):
    """The content of a stream, however it was cut into chunks: what is said in order, each call once
    where it begins, the last usage, the finish, the error."""
    said, calls, usage, end = [], {}, None, "cut"
    for item in items:
        last = said[-1] if said else [""]
        match item:
            case TextChunk() if last[0] == "text":
                last[1] += item.text
            case TextChunk() if item.text:
                said.append(["text", item.text])
            case ThinkingChunk() if last[0] == "thinking" and last[2] is None:
                last[1] += item.text
                last[2] = item.opaque
            case ThinkingChunk() if item.text or item.opaque is not None:
                said.append(["thinking", item.text, item.opaque])
            case CallChunk():
                if item.index not in calls:
                    calls[item.index] = ["call", "", None, ""]
                    said.append(calls[item.index])
                call = calls[item.index]
                call[1] = item.name or call[1]
                call[2] = item.provider_id or call[2]
                call[3] += item.args
            case RetryChunk():
                said.append(["retry", item])
                calls.clear()
                usage, end = None, "cut"
            case UsageChunk():
                usage = item.usage
            case FinishChunk():
                end = item.reason
            case ModelError():
                end = (type(item), str(item), item.code, item.status, item.retry_after)
    return said, usage, end


texts = st.text(max_size=12) | st.sampled_from(
    [
        "\n",
        "a\n b\n",
        "  lead\n",
        "trail \n",
        "yes",
        "1",
        "",
        "\t",
        "- x: {",
        "#",
        "\x85",
        "'\"\\",
        "\x00",
    ]
)
chunks = st.one_of(
    texts.map(TextChunk),
    st.builds(ThinkingChunk, texts, st.none() | texts),
    st.builds(CallChunk, st.integers(0, 2), st.none() | texts, st.none() | texts, texts),
    st.builds(
        UsageChunk,
        st.builds(Usage, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)),
    ),
    st.builds(RetryChunk, st.integers(1, 3), st.floats(0, 60), texts, texts),
)
endings = st.one_of(
    st.just([]),
    st.sampled_from(["stop", "length", "tool_calls", "content_filter", "error"]).map(
        lambda reason: [FinishChunk(reason)]
    ),
    st.builds(
        lambda message, code, status, after: [
            ModelError(message, code=code, status=status, retry_after=after, retryable=True)
        ],
        texts,
        st.sampled_from(["reset", "overloaded"]),
        st.none() | st.integers(400, 599),
        st.none() | st.floats(0, 60),
    ),
    texts.map(lambda message: [RetriesExhausted(message)]),
)
streams = st.builds(lambda said, end: said + end, st.lists(chunks, max_size=12), endings)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(streams, max_size=4))
async def test_what_was_recorded_plays_with_the_same_content(tmp_path, recorded):
    path = tmp_path / "said.yaml"
    model = RecordingModel(Canned(recorded), path)
    heard = [await listen(model) for _ in recorded]
    assert heard == recorded
    script = load_script(path)
    player = ScriptedModel(INFO, script)
    played = [await listen(player) for _ in recorded]
    assert [content(items) for items in played] == [content(items) for items in recorded]
    [ended] = await listen(player)
    assert ended.code == "script_ended"


replies = st.builds(
    ScriptedReply,
    thinking=texts,
    text=texts,
    finish=st.none() | st.sampled_from(["stop", "length"]),
    usage=st.none() | st.just("none") | st.builds(Usage, st.none() | st.integers(0, 99)),
    chunk=st.none() | st.integers(0, 9),
    expect=texts | st.lists(texts).map(tuple),
)


@given(st.lists(replies))
def test_a_script_is_read_back_as_it_was_written(script):
    assert parse_script(b"".join(map(dump_reply, script)), "s") == Script(tuple(script))


def test_recorded_text_of_several_lines_stays_readable():
    written = dump_reply(ScriptedReply(text="First.\n\n  def f():\n    return 'é'\n")).decode()
    assert written == "- text: |\n    First.\n\n      def f():\n        return 'é'\n"


async def test_a_large_text_comes_back(tmp_path):
    path = tmp_path / "said.yaml"
    text = "start 😀\n" + "long line \n" * 100_000
    model = RecordingModel(Canned([[TextChunk(text), FinishChunk("stop")]]), path)
    await listen(model)
    assert load_script(path).replies[0].parts[0].text == text


async def test_a_reply_that_was_left_is_recorded_as_far_as_it_came(tmp_path):
    path = tmp_path / "said.yaml"
    inner = Canned([[TextChunk("one "), TextChunk("two"), TextChunk("three"), FinishChunk("stop")]])
    model = RecordingModel(inner, path)
    async with aclosing(model.stream(b"")) as stream:
        await anext(stream)
        await anext(stream)
    assert inner.closed == 1
    assert await listen(ScriptedModel(INFO, load_script(path))) == [TextChunk("one two")]


async def test_the_file_is_a_private_whole_script_after_every_reply(tmp_path):
    path = tmp_path / "said.yaml"
    model = RecordingModel(Canned([[TextChunk(str(i))] for i in range(3)]), path)
    for count in range(4):
        assert len(load_script(path).replies) == count
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        if count < 3:
            await listen(model)
    assert [p.name for p in tmp_path.iterdir()] == ["said.yaml"]
    assert path.read_text().startswith("# What openai:gpt said")


def test_a_path_that_cannot_be_written_is_refused_at_once(tmp_path):
    with pytest.raises(UsageError, match="can't be written: No such file") as caught:
        RecordingModel(Canned([]), tmp_path / "nowhere" / "said.yaml")
    assert caught.value.code == "recording"
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(UsageError, match="can't be written"):
        RecordingModel(Canned([]), folder)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


async def test_the_recorder_is_the_model_that_it_wraps(tmp_path):
    inner = Canned([])
    model = RecordingModel(inner, tmp_path / "said.yaml")
    assert model.info is INFO
    assert model.encode(PROMPT) == b"s"
    await model.aclose()
    assert inner.closed == -1
