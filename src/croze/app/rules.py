"""The approval rules that are kept: one file for the user, one for each project, both outside of the
repository and for the user's eyes only.

They lie in the user's own folders whatever `store.storage_path` says: a project may choose that one.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from croze.app.config import Config
from croze.tools.rule_syntax import Effect, RuleSet, parse_rule
from croze.types.errors import ConfigError

Scope = Literal["user", "project"]

_MOST = 1_000_000


@dataclass(slots=True)
class RuleFile:
    """One file of rules. Read again only where it has changed; written under a lock, atomically."""

    path: Path
    _stamp: tuple[int, int, int] | None = None
    _rules: RuleSet = field(default_factory=RuleSet)

    def rules(self) -> RuleSet:
        """The rules as they stand; none where there is no file. Raises ConfigError for a broken one."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._stamp, self._rules = None, RuleSet()
            return self._rules
        except OSError as error:
            raise self._broken(os.strerror(error.errno or 0)) from error
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp != self._stamp:
            self._rules = self._read()
            self._stamp = stamp
        return self._rules

    def add(self, effect: Effect, rule: str) -> bool:
        """Keep one more rule; False where it is kept already. Raises ConfigError for a bad one."""
        text = parse_rule(rule, effect).text
        if not text.isprintable() and any(0xD800 <= ord(char) <= 0xDFFF for char in text):
            raise ConfigError("the rule is no text that can be kept", code="bad_rule", rule=rule)
        with self._locked():
            rules = self.rules()
            known: tuple[str, ...] = getattr(rules, effect)
            if text in known:
                return False
            self._write(msgspec.structs.replace(rules, **{effect: (*known, text)}))
            return True

    def remove(self, effect: Effect | None, rule: str) -> tuple[Effect, ...]:
        """Drop a rule, as it was written; gives the effects that it had."""
        with self._locked():
            rules = self.rules()
            effects: tuple[Effect, ...] = ("allow", "ask", "deny")
            had = tuple(
                each
                for each in effects
                if effect in (None, each) and rule.strip() in getattr(rules, each)
            )
            for each in had:
                left = tuple(text for text in getattr(rules, each) if text != rule.strip())
                rules = msgspec.structs.replace(rules, **{each: left})
            if had:
                self._write(rules)
            return had

    def _read(self) -> RuleSet:
        try:
            with self.path.open("rb") as file:
                data = file.read(_MOST + 1)
            rules = msgspec.json.decode(data, type=RuleSet)
            rules.parsed()
        except OSError as error:
            raise self._broken(os.strerror(error.errno or 0)) from error
        except msgspec.MsgspecError as error:
            raise self._broken(str(error)) from error
        except ConfigError as error:
            raise self._broken(error.message) from error
        return rules

    def _broken(self, reason: str) -> ConfigError:
        return ConfigError(
            f"the approval rules in {self.path} can't be read: {reason}",
            hint=f"repair or remove {self.path}",
            code="rules_unreadable",
            path=str(self.path),
            reason=reason,
        )

    def _write(self, rules: RuleSet) -> None:
        values = {name: each for name, each in msgspec.structs.asdict(rules).items() if each}
        data = json.dumps(values, ensure_ascii=False, indent=2).encode()
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        with suppress(FileNotFoundError):
            temporary.unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(temporary, flags, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data + b"\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except BaseException:
            with suppress(FileNotFoundError):
                temporary.unlink()
            raise
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, of all processes; the lock dies with its holder."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self.path.with_name(f"{self.path.name}.lock")
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


class KeptRules(Struct, frozen=True):
    """The rules of the user and of one project."""

    user: RuleFile
    project: RuleFile

    @classmethod
    def of(cls, config: Config) -> "KeptRules":
        """The files for this configuration; nothing is made or read yet."""
        own = config.paths.data / config.project.folder_name
        return cls(RuleFile(config.paths.config / "rules.json"), RuleFile(own / "rules.json"))

    def __call__(self) -> RuleSet:
        """Both together, as they stand now. Raises ConfigError where one can't be read."""
        user, project = self.user.rules(), self.project.rules()
        return RuleSet(
            allow=(*user.allow, *project.allow),
            ask=(*user.ask, *project.ask),
            deny=(*user.deny, *project.deny),
        )

    def file(self, scope: Scope) -> RuleFile:
        """The file of a scope."""
        return self.user if scope == "user" else self.project
