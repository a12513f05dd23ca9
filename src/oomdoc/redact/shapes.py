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


_B = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-F]{2}))"  # no letter or digit before, but for an encoded sign: a key may follow `_` or `-`
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
    _secret("curl", r"[ \t](?:-b(?=[ \t\"'=]{1,6}\w{1,60}=)|--cookie|--oauth2-bearer)[ \t=]{1,4}[\"']?([^\s\"']{4,2000})", 1),
    _secret("password", r"\b(?:password|passphrase) (?:is|was) [\"'`]?([^\s\"'`,]{4,200})", 1, re.I),
    _secret("bearer", r"\bBearer[ \t]{1,4}([A-Za-z0-9._~+/=-]{8,4000})", 1, re.I),
    _secret("authorization", r"\bAuthorization\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?(?:Basic|Digest|Token)[ \t]{1,4}([A-Za-z0-9._~+/=-]{4,4000})", 1, re.I),
    _secret("://", r"://([^\s/@:'?#,;]{0,200}:[^\s/']{1,400})@", 1),
    _secret("key= code= token= auth=", r"[?&](?:key|code|token|auth|apikey)=([^\s&\"'#]{8,2000})", 1),
    _secret("/api/webhooks/ webhook.office.com/", r"(?:/api/webhooks/\d{1,30}|webhook\.office\.com/webhookb2)/([\w@/-]{16,300})", 1),
    _secret("AAAA", r"\b(?:ssh-\w{2,20}|ecdsa-sha2-\w{2,20}|sk-[\w@.-]{2,60})[ \t]{1,4}(AAAA[A-Za-z0-9+/=]{16,2000})", 1),
    _secret("SHA256:", r"\bSHA256:([A-Za-z0-9+/]{43})(?![A-Za-z0-9+/])", 1),
    _secret("$", r"\$(?:[156y]|2[abxy]|apr1|argon2\w{1,2}|scrypt)\$[^\s:,'\"$]{2,60}\$?[^\s:,'\"]{8,300}"),
    _secret("password", r"^(?:[ \t]{0,40}|[^\n]{0,400}\blogin[ \t]{1,8}\S{1,200}[ \t]{1,8})password[ \t]{1,8}([^\s:=]{4,200})[ \t]{0,8}\r?$", 1, re.M),
    _secret(":", r"^[A-Za-z*][\w.*-]{0,252}:(?:\d{2,5}|\*):[^\s:]{1,64}:[^\s:]{1,64}:([^\s:]{4,200})\r?$", 1, re.M),  # .pgpass
    _secret("arn:", r"\barn:aws[\w-]{0,10}:[\w-]{1,30}:[\w-]{0,30}:(\d{12}):", 1),
    _secret("sshpass", r"\bsshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?([^\s\"']{3,200})", 1),
    _secret(" login", r"\b(?:docker|podman|nerdctl|helm registry|oras|skopeo)[ \t]{1,4}login\b[^\n;|]{0,200}?[ \t]-p[ \t=]{0,4}[\"']?([^\s\"';|]{4,200})", 1),
    _secret("redis-cli", r"\bredis-cli\b[^\n;|]{0,200}?[ \t]-a[ \t]{1,4}[\"']?([^\s\"';|]{4,200})", 1),
    _secret("mysql mariadb", r"\b(?:mysql|mariadb)\w{0,10}\b[^\n;|]{0,200}?[ \t]-p([^\s\"';|]{4,200})", 1),
    _secret(" login ", r"\b(?:wandb|vault|ngc|hf)[ \t]login[ \t]{1,4}([A-Za-z0-9._-]{16,200})", 1),
    _secret("identified", r"\bidentified (?:with \S{1,60} )?(?:by|as) [\"']([^\"'\n]{1,400})[\"']", 1, re.I),
    _secret("key token", r"\b(?:api|access|secret|private|auth|license|subscription)[ -](?:key|token)s?[ \t]{0,8}[:=][ \t]{0,8}[\"'`]?([^\s\"'`,;]{4,400})", 1, re.I),
    _secret("bindpw", r"\bbindpw[ \t]{1,8}([^\s=:]{4,200})", 1, re.I),
    _secret(
        "key pwd pw pass token hmac",
        r"(?:key|pwd|pw|passw(?:or)?d|pass|token|hmac)[\"']?\]?[ \t]{0,120}(?::=|=>|::|[:=]|[ \t])[ \t]{0,120}[\"']?([\w-]{32,400})",
        1, re.I,
    ),
    _secret(
        "cl",
        r"(?:cloudant|clou|cl)[-_]?(?:api)?[-_]?(?:key|pwd|pw|pass(?:word)?|token)[\"']?\]?[ \t]{0,120}(?::=|=>|::|[:=]|[ \t])"
        r"[ \t]{0,120}[\"']?([a-z]{24,200})",
        1, re.I,
    ),
    _secret("softlayer", r"softlayer.com/soap/v3(?:.1)?/([a-z0-9]{64,300})", 1, re.I),
    _secret("cloudant", r"([0-9a-f]{64}|[a-z]{24})[\"']?@[\w.-]{0,80}cloudant", 1, re.I),
    _secret("://", r"://(?!git@)([A-Za-z0-9._~%+-]{3,400})@", 1),
)  # fmt: skip
"""Keys and tokens that are told by their shape, without a field's name beside them."""

_TURN = r"((?:[^<\n\[]|<(?!\||/s>|start_of|end_of)|\[(?!/?INST)|\n(?!INFO|WARN|ERROR|DEBUG|CRIT|Traceback|[\[(]?\d{2,4}[-/:]\d\d))++)"
"""What stands between two marks of a chat template; a new record of the log ends it."""

SAID: tuple[Shape, ...] = (
    Shape("prompt", ("prompt", "completion", "question"), re.compile(r"\b(?:prompt|completion|question) ([\"'])((?:(?!\1)[^\n\\]){8,4000}+)\1", re.I), 2),
    Shape("prompt", ('system"', "system'"), re.compile(r"[\"']system[\"'][ \t]{0,4}:[ \t]{0,4}\"((?:[^\"\\\n ]|\\.)*+(?: (?:[^\"\\\n ]|\\.)++){3,4000}+)\""), 1),
    Shape("prompt", ("<|im_start|>",), re.compile(r"<\|im_start\|>\w{1,40}(?:\r?\n|\\n|[ \t])" + _TURN + r"(?=<\|im_end\|>|<\|im_start\|>)"), 1),
    Shape("prompt", ("<|end_header_id|>",), re.compile(r"<\|end_header_id\|>(?:\r?\n|\\n){0,4}" + _TURN + r"(?=<\|eot_id\|>|<\|start_header_id\|>)"), 1),
    Shape("prompt", ("<start_of_turn>",), re.compile(r"<start_of_turn>\w{1,40}(?:\r?\n|\\n|[ \t])" + _TURN + r"(?=<end_of_turn>)"), 1),
    Shape("prompt", ("[INST]", "[/INST]"), re.compile(r"\[/?INST\]" + _TURN + r"(?=\[/INST\]|</s>)"), 1),
    Shape("prompt", ("</prompt>", "</content>", "</completion>", "</query>", "</question>"), re.compile(r"<(prompt|content|completion|query|question)>([^<]{1,20000}+)</\1>", re.I), 2),
)  # fmt: skip
"""Prompts that a sentence quotes, a tag or the marks of a chat template hold."""
PAIR = re.compile(
    r"[(\[][ \t]{0,4}b?(\\{0,3}[\"'])(?P<key>[A-Za-z][\w.-]{1,60})\1,[ \t]{0,4}b?(?P<quote>\\{0,3}[\"'])(?P<value>[^\n\"']{1,4000}?)(?P=quote)[ \t]{0,4}[)\]]"
)
"""A header as Python and JSON print a pair: `('x-api-key', '...')`."""
ELEMENT = re.compile(r"<(?:\w{1,20}:)?(?P<key>[A-Za-z_][\w.-]{1,60})(?: [^<>\n]{0,400})?>(?P<value>[^<\n]{1,4000}+)</")
VALUE_FIRST = re.compile(
    r"value(?<!\wvalue)(?P<mark>[\"']?)[ \t]{0,4}:[ \t]{0,4}(?P<quote>[\"']?)(?P<value>[^\s\"'{}\[\],][^\n\"',}]{0,2000}?)(?P=quote)[ \t]{0,4}(?:,\s{0,80}|\r?\n[ \t]{1,80})(?P=mark)name(?P=mark)[ \t]{0,4}:[ \t]{0,4}[\"']?(?P<key>[A-Za-z_][\w.-]{1,80})"
)
"""A variable whose value stands before its name."""
ENCODED_PAIR = re.compile(
    r"(?:(?<![\w.-])|(?<=%[0-9A-F]{2})|(?<=%25[0-9A-F]{2}))(?P<key>[A-Za-z][\w.-]{1,60})(?:%(?:25)?3[dDaA]|\\{1,3}u003[dD]|&#(?:61|x3[dD]);)(?P<value>(?:(?!%(?:25)?26|\\{1,3}u0026|&)[^\s\"'<>,;]){1,2000})"
)
"""A field in an address that was encoded: `api_key%3D...%26`."""
SET_BEFORE = re.compile(
    r"\b(?:ENV|ARG|setenv|setx|set(?:[ \t]{1,4}-[a-zA-Z]{1,4})+|config set|secrets? set|CONFIG SET|ALTER|SET)[ \t]{1,8}(?P<key>[A-Za-z_][\w.-]{1,80})[ \t]{1,40}"
    r"(?P<quote>[\"']?)(?P<value>[^\s\"'=][^\s\"']{0,2000})(?P=quote)"
)
"""A variable that a shell or a Dockerfile sets without a sign: `ENV KEY value`, `set -gx KEY value`."""
VALUE_AFTER = re.compile(
    r"(?<![\w.-])(?P<key>[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+)[ \t]{1,40}(?P<value>(?![=:|(])(?=\S*[\d\W_A-Z])[^\s\"'=:|,;()]{6,2000})(?=[\s,;]|$)"
)
"""A name with underscores and its value in the next column: `OPENAI_API_KEY value`. A plain word there is prose."""
ROW = re.compile(
    r"(?<=\|)[ \t]{0,40}(?P<key>[A-Za-z][\w .-]{1,60}?)[ \t]{0,40}\|[ \t]{0,40}(?P<value>[^|\s][^|\n]{0,400}?)[ \t]{0,40}(?=\|)"
)
"""A row of a table with a name and a value."""
NAMED_BEFORE = re.compile(
    r"(?<![\w.-])(?P<key>(?!(?:and|or|in|of|the|is|to)\b)[A-Za-z_][\w.-]{2,60})(?:[ \t]{1,8}(?:BY|AS|TO|is|of)){0,2}[ \t]{1,40}(?P<quote>\\{0,3}[\"'])(?P<value>[^\s\"'\\]{1,400})(?P=quote)"
)
"""A secret's name before a quoted word: `PASSWORD '...'` of SQL, `password "..."` of a configuration."""

EMAIL = Shape(
    "email",
    ("@", "%40"),
    re.compile(r"(?<![\w.+%-])[^\W_][\w.+-]{0,63}(?:@|%40)(?:[^\W_](?:[^\W_]|-){0,62}\.){1,6}[^\W\d_]{2,24}(?![\w@])"),
)
IPV4 = Shape("ip", (".",), re.compile(r"(?<![A-Za-z0-9.])[1-9]\d{0,2}(?:\.\d{1,3}){3}(?![\w+]|\.\d)"))
PHONE = Shape(
    "user",
    ("+",),
    re.compile(r"(?<![\w.+])\+\d{1,3}(?:[ .()/-]{1,2}\d{2,8}){2,5}(?![\w.:])|(?<![\w.+])\+\d{10,14}(?![\w.])"),
)
"""A telephone number as ITU-T E.123 writes it for abroad."""
CARD = Shape("secret", ("-", " "), re.compile(r"(?<![\w.-])\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?![\w.-])"))
"""A payment card in groups of four (ISO/IEC 7812); the last digit is checked."""
IBAN = Shape(
    "secret",
    (" ", "0"),
    re.compile(r"(?<![\w-])[A-Z]{2}\d{2}(?: ?(?=[A-Z0-9]{0,3}\d)[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?(?![\w-])"),
)
"""A bank account (ISO 13616)."""
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
MAC = Shape(
    "mac",
    (":",),  # six pairs, or the twenty of InfiniBand
    re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{2}:){5}(?:(?:[0-9A-Fa-f]{2}:){14})?[0-9A-Fa-f]{2}(?![\w:])"),
)
MAC_DASHED = Shape("mac", ("-",), re.compile(r"[0-9A-Fa-f]{2}(?<![\w.-]..)(?:-[0-9A-Fa-f]{2}){5}(?![\w-])"))
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
    Shape("user", ("@",), re.compile(r"\[([a-z_][\w.-]{0,31})@[\w.-]{1,255} [^\s\]]{1,200}\][$#]"), 1),
    Shape("host", ("@",), re.compile(r"\[[a-z_][\w.-]{0,31}@([\w.-]{1,255}) [^\s\]]{1,200}\][$#]"), 1),
    Shape("user", ("ssh-", "ecdsa-"), re.compile(r"\b(?:ssh-\w{2,20}|ecdsa-sha2-\w{2,20}) [\w-]{8,2000} ([\w.-]{1,64})@"), 1),
    Shape("host", ("ssh-", "ecdsa-"), re.compile(r"\b(?:ssh-\w{2,20}|ecdsa-sha2-\w{2,20}) [\w-]{8,2000} [\w.-]{1,64}@([\w.-]{1,253})"), 1),
    Shape("host", ("ssh-", "ecdsa-"), re.compile(r"^([A-Za-z][\w.-]{1,253})(?:,\S{1,200})? (?:ssh-|ecdsa-)", re.M), 1),
    Shape("host", ("git@",), re.compile(r"\bgit@([\w.-]{1,253}):"), 1),
    Shape("host", ("machine",), re.compile(r"^[ \t]{0,40}machine[ \t]{1,8}([\w.-]{2,253})(?=[ \t]{0,8}\r?$|[ \t]{1,8}(?:login|password)\b)", re.M), 1),
    Shape("user", ("login",), re.compile(r"^(?:[ \t]{0,40}|[ \t]{0,40}(?:machine|default)\b[^\n]{0,300} )login[ \t]{1,8}([\w.@-]{2,64})(?=[ \t]{0,8}\r?$|[ \t]{1,8}password\b)", re.M), 1),
    Shape("user", ("[profile ",), re.compile(r"^\[profile ([\w.@-]{1,64})\]", re.M), 1),
    Shape("user", ("arn:",), re.compile(r"\barn:aws[\w-]{0,10}:(?:iam|sts):[\w-]{0,30}:[\w-]{1,30}:(?:user|assumed-role/[\w+=,.@-]{1,64})/([\w+=,.@-]{1,64})"), 1),
    Shape("user", ("Uid=", "UID=", "User Id=", "User ID="), re.compile(r"(?:^|;)[ \t]{0,4}(?:User I[dD]|U[iI][dD])=([^;\s\"']{1,64})(?=;)", re.M), 1),
    Shape("host", ("//",), re.compile(r"^//([A-Za-z][\w.-]{1,253})/\S{0,200}:_\w", re.M), 1),
    Shape("user", (":secret-",), re.compile(r"^([a-z_][\w.-]{0,31}):secret-[a-z]{8}:\d{0,6}:\d{0,6}:", re.M), 1),
    Shape("user", (":",), re.compile(r"^([a-z_][\w.-]{0,31}):[x*!]:\d{1,10}:\d{1,10}:", re.M), 1),
    Shape("user", (":",), re.compile(r"^[a-z_][\w.-]{0,31}:[x*!]:\d{1,10}:\d{1,10}:([^:,\n]{2,80})[,:]", re.M), 1),
    Shape("user", ("pts/", "tty"), re.compile(r"^([a-z_][\w.-]{0,31}) +(?:pts/\d{1,4}|tty\d{1,3}) +", re.M), 1),
    Shape("user", ("groups=",), re.compile(r"(?<=[,=])\d{1,10}\(([a-z_][\w.-]{0,63})\)"), 1),
    Shape("user", (" -u", " -U"), re.compile(r"\b(?:(?:docker|podman|nerdctl)[ \t]{1,4}login|mysql\w{0,10}|mariadb|psql|pg_dump|ldapsearch)\b[^\n;|]{0,200}?[ \t]-[uU][ \t]{0,4}([A-Za-z_][\w.@-]{1,63})"), 1),
    Shape("user", ("password for",), re.compile(r"\[sudo\] password for ([\w.-]{1,64}):"), 1),
    Shape("user", ("ogged in as",), re.compile(r"\b[Ll]ogged in as:? ([\w@-](?:[\w.@-]{0,62}[\w@-]))"), 1),
    Shape("user", ("Author:", "Committer:", "Commit:", "From:", "To:", "Cc:", "-by:"), re.compile(r"(?:^|[ \t])(?:Author|Commit|Committer|From|To|Cc|[A-Z][a-z]{2,10}(?:-[a-z]{2,10})?-by):[ \t]{1,8}([^<>\n:]{2,80}) <", re.M), 1),
    Shape("user", ("[",), re.compile(r"^\S{2,255} \S{1,64} ([A-Za-z][\w.@-]{0,63}) \[\d\d/[A-Z][a-z]{2}/\d{4}:", re.M), 1),
    Shape("user", ("uid=", "cn="), re.compile(r"\b(?:uid|cn)=([^,\s=\"']{2,64}),[ \t]?(?:ou|dc|cn|o)=", re.I), 1),
    Shape("tenant", ("dc=",), re.compile(r"\bdc=([\w-]{2,63})", re.I), 1),
    Shape("host", ("NCCL",), re.compile(r"(?<![\w.:/-])([A-Za-z][\w.-]{1,253}):\d{1,10}:\d{1,10} \[\d{1,4}\] "), 1),
    Shape("host", ("]:",), re.compile(r"(?<=\[)([A-Za-z][\w.-]{1,253})(?=\]:\d{2,5})"), 1),
    Shape("host", ("Hostname set to",), re.compile(r"Hostname set to <([\w.-]{1,253})>"), 1),
    Shape("host", (":/",), re.compile(r"^([A-Za-z][\w.-]{1,253}):/\S{0,300} +(?:\d|on )", re.M), 1),
    Shape("host", ("//",), re.compile(r"^//([A-Za-z][\w.-]{1,253})/\S{1,300} +(?:\d|on )", re.M), 1),
    Shape("host", (".",), re.compile(r"^[ \t]{0,8}(?:\d{1,3}\.){3}\d{1,3}[ \t]{1,40}(?:(?<=\t)|(?<=  )|(?=\S{0,200}[\d.-]))([A-Za-z][\w.-]{1,253})(?=(?:[ \t]{1,40}[A-Za-z][\w.-]{1,253}){0,6}[ \t]{0,8}\r?$)", re.M), 1),
    Shape("host", (".",), re.compile(r"^[ \t]{0,8}(?:\d{1,3}\.){3}\d{1,3}[ \t]{1,40}[A-Za-z][\w.-]{1,253}[ \t]{1,40}(?:(?<=\t)|(?<=  )|(?=\S{0,200}[\d.-]))([A-Za-z][\w.-]{1,253})(?=[ \t]{0,8}\r?$)", re.M), 1),
    Shape("host", (" MB |",), re.compile(r"^([\w.-]{2,253}) {1,40}[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?=  ?\d{3}\.)", re.M), 1),
    Shape("user", (" MB |",), re.compile(r"(?<=[| ])([a-z_][\w.-]{0,31})(?=(?::[\w./-]{1,40})?(?:/\d{1,10})?\(\d{1,7}M\))"), 1),
    Shape("host", ("Node:",), re.compile(r"\bNode:[ \t]{1,40}([\w.-]{1,253})/", re.M), 1),
    Shape("host", ("Successfully assigned",), re.compile(r"Successfully assigned [\w.-]{1,63}/[\w.-]{1,253} to ([\w.-]{1,253})"), 1),
    Shape("tenant", ("Successfully assigned",), re.compile(r"Successfully assigned ([\w.-]{1,63})/[\w.-]{1,253} to "), 1),
    Shape("tenant", ("/namespaces/",), re.compile(r"/namespaces/([\w.-]{1,63})(?=[/\s\"'?]|$)"), 1),
    Shape("host", ("/nodes/",), re.compile(r"/nodes/([A-Za-z][\w.-]{1,252})(?=[/\s\"'?]|$)"), 1),
    Shape("tenant", ("/pods/",), re.compile(r"/var/log/pods/([\w.-]{1,63})_[\w.-]{1,253}_"), 1),
    Shape("tenant", (".svc",), re.compile(r"\b[a-z0-9-]{1,63}\.([a-z0-9-]{1,63})\.svc\b"), 1),
    Shape("host", ("JOB ", "STEP ", "StepId", "Job "), re.compile(r"\b(?:JOB|STEP|StepId=\S{1,30}|Job) ?[\d.]{0,20} ?(?:ON|on) ([\w.-]{1,253})"), 1),
    Shape("host", ("srun: error:",), re.compile(r"srun: error: ([\w.-]{1,253}): task"), 1),
    Shape("user", ("uid=",), re.compile(r"\b[ug]id=\d{1,10}\(([^)\s]{1,64})\)"), 1),
    Shape("user", ("session ", "Accepted ", "Failed "), re.compile(r"\b(?:session (?:opened|closed) for user|Accepted \w{1,30} for|Failed \w{1,30} for(?: invalid user)?) ([\w.@-]{1,64})"), 1),
    Shape("user", ("sudo:",), re.compile(r"\bsudo: {1,8}([\w.-]{1,64}) : "), 1),
    Shape("tenant", ("tenant", "customer"), re.compile(r"\b(?:tenant|customer) (?:is|was|named|called) (?:called |named )?[\"'`]?([\w.-]{1,63})"), 1),
    Shape("user", ("user",), re.compile(r"\b(?:by|for|from|of|as|[Uu]nknown|[Ii]nvalid) user [\"'`]?([\w.@-]{2,64})"), 1),
    Shape("user", ("user", "User"), re.compile(r"\b[Uu]ser [\"'`]?([\w.@-]{2,64})[\"'`]? (?:logged|signed|connected|authenticated|disconnected|submitted|requested|exceeded|is not|has no|does not)\b"), 1),
    Shape("user", ("sudo", "su "), re.compile(r"\b(?:sudo[ \t]{1,4}(?:-\w{1,4}[ \t]{1,4}){0,3}?-u|su(?:[ \t]{1,4}-l?)?)[ \t]{1,4}([a-z_][\w.-]{1,31})(?=[\s;]|$)"), 1),
    Shape("user", ("chown",), re.compile(r"\bchown[ \t]{1,4}(?:-\w{1,4}[ \t]{1,4}){0,3}([a-z_][\w.-]{1,31})(?=[:.\s])"), 1),
    Shape("user", (" by ", " by:"), re.compile(r"\b(?:submitted|requested|approved|reported|owned) by:? ([a-z][\w-]{1,40}[.@][a-z][\w.@-]{0,60}\w)"), 1),
    Shape("user", ("login as", "slurm user"), re.compile(r"\b(?:login as:?|slurm user) ([\w.@-]{2,64})"), 1),
    Shape("tenant", ("kubectl", "helm", "oc "), re.compile(r"\b(?:kubectl|helm|oc|k9s|stern)\b[^\n;|]{0,300}?[ \t]-n[ \t=]{0,4}([a-z0-9][a-z0-9-]{1,62})"), 1),
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
