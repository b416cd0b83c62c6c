"""The registry: tools by tag and other name, their docs, plugins, and calls brought into our form."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from croze.dialect.native import NativeDialect
from croze.dialect.xml import XmlDialect
from croze.text.tokens import estimate
from croze.tools.aliases import PARAMS, TOOLS
from croze.tools.base import Tool, ToolContext, ToolSpec
from croze.tools.registry import Registry, builtin
from croze.tools.schema import tool_doc
from croze.types.errors import ConfigError, UsageError
from croze.types.parts import CallError, ToolCall
from croze.types.tool import Access, ToolResult

CORE = [
    "read_file",
    "write_to_file",
    "replace_in_file",
    "search_files",
    "find_files",
    "list_files",
    "execute_command",
    "todo_write",
    "ask_followup_question",
    "attempt_completion",
    "describe_tools",
    "call_tool",
]
OURS = ("todo_write", "ask_followup_question", "attempt_completion", "describe_tools", "call_tool")


class Point(Struct):
    x: int
    y: Annotated[int, Meta(description="down")] = 0


class Probe(Tool, frozen=True):
    """Does nothing,
    on two lines."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="probe", summary="nothing", access=Access(read=True), aliases={"count": "number"}
    )

    word: str
    number: Annotated[int, Meta(ge=1, description="how many")] | None = None
    share: float = 0.5
    flag: bool = False
    mode: Annotated[Literal["b", "a"], Meta(description="which")] = "a"
    names: tuple[str, ...] = ()
    point: Point | None = None

    async def run(self, ctx: ToolContext) -> ToolResult:
        return ToolResult(ok=True)


class Core(Probe, frozen=True):
    """Stands in the core."""

    spec: ClassVar[ToolSpec] = ToolSpec(
        name="core_probe", summary="", access=Access(read=True), core=True
    )


def bind(args: Mapping[str, Any]) -> Any:
    kind = Registry([Probe]).get("probe")
    assert kind is not None
    return kind.bind(args)


def test_the_builtin_core_is_the_twelve_tools_and_fits_its_budget_in_both_dialects() -> None:
    core, others = builtin().docs()
    assert sorted(doc.name for doc in core) == sorted(CORE)
    assert {doc.name for doc in others} >= {"todo_read", "plan_mode_respond"}
    assert estimate(XmlDialect().advertise(core, others)) <= 2500
    native = NativeDialect().advertise(core, others) + msgspec.json.encode(core).decode()
    assert estimate(native) <= 3000  # an upper bound: the wire sends less than the whole doc
    ours = [doc for doc in core if doc.name in OURS]
    assert len(XmlDialect().describe(ours)) <= 2800


def test_every_other_name_leads_to_a_tool_or_a_later_one_and_none_is_advertised() -> None:
    registry = builtin()
    later = {"web_crawl", "web_search", "run_named_subagents"}
    for other, tag in TOOLS.items():
        assert (registry.get(other) is registry.get(tag) is not None) or tag in later
    head = XmlDialect().advertise(*registry.docs())
    assert not [other for other in TOOLS if f"<{other}>" in head or f"## {other}" in head]


def test_no_alias_of_a_parameter_hides_a_real_one() -> None:
    for tag, others in PARAMS.items():
        kind = builtin().get(tag)
        if kind is not None:
            real = kind.doc.parameters["properties"]
            assert not set(others) & set(real), tag


def test_a_schema_is_short_and_the_same_every_time() -> None:
    expected = {
        "type": "object",
        "properties": {
            "word": {"type": "string"},
            "number": {"type": "integer", "description": "how many", "minimum": 1},
            "share": {"type": "number", "default": 0.5},
            "flag": {"type": "boolean", "default": False},
            "mode": {"enum": ["a", "b"], "description": "which", "default": "a"},
            "names": {"type": "array", "items": {"type": "string"}},
            "point": {
                "type": "object",
                "properties": {
                    "x": {"type": "integer"},
                    "y": {"type": "integer", "description": "down", "default": 0},
                },
                "required": ["x"],
            },
        },
        "required": ["word"],
    }
    doc = tool_doc(Probe)
    assert msgspec.json.encode(doc.parameters) == msgspec.json.encode(expected)
    assert doc.description == "Does nothing, on two lines."


def test_text_becomes_what_the_parameter_is() -> None:
    assert bind(
        {
            "word": "5",
            "number": " 7\n",
            "share": "0.25",
            "flag": "Yes",
            "mode": " b ",
            "names": "- one\n- two, three\n",
            "point": '{"x": 1}',
        }
    ) == Probe(
        word="5",
        number=7,
        share=0.25,
        flag=True,
        mode="b",
        names=("one", "two, three"),
        point=Point(1),
    )
    assert bind({"word": "", "names": "one, two"}).names == ("one", "two")
    assert bind({"word": "", "names": '["a,b"]'}).names == ("a,b",)
    assert bind({"word": "", "number": "", "names": None}) == Probe(word="")


def test_everything_wrong_is_told_at_once_and_exactly() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        bind(
            {
                "wrod": "x",
                "number": "0",
                "share": "much",
                "flag": "maybe",
                "mode": "c",
                "point": "x",
            }
        )
    assert str(caught.value) == (
        "there is no parameter 'wrod' (did you mean word?); "
        "number must be a whole number (at least 1), got '0'; "
        "share must be a number, got 'much'; "
        "flag must be true or false, got 'maybe'; "
        "mode must be one of a, b, got 'c'; "
        "point must be a JSON object (Expected object | null, got str), got 'x'; "
        "the required parameter word is missing"
    )


@given(
    st.dictionaries(
        st.sampled_from(["word", "number", "share", "flag", "mode", "names", "point", "other"]),
        st.one_of(
            st.text(), st.none(), st.integers(), st.lists(st.text()), st.just("[1"), st.just("{}")
        ),
    )
)
def test_any_arguments_bind_or_are_refused_with_a_message(args: dict[str, Any]) -> None:
    try:
        told = str(bind(args))
    except msgspec.ValidationError as error:
        told = str(error)
    assert told


def test_a_name_can_be_taken_once_and_given_back() -> None:
    registry = Registry([Probe])
    for taken in (
        Probe,
        type("Read", (Probe,), {"spec": ToolSpec("Read", "", Access())}, frozen=True),
    ):
        with pytest.raises(UsageError, match="already a tool"):
            registry.register(taken)
    registry.unregister("probe")
    assert registry.get("probe") is None
    with pytest.raises(UsageError, match="no tool named probe"):
        registry.unregister("probe")


def test_an_agents_list_narrows_and_keeps_the_way_to_tools_outside_the_core() -> None:
    registry = builtin()
    assert registry.filter(None).names == registry.names
    assert set(registry.filter(["Read", "Bash"]).names) == {"read_file", "execute_command"}
    assert set(registry.filter(["read_file", "todo_read"]).names) == {
        "read_file", "todo_read", "describe_tools", "call_tool",
    }  # fmt: skip
    with pytest.raises(UsageError) as caught:
        registry.filter(["reed_file"])
    assert "read_file" in caught.value.hint
    core, others = registry.docs(["Read", "nothing", "todo_read"])
    assert [doc.name for doc in core] == ["read_file", "todo_read"]
    assert "write_to_file" in {doc.name for doc in others}


def test_shapes_hold_other_names_of_tools_and_parameters() -> None:
    shapes = Registry([Probe, *(), Core]).shapes()
    assert shapes["probe"].params == {
        "word", "number", "share", "flag", "mode", "names", "point", "count",
    }  # fmt: skip
    shapes = builtin().shapes()
    assert shapes["Edit"].name == "replace_in_file"
    assert shapes["Edit"].params >= {"path", "diff", "file_path", "old_string", "new_string"}
    assert not [p for shape in shapes.values() for p in shape.params if p.startswith("-")]


def call(name: str, args: dict[str, Any]) -> ToolCall:
    return ToolCall("123456789", name, args)


@pytest.mark.parametrize(
    ("name", "args", "tag", "resolved"),
    [
        ("Read", {"file_path": "a"}, "read_file", {"path": "a"}),
        (
            "Read",
            {"file_path": "a", "offset": 10, "limit": "5"},
            "read_file",
            {"path": "a", "start_line": 10, "end_line": 14},
        ),
        ("afs_list", {"path": "."}, "list_files", {"path": "."}),
        (
            "list_dir",
            {"relative_workspace_path": "x", "explanation": "y"},
            "list_files",
            {"path": "x"},
        ),
        (
            "grep_search",
            {"query": "a+", "include_pattern": "*.py", "exclude_pattern": "b"},
            "search_files",
            {"regex": "a+", "include": "*.py", "exclude": "b"},
        ),
        (
            "search_files",
            {"regex": "a", "file_pattern": "*.ts"},
            "search_files",
            {"regex": "a", "include": "*.ts"},
        ),
        (
            "Grep",
            {"pattern": "a", "-i": True},
            "search_files",
            {"regex": "a", "case_sensitive": False},
        ),
        (
            "Bash",
            {"command": "ls", "timeout": 120000},
            "execute_command",
            {"command": "ls", "timeout": 120},
        ),
        (
            "BashOutput",
            {"bash_id": "bg1", "filter": "x"},
            "background_task",
            {"action": "monitor", "task_id": "bg1"},
        ),
        (
            "call_tool",
            {"name": "KillShell", "arguments": {"shell_id": "bg1"}},
            "background_task",
            {"action": "kill", "task_id": "bg1"},
        ),
        ("finish", {"response": "ok"}, "attempt_completion", {"result": "ok"}),
        (
            "Edit",
            {"file_path": "a", "old_string": "x", "new_string": ""},
            "replace_in_file",
            {"path": "a", "diff": "<<<<<<< SEARCH\nx\n=======\n>>>>>>> REPLACE"},
        ),
        (
            "MultiEdit",
            {"file_path": "a", "edits": '[{"old_string": "x", "new_string": "y"}]'},
            "replace_in_file",
            {"path": "a", "diff": "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE"},
        ),
        (
            "TodoWrite",
            {
                "todos": [
                    {"content": "a", "status": "completed"},
                    {"content": "b", "status": "pending"},
                ]
            },
            "todo_write",
            {"action": "create", "content": "[x] a\n[ ] b"},
        ),
        (
            "call_tool",
            {"name": "Read", "arguments": '{"file_path": "a"}'},
            "read_file",
            {"path": "a"},
        ),
        ("call_tool", {"tool_name": "todo_read", "arguments": ""}, "todo_read", {}),
        ("call_tool", {"name": "nothing", "arguments": {"x": 1}}, "nothing", {"x": 1}),
        ("nothing", {"x": 1}, "nothing", {"x": 1}),
    ],
)
def test_a_call_is_brought_into_our_form(
    name: str, args: dict[str, Any], tag: str, resolved: dict[str, Any]
) -> None:
    got = builtin().resolve(call(name, args))
    assert (got.name, got.args, got.error) == (tag, resolved, None)


@pytest.mark.parametrize(
    ("name", "args", "code", "says"),
    [
        ("call_tool", {"name": "call_tool", "arguments": {}}, "malformed", "can't call itself"),
        ("call_tool", {"arguments": {}}, "malformed", "the tool's name in name"),
        ("call_tool", {"name": "x", "arguments": "{"}, "malformed", "not valid JSON"),
        ("call_tool", {"name": "x", "arguments": "[1]"}, "malformed", "one JSON object"),
        ("call_tool", {"name": "x", "path": "y"}, "malformed", "put path into arguments"),
        ("read_file", {"path": "a", "file_path": "b"}, "repeated_parameter", "path is given twice"),
        (
            "Edit",
            {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
            "malformed",
            "one SEARCH/REPLACE block a place",
        ),
        ("Edit", {"file_path": "a", "edits": "nonsense"}, "malformed", "list of objects"),
    ],
)
def test_what_cannot_be_brought_into_our_form_says_why(
    name: str, args: dict[str, Any], code: str, says: str
) -> None:
    error = builtin().resolve(call(name, args)).error
    assert error is not None
    assert error.code == code
    assert says in error.message


def test_a_call_with_an_error_keeps_it_and_gets_its_real_name() -> None:
    error = CallError("truncated", "cut")
    got = builtin().resolve(ToolCall("123456789", "Write", {}, raw="<Write>", error=error))
    assert (got.name, got.error, got.raw) == ("write_to_file", error, "<Write>")


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed distribution with one good and several broken entry points."""
    (tmp_path / "croze_probe_plugin.py").write_text(
        "from typing import ClassVar\n"
        "from croze.tools.base import Tool, ToolSpec\n"
        "from croze.types.tool import Access\n"
        "class Hello(Tool, frozen=True):\n"
        "    'Says hello.'\n"
        "    spec: ClassVar[ToolSpec] = ToolSpec(\n"
        "        name='hello', summary='', access=Access(read=True), core=True)\n"
        "class Silent(Tool, frozen=True):\n"
        "    'Says nothing of itself.'\n"
        "    spec: ClassVar[ToolSpec] = ToolSpec(name='silent', summary='', access=Access())\n"
        "ALL = [Hello]\n"
        "WRONG = 3\n"
    )
    info = tmp_path / "croze_probe_plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: croze-probe-plugin\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[croze.tools]\nhello = croze_probe_plugin:ALL\nwrong = croze_probe_plugin:WRONG\n"
        "silent = croze_probe_plugin:Silent\ngone = croze_probe_plugin:GONE\nmissing = croze_no_such_module:X\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("croze_probe_plugin", None)


@pytest.mark.usefixtures("plugins")
def test_a_plugin_joins_only_when_it_is_named() -> None:
    registry = builtin()
    registry.load_plugins([])
    assert registry.get("hello") is None
    registry.load_plugins(["hello"])
    kind = registry.get("hello")
    assert kind is not None
    assert kind.doc.description == "Says hello."
    assert not kind.doc.core
    assert "hello" not in [doc.name for doc in registry.docs()[0]]


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("absent", "not installed"),
        ("gone", "can't be loaded"),
        ("missing", "can't be loaded"),
        ("wrong", "gives int, which is no tool"),
        ("silent", "doesn't say what it touches"),
    ],
)
def test_a_broken_plugin_is_named_with_its_fault(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        builtin().load_plugins([name])
    assert caught.value.hint
