"""The git commands that only read, where the repository itself names no programs to run.

Measured: in a repository with a hostile `.git/config`, `git status` runs `core.fsmonitor` and filters,
`git diff` runs `diff.external`, `git log` and `git show` run text conversions and, with
`log.showSignature`, gpg; a partial clone fetches. So nothing here is safe by itself: `classify` also asks
`workspace.plain_git` whether this repository's configuration is one of known, harmless keys.
"""

from croze.tools.option_rules import Check, Read, Reads, Unknown, exactly

_DIFF = (
    "patch no-patch stat=? shortstat numstat name-only name-status raw summary dirstat=? "
    "patch-with-stat patch-with-raw compact-summary minimal patience histogram anchored= "
    "diff-algorithm= unified= word-diff=? word-diff-regex= color-words=? color=? no-color "
    "ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines ignore-cr-at-eol "
    "ignore-matching-lines= inter-hunk-context= function-context find-renames=? find-copies=? "
    "no-renames diff-filter= pickaxe-all pickaxe-regex check full-index binary abbrev=? exit-code "
    "quiet no-ext-diff no-textconv no-prefix default-prefix src-prefix= dst-prefix= relative=? text "
    "irreversible-delete "
)
_LOG = (
    "oneline graph decorate=? no-decorate all branches=? tags=? remotes=? no-merges merges reverse "
    "follow max-count= skip= since= after= until= before= author= committer= grep= all-match "
    "invert-grep regexp-ignore-case extended-regexp fixed-strings perl-regexp first-parent "
    "min-parents= max-parents= topo-order date-order author-date-order abbrev-commit "
    "no-abbrev-commit date= relative-date parents children left-right cherry-pick cherry-mark "
    "simplify-by-decoration full-history ancestry-path=? boundary log-size show-pulls no-walk=? "
    "clear-decorations count "
)
_DIFF_FLAGS = "pusRawbzWBMCD"


def _log(args: tuple[str, ...]) -> Read | Unknown:
    """`%G` in a format runs gpg."""
    if any("%G" in word for word in args):
        return Unknown("has a format with %G, which runs gpg")
    flags = Reads(
        flags=_DIFF_FLAGS + "iEFPcmgt",
        values="nSGULI",
        longs=_DIFF + _LOG + "pretty=? format=",
        numbers=True,
    )
    return flags(args)


def _config(args: tuple[str, ...]) -> Read | Unknown:
    """Only with a word that says to read: `git config KEY VALUE` writes."""
    if args and args[0] in ("--get", "--get-all", "--get-regexp", "--list", "-l"):
        return Reads(longs="get get-all get-regexp list show-origin show-scope local name-only", flags="l", operands="texts")(args)  # fmt: skip
    return Unknown("is another use of git config than --get or --list")


def _tag(args: tuple[str, ...]) -> Read | Unknown:
    if args and args[0] not in ("-l", "--list"):
        return Unknown("is another use of git tag than --list")
    return Reads(flags="ln", longs="list sort= contains= merged= points-at=", operands="texts")(args)  # fmt: skip


_SUBCOMMANDS: dict[str, Check] = {
    "status": Reads(
        flags="sbuvz",
        longs="short branch show-stash porcelain=? long verbose untracked-files=? ignored=? "
        "ahead-behind no-ahead-behind renames no-renames column=? no-column ignore-submodules=?",
    ),
    "diff": Reads(
        flags=_DIFF_FLAGS, values="USGIl",
        longs=_DIFF + "cached staged merge-base", numbers=True,
    ),
    "log": _log,
    "show": _log,
    "rev-list": Reads(flags="n", longs=_LOG + "objects", numbers=True),
    "shortlog": Reads(flags="sne", longs="summary numbered email no-merges since= until= all"),
    "branch": Reads(
        flags="arvl",
        longs="all remotes verbose list show-current no-color color=? sort= merged=? no-merged=? "
        "contains= column=? points-at=",
        operands="none",
    ),
    "tag": _tag,
    "remote": exactly("", "-v", "--verbose"),
    "rev-parse": Reads(
        longs="show-toplevel git-dir git-common-dir absolute-git-dir is-inside-work-tree "
        "is-bare-repository show-prefix show-cdup abbrev-ref=? short=? verify quiet "
        "symbolic-full-name",
        flags="q",
    ),
    "ls-files": Reads(
        flags="cdmostuzkv",
        longs="cached deleted modified others stage unmerged killed exclude-standard full-name "
        "error-unmatch directory exclude= eol deduplicate",
        values="x",
    ),
    "ls-tree": Reads(flags="rtdlz", longs="name-only name-status full-name full-tree long abbrev=?"),
    "blame": Reads(
        flags="ltsewcbfnpMC", values="L",
        longs="porcelain line-porcelain show-email show-name show-number root date= abbrev= since=",
    ),
    "describe": Reads(longs="tags all always long contains abbrev= match= exclude= first-parent"),
    "grep": Reads(
        flags="nilLcwvEFGPIahHoqpW", values="eABCm",
        longs="line-number ignore-case files-with-matches name-only count word-regexp invert-match "
        "extended-regexp fixed-strings basic-regexp perl-regexp untracked cached heading break "
        "show-function function-context context= after-context= before-context= max-depth= max-count= "
        "color=? no-color only-matching quiet and or not all-match",
        operands="pattern", patterns=frozenset({"e"}),
    ),
    "cat-file": Reads(flags="ptse", most=2, least=1),
    "merge-base": Reads(longs="all is-ancestor fork-point octopus independent", flags="a"),
    "name-rev": Reads(longs="name-only tags always"),
    "stash": exactly("list"),
    "config": _config,
}  # fmt: skip


def git(args: tuple[str, ...]) -> Read | Unknown:
    """The arguments behind `git`."""
    if args in (("--version",), ("version",)):
        return Read()
    if args[:1] == ("--no-pager",):
        args = args[1:]
    if not args or args[0].startswith("-"):
        return Unknown("has options before git's command")
    check = _SUBCOMMANDS.get(args[0])
    if check is None:
        return Unknown(f"is git {args[0]}, which is not among those that are known to only read")
    return check(args[1:])
