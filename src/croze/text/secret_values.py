"""Tells a secret from what only stands where a secret could: a placeholder, a reference, code."""

import binascii
import re

from croze.text.regex import Regex

MARK = "<REDACTED>"
"""What stands in the place of a secret."""

_WORDS_TEXT = """
a abc access admin an api app apikey authtoken account auth bar basic baz bearer bot bool
boolean bytes change changeme char client code credential credentials default demo dummy empty
enter env example fake false field fill foo from get goes has hash here hidden id in input
insert int integer is it jwt key kind last literal me missing mock my name needed new nil no
none not null number object of oauth off on optional or pass passphrase password passwd paste
personal placeholder please prompt public put pwd qux real redacted replace required sample
secret service set some something str string test testing text that the there this to todo
token tokens true type undefined unset use user username value var variable void webhook with word x
xx xxx your yours
inherit postgres mysql mariadb mongo redis guest rabbitmq minioadmin minio
passwort kennwort contraseña clave senha wachtwoord hasło lösenord adgangskode salasana passord parola
heslo şifre jelszó geheimnis schlüssel segredo segreto sekret secreto
"""
_WORDS = frozenset(_WORDS_TEXT.split())
_PIECE = Regex(r"[^\W_]+")
_CAMEL = Regex(r"(?<=[a-z])(?=[A-Z])")
_FILLER = Regex(r"(.)\1*\Z|.*(?:[xX]{4}|\*{3}|\.{3}|…|<REDACTED>)", re.DOTALL)
_REFERENCE = Regex(
    r"""
    \$\w+\Z | %\w+%\Z | %[sdvqr@]\Z | [:@]\w+\Z | <.*>?\Z | \[.*\]\Z | !(?:vault|Ref|Sub|env)\b
    | (?:env|secret|vault|file|op|ref|arn|keyring)[:.]
    """,
    re.VERBOSE | re.DOTALL,
)
_REFERENCE_WITHIN = Regex(
    r"\$[{(]|\{\{|<%|\#\{|\{[A-Za-z_][\w.\[\]\"'!:]*\}|\{\}|%\(\w+\)"
    r"|\b(?:environ|getenv|process\.env|env\[)"
)
_NAME = Regex(
    r"(?:[A-Z]+_)+(?:KEY|TOKEN|SECRET|PASSWORD|PASS|PWD|AUTH)\Z|(?:[a-z]+_)+(?:key|token|secret|password)\Z"
)
_PATH = Regex(r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.@ \-]{1,40})+[/\\]?\Z")
_FILE = Regex(
    r"[\w./\-]+\.(?:pem|key|crt|cert|p12|pfx|json|ya?ml|toml|ini|txt|env|py|js|ts|go|md)\Z"
)
_URL = Regex(r"[a-z][a-z0-9+.\-]*://")
_IDENTIFIER = Regex(r"[A-Za-z_][\w]*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)*\Z")
_CODE = Regex(r"[()\[\]{}|\\]|&&|==|!=|\.\.|^[=:*&!?+|>-]|[-+*/%]=|^\W+$")
_JUDGED = 200
"""How many characters of a value are looked at: enough to judge it, and a bound on the cost."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}\Z")
_MIXED = Regex(r"[a-z0-9][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_IDENTIFIER_CASE = Regex(r"(?:[A-Z]?[a-z]{2,})+[0-9]{0,2}\Z")
_PLAIN = Regex(r"[A-Za-z0-9+/_\-.~:]+={0,2}\Z")


def is_placeholder(value: str) -> bool:
    """True for `YOUR_API_KEY`, `changeme`, `xxxx`, `***`, `sk-...` and the like."""
    value = value[:_JUDGED]
    if _FILLER.match(value):
        return True
    if len(value) >= 16 and "EXAMPLE" in value:  # as in AWS's documentation
        return True
    words = [
        word
        for piece in _PIECE.findall(value)
        for word in ((piece,) if piece.islower() or piece.isupper() else _CAMEL.split(piece))
    ]
    if _WORDS.issuperset(map(str.lower, words)):
        return True
    if _NAME.match(value):  # of a variable: API_KEY = "MY_API_KEY"
        return True
    return not value.isascii() and all(word.isalpha() for word in words)  # a label in some language


def is_reference(value: str) -> bool:
    """True for `$VAR`, `${VAR}`, `{{ x }}`, `%s`, `<token>`, `:bind`, `env:NAME`, a path or an address."""
    value = value[:_JUDGED]
    return bool(
        _REFERENCE.match(value)
        or _REFERENCE_WITHIN.search(value)
        or _PATH.match(value)
        or _FILE.match(value)
        or _URL.match(value)
    )


def looks_random(value: str) -> bool:
    """True where letters and digits mix as no word or identifier does; at least 8 characters."""
    value = value[:_JUDGED]
    if len(value) < 8 or any(map(str.isspace, value)):
        return False
    digits = sum(map(str.isdigit, value))
    upper = any(map(str.isupper, value))
    lower = any(map(str.islower, value))
    if digits >= 3 and (upper or lower):
        return max(len(run) for run in re.split(r"[-_./]", value)) >= 6
    if digits and upper and lower:
        return True
    capitals = sum(map(str.isupper, value))
    return lower and len(value) >= 20 and capitals * 5 > len(value)


def is_base64(value: str) -> bool:
    """Whether a value is base64 of at least six bytes and no word."""
    if len(value) < 8 or len(value) % 4 or not _BASE64.match(value):
        return False
    return value.endswith("=") or (
        not value.islower() and not value.isupper() and looks_mixed(value)
    )


def looks_mixed(value: str) -> bool:
    """True where capitals stand inside of words, or digits between letters."""
    return bool(_MIXED.search(value[:_JUDGED])) and not _IDENTIFIER_CASE.match(value[:_JUDGED])


def is_basic(value: str) -> bool:
    """Whether a value is `user:password` in base64, as basic authorization has it."""
    if len(value) < 8 or len(value) > 1_000 or len(value) % 4 or not _BASE64.match(value):
        return False
    try:
        user, colon, rest = binascii.a2b_base64(value).decode("ascii").partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return bool(colon and user and rest) and (user + rest).isprintable()


def is_secret_text(value: str, *, strong: bool) -> bool:
    """Whether a quoted value of a secret's field is one. `strong` fields hold nothing else (password);
    weak ones (token) need a value that looks random."""
    if len(value) < 3 or is_placeholder(value) or is_reference(value):
        return False
    if not strong:
        plain = bool(_PLAIN.match(value[:_JUDGED]))
        return plain and (looks_random(value) or is_basic(value))
    words = value.split()
    prose = len(words) > 1 and all(re.fullmatch(r"[A-Za-z'(),.:;!?\-]+", word) for word in words)
    return not prose


def is_secret_word(value: str, *, strong: bool, setting: str) -> bool:
    """Whether an unquoted value is a secret. `setting` says where it stands: `value` where nothing but
    a value can stand (an environment line, a query), `yaml` and `ini` for a line of its own with `:` or
    a spaced `=`, `code` for anywhere else."""
    digits = sum(map(str.isdigit, value))
    if len(value) < 3 or (setting == "code" and (len(value) < 16 or digits < 3)):
        return False
    if is_placeholder(value) or is_reference(value):
        return False
    if setting == "value":
        return strong or looks_random(value)
    if _CODE.search(value[:_JUDGED]):
        return False
    identifier = _IDENTIFIER.match(value[:_JUDGED])
    if setting == "code":
        random = _PLAIN.match(value) and looks_random(value)
        return bool(random and not ("." in value and identifier))
    if not strong:
        return looks_random(value) and not (identifier and ("_" in value or "." in value))
    if identifier and digits >= 4:
        return True
    if identifier and setting == "yaml":
        return "." not in value and (digits > 0 or value.islower())
    if identifier:
        return digits > 0 and "." not in value and "_" not in value
    return True
