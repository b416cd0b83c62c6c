import pytest

from croze.workspace.workspace import Workspace


@pytest.fixture
def workspace(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    return Workspace("w", root, "main")
