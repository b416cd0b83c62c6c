"""What became of a file of the project's or the user's knowledge, in the user's language."""

from croze.ui.i18n import _, mark
from croze.ui.reasons import translated

REASONS = (
    mark("{file} has the same name"),
    mark("it is the same file as {file}"),
    mark("{first} is used instead of {folder}"),
    mark("it says the same as {file}"),
    mark("it is told whole"),
    mark("it is not trusted, and such files have more than {most} tokens together"),
    mark("no file can match {patterns}"),
    mark("it is listed and read on demand"),
    mark("it holds once a file matches {patterns}"),
    mark("it holds once something in {folder}/ is looked at"),
    mark("{file} imports it, and it lies outside of the project"),
    mark("{file} imports it, and imports go no further"),
    mark("the user doesn't trust this content of it"),
    mark("a hook names it, and the user doesn't trust this content of it"),
    mark("it has {size} bytes, more than {most}"),
    mark("it has more than {most} bytes"),
    mark("{count} more files in it are not looked at"),
    mark("it is binary, not text"),
    mark("{path} leads out of the workspace"),
    mark("it is not trusted, and has more than {count} tokens"),
    mark("it is empty"),
    mark("it is no regular file"),
    mark("it is a link that leads nowhere"),
    mark("its name is not UTF-8"),
    mark("its front matter can't be read: {why}"),
    mark("its front matter is not closed by ---"),
    mark("its front matter has more than {most} characters"),
    mark("it has no front matter with a description"),
    mark("it has no description"),
    mark("{name} is the name of croze's own agent"),
    mark("{name} is no name for an agent: letters, digits, - _ . and at most 64 of them"),
    mark("{field} can't be {value}: one of {allowed}"),
    mark("zone can't be {value}: 80k, 1.5M, a number, a share such as 0.5, or auto"),
    mark("{field} must be a number above 0, not {value}"),
    mark("{field} must be a whole number, not {value}"),
    mark("{field} must be true or false, not {value}"),
    mark("{field} must be a list of texts, or text with commas"),
    mark("{field} must be text"),
    mark("there is no tool named {names}"),
    mark("croze does not use {names}"),
    mark("the model {model} can't be used here"),
    mark("it is not executable"),
    mark("it gives no help ({why})"),
    mark("its help is not known yet"),
    mark("its help is left out for want of room"),
    mark("its first line ends in CR LF, so the system doesn't find what runs it"),
    mark("its first line names no program"),
    mark("{program} is not installed"),
    mark("{name} is no name for a skill: small letters, digits and single hyphens, at most 64"),
    mark("it has no name"),
    mark("its name is not its folder's, {folder}"),
    mark("its folder's name can't be shown"),
    mark("its description has more than {most} characters"),
    mark("its compatibility has more than {most} characters"),
    mark("about {tokens} tokens of it are left out: all libraries together get {most}"),
    mark("there is no documentation of it"),
)
"""Of several that fit the first counts."""


def states() -> dict[str, str]:
    return {
        "loaded": _("loaded"),
        "cut": _("cut"),
        "shadowed": _("shadowed"),
        "untrusted": _("untrusted"),
        "broken": _("not usable"),
    }


def because(reason: str) -> str:
    """The reasons of a finding; those that aren't known as they are."""
    return "; ".join(translated(part, REASONS) or part for part in reason.split("; "))
