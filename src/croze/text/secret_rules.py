"""The table of secrets that are known by how they begin or by what stands round them.

Where a form comes from outside, its maker's documentation or public scanners' rules name it; lengths
are lower bounds, because makers lengthen their keys.
"""

import re
from functools import cache
from typing import NamedTuple

from croze.text.regex import Regex


class Prefix(NamedTuple):
    """A key that is known by how it begins. `random`: the rest must look random too, because words
    joined by hyphens or underscores begin so as well."""

    name: str
    pattern: str
    random: bool = False


PREFIXES: tuple[Prefix, ...] = (
    Prefix("OpenAI, Anthropic, DeepSeek, OpenRouter", r"sk-[\w\-]{20,}", random=True),
    Prefix("OpenAI session", r"sess-[A-Za-z0-9]{40,}"),
    Prefix("Stripe", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    Prefix("webhook", r"whsec_[A-Za-z0-9+/=]{20,200}"),
    Prefix("Google client", r"GOCSPX-[\w\-]{20,}"),
    Prefix("GitHub", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    Prefix("GitHub, fine-grained", r"github_pat_\w{22,}"),
    Prefix("GitLab", r"gl(?:pat|ptt|rt|dt|oas|soat|cbt|ft|ffct|imt|agent)-[\w\-.]{20,300}"),
    Prefix("Slack", r"xox[abceoprsd]-[\w\-%]{10,}"),
    Prefix("Slack app", r"xapp-\d-[A-Za-z0-9\-]{10,}"),
    Prefix("npm", r"npm_[A-Za-z0-9]{36,}"),
    Prefix("PyPI", r"pypi-[\w\-]{50,}"),
    Prefix("RubyGems", r"rubygems_[0-9a-f]{48}"),
    Prefix("Hugging Face", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    Prefix("Groq", r"gsk_[A-Za-z0-9]{30,}"),
    Prefix("xAI", r"xai-[A-Za-z0-9]{30,}"),
    Prefix("Cerebras", r"csk-[A-Za-z0-9]{30,}"),
    Prefix("NVIDIA", r"nvapi-[\w\-]{40,}"),
    Prefix("Perplexity", r"pplx-[A-Za-z0-9]{30,}"),
    Prefix("Tavily", r"tvly-[A-Za-z0-9\-]{20,}", random=True),
    Prefix("Fireworks, Pinecone, Jina, E2B", r"(?:fw|pcsk|jina|e2b)_\w{20,}", random=True),
    Prefix("LangSmith", r"lsv2_(?:pt|sk)_\w{30,}"),
    Prefix("Replicate", r"r8_[A-Za-z0-9]{32,}"),
    Prefix("Docker Hub", r"dckr_(?:pat|oat)_[\w\-]{20,}"),
    Prefix("DigitalOcean", r"do[opr]_v1_[0-9a-f]{40,}"),
    Prefix("Shopify", r"shp(?:at|ca|pa|ss|tka)_[0-9A-Fa-f]{30,}"),
    Prefix("Square", r"sq0(?:atp|csp|idp)-[\w\-]{20,}"),
    Prefix("Linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    Prefix("Notion", r"(?:secret|ntn)_[A-Za-z0-9]{40,}", random=True),
    Prefix("Sentry", r"sntry[su]_[\w=+/\-.]{30,}"),
    Prefix("Supabase", r"(?:sbp_[0-9a-f]{40}|sb_secret_[\w\-]{20,})"),
    Prefix("PostHog", r"ph[cx]_[A-Za-z0-9]{36,}"),
    Prefix("Grafana", r"(?:glsa|glc)_[\w=+/]{30,}"),
    Prefix("Figma", r"figd_[\w\-]{30,}"),
    Prefix("1Password", r"ops_eyJ[\w\-+/=]{60,}"),
    Prefix("Pulumi", r"pul-[0-9a-f]{40}"),
    Prefix("Mailgun", r"key-[0-9a-f]{32}"),
    Prefix("Brevo", r"xkeysib-[0-9a-f]{64}-\w{12,}"),
    Prefix("Postman", r"PMAK-[0-9a-f]{24}-[0-9a-f]{30,}"),
    Prefix("New Relic", r"NRAK-[A-Z0-9]{24,}"),
    Prefix("Heroku", r"HRKU-[\w\-]{30,}"),
    Prefix("Tailscale", r"tskey-(?:[a-z]{2,12}-)?[\w\-]{20,}", random=True),
    Prefix("Vercel", r"vc[pika]_[A-Za-z0-9]{24,}", random=True),
)
"""Each ends its fixed part with a hyphen or an underscore."""


def _before(char: str, endings: str) -> str:
    """A check that one of `endings` stands before a character; each goes by its own width."""
    words = sorted(endings.split(), key=len)
    return "|".join(f"(?<={word}{char})" for word in words)


# A pattern that begins with one literal character is searched for by memchr.
_HYPHENS = "sk sess SPX pat ptt rt dt ft oas oat cbt imt ent xox[a-z] app ypi xai nvapi plx vly"
_HYPHENS += " sq0[a-z]{3} pul key ysib MAK RAK RKU"
_UNDERS = "hf fw sk pt r8 v1 gh[pousr] pat oat live test sec npm org jina e2b lin_api lin_oauth shp[acs][ats]"
_UNDERS += " shptka secret ntn ntry[su] sbp ph[cx] glsa glc figd ops gems vc[pika]"
PIVOTS = (
    Regex(rf"-(?:{_before('-', _HYPHENS)})(?=[\w\-.%]{{10}})", re.ASCII),
    Regex(rf"_(?:{_before('_', _UNDERS)})(?=[\w+/=\-]{{16}})", re.ASCII),
)
"""Where the fixed part of a prefix ends."""
DOT = Regex(
    r"\.(?:(?=[\w\-]{6}\.[\w\-]{27}|[0-9a-f]{64}|0-[0-9a-f]{24}-)|(?<=hv[sb]\.)|(?<=ya29\.)"
    r"|(?<=SG\.)|(?<=dp\.)|(?<=dt0[a-z]\d\d\.))",
    re.ASCII,
)
"""A dot within a key of `dotted`, the first of it."""


@cache
def dotted() -> "re.Pattern[str]":
    """Keys of several pieces with dots between."""
    return re.compile(
        r"(?:(?<![\w\-.])|(?<=\\[nrt]))(?:"
        r"(?P<discord>(?:M[DTjzA]|N[DTjz]|O[DT])[\w\-]{21,26}\.[\w\-]{6}\.[\w\-]{27,45}(?![\w\-.]))"
        r"|(?P<airtable>pat[A-Za-z0-9]{14}\.[0-9a-f]{64}(?!\w))"
        r"|(?P<vault>hv[sb]\.[\w\-]{20,})"
        r"|(?P<google>ya29\.[\w\-.]{20,})"
        r"|(?P<sendgrid>SG\.[\w\-]{16,}\.[\w\-]{30,})"
        r"|(?P<doppler>dp\.(?:pt|st|ct|sa|scim|audit)\.[\w\-.]{30,})"
        r"|(?P<dynatrace>dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{60,})"
        r"|(?P<cloudflare>v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}))",
        re.ASCII,
    )


@cache
def prefixed() -> "re.Pattern[str]":
    """All of `PREFIXES`; the group's number is the one in the table."""
    return re.compile(
        r"(?:(?<![\w\-])|(?<=\\[nrt]))(?:"
        + "|".join(f"(?P<p{n}>{prefix.pattern})" for n, prefix in enumerate(PREFIXES))
        + ")",
        re.ASCII,
    )


_STARTS_TEXT = """
sk- sess- sk_ rk_ whsec_ GOCSPX- ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- glptt- glrt- gldt- gloas- glsoat-
glcbt- glft- glffct- glimt- glagent- xox xapp- npm_ pypi- rubygems_ hf_ api_org_ gsk_ xai- csk- nvapi- pplx-
tvly- fw_ pcsk_ jina_ e2b_ lsv2_ r8_ dckr_ dop_v1_ doo_v1_ dor_v1_ shpat_ shpca_ shppa_ shpss_ shptka_ sq0
lin_ secret_ ntn_ sntrys_ sntryu_ sbp_ sb_secret_ phc_ phx_ glsa_ glc_ figd_ ops_ pul- key- xkeysib- PMAK-
NRAK- HRKU- tskey- vcp_ vci_ vck_ vca_ AIza AKIA ASIA IQoJb3JpZ2lu FwoGZXIvYXdz LTAI eyJ dapi ATATT3 ATCTT3
ATBB EAAA AGE-SECRET-KEY-1 ya29 SG hvs hvb dp dt0 v1 pat MD MT Mj Mz MA ND NT Nj Nz OD OT AA 1 atlasv1
"""
STARTS = tuple(_STARTS_TEXT.split())
"""How a key of the tables begins (each of them begins so, after an edge)."""


class Rule(NamedTuple):
    """A secret known by its surroundings. `anchor` is a literal (in lower case: found in any case);
    `pattern` is matched there, its group `v`, else the whole match, is the secret. `near`: a word (in
    lower case) that has to stand in the 300 characters before."""

    name: str
    anchor: str
    pattern: str
    random: bool = False
    near: str = ""


EDGE = r"(?:(?<![\w\-.])|(?<=\\[nrt]))"
"""No word, hyphen or dot before; the letter of an escape (`\\n`) is none."""
_HEADER = (
    r"authorization\\?[\"']?\]?[ \t]{0,8}(?:[:=,]|=>)[ \t]{0,8}(?:[fbr]?\\?[\"'`])?"
    r"(?:\[\\?[\"'])?"
)
_Q = r"\\?[\"']?"
RULES: tuple[Rule, ...] = (
    Rule("Google", "AIza", rf"{EDGE}AIza[\w\-]{{35,}}"),
    Rule("Google refresh", "1//0", r"(?<![\w\-./:])1//0[\w\-]{30,}"),
    Rule("AWS key id", "AKIA", rf"{EDGE}AKIA[A-Z0-9]{{16}}(?![A-Za-z0-9])"),
    Rule("AWS session key id", "ASIA", rf"{EDGE}ASIA[A-Z0-9]{{16}}(?![A-Za-z0-9])"),
    Rule("AWS session token", "IQoJb3JpZ2lu", rf"{EDGE}IQoJb3JpZ2lu[\w+/=%\-]{{60,}}"),
    Rule("AWS session token", "FwoGZXIvYXdz", rf"{EDGE}FwoGZXIvYXdz[\w+/=%\-]{{60,}}"),
    Rule("Alibaba key id", "LTAI", rf"{EDGE}LTAI[A-Za-z0-9]{{16,24}}(?![A-Za-z0-9])", random=True),
    Rule("Azure client secret", "Q~", r"Q~(?<=[\w\-.~]{3}\dQ~)(?P<v>[\w\-.~]{31,40})"),
    Rule("signature of an address", "sig=", r"(?<=[?&;])sig=(?P<v>[\w%+/=\-]{40,})"),
    Rule("signature of an address", "signature=", r"signature=(?P<v>[\w%+/=\-]{40,})"),
    Rule("JWT", "eyJ", rf"{EDGE}eyJ[\w\-]{{8,}}\.eyJ[\w\-]{{8,}}\.[\w\-]{{8,}}"),
    Rule("encrypted JWT", "eyJ", rf"{EDGE}eyJ[\w\-]{{8,}}\.[\w\-]*\.[\w\-]{{8,}}\.[\w\-]{{8,}}\.[\w\-]+"),
    Rule("Slack hook", "://", r"://hooks\.slack\.com/\w+/(?P<v>\w+/\w+/\w{16,}[\w/]*)"),
    Rule("Discord hook", "://", r"://[\w.]{0,40}/api/webhooks/\d{8,}/(?P<v>[\w\-]{30,})"),
    Rule("Teams hook", "://", r"://[\w.\-]{0,80}webhook\.office\.com/\w+/[\w@\-]+/(?P<v>IncomingWebhook/\w{16,}[\w\-/]*)"),
    Rule("Telegram", ":AA", r"(?<=\d{8}):(?P<v>AA[\w\-]{32,36}(?![\w\-]))"),
    Rule("Terraform", "atlasv1.", r"(?<=\.)atlasv1\.(?P<v>[\w\-=]{40,})"),
    Rule("Databricks", "dapi", rf"{EDGE}dapi[0-9a-f]{{32}}(?:-\d)?(?!\w)"),
    Rule("Atlassian", "ATATT3", rf"{EDGE}ATATT3[\w\-=]{{60,}}"),
    Rule("Atlassian", "ATCTT3", rf"{EDGE}ATCTT3[\w\-=]{{60,}}"),
    Rule("Bitbucket", "ATBB", rf"{EDGE}ATBB[A-Za-z0-9]{{28,40}}(?!\w)"),
    Rule("Square", "EAAA", rf"{EDGE}EAAA[\w\-+=]{{58,64}}(?![\w\-+/=])"),
    Rule("age", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{40,}"),
    Rule(
        "Twilio",
        "twilio",
        r"twilio[\w\-.]{0,30}" + _Q + r"[ \t]{0,8}[:=,(][ \t]{0,8}" + _Q
        + r"(?P<v>SK[0-9a-f]{32})(?!\w)",
    ),
    Rule(
        "password in an address",
        "://",
        r"://[^\s/:@\"'<>`(){}\[\]]{0,100}:(?P<v>[^\s/@\"'<>`]{1,200})@(?=[\w.\[\-])",
    ),
    Rule("token in an address", "://", r"://(?P<v>[\w\-]{20,200})@(?=[\w.\[\-])", random=True),
    Rule("Oracle", "jdbc:oracle:", r"jdbc:oracle:\w{1,10}:[^\s/@\"'<>]{1,60}/(?P<v>[^\s@\"'<>]{1,100})@"),
    Rule(
        "header",
        "authorization",
        _HEADER + r"(?:bearer|basic|token|digest|apikey|api-key|bot|key|splunk|ssws)[ \t]+"
        r"(?P<v>(?=\w{0,200}(?-i:[A-Z0-9]))[\w\-.~+/=:]{8,})",
    ),
    Rule(
        "bare header",
        "authorization",
        _HEADER.replace(",", "") + r"(?P<v>[\w\-.~+/=:]{8,})",
        random=True,
    ),
    Rule("bearer", "bearer", r"bearer[ \t]{1,8}(?P<v>[\w\-.~+/]{16,}=*)", random=True),
    Rule("netrc", " login ", r" login\s{1,20}\S{1,100}\s{1,20}password\s{1,20}(?P<v>[^\s\"'<>]{4,})"),
    Rule("user of curl", " -u", r" -u[ \t=]{0,4}[\"']?[^\s:\"'$]{1,100}:(?P<v>[^\s\"']{1,200})", near="curl"),
    Rule(
        "user of curl",
        " --user",
        r" --user[ \t=]{1,4}[\"']?[^\s:\"'$]{1,100}:(?P<v>[^\s\"']{1,200})",
        near="curl",
    ),
    Rule(
        "user of a proxy",
        " --proxy-user",
        r" --proxy-user[ \t=]{1,4}[\"']?[^\s:\"'$]{1,100}:(?P<v>[^\s\"']{1,200})",
        near="curl",
    ),
    Rule("sshpass", " -p", r" -p[ \t]{0,4}[\"']?(?P<v>[^\s\"'$][^\s\"']{2,})", near="sshpass"),
    Rule("MySQL client", " -p", r" -p(?!ort|ro|lug|ipe|rint)[\"']?(?P<v>[\w!@#%+=.][^\s\"']{2,})", near="mysql"),
    Rule("Docker login", " -p", r" -p[ \t]{1,4}[\"']?(?P<v>[^\s\"']{3,})", near="docker login"),
    Rule("Redis client", " -a", r" -a[ \t]{1,4}[\"']?(?P<v>[^\s\"']{3,})", near="redis-cli"),
)  # fmt: skip

GROUPS = (
    Regex(r"A(?:Iza|KIA|SIA|TATT3|TCTT3|TBB|GE-SECRET-KEY-1)|IQoJb3JpZ2lu|FwoGZXIvYXdz|LTAI|EAAA"),
    Regex(r" -(?:[uap]|-user|-proxy-user)"),
)
"""Several anchors that are looked for at once."""
NEAR = 300
"""How far before a rule's anchor its `near` may stand."""

FIELD_WORDS = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "credential",
    "pass",
)
"""Words that end the name of a field whose value is always a secret."""
WEAK_FIELD_WORDS = ("token", "auth")
"""Words that often end other names too: the value has to look random."""
FIELDS = (*FIELD_WORDS, *WEAK_FIELD_WORDS, "key")


_KEY_LEADS_TEXT = """
api access secret private encryption signing account master auth shared storage subscription
service deploy app client
"""
KEY_LEADS = tuple(_KEY_LEADS_TEXT.split())
"""What stands before `key` where it names a secret."""
_WEAK_LEADS_TEXT = "hmac jwt license licence consumer session admin root aes crypto cipher"
WEAK_KEY_LEADS = tuple(_WEAK_LEADS_TEXT.split())
_SESSION_LEADS_TEXT = """
auth access refresh bearer session id api bot oauth csrf xsrf github gitlab npm security vault
private deploy slack discord telegram pypi docker hf cloudflare
"""
TOKEN_LEADS = tuple(_SESSION_LEADS_TEXT.split())
"""What stands before `token` where its value is always a secret."""
_OTHER_LEADS_TEXT = """
page next continuation cursor sync pad eos bos unk sep mask cls stop end start special prompt
input output max min num
"""
OTHER_LEADS = tuple(_OTHER_LEADS_TEXT.split())
"""`next_page_token` and `eos_token` are no secrets."""
_LOGIN_LEADS_TEXT = """
db database user smtp mail email admin root redis mysql postgres pg ftp ssh sudo proxy http basic
"""
PASS_LEADS = tuple(_LOGIN_LEADS_TEXT.split())
"""What stands before `pass` where it is a password; `first_pass` is none."""
LEAD = 16
"""How many characters before a field's last word are looked at."""


def strength(word: str, lead: str) -> bool | None:
    """True for a field that holds secrets only, False for a weak one, None for no such field. `lead` is
    the name before the word, in lower case."""
    if lead[-1:] in ("_", "-", ".", " "):
        lead = lead[:-1]
    if word == "key":
        return (
            True if lead.endswith(KEY_LEADS) else False if lead.endswith(WEAK_KEY_LEADS) else None
        )
    if word == "pass":
        return True if lead.endswith(PASS_LEADS) else None
    if word in FIELD_WORDS:
        return True
    if lead.endswith(OTHER_LEADS):
        return None
    return word == "token" and lead.endswith(TOKEN_LEADS)
