"""What tells itself by its shape: keys and tokens of providers, addresses, mail, homes of users, hosts in the heads of lines.

Each `Shape` is data: a kind, words of which one must be in the text (the cheap test first; in lower case where the expression
takes any case), an expression, and the group that is replaced. The list of secrets is held in tests against every detector of `detect-secrets`, which is a twin
and no dependency, since it carries an HTTP client (docs/decisions/0015-safe-to-share.md).
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Shape(NamedTuple):
    """One thing to be replaced: its kind, its words, its expression, the group that holds it."""

    kind: str
    words: tuple[str, ...]
    regex: re.Pattern[str]
    group: int = 0


def _secret(words: str, regex: str, group: int = 0, flags: int = 0) -> Shape:
    return Shape("secret", tuple(words.split()), re.compile(regex, flags), group)


_B = r"(?<![A-Za-z0-9])"  # no letter or digit before: a key may follow `_` or `-`
PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----[^-]{0,20000}+(?:-----END [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----)?"
)
"""A key in PEM (RFC 7468), to its end or to the end of the text."""

SECRETS: tuple[Shape, ...] = (
    _secret("hf_", _B + r"hf_[A-Za-z0-9]{16,128}"),
    _secret("api_org_", _B + r"api_org_[A-Za-z0-9]{16,128}"),
    _secret("nvapi-", _B + r"nvapi-[\w-]{16,160}"),
    _secret("nvcf-", _B + r"nvcf-[\w-]{16,160}"),
    _secret("sk-", _B + r"sk-[\w-]{16,256}"),  # OpenAI, Anthropic, LiteLLM, OpenRouter
    _secret("sess-", _B + r"sess-[A-Za-z0-9]{24,128}"),
    _secret("T3BlbkFJ", r"sk-[A-Za-z0-9-_]{0,200}T3BlbkFJ[A-Za-z0-9]{20}"),
    _secret("gsk_", _B + r"gsk_[A-Za-z0-9]{20,128}"),
    _secret("r8_", _B + r"r8_[A-Za-z0-9]{20,64}"),
    _secret("xai- fw_ pplx- tgp_v1_", _B + r"(?:xai-|fw_|pplx-|tgp_v1_)[A-Za-z0-9_-]{20,128}"),
    _secret("wandb_v1_ dckr_pat_", _B + r"(?:wandb_v1_|dckr_pat_)[A-Za-z0-9_-]{16,128}"),
    _secret("AKIA ASIA ABIA ACCA A3T AROA AIDA", r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}"),
    _secret("aws", r"aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?['\"]([0-9a-zA-Z/+]{40})['\"]", 1, re.I),
    _secret("AIza", r"AIza[\w-]{35}"),
    _secret("ya29.", r"ya29\.[\w-]{20,400}"),
    _secret("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9_]{36,255}|github_pat_\w{22,255}"),
    _secret("glpat- gldt- glft- glsoat- glrt- glcbt- glptt- glagent- glimt- gloas- GR1348941", r"(?:glpat|gldt|glft|glsoat|glrt|glcbt|glptt|glagent|glimt|gloas)-[\w-]{20,200}|GR1348941[\w-]{20,50}"),
    _secret("xox", r"xox[a-z]-[A-Za-z0-9-]{3,255}", flags=re.I),
    _secret("xapp-", r"xapp-[A-Za-z0-9-]{20,255}"),
    _secret("hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows)/([\w/]{8,200})", 1, re.I),
    _secret("k_live_ k_test_", r"[prs]k_(?:live|test)_[0-9a-zA-Z]{16,128}"),
    _secret("SG.", r"SG\.[\w-]{22}\.[\w-]{43}"),
    _secret("sq0", r"sq0[a-z]{3}-[0-9A-Za-z\\\-_]{22,60}"),
    _secret("-us", r"[0-9a-z]{32}-us[0-9]{1,2}"),
    _secret("AC SK", r"(?:AC|SK)[a-z0-9]{32}"),
    _secret("pypi-", r"pypi-[\w-]{16,512}"),
    _secret("npm_", _B + r"npm_[A-Za-z0-9]{20,64}"),
    _secret(":_authToken", r":_authToken=[ \t]{0,200}(\S{1,300})", 1),
    _secret("AKC AP", r"(?:(?<=[\s=:\"])|^)(?:AKC[a-zA-Z0-9]{10,200}|AP[\dABCDEF][a-zA-Z0-9]{8,200})(?=\s|\"|$)", flags=re.M),
    _secret(":", r"\d{8,10}:[0-9A-Za-z_-]{35}"),
    _secret(".", r"[MNO][a-zA-Z\d_-]{23,25}\.[a-zA-Z\d_-]{6}\.[a-zA-Z\d_-]{27,38}"),
    _secret("eyJ", r"eyJ[\w=-]{8,4000}(?:\.[\w=+/-]{0,4000}){0,4}"),
    _secret("AccountKey SharedAccessKey sig=", r"(?:AccountKey|SharedAccessKey|[?&]sig)=([A-Za-z0-9+/=%]{20,200})", 1),
    _secret("hvs. hvb.", _B + r"(?:hvs|hvb)\.[\w-]{20,300}"),
    _secret("AGE-SECRET", r"AGE-SECRET-KEY-1[A-Z0-9]{50,70}"),
    _secret("glc_ glsa_", _B + r"(?:glc|glsa)_[A-Za-z0-9_=+/-]{20,400}"),
    _secret("dapi", _B + r"dapi[0-9a-f]{32}"),
    _secret("lin_api_ sntrys_ shpat_ doo_v1_ dop_v1_", r"(?:lin_api|sntrys|shp[a-z]{2}|do[opr]_v1)_[A-Za-z0-9=+/_-]{20,400}"),
    _secret("PuTTY-User", r"PuTTY-User-Key-File-[23].{0,200}"),
    _secret("curl wget", r"\b(?:curl|wget)\b[^\n]{0,400}?[ \t](?:-u|--user(?:name)?|--password)[ \t=]{1,4}[\"']?([^\s\"']{1,200})", 1),
    _secret("password", r"\b(?:password|passphrase) (?:is|was) [\"'`]?([^\s\"'`,]{4,200})", 1, re.I),
    _secret("bearer", r"\bBearer[ \t]{1,4}([A-Za-z0-9._~+/=-]{8,4000})", 1, re.I),
    _secret("authorization", r"\bAuthorization\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?(?:Basic|Digest|Token)[ \t]{1,4}([A-Za-z0-9._~+/=-]{4,4000})", 1, re.I),
    _secret("://", r"://([^\s/@:'?#,;]{0,200}:[^\s/@']{1,400})@", 1),
    _secret(
        "key pwd pw pass token hmac",
        r"(?:key|pwd|pw|passw(?:or)?d|pass|token|hmac)[\"']?\]?[ \t]{0,40}(?::=|=>|::|[:=]|[ \t])[ \t]{0,40}[\"']?([\w-]{32,400})",
        1, re.I,
    ),
    _secret(
        "cl",
        r"(?:cloudant|clou|cl)[-_]?(?:api)?[-_]?(?:key|pwd|pw|pass(?:word)?|token)[\"']?\]?[ \t]{0,40}(?::=|=>|::|[:=]|[ \t])"
        r"[ \t]{0,40}[\"']?([a-z]{24,200})",
        1, re.I,
    ),
    _secret("softlayer", r"softlayer.com/soap/v3(?:.1)?/([a-z0-9]{64,300})", 1, re.I),
    _secret("cloudant", r"([0-9a-f]{64}|[a-z]{24})[\"']?@[\w.-]{0,80}cloudant", 1, re.I),
)  # fmt: skip
"""Keys and tokens that are told by their shape, without a field's name beside them."""

SAID: tuple[Shape, ...] = (
    Shape("prompt", ("prompt", "completion", "question"), re.compile(r"\b(?:prompt|completion|question) ([\"'])((?:(?!\1)[^\n\\]){8,4000}+)\1", re.I), 2),
    Shape("prompt", ("</prompt>", "</content>", "</completion>", "</query>", "</question>"), re.compile(r"<(prompt|content|completion|query|question)>([^<]{1,20000}+)</\1>", re.I), 2),
)  # fmt: skip
"""Prompts that a sentence quotes or a tag holds."""

EMAIL = Shape(
    "email",
    ("@", "%40"),
    re.compile(
        r"(?<![\w.+%-])[A-Za-z0-9][\w.+-]{0,63}(?:@|%40)(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,6}[A-Za-z]{2,24}(?![\w@])"
    ),
)
IPV4 = Shape("ip", (".",), re.compile(r"(?<![A-Za-z0-9.])[1-9]\d{0,2}(?:\.\d{1,3}){3}(?![\w+]|\.\d)"))
VERSION_BEFORE = re.compile(r"(?:==|>=|~=|version[:=]? ?|release[:=]? ?|driver[:=]? ?|cud\w{1,10}[:=]? ?)$", re.I)
"""What four numbers with dots are a version behind."""
EC2 = Shape("host", ("ip-",), re.compile(r"(?<![\w-])ip-\d{1,3}(?:-\d{1,3}){3}(?:\.[\w.-]{1,200})?"))
IPV6 = Shape(
    "ip",
    ("::", ":"),
    re.compile(
        r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{3,38})(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:])"
    ),
)
MAC = Shape("mac", (":",), re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])"))
_DOMAINS = ("com", "net", "org", "io", "ai", "cloud", "internal", "local", "localdomain", "corp", "lan", "intra", "intranet",
            "home", "arpa", "edu", "gov", "eu", "de", "uk", "fr", "cn", "jp", "nl", "ch")  # fmt: skip
"""Last parts of hosts' names; those of `torch.cuda` and `config.json` are others."""
FQDN = Shape(
    "host",
    tuple(f".{domain}" for domain in _DOMAINS),
    re.compile(
        r"(?<![\w.@/\\%-])(?:(?<=://)|(?<!/))((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}"
        rf"(?:{'|'.join(_DOMAINS)}))(?![\w-]|\.\w|\()",
        re.I,
    ),
    1,
)
URL_HOST = Shape(
    "host", ("://",), re.compile(r"://(?:[^\s/@\"']{1,200}@)?([A-Za-z][A-Za-z0-9.-]{1,250})(?=[:/\s\"'?#,;)\\]|$)"), 1
)

LINE_HEADS: tuple[Shape, ...] = (
    Shape("host", (":",), re.compile(r"(?<![\w-])[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,9})? ([\w.-]{1,255}) (?!(?:INFO|ERROR|WARNING|DEBUG|CRITICAL):)[\w./@()-]{1,80}(?:\[\d{1,10}\])?:", re.M), 1),
    Shape("host", (":",), re.compile(r"(?<![\w-])\d{4}-\d\d-\d\d[T ][\d:.,]{5,18}(?:Z|[+-]\d\d:?\d\d)? ([\w.-]{1,255}) (?!(?:INFO|ERROR|WARNING|DEBUG|CRITICAL):)[\w./@()-]{1,80}(?:\[\d{1,10}\])?:", re.M), 1),
    Shape("host", ("<",), re.compile(r"<\d{1,3}>1 \S{1,40} ([\w.-]{1,255}) ", re.M), 1),
    Shape("host", ("Linux ",), re.compile(r"\bLinux ([\w.-]{1,255}) \d{1,2}\.\d{1,3}\.", re.M), 1),
    Shape("user", ("@",), re.compile(r"(?:^|[\[( ])([a-z_][\w.-]{0,31})@[\w.-]{1,255}(?:[: ][~/]|:?~|[$#])", re.M), 1),
    Shape("host", ("@",), re.compile(r"(?:^|[\[( ])[\w.-]{1,32}@([\w-][\w.-]{0,254})(?:[: ][~/]|:?~|[$#])", re.M), 1),
    Shape("host", ("Node:",), re.compile(r"\bNode:[ \t]{1,40}([\w.-]{1,253})/", re.M), 1),
    Shape("host", ("Successfully assigned",), re.compile(r"Successfully assigned [\w.-]{1,63}/[\w.-]{1,253} to ([\w.-]{1,253})"), 1),
    Shape("tenant", ("Successfully assigned",), re.compile(r"Successfully assigned ([\w.-]{1,63})/[\w.-]{1,253} to "), 1),
    Shape("tenant", ("/pods/",), re.compile(r"/var/log/pods/([\w.-]{1,63})_[\w.-]{1,253}_"), 1),
    Shape("tenant", (".svc",), re.compile(r"\b[a-z0-9-]{1,63}\.([a-z0-9-]{1,63})\.svc\b"), 1),
    Shape("host", ("JOB ", "STEP ", "StepId", "Job "), re.compile(r"\b(?:JOB|STEP|StepId=\S{1,30}|Job) ?[\d.]{0,20} ?(?:ON|on) ([\w.-]{1,253})"), 1),
    Shape("host", ("srun: error:",), re.compile(r"srun: error: ([\w.-]{1,253}): task"), 1),
    Shape("user", ("uid=",), re.compile(r"\b[ug]id=\d{1,10}\(([^)\s]{1,64})\)"), 1),
    Shape("user", ("session ", "Accepted ", "Failed "), re.compile(r"\b(?:session (?:opened|closed) for user|Accepted \w{1,30} for|Failed \w{1,30} for(?: invalid user)?) ([\w.@-]{1,64})"), 1),
    Shape("user", ("sudo:",), re.compile(r"\bsudo: {1,8}([\w.-]{1,64}) : "), 1),
    Shape("tenant", ("tenant", "customer"), re.compile(r"\b(?:tenant|customer) (?:is|was|named|called) (?:called |named )?[\"'`]?([\w.-]{1,63})"), 1),
    Shape("user", ("user",), re.compile(r"\b(?:by|for|from|of|as|[Uu]nknown|[Ii]nvalid) user [\"'`]?([\w.@-]{2,64})"), 1),
    Shape("user", ("user",), re.compile(r"\b[Uu]ser [\"'`]?([\w.@-]{2,64})[\"'`]? (?:logged|signed|connected|authenticated|disconnected|submitted|requested|exceeded|is not|has no|does not)\b"), 1),
    Shape("user", ("ssh", "scp", "rsync", "sftp"), re.compile(r"\b(?:ssh|scp|rsync|sftp)\b[^\n@]{0,200}?[ \t]([A-Za-z_][\w.-]{0,31})@"), 1),
    Shape("host", (" node ", " host "), re.compile(r"\b(?:on|to|from|of|at) (?:node|host) [\"'`]?([A-Za-z][\w.]{0,100}[\d-][\w.-]{0,150})"), 1),
    Shape("user", ("-r", "dr"), re.compile(r"^[d-][rwxsStT-]{9}[.+@]? +\d{1,6} ([\w.-]{1,64}) ", re.M), 1),
)  # fmt: skip
"""Hosts, users and namespaces where a line's form says what stands there."""

HOMES: tuple[Shape, ...] = (
    Shape("user", ("/home/",), re.compile(r"/home/([^/\s\"'\\:,;)\]}<>|&?#\0]{1,64})"), 1),
    Shape("user", ("/Users/",), re.compile(r"/Users/([^/\s\"'\\:,;)\]}<>|&?#\0]{1,64})"), 1),
    Shape("user", (":\\",), re.compile(r"[A-Za-z]:\\{1,4}(?:Users|Documents and Settings)\\{1,4}([^\\/\s\"':,;)\]}<>|]{1,64})", re.I), 1),
    Shape("user", ("/user", "/people/", "/home/"), re.compile(r"/(?:scratch|data|nfs|export)/(?:users?|people|home)/([^/\s\"'\\:,;)\]}<>|&?#\0]{1,64})"), 1),
    Shape("user", ("~",), re.compile(r"(?<![\w/~])~([a-z_][\w.-]{1,31})(?=/)"), 1),
)  # fmt: skip
"""Homes of users in paths; what follows in the path stays."""
DATA_URI = re.compile(r"data:[\w/+.-]{1,80}(?:;[\w=-]{1,80}){0,4};base64,[A-Za-z0-9+/=]{16,}+")
