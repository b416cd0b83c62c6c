"""What the agents of `croze docs` share: one scan of the project, and one reading of a file (S0)."""

from pathlib import Path

from tests.teams.docs_server import COMMON, PAGES, make_project, measure


async def test_twenty_listings_and_more_become_one_scan(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    assert sum(path.is_file() for path in project.rglob("*")) in range(50, 70)
    shared = await measure(tmp_path, shared=True)
    (tmp_path / "again").mkdir()
    make_project(tmp_path / "again")
    alone = await measure(tmp_path / "again", shared=False)

    assert shared.reason == alone.reason == f"done: docs/reference: {PAGES} written."
    assert shared.agents == alone.agents == PAGES + 2
    assert shared.at_once == 5
    assert (shared.scans, alone.scans) == (1, 0)
    assert shared.calls["list_files"] == 0
    assert alone.calls["list_files"] == 2 * (PAGES + 2) >= 20
    assert shared.calls["read_file"] == alone.calls["read_file"] == PAGES
    assert shared.disk[f"read {COMMON}"] <= 5
    assert alone.disk[f"read {COMMON}"] == PAGES
    assert shared.requests == alone.requests - 2 * (PAGES + 2)
    assert shared.tokens < alone.tokens
