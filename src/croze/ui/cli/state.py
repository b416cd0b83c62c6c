"""What every command gets: environment, folder, output, and the way to open the application."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from croze.types.errors import UsageError
from croze.ui.cli.output import Output
from croze.ui.i18n import _, explain_code

if TYPE_CHECKING:
    from croze.app.app import App
    from croze.app.options import Finding


def _open_app(**options: object) -> "App":
    from croze.app.app import App

    return App.open(**options)  # type: ignore[arg-type]


@dataclass(slots=True)
class State:
    """Made once by `main`; tests pass their own with another `opener`."""

    env: Mapping[str, str]
    cwd: Path
    out: Output = field(default_factory=Output)
    opener: "Callable[..., App]" = _open_app
    trust: bool = False
    """Whether the project's files may act in this run (--trust)."""

    @classmethod
    def of_process(cls) -> "State":
        """Raises `UsageError` where the folder that croze was started in is gone."""
        try:
            return cls(env=os.environ, cwd=Path.cwd())
        except FileNotFoundError as error:
            raise UsageError(
                _("the current folder no longer exists"),
                hint=_("change to a folder that does"),
                code="no_folder",
            ) from error

    def open(self, overrides: Mapping[str, object] | None = None) -> "App":
        """The application for this folder. What must be told once is told on standard error."""
        app = self.open_silently(overrides)
        self.tell(app.config.notices)
        return app

    def open_silently(self, overrides: Mapping[str, object] | None = None) -> "App":
        """The same, and nothing is told."""
        trust = {"trust": True} if self.trust else {}
        return self.opener(cwd=self.cwd, overrides=overrides or {}, env=self.env, **trust)

    def tell(self, notices: "tuple[Finding, ...]") -> None:
        for notice in notices:
            text, hint = explain_code(notice.code, notice.text, notice.hint, notice.params)
            self.out.note(f"croze: {text} ({hint})" if hint else f"croze: {text}")

    def tell_store(self, app: "App") -> None:
        """What the store has to say: a damaged file set aside, and the way back."""
        for notice in app.notices:
            text, _hint = explain_code(notice.code, notice.text, "", notice.params)
            self.out.note(f"croze: {text}")


pass_state = click.make_pass_decorator(State)
