"""What hooks did, in lines for the user."""

from collections.abc import Iterator

from croze.text.display import one_line
from croze.types.event import HookRun, HooksRan
from croze.ui.i18n import _

WIDTH = 400


def hook_lines(ran: HooksRan) -> Iterator[tuple[str, str]]:
    """Lines and their styles; nothing where every hook did its work and has nothing to say."""
    for run in ran.runs:
        if text := _line(run, ran).rstrip(" :："):
            yield text, "dim" if run.ended == "ok" else "yellow"
    if ran.args is not None:
        yield _("a hook changed the input of this call"), "dim"
    if ran.decision == "deny" and ran.point in ("Stop", "SubagentStop"):
        reason = one_line(ran.reason, WIDTH)
        yield _("a hook makes it go on: {reason}", reason=reason), "dim"


def _line(run: HookRun, ran: HooksRan) -> str:
    name, said = one_line(run.name, 80), one_line(run.message, WIDTH)
    match run.ended:
        case "ok":
            return _("hook {name}: {said}", name=name, said=said) if said else ""
        case "blocked":
            if ran.point == "UserPromptSubmit":
                return _("the hook {name} dropped this message: {said}", name=name, said=said)
            return _("hook {name}: {said}", name=name, said=said) if said else ""
        case "failed":
            return _(
                "the hook {name} failed (exit code {code}): {said}",
                name=name,
                code=run.exit_code if run.exit_code is not None else "—",
                said=said,
            )
        case "invalid":
            return _("the hook {name} gave no valid answer: {said}", name=name, said=said)
        case "timeout":
            return _("the hook {name} was ended: {said}", name=name, said=said)
        case "killed":
            return _("the hook {name} ended early: {said}", name=name, said=said)
        case "not_run":
            return _("the hook {name} was not run: {said}", name=name, said=said)
