"""Documentation of installed packages: found where the project has them, read without running anything."""

import hashlib
import json
import os
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.knowledge import package_docs
from croze.knowledge.package_docs import documents, find_package, site_packages
from croze.knowledge.python_api import Api

METADATA = """\
Metadata-Version: 2.1
Name: Acme.Widgets
Version: {version}
Summary: Makes widgets.

# Widgets

Long description: naïve.
"""


class Environment:
    """A virtual environment's packages on disk."""

    def __init__(self, home: Path) -> None:
        self.place = home / "lib/python3.11/site-packages"
        self.place.mkdir(parents=True)

    def install(self, version: str, files: dict[str, str], metadata: str = METADATA) -> Path:
        info = self.place / f"acme_widgets-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(metadata.format(version=version))
        (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
        for path, text in files.items():
            file = self.place / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return info


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def pages(root: Path, name: str, env: dict[str, str] | None = None) -> dict[str, str]:
    package = find_package(name, root, env or {})
    assert package is not None
    return documents(package)


def test_a_python_package_is_its_readme_and_its_public_modules(root: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    files = {
        "acme/__init__.py": f'"""All of acme."""\nfrom pathlib import Path\nPath({str(marker)!r}).touch()\n'
        "from ._core import make\nfrom .paint import *\n",
        "acme/_core.py": 'def make(size: int, *, colour: str = "red") -> "Widget":\n    """Make one."""\n',
        "acme/paint.py": "__all__ = ['brush']\ndef brush(): 'A brush.'\ndef hidden(): ...\n",
        "acme/tests/test_x.py": "def test_x(): ...\n",
        "acme/_private/x.py": "def y(): ...\n",
        "acme/broken.py": "def (:\n",
    }
    Environment(root / ".venv").install("1.0", files)
    found = pages(root, "python:acme-Widgets")
    assert list(found) == ["README.md", "api/acme.md", "api/acme.paint.md"]
    assert found["README.md"].startswith("# acme-widgets 1.0\n\nMakes widgets.\n\n# Widgets")
    assert "naïve" in found["README.md"]
    assert "All of acme." in found["api/acme.md"]
    assert "def make(size: int, *, colour: str='red') -> 'Widget'" in found["api/acme.md"]
    assert "Make one." in found["api/acme.md"]
    assert "A brush." in found["api/acme.md"]
    assert "hidden" not in found["api/acme.md"] + found["api/acme.paint.md"]
    assert "Path" not in found["api/acme.md"]
    assert not marker.exists()


def test_a_module_that_is_one_file_and_one_that_has_only_stubs(root: Path) -> None:
    files = {
        "single.py": "def one():\n    'From the source.'\n", "single.pyi": "def one() -> int: ...\n",
        "fast.pyi": "def speed(x: float) -> float: ...\n", "fast.cpython-311.so": "",
    }  # fmt: skip
    Environment(root / "venv").install("2.0", files)
    found = pages(root, "python:acme.widgets")
    assert "From the source." in found["api/single.md"]
    assert "def speed(x: float) -> float" in found["api/fast.md"]


def test_an_old_description_in_the_headers_is_read_too(root: Path) -> None:
    old = "Name: acme.widgets\nVersion: {version}\nDescription: Title\n        |second line\n\n"
    Environment(root / ".venv").install("1", {}, old)
    assert "Title\nsecond line" in pages(root, "python:acme-widgets")["README.md"]


def test_the_projects_own_environment_comes_before_the_active_one(
    root: Path, tmp_path: Path
) -> None:
    Environment(tmp_path / "active").install("1.0", {})
    env = {"VIRTUAL_ENV": str(tmp_path / "active")}
    package = find_package("python:acme-widgets", root, env)
    assert package is not None
    assert package.version == "1.0"
    Environment(root / ".venv").install("2.0", {})
    package = find_package("python:acme-widgets", root, env)
    assert package is not None
    assert package.version == "2.0"


def test_uvs_and_poetrys_environments_are_found(root: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256(os.path.realpath(root).encode()).digest()
    poetry = tmp_path / "home/.cache/pypoetry/virtualenvs"
    mine = Environment(poetry / f"name-{urlsafe_b64encode(digest).decode()[:8]}-py3.11")
    Environment(poetry / "name-AAAAAAAA-py3.11")
    uv = Environment(root / "own")
    env = {"HOME": str(tmp_path / "home"), "UV_PROJECT_ENVIRONMENT": "own"}
    assert site_packages(root, env) == [uv.place]
    (root / "pyproject.toml").write_text("")
    assert site_packages(root, env) == [uv.place, mine.place]


@pytest.mark.parametrize(
    "name", ["python:../x", "python:", "npm:../../x", "npm:a/b", "ruby:x", "x", "npm:.bin"]
)
def test_what_is_no_package_name_finds_none(root: Path, name: str) -> None:
    assert find_package(name, root, {}) is None


def test_an_npm_package_is_its_texts_and_its_types(root: Path) -> None:
    place = root / "node_modules/@acme/ui"
    manifest = {
        "name": "@acme/ui",
        "version": "3.1.0",
        "description": "Parts",
        "types": "dist/main.d.ts",
        "scripts": {"x": "rm"},
    }
    for path, text in {
        "package.json": json.dumps(manifest), "README.md": "How to use it.", "docs/more.md": "More.",
        "CHANGELOG.md": "old", "dist/a.d.ts": "export type A = 1;", "dist/main.d.ts": "export * from './a';",
        "node_modules/x/x.d.ts": "no", "index.js": "no",
    }.items():  # fmt: skip
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    found = pages(root, "npm:@acme/ui")
    assert list(found) == [
        "README.md",
        "package.json.md",
        "docs/more.md",
        "types/dist/main.d.ts.md",
        "types/dist/a.d.ts.md",
    ]
    assert "# @acme/ui 3.1.0\n\nParts\n\nHow to use it." in found["README.md"]
    assert "scripts" not in found["package.json.md"]
    assert "```ts\nexport type A = 1;\n```" in found["types/dist/a.d.ts.md"]


def test_types_from_another_package_stand_in(root: Path) -> None:
    for path, text in {
        "plain/package.json": '{"version": "1.0.0"}', "@types/plain/index.d.ts": "export const x: 1;",
        "@s/deep/package.json": '{"version": "1.0.0"}', "@types/s__deep/index.d.ts": "export const y: 1;",
    }.items():  # fmt: skip
        (root / "node_modules" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "node_modules" / path).write_text(text)
    assert "const x" in pages(root, "npm:plain")["types/index.d.ts.md"]
    assert "const y" in pages(root, "npm:@s/deep")["types/index.d.ts.md"]


def test_a_link_out_of_a_package_is_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("SECRET")
    place = root / "node_modules/evil"
    place.mkdir(parents=True)
    (place / "package.json").write_text('{"version": "1"}')
    (place / "README.md").symlink_to(tmp_path / "secret")
    os.mkfifo(place / "PIPE.md")
    (place / "x.d.ts").symlink_to(tmp_path / "secret")
    info = Environment(root / ".venv").install("1", {"acme/x.py": "def f(): ..."})
    (info / "METADATA").unlink()
    (info / "METADATA").symlink_to(tmp_path / "secret")
    assert "SECRET" not in str(pages(root, "npm:evil"))
    assert "SECRET" not in str(pages(root, "python:acme-widgets"))


@pytest.mark.parametrize("manifest", ["", "[]", "nonsense", "{}", '{"version": 3}', "[" * 100_000])
def test_a_manifest_that_says_no_version_is_no_package(root: Path, manifest: str) -> None:
    place = root / "node_modules/x"
    place.mkdir(parents=True)
    (place / "package.json").write_text(manifest)
    assert find_package("npm:x", root, {}) is None


def test_a_package_that_is_too_large_is_cut_and_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"acme/m{number:03}.py": f"def f{number}(): 'A docstring.'\n" for number in range(30)}
    Environment(root / ".venv").install("1", files)
    monkeypatch.setattr(package_docs, "MOST_FILES", 10)
    found = pages(root, "python:acme-widgets")
    assert "More than 10 modules" in found["MORE_MODULES.md"]
    assert len(found) == 12
    monkeypatch.setattr(package_docs, "MOST_CHARACTERS", 200)
    assert "more documents of acme-widgets" in pages(root, "python:acme-widgets")["LEFT_OUT.md"]


def of(source: str, **others: str) -> str:
    sources = {"m": source, **{name.replace("__", "."): text for name, text in others.items()}}

    def find(name: str) -> tuple[str, bool] | None:
        text = sources.get(name)
        is_package = any(other.startswith(f"{name}.") for other in sources)
        return None if text is None else (text, is_package)

    return Api(find).page("m")


def test_a_class_is_told_with_its_members() -> None:
    page = of(
        "class Box(Base, key=1):\n    '''Holds.'''\n    size: int = 3\n    _own: int\n"
        "    def __init__(self, size: int): ...\n    @property\n    def full(self) -> bool:\n        'Is it?\\n\\nMore.'\n"
        "    @classmethod\n    async def of(cls): ...\n    def _hidden(self): ...\n"
        "class _No: ...\nLIMIT: int = 5\nTABLE = {1: '" + "x" * 100 + "'}\n"
    )
    assert (
        "### class Box(Base)\n\nHolds.\n\n- `size: int`\n- `def __init__(self, size: int)`\n"
        in page
    )
    assert "- `property full(self) -> bool`: Is it?\n- `classmethod async def of(cls)`" in page
    assert "- `LIMIT: int = 5`" in page
    assert "- `TABLE`" in page
    assert "_hidden" not in page
    assert "_No" not in page
    assert "_own" not in page


def test_overloads_stand_together_and_conditions_are_looked_into() -> None:
    page = of(
        "import typing\n@typing.overload\ndef f(x: int) -> int: ...\n@typing.overload\ndef f(x: str) -> str: ...\n"
        "def f(x): 'Documented.'\nif typing.TYPE_CHECKING:\n    def g(): ...\ntry:\n    import x\nexcept ImportError:\n    def h(): ...\n"
    )
    assert page.count("### f") == 1
    assert "def f(x: int) -> int" in page
    assert "def f(x: str) -> str" in page
    assert "Documented." in page
    assert "### g" in page
    assert "### h" in page


def test_names_are_followed_through_modules_and_circles_end() -> None:
    page = of(
        "from .a import thing as gadget\nfrom . import b\nfrom os import path\nfrom m.c import *\n",
        m__a="from .b import thing\n",
        m__b="from .a import thing\nfrom .c import thing\n",
        m__c="def thing(): 'The thing.'\ndef star(): 'A star.'\nfrom . import *\n",
    )
    assert "### module b" in page
    assert "A star." in page
    assert "path" not in page


def test_nothing_public_is_no_page() -> None:
    assert of("import os\n_x = 1\n") == ""
    assert of("x = " + "(" * 1000 + ")" * 1000) == ""
    assert of("\0") == ""


@given(st.text(max_size=200))
def test_any_text_gives_a_page_or_none(source: str) -> None:
    assert isinstance(of(source), str)
