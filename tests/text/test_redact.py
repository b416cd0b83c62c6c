"""Redaction: what is a secret goes, what only looks like one stays."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from croze.text.redact import MARK, redact, redact_value

KEY = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ0123456789abcd"

SECRETS = [
    (f"sk-{KEY}", f"sk-{KEY}"),
    (f"key: sk-ant-api03-{KEY}-x_AA", f"sk-ant-api03-{KEY}-x_AA"),
    ("sk-0123456789abcdef0123456789abcdef", "sk-0123456789abcdef0123456789abcdef"),
    (f"x AIza{KEY[:35]} y", f"AIza{KEY[:35]}"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    (
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ),
    (f"AccountName=x;AccountKey={KEY}==;EndpointSuffix=y", f"{KEY}=="),
    (f"ghp_{KEY[:36]}", f"ghp_{KEY[:36]}"),
    (f"a\\nghs_{KEY[:36]}\\n", f"ghs_{KEY[:36]}"),
    (f"github_pat_11ABCDEFG0{KEY}", f"github_pat_11ABCDEFG0{KEY}"),
    (f"glpat-{KEY[:20]}", f"glpat-{KEY[:20]}"),
    (f"xoxb-1234567890-{KEY[:24]}", f"xoxb-1234567890-{KEY[:24]}"),
    (f"https://hooks.slack.com/services/T0001/B0001/{KEY[:24]}", f"T0001/B0001/{KEY[:24]}"),
    (f"sk_live_{KEY[:24]}", f"sk_live_{KEY[:24]}"),
    (f"//npm.example.org/:_authToken=npm_{KEY[:36]}", f"npm_{KEY[:36]}"),
    (f"pypi-AgEI{KEY}{KEY}", f"pypi-AgEI{KEY}{KEY}"),
    (f"hf_{KEY[:34]}", f"hf_{KEY[:34]}"),
    (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fw",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fw",
    ),
    ("postgres://bob:hunter2@db.local/x", "hunter2"),
    ("Server=db;User=a;Password=hunter2;", "hunter2"),
    ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef"),
    ('"Authorization": "Basic dXNlcjpwYXNzd29yZA=="', "dXNlcjpwYXNzd29yZA=="),
    ("curl -H 'Authorization: token deadbeef1234567'", "deadbeef1234567"),
    ("X-Api-Key: abcdef", "abcdef"),
    ("password: hunter2", "hunter2"),
    ("password: letmein", "letmein"),
    ("password: hunter2  # of the old server", "hunter2"),
    ("tried password: hunter2 on the old server", "hunter2"),
    ("  12 | password: hunter2", "hunter2"),
    ("12\tpassword: hunter2", "hunter2"),
    ('"password": "letmein",', "letmein"),
    ('{\\"password\\": \\"hunter2\\"}', "hunter2"),
    ("PASSWORD=letmein", "letmein"),
    ("export DB_PASSWORD=hunter2", "hunter2"),
    ('DB_PASSWORD="p@ss w0rd"', "p@ss w0rd"),
    ("password = hunter2", "hunter2"),
    ("https://x.y/?token=abc123def456&x=1", "abc123def456"),
    ("https://x.y/?a=1&api_key=deadbeefcafe", "deadbeefcafe"),
    ("login --password hunter2", "hunter2"),
    ("login --api-key=abcdefgh", "abcdefgh"),
    (
        "api_key: 123e4567-e89b-12d3-a456-426614174000",
        "123e4567-e89b-12d3-a456-426614174000",
    ),
    ('client_secret = "abcDEF"', "abcDEF"),
    ("'apiKey': 'a-b-c-1-2-3',", "a-b-c-1-2-3"),
    ('self.password = "hunter2"', "hunter2"),
    ('password: str = "hunter2"', "hunter2"),
    ("<password>hunter2</password>", "hunter2"),
    ('{"env": {"GITHUB_TOKEN": "abcdef123456"}}', "abcdef123456"),
    ("SECRET_KEY = 'django-insecure-#w$2k'", "django-insecure-#w$2k"),
    ('token := "abc123def456ghi"', "abc123def456ghi"),
    ("'password' => 'hunter2',", "hunter2"),
    ('os.environ["API_KEY"] = "abc-123-def"', "abc-123-def"),
    ("machine x login bob password hunter22", "hunter22"),
    ("password: aGVsbG8gd29ybGQ=", "aGVsbG8gd29ybGQ="),
]

HARMLESS = [
    "commit 0123456789abcdef0123456789abcdef01234567",
    "id: 123e4567-e89b-12d3-a456-426614174000",
    "integrity sha512-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ==",
    'api_key = "YOUR_API_KEY"',
    "api_key: xxx",
    "password: changeme",
    "token: <token>",
    "PASSWORD=$DB_PASSWORD",
    "PASSWORD=${DB_PASSWORD}",
    'password = os.environ["DB_PASSWORD"]',
    "const token = process.env.TOKEN;",
    "password = get_password()",
    'def login(user, password: str, token: str = "") -> None:',
    "password: str",
    "password: string;",
    "has_refresh_token: bool",
    "auth: httpx2.Auth",
    'token = r"[-!#$%&*+.^_|~0-9a-zA-Z]+"',
    r"r'(?P<user>[^:]*)(?::(?P<password>[^\s/]*))?@'",
    "password: must be at least 8 characters",
    "password: Optional[str] = None",
    "token: Token",
    "token = self.next_token()",
    "max_tokens: 4096",
    'next_page_token = "CAUQAA123456789"',
    'eos_token = "<|endoftext|>"',
    "password=password",
    "f(password=pw, token=tok)",
    'if password == "x1y2z3":',
    "token = tokens[i]",
    "sk-loading-spinner-container-wide",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
    'type="password"',
    '"password": "Enter your password"',
    '"token": "identifier"',
    "https://user:password@host/",
    "http://localhost:8080/a@b",
    "-----BEGIN PRIVATE KEY-----",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer YOUR_TOKEN",
    'headers["Authorization"] = f"Bearer {token}"',
    'headers = {"Authorization": header_value}',
    "the secret is to begin early",
    "password_hash: abc123def456",
    'cache_key = "user:123:abc"',
    'key = "abc123def456ghi789"',
    "private_key: /etc/ssl/private/key.pem",
    "--password PASSWORD",
    "--password-stdin",
    "use --token to authenticate",
    "password = config.password",
    "author: bob123",
    "token::Foo",
    "password = %s",
    "VALUES (:user, :password)",
    "secret: true",
    "pwd = None",
    "PWD=/home/me/project",
    'tokenizer = "gpt2-abc123def"',
    "token_url: https://example.com/oauth/token",
    "secret: ${{ secrets.GITHUB_TOKEN }}",
    '"api_key": null',
]


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=[text[:40] for text, _ in SECRETS])
def test_a_secret_is_replaced_and_nothing_else(text: str, secret: str) -> None:
    assert redact(text) == (text.replace(secret, MARK), 1)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == (text, 0)


def test_a_private_key_goes_and_its_frame_stays_even_when_the_text_ends_in_it() -> None:
    body = "\n".join([KEY + "MIIEow+/"] * 5)
    whole = f"a\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nb"
    assert redact(whole) == (
        f"a\n-----BEGIN RSA PRIVATE KEY-----{MARK}-----END RSA PRIVATE KEY-----\nb",
        1,
    )
    assert redact(whole[:150]) == (f"a\n-----BEGIN RSA PRIVATE KEY-----{MARK}", 1)


def test_a_private_key_with_line_numbers_goes() -> None:
    rows = ["-----BEGIN PRIVATE KEY-----", KEY, KEY, "-----END PRIVATE KEY-----"]
    text, count = redact("\n".join(f"{n}\t{row}" for n, row in enumerate(rows, 1)))
    assert KEY not in text
    assert count == 1


def test_letters_that_grow_when_lowered_do_not_shift_what_is_taken() -> None:
    assert redact("İİİİ password: hunter2") == (f"İİİİ password: {MARK}", 1)


def test_values_are_redacted_wherever_they_stand() -> None:
    value = {
        "command": "curl -u bob https://bob:hunter2@x.y",
        "env": {"API_TOKEN": "letmein-now", "PATH": "/bin"},
        "list": ["password=hunter2", 3, None],
        "password": "short words",
    }
    assert redact_value(value) == (
        {
            "command": f"curl -u bob https://bob:{MARK}@x.y",
            "env": {"API_TOKEN": MARK, "PATH": "/bin"},
            "list": [f"password={MARK}", 3, None],
            "password": "short words",
        },
        3,
    )


def test_a_very_long_secret_goes_as_a_whole() -> None:
    long = "a1B2" * 500
    assert redact(f"PASSWORD={long}\nnext") == (f"PASSWORD={MARK}\nnext", 1)


FRAGMENTS = st.sampled_from(
    [secret for text, secret in SECRETS]
    + [text for text, _ in SECRETS]
    + HARMLESS
    + [
        " ",
        "\n",
        '"',
        "'",
        "=",
        ":",
        "-",
        "_",
        ".",
        ",",
        "@",
        "://",
        "\\n",
        MARK,
        "password=",
        "sk-",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(FRAGMENTS, st.text(max_size=6)), max_size=8).map("".join))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once, _ = redact(text)
    assert redact(once) == (once, 0)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(SECRETS),
    st.text(alphabet="abc .\n", max_size=20),
    st.text(alphabet="abc .\n", max_size=20),
)
def test_a_secret_on_a_line_of_its_own_goes_whatever_stands_round_it(
    case: tuple[str, str], before: str, after: str
) -> None:
    text, secret = case
    assert secret not in redact(f"{before}\n{text}\n{after}")[0]
