"""The project's tree: its depth, what is left out of it, how it is cut, and what it bears."""

import os
import shutil
import subprocess
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.workspace.files import Files
from croze.workspace.sensitive import is_sensitive
from croze.workspace.tree import (
    CHARACTERS,
    DEEPER,
    SHARED_CHARACTERS,
    Tree,
    TreeOptions,
    fitting_depth,
    scan,
)

LARGE = TreeOptions(None, 20_000)


def make(root, *paths):
    """Files, and folders where a path ends in `/`."""
    for path in paths:
        target = root / path
        if path.endswith("/"):
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(path)


def tree(root, options=LARGE, **more) -> Tree:
    return scan(Files(root, kind="project"), options, **more)


def names(found: Tree) -> list[str]:
    """The drawn paths, from the rows and their indents."""
    stack: list[str] = []
    paths = []
    for row in found.text.split("\n"):
        drawn = row.lstrip("│├└─ \xa0")
        depth = (len(row) - len(drawn)) // 4
        if depth == 0:
            continue
        stack[depth - 1 :] = [drawn.rstrip("/")]
        paths.append("/".join(stack) + ("/" if drawn.endswith("/") else ""))
    return paths


def deepest(found: Tree, below: str) -> int:
    return max(p.rstrip("/").count("/") + 1 for p in names(found) if p.startswith(below))


def test_one_file_is_a_tree_of_one_row(tmp_path):
    make(tmp_path, "README.md")
    found = tree(tmp_path)
    assert found.text == "└── README.md"
    assert (found.entries, found.left_out, found.complete, found.error) == (1, 0, True, "")
    assert found.whole == {".": ("README.md",)}


def test_an_empty_or_missing_root_has_no_rows(tmp_path):
    assert tree(tmp_path).text == ""
    assert tree(tmp_path / "not yet made").entries == 0


def test_folders_come_first_sorted_and_end_in_a_slash(tmp_path):
    make(tmp_path, "b.py", "a.py", "zoo/x", "alpha/y")
    assert tree(tmp_path).text == ("├── alpha/\n│   └── y\n├── zoo/\n│   └── x\n├── a.py\n└── b.py")


@pytest.mark.parametrize(
    ("entries", "depth"), [(0, 4), (19, 4), (20, 3), (99, 3), (100, 2), (5_000, 2)]
)
def test_the_depth_follows_the_size_of_the_root(entries, depth):
    assert fitting_depth(entries) == depth


@pytest.mark.parametrize(("files", "depth"), [(0, 4), (18, 4), (19, 3), (98, 3), (99, 2)])
def test_depth_one_is_the_roots_entries(tmp_path, files, depth):
    make(tmp_path, "a/b/c/d/e/f", *(f"file{number}" for number in range(files)))
    found = tree(tmp_path)
    assert found.depth == depth
    assert deepest(found, "a/") == depth


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_depth_that_is_asked_for_holds(tmp_path, depth):
    make(tmp_path, "a/b/c/d/e/f")
    found = tree(tmp_path, TreeOptions(depth, 5_000))
    assert (found.depth, deepest(found, "a/")) == (depth, depth)


@pytest.mark.parametrize("name", sorted(DEEPER))
def test_favoured_folders_are_scanned_one_level_deeper_and_only_once(tmp_path, name):
    make(tmp_path, f"{name}/b/c/d/e/f", "other/b/c/d/e/f", f"x/{name}/b/c/d/e")
    make(tmp_path, f"{name}/{name}/{name}/{name}/{name}/z")
    found = tree(tmp_path, TreeOptions(3, 20_000))
    assert deepest(found, "other/") == 3
    assert deepest(found, f"{name}/b") == 4
    assert deepest(found, f"{name}/{name}") == 4
    assert deepest(found, f"x/{name}") == 4


def test_what_is_passed_over(tmp_path):
    left_out = (
        "node_modules/x/index.js", ".git/HEAD", "dist/a", "build/a", "coverage/a", ".next/a", ".nuxt/a",
        "out/a", "sub/__pycache__/a.pyc", "venv/bin/python", ".venv/bin/python", ".hidden/a", ".env",
        ".env.local", ".env.example", "ignored.log", "gen/a", "sub/own.tmp", "id_rsa", "deploy.pem",
        "credentials.json",
    )  # fmt: skip
    kept = (
        ".github/workflows/ci.yml", ".aigne/config", ".croze/rules/a.md", ".editorconfig", ".gitignore",
        "id_rsa.pub", "sub/.gitignore", "sub/kept.py",
    )  # fmt: skip
    make(tmp_path, *left_out, *kept)
    (tmp_path / ".gitignore").write_text("*.log\n/gen/\n")
    (tmp_path / "sub/.gitignore").write_text("*.tmp\n")
    shown = {path for path in names(tree(tmp_path)) if not path.endswith("/")}
    assert shown == set(kept)


def test_links_are_shown_and_never_followed(tmp_path):
    make(tmp_path, "a/b/file")
    (tmp_path / "a/loop").symlink_to("..")
    (tmp_path / "a/b/up").symlink_to(tmp_path)
    (tmp_path / "broken").symlink_to("nowhere")
    found = tree(tmp_path, TreeOptions(4, 20_000))
    assert "loop (link)" in found.text
    assert "broken (link)" in found.text
    assert found.entries == 6


def test_names_that_can_not_be_printed_or_decoded_are_shown_as_far_as_they_can(tmp_path):
    make(tmp_path, "a\nb", "c\x1b[31md", "\u202efdp.exe", "größe.txt", "名前.md")
    broken = os.fsencode(tmp_path) + b"/caf\xe9"
    with open(broken, "w"):
        pass
    os.mkdir(os.fsencode(tmp_path) + b"/d\xff")
    with open(os.fsencode(tmp_path) + b"/d\xff/inside", "w"):
        pass
    found = tree(tmp_path)
    rows = sorted(row[4:] for row in found.text.split("\n"))
    assert rows == sorted(["a�b", "c�[31md", "�fdp.exe", "größe.txt", "名前.md", "caf�", "d�/"])
    found.text.encode()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_not_be_read_has_no_rows(tmp_path):
    make(tmp_path, "closed/secret", "open/file")
    (tmp_path / "closed").chmod(0)
    try:
        assert names(tree(tmp_path)) == ["closed/", "open/", "open/file"]
    finally:
        (tmp_path / "closed").chmod(0o700)


def test_a_folder_that_can_not_be_listed_has_no_rows(tmp_path, monkeypatch):
    make(tmp_path, "closed/secret", "open/file")
    listing = Files.list

    def refuse(self, path="."):
        if path == "closed":
            return listing(self, "no such folder")
        return listing(self, path)

    monkeypatch.setattr(Files, "list", refuse)
    assert names(tree(tmp_path)) == ["closed/", "open/", "open/file"]


def test_a_root_that_is_no_folder_says_why_there_is_no_tree(tmp_path):
    make(tmp_path, "file")
    found = tree(tmp_path / "file")
    assert (found.text, found.entries) == ("", 0)
    assert found.error
    assert str(tmp_path) not in found.error


def test_a_cut_tree_says_how_many_there_are_and_how_many_are_left_out(tmp_path):
    make(
        tmp_path,
        *(f"pkg{a}/mod{b}/file{c}.py" for a in range(8) for b in range(6) for c in range(9)),
    )
    found = tree(tmp_path, TreeOptions())
    assert found.entries == 8 + 8 * 6 + 8 * 6 * 9
    assert len(found.text) <= CHARACTERS
    assert found.text.endswith(f"… {found.left_out:,} of {found.entries:,} entries left out")
    drawn = [path for path in names(found) if "…" not in path]
    assert len(drawn) == found.entries - found.left_out
    assert {f"pkg{a}/mod{b}/" for a in range(8) for b in range(6)} <= set(drawn)


def test_upper_levels_are_kept_before_lower_ones(tmp_path):
    make(tmp_path, *(f"a/deep/file{number}" for number in range(600)), "z/one", "top")
    found = tree(tmp_path, TreeOptions())
    assert {"a/", "a/deep/", "z/", "z/one", "top"} <= set(names(found))
    assert "more" in found.text


def test_a_root_with_too_many_entries_keeps_the_first(tmp_path):
    make(tmp_path, *(f"file{number:04}.txt" for number in range(1_000)))
    found = tree(tmp_path, TreeOptions())
    assert found.text.startswith("├── file0000.txt\n├── file0001.txt\n")
    assert found.left_out > 700
    assert found.whole == {}


def test_more_characters_show_more(tmp_path):
    make(tmp_path, *(f"pkg{a}/file{c}.py" for a in range(40) for c in range(30)))
    shown = [
        tree(tmp_path, TreeOptions(3, room))
        for room in (CHARACTERS, 5_000, SHARED_CHARACTERS, 20_000)
    ]
    assert [
        len(each.text) <= room
        for each, room in zip(shown, (3_000, 5_000, 10_000, 20_000), strict=True)
    ]
    left_out = [each.left_out for each in shown]
    assert left_out == sorted(left_out, reverse=True)
    assert len(set(left_out)) == 4


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(st.integers(0, 30), st.integers(0, 40), max_size=12),
    st.integers(5, 40),
    st.sampled_from([3_000, 5_000]),
)
def test_however_it_is_cut_it_fits_and_counts_right(tmp_path_factory, folders, width, room):
    root = tmp_path_factory.mktemp("cut")
    try:
        for folder, files in folders.items():
            path = root / f"folder{folder}"
            path.mkdir()
            for number in range(files):
                (path / (f"{number}" + "x" * width)).touch()
        found = tree(root, TreeOptions(3, room))
        assert len(found.text) <= room
        assert found.entries == len(folders) + sum(folders.values())
        drawn = [path for path in names(found) if "…" not in path]
        assert len(drawn) == found.entries - found.left_out
        assert found.complete
    finally:
        shutil.rmtree(root)


def test_a_folder_that_is_no_project_is_scanned_for_a_bounded_time_only(tmp_path):
    make(tmp_path, *(f"a{number}/b/c" for number in range(30)))
    ticks = count(step=0.5)
    found = tree(tmp_path, clock=lambda: next(ticks))
    assert not found.complete
    assert "at least" in found.text
    assert {f"a{number}/" for number in range(30)} <= set(names(found))


def test_a_folder_that_is_no_project_is_scanned_for_so_many_entries_only(tmp_path, monkeypatch):
    make(tmp_path, *(f"a{number}/b/c" for number in range(30)))
    monkeypatch.setattr("croze.workspace.tree.MOST_ENTRIES", 35)
    found = tree(tmp_path)
    assert (found.complete, found.entries) == (False, 36)
    assert found.text.endswith("entries left out: too many to scan")


def test_the_same_project_gives_the_same_text(tmp_path):
    for copy in ("one", "two"):
        make(
            tmp_path / copy,
            *(f"pkg{a}/m{b}/f{c}" for a in range(9) for b in range(9) for c in range(9)),
        )
    assert tree(tmp_path / "one").text == tree(tmp_path / "two").text


def test_a_node_project_shows_its_sources_and_no_packages(tmp_path):
    make(
        tmp_path, "package.json", "node_modules/react/index.js", ".next/cache/x", "src/app/page.tsx",
        "src/app/api/users/route.ts", "public/logo.svg", ".npmrc",
    )  # fmt: skip
    shown = names(tree(tmp_path))
    assert "src/app/api/users/route.ts" in shown
    assert not [p for p in shown if "react" in p or "cache" in p or "npmrc" in p]


def test_a_python_project_shows_its_package_and_no_byte_code(tmp_path):
    make(
        tmp_path, "pyproject.toml", "src/shop/__init__.py", "src/shop/__pycache__/x.pyc", ".venv/bin/python",
        "tests/test_shop.py", ".tox/py/x", "build/lib/x",
    )  # fmt: skip
    assert set(names(tree(tmp_path))) == {
        "pyproject.toml", "src/", "src/shop/", "src/shop/__init__.py", "tests/", "tests/test_shop.py",
    }  # fmt: skip


def test_a_monorepo_shows_every_package_before_the_files_of_any(tmp_path):
    make(tmp_path, *(f"packages/pkg{a:02}/src/f{b}.ts" for a in range(40) for b in range(20)))
    make(tmp_path, "package.json", "apps/web/main.ts")
    found = tree(tmp_path, TreeOptions())
    assert {f"packages/pkg{a:02}/" for a in range(40)} <= set(names(found))
    assert "apps/web/" in names(found)


def test_a_mixed_project_of_a_thousand_files_fits(tmp_path):
    make(
        tmp_path,
        *(
            f"{top}/m{b}/f{c}.x"
            for top in ("go", "lib", "web", "py")
            for b in range(10)
            for c in range(25)
        ),
    )
    found = tree(tmp_path, TreeOptions())
    assert found.entries == 4 + 40 + 1_000
    assert {"go/", "lib/", "web/", "py/"} <= set(names(found))


def test_deep_nests_end_at_the_depth(tmp_path):
    make(tmp_path, "/".join("d" * 60) + "/file")
    assert deepest(tree(tmp_path), "d/") == 4


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_repositorys_own_excludes_count(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    make(tmp_path, "mine.txt", "kept.txt")
    (tmp_path / ".git/info").mkdir(exist_ok=True)
    (tmp_path / ".git/info/exclude").write_text("mine.txt\n")
    assert names(tree(tmp_path)) == ["kept.txt"]


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".env.local", ".env.production", ".envrc", "config/prod.env", "id_rsa", "a/id_ed25519",
        "server.pem", "tls.KEY", "store.p12", "cert.pfx", "app.keystore", "release.jks", "putty.ppk",
        "credentials.json", "Credentials.JSON", "gcp/service-account-prod.json", "my_service_account.json",
        "client_secret_123.json", ".npmrc", ".pypirc", ".netrc", "_netrc", ".git-credentials", "kubeconfig",
        "kubeconfig.yaml", ".kube/config", ".docker/config.json", ".aws/credentials", ".ssh/deploy",
        ".pgpass", ".htpasswd", "secrets.yaml", "application_default_credentials.json",
    ],
)  # fmt: skip
def test_files_of_secrets_are_known_by_their_names(path):
    assert is_sensitive(path)


@pytest.mark.parametrize(
    "path",
    [
        ".env.example", ".env.sample", ".env.template", "example.env", "id_rsa.pub", "public.pem",
        "key.py", "keys/readme.md", "monkey.py", "src/credentials.py", "environment.ts", "token.go",
        "docs/secrets.md", ".ssh/known_hosts", "credentials.example.json", "kube/config", "passwords.ts",
        "accounts.json", "config.json", "app.pub.pem", ".gitignore", "turkey", "open_key_press.ts",
    ],
)  # fmt: skip
def test_look_alikes_are_no_secrets(path):
    assert not is_sensitive(path)
