"""A generator of things that must not leave the house: kinds of secrets and persons, the notations in which bundles hold them,
the envelopes that collectors put around. `python tests/planted.py [--every N]` prints how many survive a redaction, by notation.

A value is made by a seeded generator, in words and letters that nobody has. A notation says whether SECURITY.md promises it: of these
none may survive; of the others (what stands in prose, in no field and without a shape) at most two of a hundred.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import random
import string
import sys
import time
import urllib.parse
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import shapes
from oomdoc.redact.names import Pseudonyms
from oomdoc.redact.run import common_words, redact_stream
from oomdoc.redact.text import Redactor

KEY = b"a key that only this test has..."
_RARE = tuple(
    "umbra quill heron lantern ferrous brack peltwork grackle kestrel zofia bekker ashgrove tamsin orwin delphin sorrel vesper quince "  # noqa: SIM905
    "juniper marlow fennel tallis hollin wexcombe brindle corvane lysander mirabel oswin peregrin rowena sabrin thessaly ulrika vandal "
    "wistful yarrow zephyrin calder dunmore eglantine farrow gossamer hawthorn isolde jessamy kerrigan larkspur".split()
)


def _token(random_: random.Random, size: int, letters: str = string.ascii_letters + string.digits) -> str:
    made = "".join(random_.choice(letters) for _ in range(size - 2))
    return made + random_.choice("Zz") + random_.choice("97") if letters is not string.digits else made


_LOWER = string.ascii_lowercase + string.digits
_UPPER = string.ascii_uppercase + string.digits
_HEX = "0123456789abcdef"
_B64 = string.ascii_letters + string.digits + "+/"

Make = Callable[[random.Random], str]


def _with(prefix: str, size: int, letters: str = string.ascii_letters + string.digits, end: str = "") -> Make:
    return lambda random_: prefix + _token(random_, size, letters) + end


def _rare(random_: random.Random) -> str:
    return random_.choice(_RARE)


PROVIDERS: Mapping[str, Make] = {
    "hugging face": _with("hf_", 34),
    "hugging face org": _with("api_org_", 34),
    "nvidia": _with("nvapi-", 64),
    "openai": _with("sk-proj-", 48),
    "openai service": _with("sk-svcacct-", 60),
    "anthropic": _with("sk-ant-api03-", 90),
    "openrouter": _with("sk-or-v1-", 64, _HEX),
    "groq": _with("gsk_", 52),
    "replicate": _with("r8_", 37),
    "fireworks": _with("fw_", 24),
    "perplexity": _with("pplx-", 48),
    "together": _with("tgp_v1_", 43),
    "x ai": _with("xai-", 80),
    "cerebras": _with("csk-", 48, _LOWER),
    "mistral": _with("", 32),
    "cohere": _with("", 40),
    "voyage": _with("pa-", 43),
    "google": _with("AIza", 35),
    "google oauth": _with("ya29.a0", 120),
    "google client": _with("GOCSPX-", 28),
    "aws id": _with("AKIA", 16, _UPPER),
    "aws session id": _with("ASIA", 16, _UPPER),
    "aws key": _with("", 40, _B64),
    "azure storage": lambda random_: _token(random_, 86, _B64) + "==",
    "azure openai": _with("", 32, _HEX),
    "github": _with("ghp_", 36),
    "github fine": _with("github_pat_", 82),
    "gitlab": _with("glpat-", 20),
    "bitbucket": _with("ATBB", 32),
    "slack": lambda random_: f"xoxb-{random_.randrange(10**11)}-{random_.randrange(10**11)}-{_token(random_, 24)}",
    "slack app": _with("xapp-1-A", 60),
    "discord": lambda random_: f"M{_token(random_, 24)}.{_token(random_, 6)}.{_token(random_, 30)}",
    "telegram": lambda random_: f"{random_.randrange(10**9, 10**10)}:{_token(random_, 35)}",
    "stripe": _with("sk_live_", 24),
    "sendgrid": lambda random_: f"SG.{_token(random_, 22)}.{_token(random_, 43)}",
    "mailgun": _with("key-", 32, _HEX),
    "mailchimp": _with("", 32, _HEX, "-us14"),
    "twilio": _with("SK", 32, _HEX),
    "npm": _with("npm_", 36),
    "pypi": _with("pypi-AgEIcHlwaS5vcmc", 90),
    "docker": _with("dckr_pat_", 27),
    "wandb": _with("", 40, _HEX),
    "datadog": _with("", 32, _HEX),
    "new relic": _with("NRAK-", 27, _UPPER),
    "grafana": _with("glsa_", 41),
    "grafana cloud": _with("glc_", 120),
    "sentry": _with("sntrys_", 90),
    "databricks": _with("dapi", 32, _HEX),
    "snowflake": _with("ver:1-hint:", 60),
    "pinecone": _with("pcsk_", 64),
    "qdrant": _with("", 54),
    "langsmith": lambda random_: f"lsv2_pt_{_token(random_, 32, _HEX)}_{_token(random_, 10, _HEX)}",
    "langfuse": lambda random_: f"sk-lf-{uuid.UUID(int=random_.getrandbits(128))}",
    "vault": _with("hvs.", 90),
    "terraform": lambda random_: f"{_token(random_, 14)}.atlasv1.{_token(random_, 60)}",
    "digital ocean": _with("dop_v1_", 64, _HEX),
    "linear": _with("lin_api_", 40),
    "notion": _with("ntn_", 46),
    "shopify": _with("shpat_", 32, _HEX),
    "age": _with("AGE-SECRET-KEY-1", 58, _UPPER),
    "jwt": lambda random_: ".".join(
        base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        for text in ('{"alg":"HS256"}', json.dumps({"sub": _token(random_, 20)}), _token(random_, 30))
    ),
    "licence": lambda random_: "-".join(_token(random_, 5, _UPPER) for _ in range(5)),
}
"""Keys and tokens of providers: their published shapes, or none."""
OWN: Mapping[str, Make] = {
    "password": lambda random_: f"{_rare(random_).title()}-{random_.randrange(100)}-{_rare(random_).title()}",
    "password with signs": lambda random_: f"{_rare(random_).title()}!{random_.randrange(100)}#{_rare(random_)}",
    "key of one's own": lambda random_: f"corp-{_token(random_, 4, _HEX)}-{_token(random_, 4, _HEX)}-serve",
    "begins with a slash": lambda random_: f"/{_rare(random_).title()}{random_.randrange(100)}{_rare(random_)}",
    "begins with a dollar": lambda random_: f"${_rare(random_).title()}{random_.randrange(100)}{_rare(random_)}",
    "begins with a bracket": lambda random_: f"[{_rare(random_).title()}{random_.randrange(100)}{_rare(random_)}",
    "begins with a brace": lambda random_: f"{{{_rare(random_).title()}{random_.randrange(100)}{_rare(random_)}",
    "begins with less": lambda random_: f"<{_rare(random_).title()}{random_.randrange(100)}{_rare(random_)}",
    "base64": lambda random_: base64.b64encode(
        f"{_rare(random_)}-{_rare(random_)}-{random_.random()}".encode()
    ).decode(),
    "pass phrase": lambda random_: "".join(_rare(random_).title() for _ in range(4)),
}
COMMON = "of a log's own words"
"""Values that only their field gives away: every word of them is one of logs."""
OWN = {
    **OWN,
    COMMON: lambda random_: f"Master-{random_.randrange(100)}-Shadow-{random_.choice(('Kernel', 'Server', 'Memory'))}",
}
SECRETS = {**PROVIDERS, **OWN}
USERS: Mapping[str, Make] = {
    "user": lambda random_: f"{_rare(random_)}{_rare(random_)[:4]}",
    "first.last": lambda random_: f"{_rare(random_)}.{_rare(random_)}",
    COMMON: lambda random_: (
        f"{random_.choice(('grace', 'page', 'hopper'))}.{random_.choice(('green', 'master', 'story'))}"
    ),
    "mail": lambda random_: f"{_rare(random_)}.{_rare(random_)}@{_rare(random_)}-mill.com",
}
PLACES: Mapping[str, Make] = {
    "host": lambda random_: f"{_rare(random_)}-n{random_.randrange(10, 99)}",
    COMMON: lambda random_: (
        f"gpu-{random_.choice(('prod', 'batch'))}-{random_.choice(('east', 'rack', 'blue'))}-{random_.randrange(10, 99)}"
    ),
    "fqdn": lambda random_: f"{_rare(random_)}{random_.randrange(9)}.{_rare(random_)}.internal",
}
TENANTS: Mapping[str, Make] = {
    "tenant": lambda random_: f"{_rare(random_)}{_rare(random_)}",
    COMMON: lambda random_: (
        f"{random_.choice(('delta', 'echo', 'shadow'))}-{random_.choice(('story', 'green', 'rack'))}"
    ),
    "namespace": lambda random_: f"{_rare(random_)}-{_rare(random_)}-chat",
}
TEXTS: Mapping[str, Make] = {
    "english": lambda random_: (
        f"the {_rare(random_)} counts nineteen {_rare(random_)} {_rare(random_)} by the {_rare(random_)}"
    ),
    COMMON: lambda random_: (
        f"please explain how the memory limit of my {random_.choice(('server', 'device'))} works and why it is {random_.choice(('too small', 'not enough'))}"
    ),
    "question": lambda random_: (
        f"Why does my {_rare(random_)} hurt when {_rare(random_)} calls doctor {_rare(random_)}?"
    ),
    "with quotes": lambda random_: f"she said 'x', {_rare(random_)} and {_rare(random_)} went to {_rare(random_)}",
    "like a record": lambda random_: f"ERROR: my {_rare(random_)} and {_rare(random_)} {_rare(random_)}",
    "chinese": lambda random_: "".join(chr(0x4E00 + random_.randrange(20000)) for _ in range(14)),
    "accents": lambda random_: f"où est {_rare(random_)} la {_rare(random_)} être {_rare(random_)} déjà",
    "code": lambda random_: f"def {_rare(random_)}_{_rare(random_)}(x): return {_rare(random_)}[x]",
}
GROUPS: Mapping[str, Mapping[str, Make]] = {
    "secret": SECRETS,
    "user": USERS,
    "place": PLACES,
    "tenant": TENANTS,
    "text": TEXTS,
}
KINDS = {f"{group}: {name}": (group, make) for group, kinds in GROUPS.items() for name, make in kinds.items()}


class Notation(NamedTuple):
    """How a bundle writes a value: for which groups of kinds, whether its absence is promised, and the text."""

    name: str
    groups: tuple[str, ...]
    promised: bool
    write: Callable[[str], str]
    plain: bool = False  # for values without blanks, quotes and signs only


def _j(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _b(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _lines(*lines: str) -> str:
    return "".join(line + "\n" for line in lines)


_HEAD = "INFO 11-20 20:05:01 [logger.py:39] "
_RUN = "INFO 11-20 20:05:07 [loggers.py:123] Engine 000: Avg prompt throughput: 1.2 tokens/s"


def _notations() -> Iterator[Notation]:
    secret, user, place, tenant, text = (("secret",), ("user",), ("place",), ("tenant",), ("text",))

    def n(
        name: str, groups: tuple[str, ...], write: Callable[[str], str], promised: bool = True, plain: bool = False
    ) -> Notation:
        return Notation(name, groups, promised, write, plain)

    # ---- secrets
    yield n("json", secret, lambda v: _j({"n": 1, "api_key": v, "max_tokens": 5}))
    yield n(
        "json pretty", secret, lambda v: json.dumps({"n": 1, "server": {"api_key": v}}, indent=2, ensure_ascii=False)
    )
    yield n("json in json", secret, lambda v: _j({"level": "info", "message": _j({"headers": {"x-api-key": v}})}))
    yield n("json in json in json", secret, lambda v: _j({"message": _j({"message": _j({"client_secret": v})})}))
    yield n("json list", secret, lambda v: _j({"api_keys": ["first-" + v[:2], v]}))
    yield n("json object auth", secret, lambda v: _j({"auth": {"scheme": "x", "value": v}, "n": 1}))
    yield n(
        "json object credentials",
        secret,
        lambda v: json.dumps({"credentials": {"deep": {"er": [v]}}}, indent=1, ensure_ascii=False),
    )
    yield n("json object token", secret, lambda v: _j({"tokens": {"one": v}}))
    yield n("python dict", secret, lambda v: f"{_HEAD}args: {{'api_key': {v!r}, 'max_num_seqs': 64}}")
    yield n(
        "python list", secret, lambda v: f"{_HEAD}non-default args: {{'api_key': ['first-one', {v!r}], 'port': 80}}"
    )
    yield n("namespace", secret, lambda v: f"{_HEAD}args: Namespace(host=None, api_key={v!r}, port=8000)")
    yield n("yaml plain", secret, lambda v: _lines("server:", f"  api_key: {v}", "  port: 80"), plain=True)
    yield n("yaml quoted", secret, lambda v: _lines("server:", f'  password: "{v}"', "  port: 80"), plain=True)
    yield n(
        "yaml next line", secret, lambda v: _lines("server:", "  password:", f'    "{v}"', "  port: 80"), plain=True
    )
    yield n(
        "yaml anchor",
        secret,
        lambda v: _lines("server:", f"  password: &pw {v}", "  other: *pw", "  port: 80"),
        plain=True,
    )
    yield n("yaml tag", secret, lambda v: _lines("server:", f"  password: !!str {v}", "  port: 80"), plain=True)
    yield n("yaml block", secret, lambda v: _lines("server:", "  token: |-", f"    {v}", "  port: 80"))
    yield n(
        "yaml list",
        secret,
        lambda v: _lines("server:", "  api_keys:", "  - first-one", f"  - {v}", "  port: 80"),
        plain=True,
    )
    yield n("yaml flow", secret, lambda v: _lines("server:", f'  auth: {{a: "{v}", b: 1}}', "  port: 80"), plain=True)
    yield n(
        "yaml object", secret, lambda v: _lines("credentials:", "  main:", f"    any: '{v}'", "port: 80"), plain=True
    )
    yield n(
        "yaml env",
        secret,
        lambda v: _lines("env:", "- name: DB_PASSWORD", f'  value: "{v}"', "- name: PORT", '  value: "80"'),
        plain=True,
    )
    yield n(
        "yaml env value first", secret, lambda v: _lines("env:", f'- value: "{v}"', "  name: DB_PASSWORD"), plain=True
    )
    yield n("yaml args", secret, lambda v: _lines("args:", "- --api-key", f'- "{v}"', "- --port", '- "80"'), plain=True)
    yield n(
        "yaml args several",
        secret,
        lambda v: _lines("args:", "- --api-key", "- first-one", f'- "{v}"', "- --port", '- "80"'),
        plain=True,
    )
    yield n("kubernetes secret", secret, lambda v: _lines("apiVersion: v1", "data:", f"  any: {_b(v)}", "kind: Secret"))
    yield n(
        "kubernetes secret string",
        secret,
        lambda v: _lines("kind: Secret", "stringData:", f'  any: "{v}"', "apiVersion: v1"),
        plain=True,
    )
    yield n(
        "kubernetes secret flow", secret, lambda v: _lines("kind: Secret", f"data: {{any: {_b(v)}}}", "apiVersion: v1")
    )
    yield n(
        "kubernetes secret json",
        secret,
        lambda v: json.dumps({"kind": "Secret", "data": {"any": _b(v)}, "apiVersion": "v1"}, indent=1),
    )
    yield n(
        "kubernetes secret list",
        secret,
        lambda v: _lines(
            "apiVersion: v1", "kind: SecretList", "items:", "- metadata: {name: x}", "  data:", f"    any: {_b(v)}"
        ),
    )
    yield n(
        "kustomize literals",
        secret,
        lambda v: _lines("secretGenerator:", "- name: x", "  literals:", f"  - DB_PASSWORD={v}", "  - a=b"),
        plain=True,
    )
    yield n("toml", secret, lambda v: _lines("[server]", f'api_key = "{v}"', "port = 80"), plain=True)
    yield n("toml list", secret, lambda v: _lines("[server]", f'passwords = ["one", "{v}"]', "port = 80"), plain=True)
    yield n(
        "toml section",
        secret,
        lambda v: _lines("[credentials.main]", f'any = "{v}"', "[server]", "port = 80"),
        plain=True,
    )
    yield n("ini", secret, lambda v: _lines("[database]", f"password = {v}", "port = 80"), plain=True)
    yield n("environment", secret, lambda v: _lines("PORT=80", f"HF_TOKEN={v}", "VLLM_USE_V1=1"), plain=True)
    yield n("environment numbered", secret, lambda v: _lines("PORT=80", f"API_KEY_2={v}", "VLLM_USE_V1=1"), plain=True)
    yield n("environment quoted", secret, lambda v: _lines(f'export DB_PASSWORD="{v}"', "PORT=80"), plain=True)
    yield n("environ", secret, lambda v: f"PORT=80\0HF_TOKEN={v}\0VLLM_USE_V1=1\0", plain=True)
    yield n("cmdline", secret, lambda v: f"vllm\0serve\0x\0--api-key\0first-one\0{v}\0--port\x0080\0", plain=True)
    yield n("dockerfile", secret, lambda v: _lines("FROM x", f"ENV HF_TOKEN {v}", "EXPOSE 80"), plain=True)
    yield n("fish", secret, lambda v: f"set -gx OPENAI_API_KEY {v}", plain=True)
    yield n("csh", secret, lambda v: f"setenv OPENAI_API_KEY {v}", plain=True)
    yield n("powershell", secret, lambda v: f'$env:OPENAI_API_KEY = "{v}"', plain=True)
    yield n("sql", secret, lambda v: f"ALTER USER app WITH PASSWORD '{v}';", plain=True)
    yield n("sql identified", secret, lambda v: f"CREATE USER app IDENTIFIED BY '{v}';", plain=True)
    yield n("option", secret, lambda v: f"vllm serve x --api-key {v} --port 80", plain=True)
    yield n("option equals", secret, lambda v: f"vllm serve x --api-key={v} --port 80", plain=True)
    yield n("option several", secret, lambda v: f"vllm serve x --api-key first-one {v} --port 80", plain=True)
    yield n(
        "option next line",
        secret,
        lambda v: _lines("vllm serve x \\", "  --api-key \\", f"  {v} \\", "  --port 80"),
        plain=True,
    )
    yield n("option json", secret, lambda v: _j(["vllm", "serve", "x", "--api-key", "first-one", v, "--port", "80"]))
    yield n("header", secret, lambda v: f"X-API-Key: {v}", plain=True)
    yield n("bearer", secret, lambda v: f"Authorization: Bearer {v}", plain=True)
    yield n(
        "curl", secret, lambda v: f"curl -H 'Authorization: Bearer {v}' http://localhost:8000/v1/models", plain=True
    )
    yield n("header pairs", secret, lambda v: f"headers=[(b'host', b'x'), (b'x-api-key', b'{v}')]", plain=True)
    yield n("address", secret, lambda v: f"GET /v1/models?api_key={urllib.parse.quote(v)}&n=5 HTTP/1.1")
    yield n("address encoded", secret, lambda v: f"GET /to?u=x%3Fapi_key%3D{urllib.parse.quote(v)}%26n%3D5 HTTP/1.1")
    yield n("address password", secret, lambda v: f"redis://app:{urllib.parse.quote(v, safe='')}@cache:6379/0")
    yield n(
        "describe",
        secret,
        lambda v: _lines(
            "    Environment:",
            f"      DB_PASSWORD:                      {v}",
            "      VLLM_USE_V1:                      1",
        ),
        plain=True,
    )
    yield n(
        "csv",
        secret,
        lambda v: _lines("time,api_key,input_tokens", f"1795205101,{v},5", f"1795205102,{v},6"),
        plain=True,
    )
    yield n(
        "table of markdown", secret, lambda v: _lines("| name | password |", "|---|---|", f"| x | {v} |"), plain=True
    )
    yield n("xml", secret, lambda v: f"<server><password>{v}</password></server>", plain=True)
    yield n("logfmt", secret, lambda v: f"level=info api_key={v} status=200", plain=True)
    yield n("metric", secret, lambda v: f'vllm:x_total{{engine="0",api_key="{v}"}} 5', plain=True)
    yield n(
        "otel",
        secret,
        lambda v: _j({"attributes": [{"key": "http.request.header.x-api-key", "value": {"stringValue": v}}]}),
    )
    yield n(
        "private key",
        secret,
        lambda v: _lines("-----BEGIN PRIVATE KEY-----", f"{_b(v)}", f"{_b(v * 2)[:60]}", "-----END PRIVATE KEY-----"),
    )
    yield n("netrc", secret, lambda v: _lines("machine x.y", "login app", f"password {v}"), plain=True)
    yield n("shell variable in prose", secret, lambda v: f"then I ran it with HF_TOKEN={v} and it died", plain=True)
    yield n("field of no name", secret, lambda v: _j({"pin": v, "n": 5}), False, True)
    yield n("prose", secret, lambda v: f"use {v} for the staging server", False, True)
    yield n("path of a key", secret, lambda v: f"cp /tmp/{v}.txt /data", False, True)
    yield n("argument without a name", secret, lambda v: f"python login.py {v}", False, True)
    yield n(
        "traceback literal",
        secret,
        lambda v: _lines('  File "/srv/x.py", line 3, in main', f'    client = Client("{v}")'),
        False,
        True,
    )
    yield n("exception", secret, lambda v: f"ValueError: bad value {v} in request", False, True)
    # ---- people
    yield n("user json", user, lambda v: _j({"user": v, "prompt_tokens": 3}))
    yield n("user object", user, lambda v: _j({"user": {"id": 5, "name": v}}))
    yield n("user yaml", user, lambda v: _lines("metadata:", "  annotations:", f"    owner: {v}", "  name: vllm-0"))
    yield n("user logfmt", user, lambda v: f"status=200 user={v} n=1")
    yield n("user home", user, lambda v: f"Loading /home/{v}/models/x from disk")
    yield n("user mac", user, lambda v: f"open /Users/{v}/models/x")
    yield n("user windows", user, lambda v: f"open C:\\Users\\{v}\\models")
    yield n("user describe", user, lambda v: _lines("Name:             vllm-0", f"Annotations:      owner: {v}"))
    yield n("user csv", user, lambda v: _lines("time,user,input_tokens", f"1795205101,{v},5"))
    yield n("user header", user, lambda v: f"X-User-Id: {v}")
    yield n("user metric", user, lambda v: f'vllm:x_total{{user="{v}"}} 5')
    yield n("user in an address", user, lambda v: f"GET /v1/models?user={urllib.parse.quote(v)} HTTP/1.1")
    yield n("user unusual home", user, lambda v: f"Loading /lustre/groups/{v}/models/x from disk", False)
    yield n("user prose", user, lambda v: f"ask {v} about it", False)
    yield n("user unforeseen key", user, lambda v: _j({"who_did_it": v}), False)
    yield n("user process", user, lambda v: f"python train_{v}.py --epochs 3", False)
    # ---- places
    yield n("host json", place, lambda v: _j({"hostname": v, "n": 5}))
    yield n("host yaml", place, lambda v: _lines("spec:", f"  nodeName: {v}", "  restartPolicy: Always"))
    yield n("host describe", place, lambda v: f"Node:                         {v}/10.1.2.3")
    yield n(
        "host syslog",
        place,
        lambda v: f"Nov 20 20:04:51 {v} kernel: [12.3] Out of memory: Killed process 4711 (python3)",
    )
    yield n("host instance", place, lambda v: f'DCGM_FI_DEV_FB_USED{{gpu="0",instance="{v}:9400"}} 23000')
    yield n("host uname", place, lambda v: f"Linux {v} 5.15.0-119-generic #129-Ubuntu SMP x86_64 GNU/Linux")
    yield n("host assigned", place, lambda v: f"Successfully assigned x/vllm-0 to {v}")
    yield n("host url", place, lambda v: f"connect to http://{v}:8000/health failed")
    yield n("host environment", place, lambda v: _lines(f"HOSTNAME={v}", "PORT=80"))
    yield n("host prose", place, lambda v: f"it runs next to {v} since monday", False)
    yield n("host unforeseen key", place, lambda v: _j({"box": v}), False)
    # ---- tenants
    yield n("tenant json", tenant, lambda v: _j({"tenant_id": v, "prompt_tokens": 5}))
    yield n("tenant yaml", tenant, lambda v: _lines("metadata:", f"  namespace: {v}", "  name: vllm-0"))
    yield n("tenant describe", tenant, lambda v: _lines("Name:                 vllm-0", f"Namespace:            {v}"))
    yield n("tenant metric", tenant, lambda v: f'vllm:x_total{{namespace="{v}",engine="0"}} 5')
    yield n("tenant service", tenant, lambda v: f"http://vllm.{v}.svc.cluster.local:8000/v1")
    yield n("tenant path", tenant, lambda v: f"must-gather/namespaces/{v}/pods/vllm-0/current.log")
    yield n("tenant logfmt", tenant, lambda v: f"status=200 tenant={v} n=1")
    yield n("tenant in a pod", tenant, lambda v: f"pod/{v}-vllm-7d9f8b6c5-x2x4z OOMKilled", False)
    yield n("tenant in a model", tenant, lambda v: f"{_HEAD}Starting to load model /models/{v}-llama-8b...", False)
    yield n("tenant in an adapter", tenant, lambda v: f"--lora-modules {v}-support=/adapters/{v}", False)
    yield n("tenant prose", tenant, lambda v: f"it was {v} who sent these", False)
    # ---- texts
    yield n(
        "request",
        text,
        lambda v: (
            f"{_HEAD}Received request cmpl-7: prompt: {v!r}, params: SamplingParams(n=1), prompt_token_ids: None, lora_request: None."
        ),
    )
    yield n(
        "request over lines",
        text,
        lambda v: _lines(
            f"{_HEAD}Received request cmpl-7: prompt: 'one",
            v,
            f"and {v}', params: SamplingParams(n=1), lora_request: None.",
            _RUN,
        ),
    )
    yield n("messages", text, lambda v: _j({"messages": [{"role": "user", "content": v}], "prompt_tokens": 5}))
    yield n(
        "messages pretty",
        text,
        lambda v: json.dumps(
            {"messages": [{"role": "user", "content": [{"type": "text", "text": v}]}]}, indent=2, ensure_ascii=False
        ),
    )
    yield n("body in json", text, lambda v: _j({"level": "info", "message": _j({"prompt": v, "max_tokens": 5})}))
    yield n("prompt csv", text, lambda v: 'time,prompt,input_tokens\n1795205101,"' + v.replace('"', '""') + '",5\n')
    yield n("prompt yaml", text, lambda v: _lines("requests:", "- prompt: |", f"    {v}", "  max_tokens: 5"))
    yield n("prompt logfmt", text, lambda v: f"status=200 prompt={_j(v)} n=1")
    yield n("prompt turns", text, lambda v: f"<|im_start|>user\n{v}<|im_end|>\n<|im_start|>assistant\n")
    yield n("prompt otel", text, lambda v: _j({"attributes": [{"key": "gen_ai.prompt", "value": {"stringValue": v}}]}))
    yield n(
        "response",
        text,
        lambda v: f"{_HEAD}Generated response cmpl-7: output: {v!r}, output_token_ids: [1, 2], finish_reason: stop",
    )
    yield n(
        "stop strings",
        text,
        lambda v: (
            f"{_HEAD}Received request r: params: SamplingParams(n=1, stop=[{v!r}, 'x'], max_tokens=5), lora_request: None."
        ),
    )
    yield n(
        "guided json",
        text,
        lambda v: (
            f"{_HEAD}params: SamplingParams(n=1, guided_decoding=GuidedDecodingParams(json={{'title': {v!r}}}), max_tokens=5)"
        ),
    )
    yield n("prompt under an unforeseen key", text, lambda v: _j({"utter": v, "n": 5}), False)
    yield n("prompt in a list without a key", text, lambda v: _j([["a", v], ["b", v]]), False)
    yield n("prompt bare", text, lambda v: f"{_HEAD}user asks {v}", False)
    yield n("prompt on a line", text, lambda v: _lines("----", v, "----"), False)
    yield n("prompt in yaml unforeseen", text, lambda v: _lines("cases:", f"  first: {_j(v)}", "  n: 5"), False)


NOTATIONS = tuple(_notations())


def _document(text: str) -> list[tuple[float, str]]:
    return [(1795205101.0 + at * 0.001, line) for at, line in enumerate(text.rstrip("\n").split("\n"))]


_CHOSEN = ("docker-json", "cri", "kubectl-timestamps", "kubectl-prefix", "compose", "journal-short", "journal-json", "journal-export",
           "rfc5424", "rfc3164-pri", "loki-jsonl", "loki-api", "grafana-json", "cloudwatch-json", "markdown-quote", "crlf", "fluent-bit")  # fmt: skip
ENVELOPES: Mapping[str, Callable[[str], bytes]] = {
    "none": lambda text: text.encode("utf-8"),
    **{name: (lambda text, wrap=shapes.ENVELOPES[name]: wrap(_document(text)).encode("utf-8")) for name in _CHOSEN},  # type: ignore[misc]
    "utf-16 with a mark": lambda text: text.encode("utf-16"),
    "utf-16-be": lambda text: text.encode("utf-16-be"),
    "utf-32 with a mark": lambda text: text.encode("utf-32"),
    "utf-8 with a mark": lambda text: text.encode("utf-8-sig"),
}
_ENCODINGS = {"utf-16 with a mark": "utf-16", "utf-16-be": "utf-16-be", "utf-32 with a mark": "utf-32"}


class Cell(NamedTuple):
    """One planted value in one notation and envelope."""

    kind: str
    notation: Notation
    envelope: str
    value: str


def cells(every: int = 1, seed: int = 7, kinds: str = "") -> Iterator[Cell]:
    """Every kind (with `kinds` in its name) in every notation for it in every envelope; each `every`-th, always the same ones."""
    number = 0
    for kind, (group, make) in KINDS.items():
        if kinds not in kind:
            continue
        for notation in NOTATIONS:
            if group not in notation.groups:
                continue
            for envelope in ENVELOPES:
                number += 1
                if number % every:
                    continue
                value = make(random.Random(f"{seed} {kind} {notation.name}"))
                if "\0" in notation.write("x") and envelope not in ("none", "utf-8 with a mark"):
                    continue
                if COMMON in kind and not notation.promised:
                    continue
                if notation.plain and any(sign in value for sign in "\"' "):
                    continue
                yield Cell(kind, notation, envelope, value)


def written(cell: Cell) -> bytes:
    """The bytes of a cell's source: the value among lines of a log."""
    text = cell.notation.write(cell.value)
    return ENVELOPES[cell.envelope](text if text.endswith(("\n", "\0")) else text + "\n")


def fragments(value: str) -> list[str]:
    """What must not be found: the value as JSON, addresses and base64 write it, and the rare words of a text."""
    forms = {
        value,
        json.dumps(value)[1:-1],
        repr(value)[1:-1],
        urllib.parse.quote(value),
        urllib.parse.quote(value, safe=""),
    }
    forms.add(json.dumps(json.dumps(value)[1:-1])[1:-1])
    if len(value) > 12:
        forms.add(_b(value)[: len(_b(value)) // 4 * 4 - 4])
    return sorted(forms)


def survives(cell: Cell) -> str:
    """What is left of a cell's value after a redaction of its source alone: "" where nothing is."""
    data = written(cell)
    stream = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]
    made = b"".join(redact_stream(stream, Redactor(Pseudonyms(KEY), common_words()), lambda why: None))
    text = made.decode(_ENCODINGS.get(cell.envelope, "utf-8"), "replace")
    low = text.lower()
    return text if any(form.lower() in low for form in fragments(cell.value)) else ""


def promise() -> str:
    """What the grid proves, as the table of SECURITY.md."""
    words = {
        "secret": "keys, tokens, passwords",
        "user": "users, mail addresses",
        "place": "hosts",
        "tenant": "tenants, namespaces",
        "text": "prompts, completions",
    }
    lines = ["| what | notations in which none survives | notations without a promise |", "| --- | --- | --- |"]
    for group, word in words.items():
        own = [notation for notation in NOTATIONS if group in notation.groups]
        names = [
            ", ".join(notation.name for notation in own if notation.promised is promised) for promised in (True, False)
        ]
        lines.append(f"| {word} ({len(GROUPS[group])} kinds) | {names[0]} | {names[1]} |")
    lines.append("")
    lines.append(f"Each in {len(ENVELOPES)} envelopes and encodings: {', '.join(ENVELOPES)}.")
    return "\n".join(lines)


def main() -> int:
    """Count, and print what survives by notation and envelope."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--notation", default="")
    parser.add_argument("--promise", action="store_true", help="print the table of SECURITY.md")
    options = parser.parse_args()
    if options.promise:
        print(promise())
        return 0
    began = time.process_time()
    asked: Counter[bool] = Counter()
    left: Counter[bool] = Counter()
    where: Counter[tuple[bool, str]] = Counter()
    wrapped: Counter[tuple[bool, str]] = Counter()
    kinds: set[str] = set()
    shown = 0
    for cell in cells(options.every):
        if options.notation not in cell.notation.name:
            continue
        asked[cell.notation.promised] += 1
        kinds.add(cell.kind)
        if made := survives(cell):
            left[cell.notation.promised] += 1
            where[cell.notation.promised, cell.notation.name] += 1
            wrapped[cell.notation.promised, cell.envelope] += 1
            if shown < options.show:
                shown += 1
                print("----", cell.notation.name, "|", cell.kind, "|", cell.envelope, "|", cell.value)
                print(written(cell)[:600])
                print(made[:600])
    print(
        f"{len(kinds)} kinds, {len(NOTATIONS)} notations, {len(ENVELOPES)} envelopes, {time.process_time() - began:.0f} s of CPU"
    )
    for promised, word in ((True, "promised"), (False, "not promised")):
        share = 100 * left[promised] / max(1, asked[promised])
        print(f"{word}: {left[promised]:,} of {asked[promised]:,} survive ({share:.2f} %)")
        print(
            "   ",
            ", ".join(f"{name} {count}" for (kind, name), count in where.most_common() if kind == promised)[:1500],
        )
        print(
            "   ",
            ", ".join(f"{name} {count}" for (kind, name), count in wrapped.most_common() if kind == promised)[:800],
        )
    return 1 if left[True] else 0


if __name__ == "__main__":
    sys.exit(main())
