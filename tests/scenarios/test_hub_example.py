"""The program of docs/hub.md, as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = """
replies: []
agents:
- {agent: critic, task: "Group council", replies: [{text: "Perhaps."}]}
- {agent: critic, task: "Let us rewrite", replies: [{text: "No."}]}
- {agent: optimist, replies: [{text: "Yes!"}]}
"""
DOC = Path(__file__).parents[2] / "docs" / "hub.md"


def test_the_program_in_the_documentation_runs(project: Path) -> None:
    script = project.parent / "script.yaml"
    script.write_text(SCRIPT.replace('task: "Or only"', 'task: "Group council"'))
    (program,) = re.findall(r"```python\n(.*?)```", DOC.read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project,
        env={**os.environ, "CROZE_MODEL__MODEL": f"scripted:{script}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, *council = done.stdout.splitlines()
    assert first == "No."
    assert sorted(council)[1] == "optimist: Yes!"
