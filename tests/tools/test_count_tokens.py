"""Token counts of texts, files and folders: which counter, what is passed over, and the bounds."""

from typing import Any

import pytest

from croze.text.tokens import Counter, counter_for, estimate
from croze.tools.builtin import count
from croze.tools.builtin.count import CountTokens


@pytest.fixture
def tree(fake_context: Any) -> Any:
    root = fake_context.workspace.root
    for path, data in {
        "big.txt": b"word " * 400,
        "small.txt": b"word",
        ".gitignore": b"ignored.txt\n",
        "ignored.txt": b"word " * 9_000,
        "blob.bin": b"\0\1\2" * 50,
        "server.pem": b"-----BEGIN",
        "src/a.py": b"x = 1\n" * 90,
        "src/deep/b.py": "ключ = 1\n".encode("utf-16"),
        "node_modules/c.js": b"x" * 500,
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return fake_context


async def test_a_text_is_counted_and_the_counter_named(fake_context: Any) -> None:
    fake_context.counter = counter_for("no-such-model", 4.0)
    result = await CountTokens(text="x" * 41).run(fake_context)
    assert result.message == "11 tokens in 41 characters, by estimate (4.0 characters a token)."
    assert result.data["tokens"] == 11
    assert result.data["exact"] is False
    assert (await CountTokens(text="").run(fake_context)).data["tokens"] == 0


async def test_the_models_own_vocabulary_counts_where_there_is_one(tree: Any) -> None:
    tree.counter = Counter("exact (o200k_base)", lambda text: len(text.split()), exact=True)
    result = await CountTokens(path="big.txt").run(tree)
    assert result.message == "big.txt: 400 tokens in 2,000 bytes, by exact (o200k_base)."
    assert result.data == {
        "path": "big.txt", "tokens": 400, "bytes": 2_000,
        "counter": "exact (o200k_base)", "exact": True,
    }  # fmt: skip


async def test_a_folder_is_a_table_with_the_largest_first(tree: Any) -> None:
    result = await CountTokens(path=".", recursive=True).run(tree)
    names = [row.split()[1] for row in result.text.split("\n")]
    assert names == ["big.txt", "src/a.py", ".gitignore", "src/deep/b.py", "small.txt"]
    assert result.data["tokens"] == sum(file["tokens"] for file in result.data["files"])
    assert result.data["files"][0]["tokens"] == estimate("word " * 400)
    assert result.data["files"][3]["tokens"] == estimate("ключ = 1\n")
    assert "Not counted: 1 binary, 1 sensitive." in result.message
    assert "by estimate (3.3 characters a token)" in result.message


async def test_without_recursive_only_the_folders_own_files_count(tree: Any) -> None:
    result = await CountTokens(path="src").run(tree)
    assert [file["path"] for file in result.data["files"]] == ["src/a.py"]
    top = await CountTokens(path=".").run(tree)
    assert {file["path"] for file in top.data["files"]} == {"big.txt", "small.txt", ".gitignore"}


async def test_large_trees_are_bounded_and_what_is_left_out_is_counted(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree.workspace.root
    for number in range(30):
        (root / "src" / f"{number}.txt").write_text("word " * (number + 1))
    monkeypatch.setattr(count, "MAX_ROWS", 5)
    result = await CountTokens(path="src", recursive=True).run(tree)
    rows = result.text.split("\n")
    assert len(rows) == 6
    assert rows[-1].endswith(" in 27 smaller files")
    monkeypatch.setattr(count, "MAX_FILES", 10)
    bounded = await CountTokens(path="src", recursive=True).run(tree)
    assert bounded.data["counted"] == 10
    assert "22 beyond what a call counts" in bounded.message
    monkeypatch.setattr(count, "MAX_FILE", 20)
    small = await CountTokens(path="src").run(tree)
    assert small.data["too_large"] > 0


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({}, "invalid_arguments"),
        ({"path": "a", "text": "b"}, "invalid_arguments"),
        ({"path": "smal.txt"}, "file_not_found"),
        ({"path": "blob.bin"}, "binary"),
        ({"path": "../outside"}, "path_traversal_blocked"),
    ],
)
async def test_what_cannot_be_counted_is_told(tree: Any, args: Any, code: str) -> None:
    result = await CountTokens(**args).run(tree)
    assert (result.ok, result.code) == (False, code)


async def test_a_file_of_nearly_that_name_is_offered(tree: Any) -> None:
    result = await CountTokens(path="smal.txt").run(tree)
    assert "small.txt" in result.text
