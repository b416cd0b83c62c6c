"""A real library with a real bug: parse 1.17.0, with the tests of 1.18.0 that show it.

The sdists come from the package registry, pinned by hash; nothing of them is installed and no setup.py
runs. Changelog of 1.18.0: "Correct bug in int parsing introduced in 1.16.0".
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "real"
SDISTS = {
    "1.17.0": "c7806139a481ec8c8336a54418894c8b201314f8ecc63e55f438f4b72bdc4485",
    "1.18.0": "91666032d6723dc5905248417ef0dc9e4c51df9526aaeef271eacad6491f06a4",
}


def _pip() -> list[str]:
    """A pip of this machine; the environment that the tests run in may have none."""
    pythons = [sys.executable, getattr(sys, "_base_executable", sys.executable), "python3"]
    for python in pythons:
        command = [python, "-m", "pip"]
        if (
            shutil.which(python)
            and not subprocess.run([*command, "--version"], capture_output=True).returncode
        ):
            return command
    pytest.skip("no pip on this machine: the library can't be fetched")


def _fetch(version: str, digest: str, folder: Path) -> Path:
    """The unpacked sdist of this version."""
    wanted = folder / f"{version}.txt"
    wanted.write_text(f"parse=={version} --hash=sha256:{digest}\n")
    command = [
        *_pip(), "download", "--quiet", "--disable-pip-version-check", "--no-input",
        "--retries", "1", "--timeout", "20", "--dest", str(folder), "--no-deps",
        "--no-binary", ":all:", "--use-pep517", "--no-build-isolation", "--require-hashes",
        "--requirement", str(wanted),
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(HERE / "backend")}
    try:
        ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=50)
    except subprocess.TimeoutExpired:
        pytest.skip("the package registry does not answer: pip took more than 50 s")
    if ran.returncode:
        errors = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")]
        assert "HASH" not in ran.stderr, ran.stderr
        pytest.skip(f"the package registry can't be reached: {(errors or ['pip failed'])[-1]}")
    with tarfile.open(folder / f"parse-{version}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / f"parse-{version}"


@pytest.fixture(scope="session")
def sdists(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Both versions, fetched once for all tests of this process."""
    folder = tmp_path_factory.mktemp("sdists")
    return {version: _fetch(version, digest, folder) for version, digest in SDISTS.items()}


@pytest.fixture
def library(sdists: Mapping[str, Path], tmp_path: Path) -> Path:
    """The old version with the new version's tests."""
    folder = tmp_path / "parse"
    shutil.copytree(sdists["1.17.0"], folder)
    shutil.copy(sdists["1.18.0"] / "test_parse.py", folder)
    return folder


def suite(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", "-m", "unittest", "test_parse"],
        cwd=folder,
        capture_output=True,
        text=True,
    )


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
