"""What a provider's failure means: which code it has, whether another try may help, what to do.

| code | another try | when |
|---|---|---|
| connect, connect_timeout | yes | no connection |
| first_byte_timeout, idle_timeout | yes | connected, but nothing (more) came |
| reset, cut, malformed_stream | yes | the stream broke, ended without a finish signal, or was not JSON |
| rate_limited, overloaded, server_error | yes | 429, 503/529, other 5xx, or their names in a stream |
| unauthorized, forbidden, not_found, bad_request, quota | no | 401, 403, 404, other 4xx, an empty account |
| overflow, tools_refused | no | the caller shortens the context, or takes the xml protocol |
| redirect, not_a_stream, tls, url, key | no | the address or the key can not be right |
"""

import math
import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from croze.llm.providers import known_provider
from croze.text.regex import Regex
from croze.types.errors import ModelError

MAX_MESSAGE = 600
"""Characters of a provider's own message that are shown."""

_OVERFLOW = Regex(
    r"context.?(length|window|size)[ _-]?exceed|exceed\w*.{0,60}context.?(length|window|size|limit)"
    r"|maximum context length|prompt is too long|input is too long|input token count.{0,40}exceeds"
    r"|maximum prompt length|reduce the length of the (messages|prompt|input)"
    r"|too large for model with \d+ maximum context|context_length_exceeded|exceed_context_size"
    r"|input length.{0,60}exceed|request_too_large|too many tokens in the (prompt|input)",
    re.IGNORECASE | re.DOTALL,
)
_TOOLS_REFUSED = Regex(
    r"(\btools?\b|tool[ _-](use|choice|call\w*)|function[ _-]call\w*)[^.]{0,60}?"
    r"(not (be )?(support|available|enabled|allowed)|unsupported|requires? --)"
    r"|(not support|n['’]t support|unsupported|no endpoints found that support|without support for)"
    r"[^.]{0,40}?(\btools?\b|tool[ _-](use|choice|call\w*)|function[ _-]call\w*)",
    re.IGNORECASE,
)
_QUOTA = Regex(
    r"insufficient_quota|insufficient.{0,10}(balance|credit|funds)|billing|credit balance|exceeded your current quota",
    re.IGNORECASE,
)
_BY_TYPE: Mapping[str, tuple[str, bool]] = {
    "overloaded_error": ("overloaded", True),
    "overloaded": ("overloaded", True),
    "rate_limit_error": ("rate_limited", True),
    "rate_limit_exceeded": ("rate_limited", True),
    "too_many_requests": ("rate_limited", True),
    "api_error": ("server_error", True),
    "server_error": ("server_error", True),
    "internal_server_error": ("server_error", True),
    "internal_error": ("server_error", True),
    "timeout_error": ("server_error", True),
    "service_unavailable": ("overloaded", True),
    "invalid_request_error": ("bad_request", False),
    "authentication_error": ("unauthorized", False),
    "permission_error": ("forbidden", False),
    "billing_error": ("quota", False),
    "insufficient_quota": ("quota", False),
    "not_found_error": ("not_found", False),
    "request_too_large": ("overflow", False),
    "context_length_exceeded": ("overflow", False),
}


class Place(msgspec.Struct, frozen=True):
    """Where a failure happened, for its message: provider, model, address, and the key to keep out."""

    provider: str
    model: str
    address: str
    key: str | None = None

    def scrub(self, text: str) -> str:
        """`text` on one line, bounded, without the key and without what begins like it."""
        if self.key:
            text = text.replace(self.key, "[key]")
            if len(self.key) >= 12:
                text = re.sub(re.escape(self.key[:6]) + r"[\w*.…-]*", "[key]", text)
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "…"


def error_of_status(
    place: Place,
    status: int,
    body: bytes,
    headers: Mapping[str, str],
    *,
    sent_tools: bool,
) -> ModelError:
    """The error that an answer with a failing HTTP status is."""
    kind, said = read_error(body)
    retry_after = read_retry_after(headers)
    code, retryable = _by_status(status)
    if _QUOTA.search(f"{kind} {said}") and status in (400, 402, 403, 429):
        code, retryable = "quota", False
    code, retryable = _refine(code, retryable, kind, said, sent_tools=sent_tools)
    wish = headers.get("x-should-retry", "")
    if code not in ("overflow", "tools_refused", "quota") and wish in ("true", "false"):
        retryable = wish == "true"
    shown = place.scrub(said) or "no message"
    return ModelError(
        f"{place.provider} answered {status}: {shown}",
        status=status,
        retryable=retryable,
        retry_after=retry_after,
        overflow=code == "overflow",
        tools_refused=code == "tools_refused",
        hint=_hint(place, code),
        code=code,
    )


def error_in_stream(place: Place, error: Any, *, sent_tools: bool) -> ModelError:
    """The error that an error object inside a stream of status 200 is. Unknown kinds are retryable:
    the request had been accepted."""
    kind, said = _fields(error)
    status = int(kind) if kind.isdecimal() and len(kind) == 3 else None
    code, retryable = _by_status(status) if status else _BY_TYPE.get(kind, ("server_error", True))
    if _QUOTA.search(f"{kind} {said}") and code != "server_error":
        code, retryable = "quota", False
    code, retryable = _refine(code, retryable, kind, said, sent_tools=sent_tools)
    return ModelError(
        f"{place.provider} broke off with an error: {place.scrub(said) or kind or 'no message'}",
        status=status,
        retryable=retryable,
        overflow=code == "overflow",
        tools_refused=code == "tools_refused",
        hint=_hint(place, code),
        code=code,
    )


def malformed(place: Place, why: str) -> ModelError:
    """A stream that is not what the protocol says."""
    return ModelError(
        f"{place.provider} sent a malformed stream: {place.scrub(why)}",
        retryable=True,
        code="malformed_stream",
    )


def read_error(body: bytes) -> tuple[str, str]:
    """Kind and message of an error body, whichever of the known forms it has."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body.decode("utf-8", "replace")
        return "", re.sub(r"<[^>]*>", " ", text) if "<" in text else text
    return _fields(value)


def _fields(error: Any) -> tuple[str, str]:
    if isinstance(error, list) and error:
        error = error[0]
    if isinstance(error, dict):
        inner = error.get("error")
        if isinstance(inner, (dict, str)):
            outer = {k: v for k, v in error.items() if k != "error"}
            kind, said = _fields(inner)
            return kind or _fields(outer)[0], said
        message = error.get("message") or error.get("detail") or ""
        kinds = [error.get("code"), error.get("type")]
        known = [str(k) for k in kinds if isinstance(k, (str, int)) and k]
        kind = next((k for k in known if k in _BY_TYPE), known[0] if known else "")
        metadata = error.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str):
            message = f"{message}: {metadata['raw']}"
        if not isinstance(message, str):
            message = msgspec.json.encode(message).decode()
        return kind, message
    return "", error if isinstance(error, str) else ""


def _by_status(status: int) -> tuple[str, bool]:
    match status:
        case 401:
            return "unauthorized", False
        case 402:
            return "quota", False
        case 403:
            return "forbidden", False
        case 404:
            return "not_found", False
        case 413:
            return "overflow", False
        case 429:
            return "rate_limited", True
        case 503 | 529:
            return "overloaded", True
        case 408 | 409 | 425:
            return "server_error", True
        case 501 | 505:
            return "bad_request", False
    return ("server_error", True) if status >= 500 else ("bad_request", False)


def _refine(
    code: str, retryable: bool, kind: str, said: str, *, sent_tools: bool
) -> tuple[str, bool]:
    if code in ("unauthorized", "forbidden", "rate_limited", "overloaded", "quota"):
        return code, retryable
    if _OVERFLOW.search(f"{kind} {said}"):
        return "overflow", False
    if sent_tools and "schema" not in said.lower() and _TOOLS_REFUSED.search(said):
        return "tools_refused", False
    return code, retryable


def _hint(place: Place, code: str) -> str:
    match code:
        case "unauthorized":
            known = known_provider(place.provider)
            variable = known.keys[0] if known is not None and known.keys else ""
            what = variable or f"the key of {place.provider}"
            if place.key is None:
                return f"No key was sent: set {what} (environment or key file)."
            return f"The key was refused: check {what}."
        case "forbidden":
            return f"The key of {place.provider} may not use {place.model}: check its rights."
        case "not_found":
            return (
                f"Check the model's name ({place.model}) and the base URL ({place.address}); "
                "that of an OpenAI-compatible server usually ends in /v1."
            )
        case "quota":
            return f"The account at {place.provider} has no credit left: top it up or take another model."
        case "bad_request":
            return f"Check the options set for {place.provider}:{place.model}."
        case "rate_limited":
            return "Wait, or take another model."
    return ""


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: `retry-after-ms`, else `Retry-After` as seconds or date."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        seconds: float | None
        try:
            seconds = float(value) / scale
        except ValueError:
            seconds = _until(value) if scale == 1.0 else None
        if seconds is not None and 0 <= seconds < math.inf:
            return seconds
    return None


def _until(date: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
