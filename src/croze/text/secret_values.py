"""Tells a secret from what only stands where a secret could: a placeholder, a reference, code."""

import re

_WORDS_TEXT = """
a abc access admin an api app apikey authtoken account auth bar basic baz bearer bot bool
boolean bytes change changeme char client code credential credentials default demo dummy empty
enter env example fake false field fill foo from get goes has hash here hidden id in input
insert int integer is it jwt key kind last literal me missing mock my name needed new nil no
none not null number object of oauth off on optional or pass passphrase password passwd paste
personal placeholder please prompt public put pwd qux real redacted replace required sample
secret service set some something str string test testing text that the there this to todo
token true type undefined unset use user username value var variable void webhook with word x
xx xxx your yours
"""
_WORDS = frozenset(_WORDS_TEXT.split())
_SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")
_FILLER = re.compile(r"(.)\1*\Z|.*(?:[xX]{4}|\*{3}|\.{3}|…|<REDACTED>)", re.DOTALL)
_REFERENCE = re.compile(
    r"""
    \$\w+\Z | .*\$[{(] | .*\{\{ | .*<%  | .*\#\{ | .*\{[A-Za-z_][\w.\[\]"'!:]*\} | .*\{\}
    | %\w+%\Z | .*%\(\w+\) | %[sdvqr@]\Z | [:@]\w+\Z | <.*>?\Z | \[.*\]\Z | !(?:vault|Ref|Sub|env)\b
    | (?:env|secret|vault|file|op|ref|arn|keyring)[:.]/?/? | .*\b(?:environ|getenv|process\.env|env\[)
    """,
    re.VERBOSE | re.DOTALL,
)
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@ \-]{1,40})+[/\\]?\Z")
_FILE = re.compile(
    r"[\w./\-]+\.(?:pem|key|crt|cert|p12|pfx|json|ya?ml|toml|ini|txt|env|py|js|ts|go|md)\Z"
)
_URL = re.compile(r"[a-z][a-z0-9+.\-]*://")
_IDENTIFIER = re.compile(r"[A-Za-z_][\w]*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)*\Z")
_CODE = re.compile(r"[()\[\]{}|\\]|&&|==|!=|\.\.|^[=:*&!?+|>-]|[-+*/%]=|^\W+$")
_JUDGED = 200
"""How many characters of a value are looked at: enough to judge it, and a bound on the cost."""
_PLAIN = re.compile(r"[A-Za-z0-9+/_\-.~:]+={0,2}\Z")


def is_placeholder(value: str) -> bool:
    """True for `YOUR_API_KEY`, `changeme`, `xxxx`, `***`, `sk-...` and the like."""
    value = value[:_JUDGED]
    if _FILLER.match(value):
        return True
    words = [word for word in _SPLIT.split(value) if word]
    return not words or all(word.lower() in _WORDS for word in words)


def is_reference(value: str) -> bool:
    """True for `$VAR`, `${VAR}`, `{{ x }}`, `%s`, `<token>`, `:bind`, `env:NAME`, a path or an address."""
    value = value[:_JUDGED]
    return bool(
        _REFERENCE.match(value) or _PATH.match(value) or _FILE.match(value) or _URL.match(value)
    )


def looks_random(value: str) -> bool:
    """True where letters and digits mix as no word or identifier does; at least 8 characters."""
    value = value[:_JUDGED]
    if len(value) < 8 or any(char.isspace() for char in value):
        return False
    digits = sum(char.isdigit() for char in value)
    upper = any(char.isupper() for char in value)
    lower = any(char.islower() for char in value)
    if digits >= 3 and (upper or lower):
        return max(len(run) for run in re.split(r"[-_./]", value)) >= 6
    if digits and upper and lower:
        return True
    capitals = sum(char.isupper() for char in value)
    return lower and len(value) >= 20 and capitals * 5 > len(value)


def is_secret_text(value: str, *, strong: bool) -> bool:
    """Whether a quoted value of a secret's field is one. `strong` fields hold nothing else (password);
    weak ones (token) need a value that looks random."""
    if len(value) < 3 or is_placeholder(value) or is_reference(value):
        return False
    if not strong:
        return bool(_PLAIN.match(value[:_JUDGED])) and looks_random(value)
    words = value.split()
    prose = len(words) > 1 and all(re.fullmatch(r"[A-Za-z'(),.:;!?\-]+", word) for word in words)
    return not prose


def is_secret_word(value: str, *, strong: bool, setting: str) -> bool:
    """Whether an unquoted value is a secret. `setting` says where it stands: `value` where nothing but
    a value can stand (an environment line, a query), `yaml` and `ini` for a line of its own with `:` or
    a spaced `=`, `code` for anywhere else."""
    if len(value) < 3 or is_placeholder(value) or is_reference(value):
        return False
    if setting == "value":
        return strong or looks_random(value)
    if _CODE.search(value[:_JUDGED]):
        return False
    identifier = _IDENTIFIER.match(value[:_JUDGED])
    digits = sum(char.isdigit() for char in value)
    if setting == "code":
        random = len(value) >= 16 and digits >= 3 and _PLAIN.match(value) and looks_random(value)
        return bool(random and not ("." in value and identifier))
    if not strong:
        return looks_random(value) and not (identifier and ("_" in value or "." in value))
    if identifier and setting == "yaml":
        return "." not in value and (digits > 0 or value.islower())
    if identifier:
        return digits > 0 and "." not in value and "_" not in value
    return True
