"""The commands that are known to only read, and with which arguments.

Each entry was held against the manuals of GNU coreutils, findutils, grep, ripgrep, file, tree and bash:
what writes (`sort -o`, `uniq IN OUT`, `tree -o`, `file -C`), runs programs (`find -exec`, `rg --pre`,
`sort --compress-program`, `diff -l`), reads a list of files from a file, or follows links out of the
workspace is left out. Programs whose `--version` already runs what a project says (yarn, cargo, go,
pytest) are not here at all. Git's own list is `safe_git`.
"""

import re

from croze.tools.option_rules import GENERAL, Check, Read, Reads, Unknown, anything, exactly
from croze.tools.safe_git import git

_NUMERIC = re.compile(r"[+-]?\d+[A-Za-z]{0,2}\Z")
_SED = re.compile(r"(?:\d+|\$)(?:,(?:\d+|\$))?p(?:;(?:\d+|\$)(?:,(?:\d+|\$))?p)*\Z")
_CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?[sdiuxXocbqfeg]|%%")
_CONTEXT = frozenset({"e", "regexp"})

_FIND_ALONE = frozenset(
    [
        "-a",
        "-and",
        "-o",
        "-or",
        "-not",
        "!",
        "(",
        ")",
        ",",
        "-true",
        "-false",
        "-print",
        "-print0",
        "-prune",
        "-quit",
        "-empty",
        "-readable",
        "-writable",
        "-executable",
        "-depth",
        "-mount",
        "-xdev",
        "-daystart",
        "-ls",
        "-nouser",
        "-nogroup",
        "-noleaf",
        "-ignore_readdir_race",
    ]
)
_FIND_NUMBERS = frozenset(
    [
        "-maxdepth",
        "-mindepth",
        "-size",
        "-mtime",
        "-mmin",
        "-atime",
        "-amin",
        "-ctime",
        "-cmin",
        "-links",
        "-inum",
        "-used",
        "-uid",
        "-gid",
    ]
)
_FIND_TEXTS = frozenset(
    [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-iwholename",
        "-regex",
        "-iregex",
        "-regextype",
        "-lname",
        "-ilname",
        "-type",
        "-xtype",
        "-perm",
        "-user",
        "-group",
        "-printf",
        "-newermt",
    ]
)


def _find(args: tuple[str, ...]) -> Read | Unknown:
    paths = []
    at = 0
    while at < len(args) and not args[at].startswith("-") and args[at] not in ("!", "(", ")", ","):
        paths.append(args[at])
        at += 1
    while at < len(args):
        word = args[at]
        at += 1
        if word in _FIND_ALONE:
            continue
        value = args[at] if at < len(args) else ""
        numeric = bool(_NUMERIC.match(value))
        if (word in _FIND_NUMBERS and numeric) or (
            word in _FIND_TEXTS and value and (numeric or not value.startswith("-"))
        ):
            at += 1
        elif word == "-newer" and value and not value.startswith("-"):
            paths.append(value)
            at += 1
        else:
            return Unknown(f"has the expression {word}")
    return Read(tuple(paths))


def _sed(args: tuple[str, ...]) -> Read | Unknown:
    """Only `sed -n 'N,Mp'`: sed's other commands write, and `e` runs programs."""
    if len(args) >= 2 and args[0] == "-n" and _SED.match(args[1]):
        files = args[2:]
        if not any(word.startswith("-") for word in files):
            return Read(files)
    return Unknown("is another use of sed than printing lines: sed -n 'N,Mp'")


def _cd(args: tuple[str, ...]) -> Read | Unknown:
    """Without `..`: behind a link, bash and the system disagree about what is above."""
    if len(args) == 1 and args[0] and args[0][0] != "-" and ".." not in args[0].split("/"):
        return Read(args)
    return Unknown("is another use of cd than cd FOLDER")


def _command(args: tuple[str, ...]) -> Read | Unknown:
    if len(args) >= 2 and args[0] in ("-v", "-V") and not args[1].startswith("-"):
        return Read()
    return Unknown("runs another command")


def _date(args: tuple[str, ...]) -> Read | Unknown:
    checked = Reads(
        flags="uRI", values="d", longs="utc universal date= iso-8601=?", operands="texts"
    )
    found = checked(args)
    if isinstance(found, Unknown):
        return found
    plain = [word for word in args if not word.startswith(("-", "+"))]
    dated = sum(word in ("-d", "--date") for word in args)
    return Unknown("sets the clock") if len(plain) > dated else found


def _printf(args: tuple[str, ...]) -> Read | Unknown:
    """Bash's own printf: `-v` and `%n` set variables, and a variable's name may run commands."""
    if args and not args[0].startswith("-") and not _CONVERSION.sub("", args[0]).count("%"):
        return Read()
    return Unknown("is another use of printf than printf FORMAT … with plain conversions")


def _jq(args: tuple[str, ...]) -> Read | Unknown:
    """A filter may read modules and data by `import` and `include`."""
    if any(word in arg for arg in args for word in ("import", "include", "input_filename")):
        return Unknown("has a filter that reads other files")
    checked = Reads(
        flags="rcSsejanMCR",
        longs="raw-output compact-output sort-keys slurp exit-status join-output ascii-output null-input "
        "monochrome-output color-output tab raw-input",
        operands="pattern",
        least=1,
    )
    return checked(args)


_TEST = frozenset(
    [
        "-e",
        "-f",
        "-d",
        "-r",
        "-w",
        "-x",
        "-s",
        "-L",
        "-h",
        "-z",
        "-n",
        "=",
        "!=",
        "-eq",
        "-ne",
        "-lt",
        "-le",
        "-gt",
        "-ge",
        "-nt",
        "-ot",
        "!",
    ]
)


def _test(args: tuple[str, ...]) -> Read | Unknown:
    """`test -v` and others evaluate what they are given as arithmetic, which may run commands."""
    for word in args:
        if word.startswith("-") and word not in _TEST and not _NUMERIC.match(word):
            return Unknown(f"has the test {word}")
    return Read(tuple(word for word in args if word not in _TEST))


_SUMS = Reads(flags="bt", longs="binary text tag zero")
_VERSION = exactly("--version", "-V")

COMMANDS: dict[str, Check] = {
    "ls": Reads(
        flags="1aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ",
        longs="all almost-all author escape ignore-backups color=? directory classify=? file-type "
        "full-time group-directories-first no-group human-readable si inode kibibytes numeric-uid-gid "
        "literal quote-name reverse recursive size format= sort= time= time-style= ignore= hide= width= "
        "indicator-style= quoting-style= block-size=",
    ),
    "cat": Reads(
        flags="AbeEnstTuv",
        longs="show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
    ),
    "head": Reads(
        flags="qvz", values="nc", longs="bytes= lines= quiet silent verbose zero-terminated", numbers=True
    ),
    "tail": Reads(
        flags="qvz", values="nc", longs="bytes= lines= quiet silent verbose zero-terminated", numbers=True
    ),
    "wc": Reads(flags="cmlLw", longs="bytes chars lines words max-line-length"),
    "grep": Reads(
        flags="EFGPiyvwxcLlqsbHhnTZUaIor",
        values="eABCm",
        longs="extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case "
        "invert-match word-regexp line-regexp count color=? colour=? files-with-matches "
        "files-without-match only-matching quiet silent no-messages byte-offset with-filename "
        "no-filename line-number initial-tab null text recursive line-buffered null-data regexp= "
        "max-count= after-context= before-context= context= include= exclude= exclude-dir= "
        "binary-files= label=",
        operands="pattern", numbers=True, patterns=_CONTEXT,
    ),
    "rg": Reads(
        flags="acFHhiIlnNopPqsSuUvwx0.",
        values="egtTmABCMjd",
        longs="text count count-matches fixed-strings with-filename no-filename ignore-case case-sensitive "
        "smart-case invert-match word-regexp line-regexp files-with-matches files-without-match "
        "line-number no-line-number only-matching pcre2 quiet unrestricted hidden no-hidden no-ignore "
        "no-ignore-vcs no-ignore-parent multiline multiline-dotall null files type-list json vimgrep "
        "heading no-heading column no-column trim no-messages stats sort-files crlf no-config version "
        "passthru max-columns-preview color= colors= regexp= glob= iglob= type= type-not= max-count= "
        "after-context= before-context= context= max-columns= threads= max-depth= maxdepth= sort= "
        "sortr= max-filesize= engine= encoding= context-separator= path-separator=",
        operands="pattern", patterns=_CONTEXT | {"files", "type-list"},
    ),
    "find": _find,
    "sed": _sed,
    "cd": _cd,
    "command": _command,
    "date": _date,
    "printf": _printf,
    "test": _test,
    "echo": anything,
    "true": anything,
    "false": anything,
    "pwd": Reads(flags="LP", operands="none"),
    "type": Reads(flags="aptfP", operands="texts"),
    "which": Reads(flags="a", operands="texts"),
    "seq": Reads(flags="w", values="fs", operands="texts", numbers=True),
    "stat": Reads(flags="ft", values="c", longs="file-system terse format= printf="),
    "file": Reads(
        flags="biknNhr0",
        longs="brief mime mime-type mime-encoding extension keep-going raw no-pad no-buffer print0 "
        "no-dereference",
    ),
    "du": Reads(
        flags="abchkmsSx0", values="dBt",
        longs="all apparent-size bytes total human-readable si summarize separate-dirs null "
        "one-file-system max-depth= block-size= threshold= exclude= time=?",
    ),
    "df": Reads(
        flags="ahHiklmPT", values="tx",
        longs="all human-readable si inodes local portability print-type total type= exclude-type= "
        "output=? block-size=",
    ),
    "sort": Reads(
        flags="bdfghiMnRrVcCmsuz", values="kt",
        longs="ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting "
        "month-sort human-numeric-sort numeric-sort random-sort reverse version-sort check=? merge "
        "stable unique zero-terminated key= field-separator= sort=",
    ),
    "uniq": Reads(
        flags="cdDiuz", values="fsw", most=1,
        longs="count repeated all-repeated=? ignore-case unique zero-terminated skip-fields= "
        "skip-chars= check-chars= group=?",
    ),
    "cut": Reads(
        flags="nsz", values="bcdf",
        longs="bytes= characters= delimiter= fields= complement only-delimited output-delimiter= "
        "zero-terminated",
    ),
    "tr": Reads(
        flags="cCdst", operands="texts", longs="complement delete squeeze-repeats truncate-set1"
    ),
    "diff": Reads(
        flags="abBcdeEinNpqsTuwy", values="UCWIx", only_files=True,
        longs="normal brief report-identical-files side-by-side show-c-function show-function-line= "
        "unified=? context=? ed rcs width= left-column suppress-common-lines expand-tabs initial-tab "
        "no-dereference new-file unidirectional-new-file ignore-file-name-case ignore-case "
        "ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space "
        "ignore-blank-lines ignore-matching-lines= strip-trailing-cr text minimal speed-large-files "
        "color=? exclude= label= horizon-lines=",
    ),
    "cmp": Reads(flags="bls", values="in", longs="print-bytes verbose quiet silent bytes= ignore-initial="),
    "comm": Reads(flags="123z", longs="check-order nocheck-order total zero-terminated output-delimiter="),
    "nl": Reads(flags="p", values="bdfhilnsvw"),
    "basename": Reads(flags="az", values="s", operands="texts"),
    "dirname": Reads(flags="z", operands="texts"),
    "realpath": Reads(flags="eLmPqsz"),
    "readlink": Reads(flags="efmnqsvz"),
    "tree": Reads(
        flags="adfipsugDhFJX", values="LIP",
        longs="noreport dirsfirst filesfirst gitignore prune si du inodes sort= charset= filelimit=",
    ),
    "jq": _jq,
    "md5sum": _SUMS,
    "sha1sum": _SUMS,
    "sha256sum": _SUMS,
    "sha512sum": _SUMS,
    "cksum": Reads(),
    "uname": Reads(flags="asnrvmpio", operands="none"),
    "whoami": Reads(operands="none"),
    "id": Reads(flags="ugGnr", operands="texts"),
    "hostname": Reads(operands="none"),
    "nproc": Reads(longs="all", operands="none"),
    "arch": Reads(operands="none"),
    "git": git,
    "python": _VERSION,
    "python3": _VERSION,
    "node": exactly("--version", "-v"),
    "ruff": _VERSION,
    "uv": _VERSION,
    "gcc": exactly("--version"),
    "g++": exactly("--version"),
    "clang": exactly("--version"),
    "make": exactly("--version", "-v"),
    "cmake": exactly("--version"),
    "bash": exactly("--version"),
}  # fmt: skip

BUILTINS = frozenset({"cd", "command", "echo", "false", "printf", "pwd", "test", "true", "type"})
"""Those that bash runs itself, without looking at PATH."""


def reads(argv: tuple[str, ...]) -> Read | Unknown:
    """Whether a command, named by its bare name, is known to only read."""
    check = COMMANDS.get(argv[0])
    if check is None:
        return Unknown(GENERAL)
    return check(argv[1:])
