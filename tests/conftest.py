"""Fixtures of every test: no network but loopback, no user state but the test's own."""

import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A shell starts what it runs in the background with Ctrl-C ignored, and programs hand that on.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same cases in every run: `make test` says something of the change, not of the dice. To look for new
# cases: HYPOTHESIS_PROFILE=explore.
settings.register_profile("same", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Connections in this process may go to this machine only."""
    if request.node.get_closest_marker("registry"):
        return
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOOPBACK:
            raise OSError(f"tests may not reach {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Config, data, cache and state folders of the test's own; no keys and no settings of the user's."""
    home = tmp_path_factory.mktemp("home")
    for name, folder in (
        ("HOME", "."),
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_STATE_HOME", "state"),
    ):
        monkeypatch.setenv(name, str(home / folder))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
