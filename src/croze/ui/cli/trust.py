"""`croze trust`: what of a project would act or instruct, and letting it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from croze.text.display import safe
from croze.types.errors import UsageError
from croze.ui.cli.exits import Exit
from croze.ui.cli.framework import Command
from croze.ui.cli.state import State, pass_state
from croze.ui.cli.with_app import write_json
from croze.ui.i18n import _, mark

if TYPE_CHECKING:
    from croze.app.acting import ActingFile
    from croze.app.trust import Trust

_YES = ("y", "yes", "是")


@click.command(
    "trust",
    cls=Command,
    help=mark(
        "Show what of a project would run programs, set something or tell agents what to do, ask, and let "
        "it. What is trusted is each file as it is now: one that changes is without effect until you have "
        "seen the difference and trust it again.\n\n"
        "PATH is a folder of the project, or one file to trust alone. Without a terminal --yes answers.\n\n"
        "Example: croze trust --show"
    ),
)
@click.argument("path", required=False)
@click.option("--yes", "-y", is_flag=True, help=mark("Trust what is there without a question."))
@click.option(
    "--show", is_flag=True,
    help=mark("Show contents: what has changed since it was trusted, the rest whole. Trusts nothing."),
)  # fmt: skip
@click.option("--remove", is_flag=True, help=mark("Trust nothing of the project any more."))
@click.option(
    "--list", "list_all", is_flag=True, help=mark("List the projects with trusted files.")
)
@click.option("--json", "as_json", is_flag=True, help=mark("Print values for programs."))
@pass_state
def trust(
    state: State,
    path: str | None,
    *,
    yes: bool,
    show: bool,
    remove: bool,
    list_all: bool,
    as_json: bool,
) -> int:
    if yes + show + remove + list_all > 1:
        raise UsageError(
            _("--yes, --show, --remove and --list exclude each other"),
            hint=_("leave all but one of them out"),
            code="trust_one_of",
        )
    if list_all:
        return _list(state, as_json=as_json)
    from croze.app.acting import survey, trust_all

    folder, only = _place(state, path)
    kept, files = survey(folder, state.env)
    if remove:
        return _remove(state, kept, as_json=as_json)
    gone: list[str] = []
    if only:
        files = [each for each in files if each.path == only]
        if not files:
            raise _useless(_("nothing in {root} would act or instruct", root=safe(only)))
    else:
        gone = sorted(kept.kept.files.keys() - {each.path for each in files})
    if yes:
        trust_all(kept, files, whole=not only)
        kept, files = survey(folder, state.env) if as_json else (kept, files)
    if as_json:
        return write_json(state, _values(kept, files, gone))
    if show:
        return _show(state, kept, files)
    return _ask(state, kept, files, gone, only=only, yes=yes)


def _ask(
    state: State, kept: "Trust", files: "list[ActingFile]", gone: list[str], *, only: str, yes: bool
) -> int:
    from croze.app.acting import trust_all
    from croze.ui.trusting import gone_lines, survey_lines

    root = safe(str(kept.root))
    if not files and not gone:
        state.out.note(_("nothing in {root} would act or instruct", root=root))
        return Exit.DONE
    for line in (*survey_lines(files), *gone_lines(gone)):
        state.out.line(line)
    fit = [each for each in files if not each.problem]
    if yes:
        state.out.note(_("{count} files of {root} are trusted now", count=len(fit), root=root))
        return Exit.DONE
    if not gone and all(each.state == "trusted" for each in fit):
        state.out.note(_("all that can be trusted is trusted already"))
        return Exit.DONE
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            _("nobody can be asked here, and nothing was trusted"),
            hint=_("--yes trusts what is listed"),
            code="trust_needs_yes",
        )
    state.out.note(_("Trust these files as they are now?") + " [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in _YES:
        state.out.note(_("nothing was trusted"))
        return Exit.REFUSED
    count = trust_all(kept, files, whole=not only)
    state.out.note(_("{count} files of {root} are trusted now", count=count, root=root))
    return Exit.DONE


def _show(state: State, kept: "Trust", files: "list[ActingFile]") -> int:
    from croze.ui.trusting import content_lines

    differing = [each for each in files if each.state in ("changed", "new")]
    if not differing:
        state.out.note(_("all that can be trusted is trusted already"))
    for each in differing:
        for line in content_lines(each, kept):
            state.out.line(line)
    return Exit.DONE


def _list(state: State, *, as_json: bool) -> int:
    from croze.app.paths import Paths
    from croze.app.trust import projects

    found = {
        root: each
        for root, each in projects(Paths.of(state.env).trusted_file).items()
        if each.files
    }
    if as_json:
        return write_json(
            state,
            [
                {"root": root.encode("utf-8", "replace").decode(), "files": dict(each.files)}
                for root, each in found.items()
            ],
        )
    if not found:
        state.out.note(_("no project is trusted"))
    state.out.table(
        [
            (safe(root), _("{count} files", count=len(each.files)))
            for root, each in sorted(found.items())
        ]
    )
    return Exit.DONE


def _remove(state: State, kept: "Trust", *, as_json: bool) -> int:
    done = kept.forget()
    if as_json:
        return write_json(state, {"root": _root(kept), "removed": done})
    root = safe(str(kept.root))
    if done:
        state.out.note(_("nothing of {root} is trusted any more", root=root))
    else:
        state.out.note(_("nothing of {root} was trusted", root=root))
    return Exit.DONE


def _place(state: State, path: str | None) -> tuple[Path, str]:
    """The folder that is meant, and the file below the project's root, where one is."""
    from croze.app.paths import find_project

    place = state.cwd / path if path else state.cwd
    if place.is_dir():
        return place, ""
    file = place.parent.resolve() / place.name
    for folder in (state.cwd, file.parent):
        root = find_project(folder).root
        if place.exists() and file.is_relative_to(root):
            return folder, file.relative_to(root).as_posix()
    raise _useless(_("there is no {path}", path=safe(str(place))))


def _useless(message: str) -> UsageError:
    return UsageError(
        message,
        hint=_("name a folder of the project, or one of the files that `croze trust` lists"),
        code="trust_no_path",
    )


def _values(kept: "Trust", files: "list[ActingFile]", gone: list[str]) -> dict[str, Any]:
    names = ("path", "kind", "effect", "state", "does", "problem", "size", "hidden", "sha256")
    rows = [{name: getattr(each, name) for name in names} for each in files]
    return {"root": _root(kept), "files": rows, "gone": gone}


def _root(kept: "Trust") -> str:
    """The project's folder as text, whatever bytes it has in its name."""
    return str(kept.root).encode("utf-8", "replace").decode()
