"""Dotted keys such as `store.lock_timeout` and `models."openai:gpt-5.1".window`."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from croze.app.settings import ALIASES, SECTIONS, TABLES, Field, fields_of
from croze.types.errors import ConfigError

Key = tuple[str, ...]
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def join(parts: Key) -> str:
    """The dotted form; a part with other characters than TOML's bare ones is quoted."""
    return ".".join(
        p if p and _BARE.issuperset(p) else '"' + p.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for p in parts
    )


def split(text: str) -> Key:
    """The parts of a dotted key, a role's other names (M5) resolved; `ConfigError` when ill-formed."""
    parts: list[str] = []
    rest = text.strip()
    while True:
        if rest.startswith('"'):
            part, rest = _quoted(rest, text)
        else:
            part, dot, rest = rest.partition(".")
            rest = dot + rest
        parts.append(part)
        if not part or (rest and not rest.startswith(".")):
            raise _ill_formed(text)
        if not rest:
            return canonical(tuple(parts))
        rest = rest[1:]


def _quoted(rest: str, whole: str) -> tuple[str, str]:
    out: list[str] = []
    chars = iter(range(1, len(rest)))
    for i in chars:
        if rest[i] == "\\" and i + 1 < len(rest):
            out.append(rest[i + 1])
            next(chars)
        elif rest[i] == '"':
            return "".join(out), rest[i + 1 :]
        else:
            out.append(rest[i])
    raise _ill_formed(whole)


def _ill_formed(text: str) -> ConfigError:
    return ConfigError(
        f"{text!r} is not a key",
        hint='keys look like store.lock_timeout or models."openai:gpt-5.1".window',
        code="config_key_form",
        key=text,
    )


def canonical(parts: Key) -> Key:
    """`planner_model` and `model.planner_model` are `model.plan`."""
    name = parts[-1]
    if name in ALIASES and (len(parts) == 1 or parts[:-1] == ("model",)):
        return tuple(ALIASES[name].split("."))
    return parts


def field_of(key: Key, where: str) -> Field:
    """The field behind a key; `ConfigError` with the nearest known key where there is none."""
    if len(key) == 2 and key[0] in SECTIONS:
        found = fields_of(SECTIONS[key[0]]).get(key[1])
    elif len(key) == 3 and key[0] in TABLES:
        found = fields_of(TABLES[key[0]]).get(key[2])
    else:
        found = None
    if found is None:
        raise unknown(key, where)
    return found


def known_keys() -> Iterator[Key]:
    """Every key of the plain sections, in order."""
    for section, struct in SECTIONS.items():
        for name in fields_of(struct):
            yield section, name


def unknown(key: Key, where: str) -> ConfigError:
    """The error for a key that doesn't exist, naming the closest ones."""
    names = [join(k) for k in known_keys()]
    if len(key) == 3 and key[0] in TABLES:
        names = [join((key[0], key[1], name)) for name in fields_of(TABLES[key[0]])]
    shown = join(key)
    near = difflib.get_close_matches(shown, names, n=1, cutoff=0.6)
    if not near:
        last = difflib.get_close_matches(key[-1], [n.rpartition(".")[2] for n in names], n=1)
        near = [n for n in names if last and n.endswith("." + last[0])][:1]
    return ConfigError(
        f"there is no setting {shown} ({where})",
        hint=f"did you mean {near[0]}?" if near else "`croze config list` shows every setting",
        code="config_unknown_near" if near else "config_unknown",
        key=shown,
        source=where,
        near=near[0] if near else "",
    )


def flatten(table: Mapping[str, Any], where: str) -> dict[Key, Any]:
    """A parsed TOML document as keys and raw values; tables where a value belongs are errors."""
    flat: dict[Key, Any] = {}

    def put(key: Key, value: Any) -> None:
        key = canonical(key)
        if key in flat:
            raise ConfigError(
                f"{join(key)} is set twice ({where})",
                hint="keep one of its names",
                code="config_twice",
                key=join(key),
                source=where,
            )
        flat[key] = value

    for name, value in table.items():
        if name in SECTIONS and isinstance(value, Mapping):
            for inner, item in value.items():
                put((name, inner), item)
        elif name in TABLES and isinstance(value, Mapping):
            for inner, item in value.items():
                if not isinstance(item, Mapping):
                    raise unknown((name, inner), where)
                for leaf, leaf_value in item.items():
                    put((name, inner, leaf), leaf_value)
        elif (name,) != canonical((name,)):
            put((name,), value)
        else:
            raise unknown((name,), where)
    return flat
