"""What a front end asks of the application, and what it gets back from checks and replays."""

from typing import Any, Literal

from msgspec import Struct, field

from croze.app.settings import Settings
from croze.types.agent import Limits, Mode, Sandbox


class Finding(Struct, frozen=True, omit_defaults=True):
    """One line of a check, or something to tell the user once. `text` and `hint` are English; `code`
    and `params`, where given, let a front end translate the whole."""

    level: Literal["ok", "warning", "error"]
    topic: str
    text: str
    hint: str = ""
    code: str = ""
    params: dict[str, Any] = field(default_factory=dict)


class ReplayReport(Struct, frozen=True):
    """`requests` were rebuilt byte for byte; `divergence` says where the first one differed."""

    requests: int
    divergence: str | None = None


NETWORK = "network"
"""Among the rules: network for commands in the sandbox, rather than calls of a tool."""


class RunOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to open a session. None means: as configured; `resume` is a conversation's id or the start
    of one; `max_cost` is in US dollars and `max_time` in seconds, both of a turn; `record` names the
    file that a script of the model's replies is written to; `policy` says when the context is made smaller,
    `zone` above what size (80k, 1.5M, 81920, a share such as 0.5, auto), `low` and `gain` to what share of
    it a batch goes down and by how much at least."""

    model: str | None = None
    resume: str | None = None
    continue_: bool = False
    namespace: str | None = None
    name: str | None = None
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mode: Mode | None = None
    sandbox: Sandbox | None = None
    network: bool | None = None
    max_turns: int | None = None
    max_cost: float | None = None
    max_time: float | None = None
    agent: str | None = None
    system_prompt: str | None = None
    include_rules: bool = False
    dialect: Literal["auto", "native", "xml"] | None = None
    headless: bool = False
    output_schema: dict[str, Any] | None = None
    record: str | None = None
    policy: str | None = None
    zone: str | None = None
    low: float | None = None
    gain: float | None = None

    def resolved(self, settings: Settings) -> "RunOptions":
        """These options with what the settings say where nothing was asked; rules are joined."""
        permissions, limits = settings.permissions, settings.limits
        allow = dict.fromkeys((*permissions.allow, *self.allow))
        deny = dict.fromkeys((*permissions.deny, *self.deny))
        network = permissions.network if self.network is None else self.network
        return RunOptions(
            model=self.model or ",".join(settings.model.model) or None,
            resume=self.resume,
            continue_=self.continue_,
            namespace=self.namespace or settings.store.default_namespace,
            name=self.name,
            allow=tuple(rule for rule in allow if rule != NETWORK),
            ask=tuple(dict.fromkeys((*permissions.ask, *self.ask))),
            deny=tuple(rule for rule in deny if rule != NETWORK),
            mode=self.mode or permissions.mode,
            sandbox=self.sandbox or permissions.sandbox,
            network=NETWORK not in deny and (network or NETWORK in allow),
            max_turns=limits.max_turns if self.max_turns is None else self.max_turns,
            max_cost=limits.max_cost if self.max_cost is None else self.max_cost,
            max_time=limits.max_time if self.max_time is None else self.max_time,
            agent=self.agent,
            system_prompt=self.system_prompt,
            include_rules=self.include_rules,
            dialect=self.dialect or settings.model.dialect,
            headless=self.headless,
            output_schema=self.output_schema,
            record=self.record,
            policy=self.policy or settings.context.policy,
            zone=self.zone or str(settings.context.zone),
            low=settings.context.low if self.low is None else self.low,
            gain=settings.context.gain if self.gain is None else self.gain,
        )

    @property
    def limits(self) -> Limits:
        """The limits of a turn in the agent's terms."""
        return Limits(steps=self.max_turns, seconds=self.max_time, cost=self.max_cost)


def is_zone(text: str) -> bool:
    """Whether a text is a zone: 80k, 1.5M, 81920, a share above 0 and below 1, or auto."""
    from croze.context.policies import parse_zone

    try:
        parse_zone(text)
    except ValueError:
        return False
    return True
