"""Folders of the user's that commands may read although what they lie in is hidden."""

import os
from pathlib import Path

import pytest

from croze.workspace.process import child_environment, run
from croze.workspace.sandbox import Confinement
from croze.workspace.wrapper import Policy
from tests.sandboxes import proof


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if proof(name).kind != name:
        pytest.skip(f"no {name} here: {'; '.join(proof(name).reasons)}")
    return name


async def said(kind: str, policy: Policy, command: str) -> str:
    ended = await run(
        ["/bin/sh", "-c", f"{{ {command}; }} 2>&1"],
        cwd=policy.root,
        env=child_environment(os.environ),
        timeout=60,
        sandbox=proof(kind).wrapper(policy),
    )
    return ended.head


async def test_a_lent_folder_is_read_and_run_but_not_written_and_its_neighbours_stay_hidden(
    kind: str, tmp_path: Path
) -> None:
    base = Path(os.path.realpath(tmp_path))
    root, config = base / "project", base / "config"
    root.mkdir()
    (config / "tools").mkdir(parents=True)
    (config / "tools/say").write_text("#!/bin/sh\necho lent\n")
    (config / "tools/say").chmod(0o755)
    (config / "keys.toml").write_text("hidden-value\n")
    policy = Policy(
        root=root, level="workspace", hidden=(config,), temporary=(base,), lent=(config / "tools",)
    )
    assert await said(kind, policy, f"{config}/tools/say") == "lent\n"
    assert "hidden-value" not in await said(kind, policy, f"cat {config}/keys.toml")
    await said(kind, policy, f"echo x >{config}/tools/new; echo x >>{config}/tools/say")
    assert sorted(os.listdir(config / "tools")) == ["say"]
    assert (config / "tools/say").read_text() == "#!/bin/sh\necho lent\n"
    without = Policy(root=root, level="workspace", hidden=(config,), temporary=(base,))
    assert "lent" not in await said(kind, without, f"{config}/tools/say 2>/dev/null")


def test_only_folders_that_are_there_are_lent_by_where_they_really_lie(tmp_path: Path) -> None:
    base = Path(os.path.realpath(tmp_path))
    (base / "dotfiles").mkdir()
    (base / "tools").symlink_to(base / "dotfiles")
    lent = (base / "tools", base / "absent")
    confinement = Confinement(root=base, env={"HOME": str(base)}, cache=base, lent=lent)
    assert confinement.policy().lent == (base / "dotfiles",)
