"""What click lacks for us: commands imported when they are used, help in the user's language."""

import copy
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from croze.types.errors import UsageError
from croze.ui.cli.output import Output
from croze.ui.i18n import _


class Command(click.Command):
    """A command whose help is translated when it is shown."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(
            ctx.command_path, " ".join(self.collect_usage_pieces(ctx)), _("Usage:") + " "
        )

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(_(self.help or ""))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own_help = self.get_help_option(ctx)
        records = [
            record
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
            and (record := _record(param, ctx, is_help=param is own_help)) is not None
        ]
        if records:
            with formatter.section(_("Options")):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.epilog:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(_(self.epilog))

    def get_short_help_str(self, limit: int = 100) -> str:
        """The first sentence."""
        line = _(self.short_help or self.help or "").partition("\n")[0]
        return re.split(r"(?<=[.。:：])\s|(?<=。)", line, maxsplit=1)[0].rstrip(":：")

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option


def _show_help(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        Output().raw((ctx.get_help() + "\n").encode("utf-8", "replace"))
        ctx.exit()


def _record(param: click.Option, ctx: click.Context, *, is_help: bool) -> tuple[str, str] | None:
    shown = copy.copy(param)
    shown.help = _("Show this help.") if is_help else _(param.help or "")
    return click.Option.get_help_record(shown, ctx)


class LazyGroup(Command, click.Group):
    """A group that knows its commands by name, place and one line, and imports one when it is used.

    `lazy` maps a name to ("module:attribute", help line).
    """

    def __init__(
        self, *args: Any, lazy: Mapping[str, tuple[str, str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lazy, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _colon, attribute = self.lazy[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = (
                _("did you mean `{command}`?", command=f"{ctx.command_path} {near[0]}")
                if near
                else _("`{command}` shows the commands", command=f"{ctx.command_path} --help")
            )
            raise UsageError(
                _("there is no command {name}", name=repr(name)), hint=hint, code="no_command"
            )
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            if name in self.lazy:
                rows.append((name, _(self.lazy[name][1])))
            elif (command := self.get_command(ctx, name)) and not command.hidden:
                rows.append((name, command.get_short_help_str()))
        with formatter.section(_("Commands")):
            formatter.write_dl(rows)
        Command.format_options(self, ctx, formatter)


class Pick(click.Choice[str]):
    """One of a few words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            raise _wrong(param, value, " | ".join(self.choices))
        return str(value)


class Number(click.ParamType[float]):
    """A number above 0: whole, or with a fraction."""

    name = "number"

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return "N"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number: float = int(value) if self.whole else float(value)
        except ValueError:
            number = 0
        if not 0 < number <= 1e9:
            raise _wrong(param, value, "integer >= 1" if self.whole else "number > 0")
        return number


def _wrong(param: click.Parameter | None, value: object, allowed: str) -> UsageError:
    name = param.opts[0] if param is not None and param.opts else "value"
    return UsageError(
        _("{option} can't be {value}", option=name, value=repr(value)),
        hint=_("allowed: {allowed}", allowed=allowed),
        code="option_value",
    )


def explain_click(error: click.UsageError) -> tuple[str, str]:
    """A parse error of click in the user's language, with the help to look at."""
    path = error.ctx.command_path if error.ctx else "croze"
    hint = _("`{command}` shows what is possible", command=f"{path} --help")
    if isinstance(error, click.NoSuchOption):
        import difflib

        near = difflib.get_close_matches(error.option_name, error.possibilities or [], n=1)
        if near:
            hint = _("did you mean `{command}`?", command=near[0])
        return _("there is no option {name}", name=error.option_name), hint
    if isinstance(error, click.MissingParameter):
        param = error.param
        name = param.human_readable_name if param is not None else "value"
        if isinstance(param, click.Option):
            name = param.opts[0]
        return _("{name} is missing", name=name), hint
    if isinstance(error, click.BadOptionUsage):
        if "not take" in error.message:
            return _("{name} takes no value", name=error.option_name), hint
        return _("{name} needs a value", name=error.option_name), hint
    return _("the command line can't be understood: {reason}", reason=error.format_message()), hint
