"""Rules in live sessions, on both wires and in both protocols: they reach the next request, and what was sent
before stays as it was."""

from croze.agent.callbacks import POINTS
from croze.types.event import FactAdded, Notice
from croze.types.stream import Delta
from croze.ui.i18n import explain_code, use_language
from tests.agent.conftest import Desk, bodies
from tests.agent.test_prefix import assert_each_is_a_prefix_of_the_next

PYTHON = "---\ndescription: Python\nglobs: '**/*.py'\n---\nRULE-OF-PYTHON\n"


def put(desk: Desk, path: str, text: str, *, trusted: bool = True) -> None:
    file = desk.project / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    if trusted:
        desk.open().config.trust.add({path: text.encode()})


async def test_a_rule_enters_with_the_file_it_is_for_and_the_prefix_stays(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    put(desk, ".croze/rules/python.md", PYTHON)
    put(desk, ".croze/rules/index.md", "RULE-OF-ALL")
    put(desk, "src/AGENTS.md", "RULE-OF-SOURCE")
    (desk.project / "a.txt").write_text("x\n")
    (desk.project / "src/b.py").write_text("x = 1\n")
    server.replies = [
        desk.reply("", [("read_file", {"path": "a.txt"})]),
        desk.reply("", [("read_file", {"path": "src/b.py"})]),
        desk.reply("", [("read_file", {"path": "src/b.py"})]),
        desk.reply("Done."),
    ]
    async with desk.session() as session:
        await session.submit("Look.")
    requests = server.requests
    assert_each_is_a_prefix_of_the_next(requests)
    for rule, first in ((b"RULE-OF-ALL", 0), (b"RULE-OF-PYTHON", 2), (b"RULE-OF-SOURCE", 2)):
        counts = [request.body.count(rule) for request in requests]
        assert counts == [0] * first + [1] * (4 - first)


async def test_a_rule_that_changes_in_mid_session_is_told_with_the_next_request(
    any_desk: Desk,
) -> None:
    desk, server = any_desk, any_desk.server
    put(desk, ".croze/rules/index.md", "FIRST-WORDING")
    change = "printf SECOND-WORDING > .croze/rules/index.md"
    server.replies = [
        desk.reply("", [("execute_command", {"command": change})]),
        desk.reply("", [("execute_command", {"command": "echo hello"})]),
        desk.reply("Done."),
    ]
    async with desk.session() as session:
        await session.submit("Go on.")
        assert (desk.project / ".croze/rules/index.md").read_text() == "SECOND-WORDING"
        told = [fact.key for fact in bodies(session.events, FactAdded) if "rules" in fact.key]
    assert told == ["rules", "rules:.croze/rules/index.md"]
    assert_each_is_a_prefix_of_the_next(server.requests)
    for request in server.requests[1:]:
        assert b"FIRST-WORDING" in request.body
        assert b"untrusted_project_files" in request.body, "the agent wrote it, not the user"


async def test_a_session_that_is_taken_up_again_is_told_only_what_is_new(any_desk: Desk) -> None:
    desk, server = any_desk, any_desk.server
    put(desk, ".croze/rules/index.md", "FIRST-WORDING")
    put(desk, ".croze/rules/python.md", PYTHON)
    server.replies = [desk.reply("One."), desk.reply("Two."), desk.reply("Three.")]
    async with desk.session() as session:
        await session.submit("Look at @src/main.py.")
    async with desk.session(resume=session.id) as again:
        await again.submit("Go on.")
    put(desk, ".croze/rules/index.md", "SECOND-WORDING")
    async with desk.session(resume=session.id) as again:
        await again.submit("Go on.")
        told = [fact.key for fact in bodies(again.events, FactAdded) if "rules" in fact.key]
    assert told == ["rules", "rules:.croze/rules/index.md"]
    assert_each_is_a_prefix_of_the_next(server.requests)
    assert b"RULE-OF-PYTHON" in server.requests[0].body
    assert b"SECOND-WORDING" in server.requests[2].body


async def test_callbacks_frame_the_loading_of_rules(desk: Desk) -> None:
    put(desk, ".croze/rules/index.md", "One.")
    desk.says(desk.reply("Done."))
    met: list[str] = []
    assert {"pre_rules_loaded", "post_rules_loaded"} <= POINTS.keys()
    async with desk.session() as session:

        def note(item: object) -> None:
            if isinstance(item, Delta):
                met.append(f"{item.name} {item.done}")

        session.on("pre_rules_loaded", note)
        session.on("post_rules_loaded", note)
        await session.submit("Go.")
    assert met == ["rules False", "rules True"]


async def test_what_is_wrong_with_a_rule_is_told_in_the_users_language(desk: Desk) -> None:
    put(desk, ".croze/rules/a.md", "---\nglobs: '*.py'\nNo end.")
    desk.says(desk.reply("Done."))
    async with desk.session() as session:
        await session.submit("Go.")
        (notice,) = (n for n in bodies(session.events, Notice) if n.code == "rule_file_problem")
    use_language("zh_CN")
    try:
        text, _hint = explain_code(notice.code, notice.text, "", notice.params)
    finally:
        use_language("en")
    assert (
        text
        == "规则文件 .croze/rules/a.md 有问题：它的 front matter 没有用 --- 结束; 它会被整份告知"
    )
