"""The chat over the real application, with a scripted model and a user who answers by a list."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from croze.app.app import App
from croze.app.options import RunOptions
from croze.types.event import Answered, ModelSaid
from croze.ui.cli.interrupt import Interrupt
from croze.ui.render import Screen
from croze.ui.repl.chat import Chat

CTRL_C = object()


class User:
    """Types what stands in a list: lines, CTRL_C, or a function that is called and gives a line."""

    def __init__(self, said: Sequence[object]) -> None:
        self.said = list(said)
        self.prompts: list[str] = []

    async def line(self, prompt: str) -> str | None:
        self.prompts.append(prompt)
        if not self.said:
            return None
        what = self.said.pop(0)
        if what is CTRL_C:
            raise KeyboardInterrupt
        return str(what)

    async def answer(self, prompt: str) -> str | None:
        return await self.line(prompt)

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        yield

    def above(self, draw: Callable[[], None]) -> None:
        draw()


class Desk:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.project.mkdir(exist_ok=True)
        self.env = {"HOME": str(root / "home"), "PATH": os.environ["PATH"]}
        self.text = ""
        self.app = App.open(cwd=self.project, env=self.env)

    def script(self, text: str, name: str = "script.yaml") -> str:
        path = self.root / name
        path.write_text(text)
        return f"scripted:{path}"

    async def chat(self, script: str, *said: object, **options: object) -> Chat:
        """Everything that the user says, to the end."""
        self.text = ""
        screen = Screen(self._write, color=False, width=100)
        given = RunOptions(model=self.script(script), **options)  # type: ignore[arg-type]
        self.user = User(said)
        chat = Chat(self.app, given, self.user, screen, Interrupt(leaves=False))
        await chat.open()
        self.code = await chat.run()
        return chat

    def _write(self, text: str) -> None:
        self.text += text

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    await desk.app.aclose()


WRITES = """\
- text: Writing.
  calls: [{name: write_to_file, args: {path: a.txt, content: hello}}]
- text: Ready.
"""
TALKS = "- text: One.\n- text: Two.\n- text: Three.\n"


def answers(chat: Chat) -> list[tuple[str, str]]:
    return [
        (event.body.answer, event.body.note)
        for event in chat.session.events
        if isinstance(event.body, Answered)
    ]


@pytest.mark.parametrize("word", ["y", "YES", " y "])
async def test_yes_runs_the_call_once(desk: Desk, word: str) -> None:
    chat = await desk.chat(WRITES, "write", word)
    assert (desk.project / "a.txt").read_text().startswith("hello")
    assert answers(chat) == [("once", "")]
    assert "Ready." in desk.lines


@pytest.mark.parametrize(
    ("said", "note"),
    [(["n"], ""), (["n not there"], "not there"), (["w", "it is mine"], "it is mine"), ([], "")],
)
async def test_no_changes_nothing_and_tells_the_reason(
    desk: Desk, said: list[str], note: str
) -> None:
    chat = await desk.chat(WRITES, "write", *said)
    assert not (desk.project / "a.txt").exists()
    if said:
        assert answers(chat) == [("no", note)]
        assert "Ready." in desk.lines


async def test_another_word_asks_again_and_never_means_yes(desk: Desk) -> None:
    chat = await desk.chat(WRITES, "write", "", "yep", "y please", "n")
    assert answers(chat) == [("no", "")]
    assert not (desk.project / "a.txt").exists()


async def test_always_is_remembered_for_the_project(desk: Desk) -> None:
    await desk.chat(WRITES, "write", "a")
    (desk.project / "a.txt").unlink()
    await desk.chat(WRITES, "/new", "write")
    assert (desk.project / "a.txt").exists()
    assert desk.user.prompts == ["› ", "› ", "› "]


async def test_ctrl_c_at_a_question_stops_the_turn_and_the_chat_goes_on(desk: Desk) -> None:
    chat = await desk.chat(WRITES, "write", CTRL_C, "go on")
    assert not (desk.project / "a.txt").exists()
    assert any("Stopped." in line for line in desk.lines)
    assert "Ready." in desk.lines
    assert not chat.session.unfinished()


async def test_ctrl_c_at_the_prompt_says_how_to_leave(desk: Desk) -> None:
    await desk.chat(TALKS, CTRL_C, "hi")
    assert "(Ctrl-D or /exit leaves)" in desk.lines
    assert "One." in desk.lines


ASKS = """\
- calls: [{name: ask_followup_question, args: {question: Which?, options: [red, green]}}]
- expect: "%s"
  text: Fine.
"""


@pytest.mark.parametrize(("said", "means"), [("2", "green"), ("blue", "blue"), ("3", "3")])
async def test_an_option_is_chosen_by_its_number_or_in_own_words(
    desk: Desk, said: str, means: str
) -> None:
    await desk.chat(ASKS % means, "ask", "", said)
    assert "Fine." in desk.lines
    assert [line for line in desk.lines if line[2:4] in ("1.", "2.")] == ["  1. red", "  2. green"]
    assert desk.text.count("Which?") == 1


async def test_ctrl_c_in_mid_answer_keeps_what_arrived_and_the_next_message_goes_on(
    desk: Desk,
) -> None:
    script = "chunk: 4\ndelay: 0.005\nreplies:\n- text: " + "word " * 400 + "\n- text: And on.\n"
    chat = Chat(
        desk.app,
        RunOptions(model=desk.script(script)),
        User(["say it", "go on"]),
        Screen(desk._write, color=False, width=100),
        Interrupt(leaves=False),
    )
    await chat.open()

    stops = [chat.session.cancel]

    def watch(_item: object) -> None:
        if stops and desk.text.count("word") == 20:
            stops.pop()()

    chat.session.subscribe(watch)
    await chat.run()
    said = [e.body for e in chat.session.events if isinstance(e.body, ModelSaid)]
    assert [body.partial for body in said] == [True, False]
    assert 20 <= desk.text.count("word") < 400
    assert "And on." in desk.lines


async def test_a_conversation_is_left_taken_up_and_begun_anew(desk: Desk) -> None:
    chat = await desk.chat(TALKS, "first words", "/new", "second")
    listed = await desk.app.conversations.list(limit=5)
    assert [one.first for one in listed] == ["second", "first words"]
    first = listed[1].id
    await desk.app.leave(chat.session)
    chat = await desk.chat(
        "- text: Again.\n", "/resume", f"/resume {first[:8]}", f"/resume {first}", "more", "/cost"
    )
    assert chat.session.id == first
    assert any("first words" in line and first[:8] in line for line in desk.lines)
    greeting = next(
        at for at, line in enumerate(desk.lines) if first[:8] in line and "/help" in line
    )
    assert desk.lines[greeting + 1 : greeting + 3] == ["› first words", "One."]
    assert sum("/help" in line for line in desk.lines) == 2
    assert any(line.endswith(", $0") for line in desk.lines)


async def test_a_wrong_command_or_id_is_told_once_and_the_chat_stays(desk: Desk) -> None:
    chat = await desk.chat(TALKS, "hi", "/nope", "/resume zzzz", "/model nobody:x", "still here")
    assert "There is no /nope; /help lists what there is." in desk.lines
    assert "There is no session 'zzzz'" in desk.lines
    assert "'nobody' is not a provider." in desk.lines
    assert sum("/help" in line for line in desk.lines) == 2
    assert desk.lines.count("One.") == 2
    assert chat.session.model.name.startswith("scripted:")


async def test_another_model_takes_the_conversation_over(desk: Desk) -> None:
    other = desk.script("- text: Heard.\n", "other.yaml")
    chat = await desk.chat(TALKS, "hi", f"/model {other}", "go on", "/model")
    assert chat.session.model.name == other
    assert "Heard." in desk.lines
    assert any(line.startswith(f"{other}: window") for line in desk.lines)


async def test_an_error_of_the_model_leaves_the_chat_open(desk: Desk) -> None:
    await desk.chat("- fault: error_401\n- text: Better.\n", "hi", "again")
    assert "The key was refused (scripted)." in desk.lines
    assert "Better." in desk.lines
    assert desk.code == 0


async def test_without_a_terminal_the_code_is_that_of_the_last_turn(desk: Desk) -> None:
    await desk.chat("- fault: error_401\n", "hi", headless=True)
    assert desk.code == 1
    assert "› hi" in desk.lines
    await desk.chat(WRITES, "write", headless=True)
    assert desk.code == 4
    assert not (desk.project / "a.txt").exists()


async def test_enter_takes_an_interrupted_task_up_again(desk: Desk) -> None:
    session = await desk.app.session(RunOptions(model=desk.script(TALKS)))
    log = session._live.log
    from croze.types.event import UserSaid
    from croze.types.parts import Text

    await session._live.append(UserSaid(message_id="m", parts=(Text(text="do it"),)))
    log.close()
    await session._live.model.aclose()
    desk.app._sessions.clear()
    await desk.chat(TALKS, "", "", resume=session.id)
    assert "The last task was interrupted. Press Enter to take it up again." in desk.lines
    assert [line for line in desk.lines if line in ("One.", "Two.")] == ["One."]


async def test_a_turn_that_is_cancelled_leaves_no_question_for_the_next(desk: Desk) -> None:
    script = WRITES.replace("- text: Ready.", "- text: Ready.\n- text: Quiet.")
    await desk.chat(script, "write", CTRL_C, "next", "and next")
    assert desk.user.prompts == ["› ", "  › ", "› ", "› ", "› "]
    await asyncio.sleep(0)
