"""The chat that `croze` opens: a prompt, the agent's work as it happens, and a few slash commands.

It uses a session's four verbs only: submit, cancel, answer, fork.
"""

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from croze.text.display import one_line
from croze.types.errors import CrozeError
from croze.types.event import Asked, Event, Stopped
from croze.types.news import ChildNews
from croze.types.stream import Delta
from croze.ui.cli.exits import Exit, exit_of_turn
from croze.ui.cli.interrupt import Interrupt
from croze.ui.cli.listing import row_of
from croze.ui.cli.output import columns, dollars, table_lines, thousands
from croze.ui.i18n import _, explain
from croze.ui.opening import opening_notices
from croze.ui.render import Screen
from croze.ui.repl import init, inspect, questions, rewind, skills
from croze.ui.repl.reader import Reader
from croze.ui.repl.recall import last_exchange

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from croze.app.app import App, Session
    from croze.app.options import RunOptions

PROMPT = "› "


class Chat:
    """One chat: a session at a time, and what the user types."""

    def __init__(
        self,
        app: "App",
        options: "RunOptions",
        reader: Reader,
        screen: Screen,
        interrupt: Interrupt,
    ) -> None:
        self._app = app
        self._options = options
        self._reader = reader
        self._screen = screen
        self._interrupt = interrupt
        self._session: Session | None = None
        self._asked: asyncio.Queue[tuple[Asked, ChildNews | None]] = asyncio.Queue()
        self._over: set[str] = set()
        self._commands: dict[str, tuple[Callable[[str], Awaitable[None]], str]] = {
            "/help": (self._help, _("what there is to say")),
            "/model": (
                self._model,
                _("show the model, or go on with another: /model provider:name"),
            ),
            "/cost": (self._cost, _("tokens and money so far")),
            "/context": (
                self._context,
                _(
                    "what the model saw: sections, tokens, cost; also why, breaks, receipts, restore"
                ),
            ),
            "/plan": (self._plan, _("the orchestrator's plan as it stands")),
            "/compact": (self._compact, _("make the context smaller now, and say what that did")),
            "/resume": (self._resume, _("list conversations, or go on with one: /resume ID")),
            "/skills": (
                self._skills,
                _("the skills that there are; /NAME uses one"),
            ),
            "/rules": (self._rules, _("the law and the rules, and what became of each file")),
            "/agents": (self._agents, _("the agents that can be called, and their files")),
            "/undo": (self._undo, _("take back the last turn: files, conversation, todo list")),
            "/redo": (self._redo, _("bring back what was undone last")),
            "/diff": (self._diff, _("what this conversation has changed")),
            "/lib": (
                self._lib,
                _("documentation of libraries: list, add NAME, remove NAME, refresh"),
            ),
            "/mcp": (self._mcp, _("the MCP servers, and which of them run")),
            "/init": (self._init, _("look round and write the project's guide, AGENTS.md")),
            "/new": (self._new, _("begin a new conversation")),
            "/exit": (self._exit, _("leave (Ctrl-D does as well)")),
        }
        self._leaving = False
        self._code = Exit.DONE

    @property
    def session(self) -> "Session":
        assert self._session is not None
        return self._session

    async def open(self) -> None:
        """Open the session that the options ask for and greet."""
        await self._switch(self._options)
        for notice in self._app.notices:
            self._screen.notice(notice)

    async def run(self) -> int:
        """Read and answer until the user leaves. Without a user at the terminal the exit code is that
        of the last turn."""
        while not self._leaving:
            try:
                line = await self._reader.line(PROMPT)
            except KeyboardInterrupt:
                self._screen.line(_("(Ctrl-D or /exit leaves)"), "dim")
                continue
            if line is None:
                break
            try:
                await self._take(line.strip())
            except CrozeError as error:
                self._tell(error)
        return int(self._code if self._options.headless else Exit.DONE)

    def _tell(self, error: CrozeError) -> None:
        message, hint = explain(error)
        self._screen.line(message, "red")
        if hint:
            self._screen.line(f"  {hint}", "dim")

    def leave(self) -> None:
        """Stop the running step, if any, and end the chat after it."""
        self._leaving = True
        if self._session is not None:
            self._session.cancel()

    async def _take(self, line: str) -> None:
        if self._options.headless and line:
            self._screen.line(f"{PROMPT}{one_line(line, 2000)}", "bold")
        if line.startswith("/"):
            name, _space, rest = line.partition(" ")
            command = self._commands.get(name)
            if command is None and (task := skills.task(self._app, name, rest.strip())):
                self._ended(await self._turn(task))
            elif command is None:
                self._screen.line(
                    _("There is no {name}; /help lists what there is.", name=name), "red"
                )
            else:
                await command[0](rest.strip())
        elif line or self.session.unfinished():
            self._ended(await self._turn(line))

    def _ended(self, stopped: Stopped) -> None:
        self._code = exit_of_turn(stopped)
        if self._options.headless and stopped.reason == "cancelled":
            self._leaving = True

    async def _turn(self, text: str) -> Stopped:
        """Submit, draw what happens, put questions; Ctrl-C stops the step."""
        self._screen.width = columns()
        self._asked = asyncio.Queue()
        with self._reader.working(), self._interrupt.turn(self._cancel):
            turn = asyncio.create_task(self.session.submit(text))
            asking = asyncio.create_task(self._ask())
            try:
                await asyncio.wait({turn, asking}, return_when=asyncio.FIRST_COMPLETED)
                if asking.done():
                    asking.result()
                return await turn
            finally:
                asking.cancel()
                await asyncio.wait({asking})

    async def _ask(self) -> None:
        """Put the turn's questions as they come, until it is over."""
        while True:
            asked, news = await self._asked.get()
            if news is not None:
                if news.path[-1][0] in self._over:
                    continue  # whoever asked was stopped meanwhile
                self._screen.asked_by(news, asked)
            given = await questions.put(asked, self._reader, self._screen, self.session.cancel)
            if given is not None:
                self.session.answer(asked.ask_id, *given)

    def _cancel(self) -> None:
        self._screen.interrupted()
        self.session.cancel()

    def _watch(self, item: Event | Delta | ChildNews) -> None:
        if isinstance(item, ChildNews):
            self._watch_child(item)
            return
        if isinstance(item, Event) and isinstance(item.body, Asked):
            if self._options.headless:
                return  # nobody is here, and the answer is given already
            self._asked.put_nowait((item.body, None))
        if isinstance(item, Delta):
            self._screen.watch(item)
        else:
            self._reader.above(lambda: self._screen.watch(item))

    def _watch_child(self, news: ChildNews) -> None:
        """A sub-agent's questions wait until their turn comes; what it does is shown above a line that is
        being typed."""
        if isinstance(news.item, Event):
            child, body = news.path[-1][0], news.item.body
            if isinstance(body, Asked) and not self._options.headless:
                self._over.discard(child)
                self._asked.put_nowait((body, news))
            elif isinstance(body, Stopped):
                self._over.add(child)
        self._reader.above(lambda: self._screen.watch(news))

    async def _switch(self, options: "RunOptions", *, greet: bool = True) -> None:
        session = await self._app.session(options)
        if self._session is not None:
            await self._app.leave(self._session)
        self._session = session
        session.subscribe(self._watch)
        if greet:
            self._greet(session)
            for event in opening_notices(session.events):
                self._watch(event)

    def _greet(self, session: "Session") -> None:
        self._screen.line(
            _(
                "{model} · {dialect} · conversation {id} · /help",
                model=session.model.name,
                dialect=session.dialect,
                id=session.id[:8],
            ),
            "dim",
        )
        for text in last_exchange(session.events):
            self._screen.line(text, "dim")
        if session.unfinished():
            self._screen.line(
                _("The last task was interrupted. Press Enter to take it up again."), "yellow"
            )

    async def _reopen(self, options: "RunOptions") -> None:
        """Leave the session and open another; where that fails, the old one comes back."""
        old = self.session
        used = old.used
        await self._app.leave(old)
        self._session = None
        try:
            await self._switch(options)
        except CrozeError:
            back = replace(
                self._options,
                resume=old.id if used else None,
                continue_=False,
                agent=None if used else self._options.agent,
            )
            await self._switch(back, greet=False)
            raise

    async def _help(self, _rest: str) -> None:
        for name, (_command, what) in self._commands.items():
            self._screen.line(f"  {name:<9} {what}")
        self._screen.line(_("  Ctrl-C    stop the step; what arrived is kept"))

    async def _lib(self, rest: str) -> None:
        from croze.ui.repl.libraries import lib

        await lib(self._screen, self._app, self.session, rest)

    async def _mcp(self, _rest: str) -> None:
        from croze.ui.repl.servers import servers_of

        for line in servers_of(self._app):
            self._screen.line(line)

    async def _model(self, rest: str) -> None:
        if not rest:
            info = self.session.model
            self._screen.line(
                _(
                    "{model}: window {window}, facts from {source}",
                    model=info.name,
                    window=thousands(info.window),
                    source=info.source,
                )
            )
            return
        resume = self.session.id if self.session.used else None
        await self._reopen(replace(self._options, model=rest, resume=resume, continue_=False))
        self._options = replace(self._options, model=rest)

    async def _cost(self, _rest: str) -> None:
        conversation = await self._app.conversations.get(self.session.id)
        self._screen.line(
            _(
                "{input} tokens in, {output} out, {cost}",
                input=thousands(conversation.input_tokens),
                output=thousands(conversation.output_tokens),
                cost=dollars(conversation.cost),
            )
        )

    async def _context(self, rest: str) -> None:
        await inspect.context(self._screen, self._app, self.session, rest)

    async def _plan(self, _rest: str) -> None:
        from croze.app.plans import planned_in

        found = planned_in(self.session.events, self.session.id)
        if found is None:
            self._screen.line(_("There is no plan here: the agent orchestrator makes one."), "dim")
            return
        self._screen.plan(found.plan, {c: (u.steps, u.cost) for c, u in found.workers.items()})

    async def _compact(self, _rest: str) -> None:
        self._screen.width = columns()
        with self._reader.working(), self._interrupt.turn(self._cancel):
            done = await self.session.compact()
        if done is None:
            self._screen.line(_("Nothing was taken out of the context."), "dim")

    async def _resume(self, rest: str) -> None:
        if rest:
            found = await self._app.conversations.resolve(rest)
            if found != self.session.id:
                await self._reopen(
                    replace(self._options, resume=found, continue_=False, model=None, agent=None)
                )
            return
        rows = [row_of(one) for one in await self._app.conversations.list(limit=15)]
        for text in table_lines(rows):
            self._screen.line(f"  {text}")

    async def _skills(self, _rest: str) -> None:
        skills.show(self._screen, self._app)

    async def _rules(self, _rest: str) -> None:
        from croze.ui.repl import knowledge

        knowledge.rules(self._screen, self._app)

    async def _agents(self, _rest: str) -> None:
        from croze.ui.repl import knowledge

        knowledge.agents(self._screen, self._app)

    async def _undo(self, rest: str) -> None:
        await rewind.undo(self._screen, self.session, rest)

    async def _redo(self, _rest: str) -> None:
        await rewind.redo(self._screen, self.session)

    async def _diff(self, _rest: str) -> None:
        await rewind.diff(self._screen, self._app, self.session)

    async def offer_law(self) -> None:
        """Where the project has no law file: ask once whether it is to be written."""
        try:
            if await init.offer(self._app, self.session, self._screen, self._reader):
                await self._init("")
        except CrozeError as error:
            self._tell(error)

    async def _init(self, rest: str) -> None:
        stopped = await init.write(
            self._app,
            rest,
            screen=self._screen,
            reader=None if self._options.headless else self._reader,
            submit=self._turn,
        )
        if stopped is not None:
            self._ended(stopped)

    async def _new(self, _rest: str) -> None:
        await self._reopen(replace(self._options, resume=None, continue_=False))

    async def _exit(self, _rest: str) -> None:
        self._leaving = True
