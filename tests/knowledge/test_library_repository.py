"""The repository of library documentation, with real repositories on disk: what is kept of them, and what
becomes of it when a fetch fails."""

import asyncio
import fcntl
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from croze.knowledge import library_repository
from croze.knowledge.library_repository import MOST_FILE, LibraryRepository, checked_url
from croze.types.errors import CrozeError, UsageError

GIT = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": "/dev/null", "PATH": os.environ["PATH"],
}  # fmt: skip
API = "github.com/acme/widgets/docs/api.md"
README = "github.com/acme/widgets/README.md"


@dataclass
class Served:
    """A git repository on disk."""

    root: Path

    def git(self, *args: str, said: bytes = b"") -> str:
        ran = subprocess.run(
            ["git", *args], cwd=self.root, env=GIT, input=said, capture_output=True, check=True
        )
        return ran.stdout.decode().strip()

    def put(self, files: dict[str, str | bytes]) -> None:
        for path, text in files.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", "docs")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def served(tmp_path: Path) -> Served:
    root = tmp_path / "served"
    root.mkdir()
    served = Served(root)
    served.git("init", "-q", "-b", "main")
    served.put({README: "# Widgets\n", API: "# API\n", "top.md": "x", "github.com/acme/a.md": "x"})
    served.commit()
    return served


@pytest.fixture
def kept(tmp_path: Path) -> LibraryRepository:
    return LibraryRepository(tmp_path / "cache" / "repository", dict(os.environ))


def names(kept: LibraryRepository) -> list[str]:
    return sorted(os.listdir(kept.folder))


@pytest.mark.parametrize("scheme", ["", "file://"])
async def test_a_fetch_keeps_every_markdown_file_of_a_library(
    served: Served, kept: LibraryRepository, scheme: str
) -> None:
    served.put(
        {"github.com/acme/widgets/logo.png": b"\x89PNG", "gitlab.com/o/lib/deep/er/x.MD": "x"}
    )
    commit = served.commit()
    assert kept.snapshot() is None
    assert kept.libraries() == []
    snapshot, changed = await kept.fetch(f"{scheme}{served.root}")
    assert (snapshot.commit, snapshot.files, snapshot.left_out, changed) == (commit, 3, {}, True)
    assert kept.libraries() == ["github.com/acme/widgets", "gitlab.com/o/lib"]
    files = kept.files("github.com/acme/widgets")
    assert list(files) == ["README.md", "docs/api.md"]
    assert files["docs/api.md"].read_text() == "# API\n"
    assert kept.files("github.com/acme") == kept.files("nothing/at/all") == {}
    assert kept.folder.stat().st_mode & 0o777 == 0o700


async def test_a_refresh_takes_what_is_new_and_drops_what_is_old(
    served: Served, kept: LibraryRepository
) -> None:
    await kept.fetch(str(served.root))
    assert (await kept.fetch(str(served.root)))[1] is False
    served.git("rm", "-q", API)
    served.put({README: "# Widgets 2\n"})
    commit = served.commit()
    snapshot, changed = await kept.fetch(str(served.root))
    assert (snapshot.commit, changed) == (commit, True)
    assert {
        path: file.read_text() for path, file in kept.files("github.com/acme/widgets").items()
    } == {"README.md": "# Widgets 2\n"}
    assert names(kept) == ["current.json", f"docs-{commit[:12]}", "lock"]


async def test_another_address_takes_the_place_of_the_first(
    served: Served, kept: LibraryRepository, tmp_path: Path
) -> None:
    await kept.fetch(str(served.root))
    other = Served(tmp_path / "other")
    other.root.mkdir()
    other.git("init", "-q")
    other.put({"example.org/u/lib/x.md": "x"})
    other.commit()
    await kept.fetch(f"file://{other.root}")
    assert kept.libraries() == ["example.org/u/lib"]
    snapshot = kept.snapshot()
    assert snapshot is not None
    assert snapshot.url == f"file://{other.root}"


async def test_a_hostile_repository_gives_only_plain_files_and_runs_nothing(
    served: Served, kept: LibraryRepository, tmp_path: Path
) -> None:
    secret, pwned = tmp_path / "secret.md", tmp_path / "pwned"
    secret.write_text("SECRET")
    hook = served.root / ".git" / "hooks"
    for name in ("post-checkout", "post-merge", "reference-transaction", "post-index-change"):
        (hook / name).write_text(f"#!/bin/sh\ntouch {pwned}\n")
        (hook / name).chmod(0o755)
    library = served.root / "github.com/acme/widgets"
    (library / "out.md").symlink_to(secret)
    (library / "folder.md").symlink_to(tmp_path)
    served.put(
        {
            "github.com/acme/widgets/huge.md": b"x" * (MOST_FILE + 1),
            ".gitattributes": "*.md filter=evil diff=evil ident\n",
            ".gitmodules": f'[submodule "s"]\n\tpath = github.com/acme/s\n\turl = {served.root}\n',
        }
    )
    served.git("config", "filter.evil.smudge", f"touch {pwned}")
    served.git("config", "filter.evil.clean", f"touch {pwned}; cat")
    served.git("config", "uploadpack.packObjectsHook", f"touch {pwned};")
    served.git("add", "-A")
    pwned.unlink(missing_ok=True)
    head = served.git("rev-parse", "HEAD")
    served.git(
        "update-index", "--add", "--cacheinfo", f"160000,{head},github.com/acme/widgets/sub.md"
    )
    served.git("-c", "core.hooksPath=/dev/null", "commit", "-qm", "evil")
    pwned.unlink(missing_ok=True)
    snapshot, _ = await kept.fetch(str(served.root))
    assert snapshot.files == 2
    assert snapshot.left_out == {"links and submodules": 3, "files that are too large": 1}
    assert list(kept.files("github.com/acme/widgets")) == ["README.md", "docs/api.md"]
    assert not pwned.exists()
    walked = [Path(folder, name) for folder, _, found in os.walk(kept.folder) for name in found]
    assert not any(path.is_symlink() or "SECRET" in path.read_text() for path in walked)


async def test_names_that_lead_out_are_left_out(served: Served, kept: LibraryRepository) -> None:
    """Trees as no git makes them: with `..`, `.git`, control characters and bytes that are no text."""
    blob = served.git("hash-object", "-w", "--stdin", said=b"evil")

    def tree(*entries: tuple[str, bytes, str]) -> str:
        rows = b"".join(
            f"{mode} ".encode() + name + b"\0" + bytes.fromhex(of) for mode, name, of in entries
        )
        return served.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", said=rows)

    ill = [b"\xff.md", b"a\x1b[31m.md", b"back\\slash.md", b"ok.md"]
    library = tree(*(("100644", name, blob) for name in sorted(ill)))
    user = tree(("40000", b"..", library), ("40000", b".git", library), ("40000", b"lib", library))
    top = tree(
        ("40000", b"..", tree(("40000", b"..", user))),
        ("40000", b"x.org", tree(("40000", b"u", user))),
    )
    commit = served.git("commit-tree", top, "-m", "evil")
    served.git("update-ref", "refs/heads/main", commit)
    snapshot, _ = await kept.fetch(str(served.root))
    assert snapshot.files == 1
    assert sum(snapshot.left_out.values()) == 23
    assert kept.libraries() == ["x.org/u/lib"]
    assert list(kept.files("x.org/u/lib")) == ["ok.md"]
    assert names(kept) == ["current.json", f"docs-{commit[:12]}", "lock"]


async def test_a_fetch_that_fails_says_why_and_leaves_what_was_there(
    served: Served, kept: LibraryRepository, tmp_path: Path
) -> None:
    await kept.fetch(str(served.root))
    with pytest.raises(CrozeError) as caught:
        await kept.fetch(str(tmp_path / "nowhere"))
    assert caught.value.code == "library_fetch"
    assert "does not appear to be a git repository" in caught.value.message
    with pytest.raises(CrozeError, match=r"127\.0\.0\.1") as caught:
        await kept.fetch("https://user:s3cr3t-pass@127.0.0.1:1/docs.git")
    assert "s3cr3t-pass" not in f"{caught.value.message} {caught.value.params}"
    assert kept.libraries() == ["github.com/acme/widgets"]
    assert len(names(kept)) == 3


async def test_an_empty_repository_is_a_failure(kept: LibraryRepository, tmp_path: Path) -> None:
    empty = Served(tmp_path / "empty")
    empty.root.mkdir()
    empty.git("init", "-q")
    with pytest.raises(CrozeError, match="remote ref HEAD"):
        await kept.fetch(str(empty.root))
    assert names(kept) == ["lock"]


def test_a_killed_fetch_leaves_nothing_half_and_the_next_one_clears_up(
    served: Served, kept: LibraryRepository, tmp_path: Path
) -> None:
    work = (
        "import asyncio, os, signal, sys\n"
        "from pathlib import Path\n"
        "from croze.knowledge import library_repository as it\n"
        "it._write = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "kept = it.LibraryRepository(Path(sys.argv[1]), dict(os.environ))\n"
        "asyncio.run(kept.fetch(sys.argv[2]))\n"
    )
    command = [sys.executable, "-c", work, str(kept.folder), str(served.root)]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    assert kept.snapshot() is None
    assert any(name.startswith(".fetch-") for name in names(kept))
    work = work.replace("it._write = ", "it._unused = ")
    command[2] = work
    assert subprocess.run(command, timeout=60).returncode == 0
    assert kept.libraries() == ["github.com/acme/widgets"]
    assert not any(name.startswith(".fetch-") for name in names(kept))


async def test_files_that_were_removed_behind_it_are_fetched_again(
    served: Served, kept: LibraryRepository
) -> None:
    await kept.fetch(str(served.root))
    docs = kept.docs
    assert docs is not None
    for file in sorted(docs.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    docs.rmdir()
    assert kept.snapshot() is None
    await kept.fetch(str(served.root))
    assert kept.libraries() == ["github.com/acme/widgets"]


async def test_progress_is_told(served: Served, kept: LibraryRepository) -> None:
    served.put({f"a.org/u/l/{number}.md": "x" * 100 for number in range(50)})
    served.commit()
    lines: list[str] = []
    await kept.fetch(f"file://{served.root}", lines.append)
    assert lines
    assert not any("\r" in line or "\n" in line for line in lines)


@pytest.mark.parametrize(
    "url",
    [
        "", "ext::sh -c id", "-u/tmp", "--upload-pack=touch x", "fd::3", "transport::https://x", "git://x/y",
        "relative/path", "https://", "https://a b", "user@host", "http:/x",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_url(url)
    assert caught.value.code == "library_url"


@pytest.mark.parametrize(
    "url", ["https://example.org/x.git", "ssh://git@h/x", "git@h.org:u/x.git", "file:///tmp/x"]
)
def test_addresses_stay_as_they_are(url: str) -> None:
    assert checked_url(f" {url} ") == url


async def test_a_server_that_never_answers_is_given_up(
    kept: LibraryRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_repository, "SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(CrozeError, match="no end within 1 s"):
            await kept.fetch(f"http://127.0.0.1:{port}/docs.git")
    assert names(kept) == ["lock"]


async def test_a_repository_that_is_too_large_is_not_kept(
    served: Served, kept: LibraryRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.put({"blob.bin": os.urandom(300_000)})
    served.commit()
    monkeypatch.setattr(library_repository, "MOST_PACK", 200_000)
    with pytest.raises(CrozeError, match="it has more than"):
        await kept.fetch(f"file://{served.root}")
    assert names(kept) == ["lock"]


async def test_only_one_process_fetches_at_a_time(
    served: Served, kept: LibraryRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_repository, "_LOCKED", 0.1)
    kept.folder.mkdir(parents=True)
    with (kept.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CrozeError) as caught:
            await kept.fetch(str(served.root))
    assert caught.value.code == "library_busy"
    await kept.fetch(str(served.root))


async def test_two_fetches_at_once_both_end_well(served: Served, kept: LibraryRepository) -> None:
    first, second = await asyncio.gather(kept.fetch(str(served.root)), kept.fetch(str(served.root)))
    assert sorted([first[1], second[1]]) == [False, True]


async def test_a_cancelled_fetch_leaves_nothing(
    kept: LibraryRepository,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        task = asyncio.create_task(kept.fetch(f"http://127.0.0.1:{server.getsockname()[1]}/x"))
        connection, _ = await asyncio.to_thread(server.accept)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        connection.close()
    assert names(kept) == ["lock"]
