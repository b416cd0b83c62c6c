"""The settings as typed values, and the table that says what each key may hold."""

import types
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, field

from croze.types.agent import Mode, Sandbox

Models = tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...]
Names = tuple[Annotated[str, Meta(min_length=1, max_length=1000)], ...]
Count = Annotated[int, Meta(ge=1, le=10_000_000)]
Positive = Annotated[float, Meta(gt=0, le=1e9)]
ZoneText = Annotated[
    str, Meta(pattern=r"^(auto|[0-9]+(\.[0-9]+)?[kKmM]|[1-9][0-9]*|0?\.[0-9]*[1-9][0-9]*)$")
]
ZoneTokens = Annotated[int, Meta(ge=1, le=10_000_000)]
ZoneShare = Annotated[float, Meta(gt=0, lt=1)]
Price = Annotated[float, Meta(ge=0, le=1e6)]

ALIASES = {
    "code_model": "model.code",
    "chat_model": "model.chat",
    "plan_model": "model.plan",
    "planner_model": "model.plan",
    "design_model": "model.design",
    "designer_model": "model.design",
    "edit_model": "model.edit",
    "summarize_model": "model.summarize",
    "index_model": "model.index",
    "inference_model": "model.code",
    "emb_model": "model.embed",
    "embed_model": "model.embed",
    "vl_model": "model.vision",
    "vision_model": "model.vision",
    "commit_model": "model.commit",
}
"""Names of roles that other agents' users know (M5), at the top of the file or under [model]."""


class ModelSettings(Struct, frozen=True):
    """Which model plays which role. A role is a list of models to try in turn."""

    model: Models = ()
    code: Models = ()
    chat: Models = ()
    plan: Models = ()
    design: Models = ()
    edit: Models = ()
    summarize: Models = ()
    index: Models = ()
    embed: Models = ()
    vision: Models = ()
    commit: Models = ()
    dialect: Literal["auto", "native", "xml"] = "auto"
    max_retries: Annotated[int, Meta(ge=-1, le=1000)] = 8
    max_continuations: Annotated[int, Meta(ge=0, le=100)] = 6
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None

    def candidates(self, role: str) -> tuple[str, ...]:
        """The models for a role, in the order to try; those of `model` where the role names none."""
        return getattr(self, role) or self.model


class StoreSettings(Struct, frozen=True):
    """The session log (L5) and the journal beside it. Times are in seconds, the quota in megabytes."""

    storage_path: str = ""
    max_cache_size: Count = 100
    cache_ttl: Positive = 300.0
    lock_timeout: Positive = 10.0
    backup_enabled: bool = True
    backup_interval: Positive = 3600.0
    max_backups: Count = 10
    enable_compression: bool = False
    journal_quota: Count = 1000
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    default_namespace: Annotated[str, Meta(min_length=1, max_length=200)] = "default"


class PermissionSettings(Struct, frozen=True):
    """What may be done without a question. Deny beats ask beats allow."""

    mode: Mode = "ask"
    allow: Names = ()
    ask: Names = ()
    deny: Names = ()
    sandbox: Sandbox | None = None
    network: bool = False


class LimitSettings(Struct, frozen=True):
    """Where a turn ends by itself; unset is no limit."""

    max_turns: Count | None = None
    max_cost: Positive | None = None
    max_time: Positive | None = None


class ContextSettings(Struct, frozen=True):
    """When the context is made smaller, and above what size: `80k` (k = 1,024), `1.5M`, a number of
    tokens, or a share of the budget above 0 and below 1. `auto` is the policy's own. `low` is the share
    of it that a batch goes down to, `gain` the least share that a batch must free."""

    policy: Literal["batch", "digest", "zone", "none"] = "batch"
    zone: ZoneText | ZoneTokens | ZoneShare = "auto"
    low: Annotated[float, Meta(ge=0.1, le=0.9)] = 0.5
    gain: Annotated[float, Meta(ge=0.01, le=0.5)] = 0.1


class WorkspaceSettings(Struct, frozen=True):
    """The project's tree at a session's opening. Unset, its depth follows the project's size and it has
    at most 3,000 characters."""

    tree: bool = True
    tree_depth: Annotated[int, Meta(ge=2, le=4)] | None = None
    tree_characters: Annotated[int, Meta(ge=5_000, le=20_000)] | None = None


class TeamSettings(Struct, frozen=True):
    """Sub-agents: how many work at a time, how deep they call others; how often the orchestrator plans
    again in a turn because a task failed."""

    parallel: Annotated[int, Meta(ge=1, le=100)] = 4
    depth: Annotated[int, Meta(ge=0, le=10)] = 2
    replans: Annotated[int, Meta(ge=0, le=20)] = 2


class KnowledgeSettings(Struct, frozen=True):
    """`active_context`: whether notes on folders are told (read), written after tasks (write), or both.
    `library_tokens` is how much of added libraries' documentation is told at a session's opening,
    `library_repository` where that documentation is fetched from."""

    active_context: Literal["off", "read", "write", "on"] = "off"
    library_tokens: Annotated[int, Meta(ge=0, le=1_000_000)] = 8_000
    library_repository: Annotated[str, Meta(min_length=1, max_length=1_000)] = (
        "https://github.com/allwefantasy/llm_friendly_packages"
    )


class UiSettings(Struct, frozen=True):
    """How croze talks to people. `auto` follows the locale and the terminal."""

    language: Literal["auto", "en", "zh_CN"] = "auto"
    color: Literal["auto", "always", "never"] = "auto"


class PluginSettings(Struct, frozen=True):
    """Installed extensions to load, by the names of their entry points. A project can't name any."""

    tools: Names = ()
    hooks: Names = ()
    claude_hooks: bool = False


class ModelOverride(Struct, frozen=True):
    """Facts about one model that replace the catalogue's. Prices are US dollars a million tokens."""

    window: Count | None = None
    max_output: Count | None = None
    input_price: Price | None = None
    output_price: Price | None = None
    cached_price: Price | None = None
    cache_write_price: Price | None = None
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    prefill: bool | None = None
    mid_system: bool | None = None


class ProviderSettings(Struct, frozen=True):
    """A model server of the user's own, named by its table."""

    base_url: Annotated[str, Meta(pattern=r"^https?://[^\s/]+")] | None = None
    api_key_env: Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    wire: Literal["openai", "anthropic"] | None = None


class GroupSettings(Struct, frozen=True):
    """A group of agents that can be spoken to together, named by its table. `max_messages` and `max_cost`
    (US dollars) end each of its talks."""

    members: Names = ()
    description: Annotated[str, Meta(max_length=500)] = ""
    max_messages: Annotated[int, Meta(ge=2, le=10_000)] = 100
    max_cost: Positive | None = None


class Settings(Struct, frozen=True):
    model: ModelSettings = ModelSettings()
    store: StoreSettings = StoreSettings()
    permissions: PermissionSettings = PermissionSettings()
    limits: LimitSettings = LimitSettings()
    context: ContextSettings = ContextSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()
    teams: TeamSettings = TeamSettings()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    ui: UiSettings = UiSettings()
    plugins: PluginSettings = PluginSettings()
    models: dict[str, ModelOverride] = field(default_factory=dict)
    providers: dict[str, ProviderSettings] = field(default_factory=dict)
    groups: dict[str, GroupSettings] = field(default_factory=dict)


SECTIONS: dict[str, type[Struct]] = {
    "model": ModelSettings,
    "store": StoreSettings,
    "permissions": PermissionSettings,
    "limits": LimitSettings,
    "context": ContextSettings,
    "workspace": WorkspaceSettings,
    "teams": TeamSettings,
    "knowledge": KnowledgeSettings,
    "ui": UiSettings,
    "plugins": PluginSettings,
}
TABLES: dict[str, type[Struct]] = {
    "models": ModelOverride,
    "providers": ProviderSettings,
    "groups": GroupSettings,
}
"""Sections with one table for each name, such as [models."openai:gpt-5.1"]."""

_TRUE = {"true", "1", "yes", "on"}
_FALSE = {"false", "0", "no", "off"}


class Field(Struct, frozen=True):
    """One key: its type, its default and what it may hold, in words."""

    type: Any
    default: Any
    allowed: str

    def convert(self, value: object, *, text: bool) -> Any:
        """Check `value`; with `text` it comes as a string (environment, command line).

        Raises `ValueError` where it isn't allowed.
        """
        kind = _plain(self.type)
        if kind is tuple:
            if isinstance(value, str):
                value = [part.strip() for part in value.split(",") if part.strip()]
            return msgspec.convert(value, self.type)
        if text and isinstance(value, str):
            if value == "" and self.default is None:
                return None
            if kind is bool:
                value = _boolean(value)
            return msgspec.convert(value, self.type, strict=False)
        return msgspec.convert(value, self.type)


def _boolean(value: str) -> bool:
    word = value.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError(value)
    return word in _TRUE


@cache
def fields_of(struct: type[Struct]) -> dict[str, Field]:
    """The keys of a section, in order."""
    hints = get_type_hints(struct, include_extras=True)
    table = {}
    for info in msgspec.structs.fields(struct):
        hint = hints[info.name]
        table[info.name] = Field(hint, info.default, _allowed(hint))
    return table


def _plain(hint: Any) -> Any:
    """The class behind annotations and `| None`."""
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _plain(next(a for a in get_args(hint) if a is not type(None)))
    return origin or hint


def _allowed(hint: Any) -> str:
    """What a type takes, in a notation that needs no translation."""
    bounds: list[str] = []
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            hint, *metas = get_args(hint)
            for meta in metas:
                bounds += [
                    f"{sign} {value:.12g}"
                    for sign, value in ((">=", meta.ge), (">", meta.gt), ("<=", meta.le))
                    if value is not None
                ]
                if meta.pattern:
                    bounds.append(meta.pattern)
        elif origin in (Union, types.UnionType):
            hint = next(a for a in get_args(hint) if a is not type(None))
        else:
            break
    if origin is Literal:
        return " | ".join(str(a) for a in get_args(hint))
    if hint is bool:
        return "true | false"
    word = {int: "integer", float: "number", str: "text"}.get(hint, "text, text, …")
    return " ".join([word, ", ".join(bounds)]).strip()
