"""The head: parts in their order, the same bytes for the same inputs, kept rendered between starts."""

import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.context import head as head_module
from croze.context.check import HEADINGS, check_head
from croze.context.environment import SystemInfo
from croze.context.head import Head, build_head
from croze.context.sections import PARTS, SEPARATOR, assemble
from croze.dialect.native import NativeDialect
from croze.dialect.xml import XmlDialect
from croze.types.agent import AgentSpec

DIALECTS = {"xml": XmlDialect, "native": NativeDialect}
KEYS = [
    "role",
    "tool_use",
    "capabilities",
    "rules",
    "system_information",
    "objective",
    "workflow",
]


@pytest.fixture
def build(core_docs, make_doc, debian):
    """Builds a head with usual arguments, save those that a test names."""

    def make(
        spec=None, *, core=core_docs, others=None, dialect="native", system=debian, cache=None
    ):
        others = (
            (make_doc("todo_read"), make_doc("plan_mode_respond")) if others is None else others
        )
        return build_head(
            spec or AgentSpec(), core, others, DIALECTS[dialect](), system, cache=cache
        )

    return make


@pytest.mark.parametrize("dialect", ["xml", "native"])
def test_parts_stand_in_the_order_of_the_system_layer(build, dialect):
    head = build(dialect=dialect)
    parts = head.system.split(SEPARATOR)
    assert [section.key for section in head.sections if section.key != "tools"] == KEYS
    assert len(parts) == len(KEYS)
    assert [part.splitlines()[0] for part in parts[1:]] == [*HEADINGS, "WORKFLOW"]


@pytest.mark.parametrize("dialect", ["xml", "native"])
def test_the_rendered_head_passes_its_own_check(build, core_docs, dialect):
    head = build(dialect=dialect)
    names = [doc.name for doc in core_docs]
    schemas = names if dialect == "native" else []
    assert check_head(head.system, names, schemas=schemas) == []


def test_the_text_has_no_blank_runs_and_no_trailing_blanks(build):
    text = build().system
    assert "\n\n\n" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "{{" not in text
    assert "{%" not in text


def test_the_agents_own_prompt_takes_the_place_of_the_role(build):
    text = build(AgentSpec(prompt="You review migrations.\nNothing else.\n")).system
    assert text.startswith("You review migrations.\nNothing else.\n\n====\n\nTOOL USE")
    assert "You are croze" not in text


def test_an_agents_prompt_is_never_run_as_a_template(build, tmp_path):
    prompt = "{{ 7 * 7 }} {% raw %} {{ cycler.__init__ }}"
    assert build(AgentSpec(prompt=prompt), cache=tmp_path).system.startswith(prompt)


def test_authority_is_told_in_its_order(build):
    rules = next(p for p in build().system.split(SEPARATOR) if p.startswith("RULES"))
    order = [
        "your role",
        "tools must be used",
        "rules (the project's before the user's)",
        "current request",
        "project context",
        "earlier conversation",
    ]
    places = [rules.index(words) for words in order]
    assert places == sorted(places)


def test_the_text_speaks_only_of_tools_that_the_agent_has(build, make_doc):
    text = build(core=(make_doc("read_file"), make_doc("search_files")), others=()).system
    for absent in (
        "replace_in_file",
        "attempt_completion",
        "todo",
        "Run:",
        "Change:",
        "Ask the user",
    ):
        assert absent not in text.replace("`<todo>`", "")
    assert "end with a reply that calls no tool" in text


def test_demanded_completion_is_told(build):
    assert (
        "End every request with attempt_completion"
        in build(AgentSpec(demand_completion=True)).system
    )
    assert "mere question you answer in text" in build().system


@pytest.mark.parametrize("dialect", ["xml", "native"])
def test_every_tool_has_its_place_core_in_full_and_others_in_a_line(build, make_doc, dialect):
    doc = make_doc("read_file", guideline="Read in one go what belongs together.")
    head = build(core=(doc,), dialect=dialect)
    assert head.system.count(doc.guideline) == 1
    assert head.system.count(doc.description) == (1 if dialect == "xml" else 0)
    assert "- todo_read: todo_read in a line" in head.system
    assert "What todo_read does in full." not in head.system


def test_the_shell_that_runs_commands_and_another_one_of_the_user_are_told(build):
    fish = SystemInfo(os="Debian", shell="bash", user_shell="fish", encoding="utf-8")
    assert "Shell: bash\nEncoding: utf-8" in build().system
    told = "Shell: bash (runs the commands; the user's own is fish)\nEncoding: utf-8"
    assert told in build(system=fish).system


def test_sections_account_for_every_token(build, core_docs):
    native, xml = build(dialect="native"), build(dialect="xml")
    assert native.tokens == sum(section.tokens for section in native.sections)
    assert native.sections[-1].key == "tools"
    assert [section.key for section in xml.sections] == KEYS
    assert native.core == xml.core == core_docs
    assert all(s.layer == "system" and s.place == "head" and s.reason for s in native.sections)


def test_a_head_comes_back_from_its_stored_form_unchanged(build):
    head = build()
    assert Head.decode(head.encode()) == head
    with pytest.raises(msgspec.DecodeError):
        Head.decode(head.encode()[:-20])


def test_the_same_inputs_give_the_same_bytes_cached_or_not(build, tmp_path):
    cold = build(cache=tmp_path)
    warm = build(cache=tmp_path)
    assert cold == warm == build()
    assert cold.encode() == warm.encode()


@pytest.mark.parametrize(
    "change",
    [
        {"spec": AgentSpec(prompt="Another role.")},
        {"spec": AgentSpec(demand_completion=True)},
        {"dialect": "xml"},
        {"others": ()},
        {"system": SystemInfo(os="Arch Linux", shell="bash", user_shell="zsh", encoding="utf-8")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_any_changed_input_gives_another_head_from_the_same_cache(build, tmp_path, change):
    before = build(cache=tmp_path)
    after = build(**change, cache=tmp_path)
    assert after.digest != before.digest
    assert after == build(**change)


def test_a_changed_tool_schema_changes_the_digest(build, core_docs):
    changed = msgspec.structs.replace(core_docs[0], parameters={"type": "object"})
    assert build(core=(changed, *core_docs[1:])).digest != build().digest


def test_a_changed_template_is_rendered_again(build, tmp_path, monkeypatch):
    before = build(cache=tmp_path)
    source = type(PARTS[0].prompt).source
    changed = property(lambda self: source.fget(self).replace("Habits that pay", "Good habits"))
    monkeypatch.setattr(type(PARTS[0].prompt), "source", changed)
    after = build(cache=tmp_path)
    assert "Good habits" not in before.system
    assert "Good habits" in after.system


def test_the_cache_file_is_private_and_written_whole(build, tmp_path):
    build(cache=tmp_path / "deep" / "cache")
    files = list((tmp_path / "deep" / "cache" / "heads").iterdir())
    assert [file.suffix for file in files] == [".json"]
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "no_json", "folder", "foreign"])
def test_a_damaged_cache_file_is_made_anew(build, tmp_path, damage):
    good = build(cache=tmp_path)
    (file,) = (tmp_path / "heads").iterdir()
    data = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(
            {
                "empty": b"",
                "cut": data[: len(data) // 2],
                "flipped": data.replace(b"coding agent", b"coding angel"),
                "no_json": b"\xff\xfe" + data,
                "foreign": b'{"texts": [], "check": ""}',
            }[damage]
        )
    assert build(cache=tmp_path) == good
    if damage != "folder":
        assert file.read_bytes() == data


def test_a_cache_path_that_is_a_file_is_done_without(build, tmp_path):
    (tmp_path / "cache").write_text("occupied")
    assert build(cache=tmp_path / "cache") == build()
    assert (tmp_path / "cache").read_text() == "occupied"


def test_old_heads_leave_the_cache_and_other_files_stay(build, tmp_path, monkeypatch):
    monkeypatch.setattr(head_module, "KEPT", 2)
    (tmp_path / "other.json").write_text("{}")
    for i in range(4):
        build(AgentSpec(prompt=f"Role {i}."), cache=tmp_path)
    assert len(list((tmp_path / "heads").iterdir())) == 2
    assert (tmp_path / "other.json").exists()


def test_a_warm_start_loads_no_template_engine(tmp_path):
    code = (
        "import sys, pathlib\n"
        "from croze.context.head import build_head\n"
        "from croze.context.environment import SystemInfo\n"
        "from croze.dialect.native import NativeDialect\n"
        "from croze.types.agent import AgentSpec\n"
        "h = build_head(AgentSpec(), (), (), NativeDialect(), SystemInfo('a', 'b', 'b', 'c'),"
        " cache=pathlib.Path(sys.argv[1]))\n"
        "print(h.digest, [m for m in ('jinja2', 'yaml') if m in sys.modules])"
    )

    def start() -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2] / "src",
        )
        return done.stdout.split(maxsplit=1)

    cold, warm = start(), start()
    assert cold[0] == warm[0]
    assert cold[1].strip() == "['jinja2']"
    assert warm[1].strip() == "[]"


@settings(max_examples=50)
@given(texts=st.lists(st.text(), min_size=len(PARTS), max_size=len(PARTS)))
def test_assembling_leaves_out_empty_parts_and_keeps_the_order(texts):
    system, sections = assemble(texts)
    kept = [
        (part.key, text.strip()) for part, text in zip(PARTS, texts, strict=True) if text.strip()
    ]
    assert system == SEPARATOR.join(text for _, text in kept)
    assert [section.key for section in sections] == [key for key, _ in kept]
