"""Fail points: silent without a setting, exact with one."""

import signal
from unittest.mock import patch

import pytest

from croze.store.failpoint import failpoints


@pytest.mark.parametrize("setting", [None, ""])
def test_without_a_setting_nothing_happens(setting: str | None) -> None:
    with patch("os.kill") as kill:
        for _ in range(5):
            failpoints(setting)("append.after")
    kill.assert_not_called()


def test_the_process_is_killed_at_the_nth_pass_of_that_place_only() -> None:
    passes = failpoints("a:b:3")
    with patch("os.kill") as kill:
        for name in ("a:b", "a", "a:b", "a:bc"):
            passes(name)
        kill.assert_not_called()
        passes("a:b")
        assert kill.call_args.args[1] == signal.SIGKILL
        passes("a:b")
        assert kill.call_count == 1


@pytest.mark.parametrize(
    "setting", ["append", "append:", ":1", "append:0", "append:x", "append:-1"]
)
def test_a_setting_that_cannot_be_read_is_an_error(setting: str) -> None:
    with pytest.raises(ValueError, match="must be <name>:<n>"):
        failpoints(setting)
