"""A sandbox is believed only after a canary that tried to get out; and what was proven is remembered."""

import os
from contextlib import contextmanager

import pytest

from croze.workspace import probe
from croze.workspace.probe import Prober
from croze.workspace.proof import Proof, remembered
from croze.workspace.wrapper import Entry
from tests.sandboxes import need
from tests.sandboxes import proof as known


@pytest.fixture
def tries(monkeypatch):
    """How often a canary was sent."""
    known("bubblewrap")
    sent = []
    original = Prober._try

    async def counting(self, proof):
        sent.append(proof.kind)
        return await original(self, proof)

    monkeypatch.setattr(Prober, "_try", counting)
    return sent


async def test_what_was_proven_is_remembered_until_something_changes(tmp_path, tries, monkeypatch):
    need("bubblewrap")
    env = dict(os.environ)
    prober = Prober(tmp_path / "cache", env)
    proof = await prober.prove()
    assert proof.kind == "bubblewrap"
    assert await prober.prove() == proof
    assert remembered(tmp_path / "cache", env) == proof
    assert tries == ["bubblewrap"]
    assert (tmp_path / "cache" / "sandbox.json").stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "cache") == ["sandbox.json"]
    monkeypatch.setattr("croze.workspace.proof.read_setting", lambda path: "another boot")
    assert remembered(tmp_path / "cache", env) is None
    assert (await prober.prove()).kind == "bubblewrap"
    assert tries == ["bubblewrap"] * 2
    await prober.prove(anew=True)
    assert tries == ["bubblewrap"] * 3


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"key": []}', b"\xff", b'{"key": null, "proof": {}}']
)
async def test_a_damaged_memory_is_no_memory(tmp_path, damage):
    (tmp_path / "sandbox.json").write_bytes(damage)
    assert remembered(tmp_path, dict(os.environ)) is None


class Sieve:
    """A sandbox that holds nothing back."""

    def __init__(self, policy):
        self.policy = policy

    @contextmanager
    def enter(self, argv, *, cwd, env):
        yield Entry(argv=argv, cwd=cwd, env=env)


class Wall(Sieve):
    """A sandbox in which nothing runs."""

    @contextmanager
    def enter(self, argv, *, cwd, env):
        yield Entry(argv=["/bin/sh", "-c", "echo no namespaces >&2; exit 1"], cwd=cwd, env=env)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (
            Sieve,
            [
                "a file outside was",
                "a TCP connection",
                "a UDP packet",
                "a unix socket",
                "a hidden file",
            ],
        ),
        (Wall, ["no namespaces"]),
    ],
)
async def test_a_program_that_is_there_but_holds_nothing_proves_nothing(
    tmp_path, monkeypatch, kind, says
):
    monkeypatch.setattr(Proof, "wrapper", lambda self, policy: kind(policy))
    monkeypatch.setattr(probe, "find_bwrap", lambda env: "/usr/bin/true")
    deep = tmp_path / ("c" * 120)  # no socket's name can be so long
    proof = await Prober(deep, dict(os.environ)).prove()
    assert proof.kind is None
    for each in says:
        assert each in proof.reasons[0]
    assert proof.fix


async def test_a_failure_is_tried_again_for_it_may_have_been_mended(tmp_path, tries, monkeypatch):
    monkeypatch.setattr(probe, "find_bwrap", lambda env: "/bin/false")
    monkeypatch.setattr("croze.workspace.landlock.abi", lambda: 0)
    prober = Prober(tmp_path / "cache", dict(os.environ))
    for _ in range(2):
        assert (await prober.prove()).kind is None
    assert tries == ["bubblewrap"] * 2


async def test_without_bubblewrap_the_weaker_one_is_taken_and_says_its_gaps(tmp_path, monkeypatch):
    need("landlock")
    monkeypatch.setattr(probe, "find_bwrap", lambda env: None)
    proof = await Prober(tmp_path / "cache", dict(os.environ)).prove()
    assert proof.kind == "landlock"
    assert proof.reasons == ("bubblewrap is not installed",)
    assert any(".git" in gap for gap in proof.gaps)
    assert "bubblewrap" in proof.fix
