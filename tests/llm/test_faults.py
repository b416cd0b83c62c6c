"""What is made of providers' error answers, in the forms that they really have."""

import json
from email.utils import formatdate
from typing import Any

import pytest

from croze.llm.faults import MAX_MESSAGE, Place, error_of_status, read_error, read_retry_after
from croze.types.errors import ModelError

PLACE = Place("acme", "test", "https://acme.example", "sk-secret-0123456789")


def error(status: int, body: Any, *, tools: bool = True) -> ModelError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return error_of_status(PLACE, status, raw, {}, sent_tools=tools)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": "context_length_exceeded", "message": "too long"}}),
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
        (400, {"error": {"message": "input length and `max_tokens` exceed context limit: 1 + 2 > 3"}}),
        (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens."}),
        (400, {"error": {"code": 400, "type": "exceed_context_size_error", "message": "the request exceeds the available context size"}}),
        (400, {"error": {"message": "Please reduce the length of the messages or completion."}}),
        (400, [{"error": {"code": 400, "message": "The input token count (5) exceeds the maximum number of tokens allowed (4).", "status": "INVALID_ARGUMENT"}}]),
        (413, {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
        (400, {"message": "Prompt contains 9 tokens, too large for model with 8 maximum context length"}),
        (500, {"error": "the input length exceeds the context length"}),
    ],
)  # fmt: skip
def test_an_overflow_is_known_in_every_providers_words(status: int, body: Any) -> None:
    found = error(status, body)
    assert (found.overflow, found.retryable, found.code) == (True, False, "overflow")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (500, "tools param requires --jinja flag"),
        (404, "No endpoints found that support tool use. Try disabling tools."),
        (400, "`tool calling` is not supported with this model"),
        (400, "deepseek-reasoner does not support Function Calling"),
        (400, "Unsupported parameter: 'tools' is not supported with this model."),
    ],
)  # fmt: skip
def test_refused_tools_are_known_in_every_servers_words(status: int, said: str) -> None:
    body = {"error": {"message": said}}
    found = error(status, body)
    assert (found.tools_refused, found.retryable, found.code) == (True, False, "tools_refused")
    assert not error(status, body, tools=False).tools_refused


@pytest.mark.parametrize(
    "said",
    [
        "Invalid schema for function 'read': 'format' is not supported",
        "tool_call_id of message 3 was not found",
        "Invalid value for 'temperature'",
    ],
)
def test_other_faults_of_a_request_are_not_refused_tools(said: str) -> None:
    found = error(400, {"error": {"message": said}})
    assert (found.code, found.tools_refused, found.overflow) == ("bad_request", False, False)


def test_an_empty_account_is_not_worth_another_try() -> None:
    body = {"error": {"type": "insufficient_quota", "message": "You exceeded your current quota"}}
    found = error(429, body)
    assert (found.code, found.retryable) == ("quota", False)
    assert "credit" in found.hint


def test_too_many_requests_with_a_word_on_tokens_stay_a_rate_limit() -> None:
    said = "Rate limit reached: too many tokens in the prompt per minute"
    found = error(429, {"error": {"message": said}})
    assert (found.code, found.retryable, found.overflow) == ("rate_limited", True, False)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error": {"type": "t", "code": "c", "message": "m"}}', ("c", "m")),
        (b'{"error": {"type": "api_error", "code": "c", "message": "m"}}', ("api_error", "m")),
        (b'{"error": "m"}', ("", "m")),
        (b'{"detail": "m"}', ("", "m")),
        (b'{"detail": [{"loc": ["body"]}]}', ("", '[{"loc":["body"]}]')),
        (b'{"error": {"code": 502, "message": "m", "metadata": {"raw": "r"}}}', ("502", "m: r")),
        (b"plain", ("", "plain")),
        (b"\xff", ("", "\ufffd")),
        (b"3", ("", "")),
        (b"", ("", "")),
    ],
)
def test_error_bodies_of_every_form_are_read(body: bytes, expected: tuple[str, str]) -> None:
    assert read_error(body) == expected


def test_a_web_page_as_error_is_shown_without_its_tags() -> None:
    assert (
        str(error(502, b"<html><h1>Bad\n gateway</h1></html>")) == "acme answered 502: Bad gateway"
    )


def test_a_long_or_unprintable_message_is_cut_to_one_line() -> None:
    text = str(error(400, {"error": {"message": "a\x1b[31m\n" + "b" * 5000}}))
    assert text.isprintable()
    assert len(text) < MAX_MESSAGE + 50


def test_the_key_is_kept_out_of_messages_even_in_part() -> None:
    text = str(error(401, {"error": {"message": "bad sk-secret-0123456789, sk-secr***6789"}}))
    assert text == "acme answered 401: bad [key], [key]"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_the_wait_that_the_server_asks_for_is_read(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert read_retry_after(headers) == seconds


def test_a_date_to_wait_for_is_seconds_from_now() -> None:
    seconds = read_retry_after({"retry-after": formatdate(4_000_000_000, usegmt=True)})
    assert seconds is not None
    assert seconds > 1e8


@pytest.mark.parametrize("key", ["sk-secret-0123456789", None])
def test_a_refused_request_says_whether_a_key_was_sent(key: str | None) -> None:
    place = Place("acme", "test", "", key)
    hint = error_of_status(place, 401, b"", {}, sent_tools=False).hint
    assert ("No key was sent" in hint) == (key is None)
