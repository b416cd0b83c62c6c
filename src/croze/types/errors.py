"""The exceptions of croze: every one carries a code and parameters, so front ends can translate it.

CrozeError
├── UsageError              the user asked for something impossible (exit 2)
│   └── ConfigError         a setting has a wrong value
├── ModelError              the model's side failed
│   └── RetriesExhausted    every try failed (exit 75)
└── StoreError              the session log
    ├── ConversationNotFound
    ├── ConversationExists
    ├── MessageNotFound
    ├── LockTimeout
    ├── SessionBusy         another process runs this session
    ├── StoreCorrupt
    └── StoreFull           no space, or the folder can't be written
"""

from typing import Any


class CrozeError(Exception):
    """A failure that a person can act on.

    `code` is the message's key in the catalogue, `params` fill it in; `str(error)` is English.
    `hint` names the next step.
    """

    code = "error"

    def __init__(self, message: str, *, hint: str = "", code: str = "", **params: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.params = params
        if code:
            self.code = code


class UsageError(CrozeError):
    code = "usage"


class ConfigError(UsageError):
    code = "config"


class ModelError(CrozeError):
    """The provider answered with an error, or could not be reached.

    `status` is the HTTP status where there was one; `retryable` says whether another try may help;
    `retry_after` is the server's wish in seconds; `overflow` marks a context-window overflow.
    """

    code = "model"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        overflow: bool = False,
        tools_refused: bool = False,
        hint: str = "",
        code: str = "",
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.overflow = overflow
        self.tools_refused = tools_refused


class RetriesExhausted(ModelError):
    code = "retries_exhausted"


class StoreError(CrozeError):
    code = "store"


class ConversationNotFound(StoreError):
    code = "conversation_not_found"


class ConversationExists(StoreError):
    code = "conversation_exists"


class MessageNotFound(StoreError):
    code = "message_not_found"


class LockTimeout(StoreError):
    code = "lock_timeout"


class SessionBusy(StoreError):
    code = "session_busy"


class StoreCorrupt(StoreError):
    code = "store_corrupt"


class StoreFull(StoreError):
    code = "store_full"
