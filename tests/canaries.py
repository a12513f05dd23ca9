"""Names, secrets and texts that nobody has, planted in every kind of source: none may be left in a redacted copy."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

USER = "zofiaquill"
OTHER_USER = "mbekkerand"
HOST = "brackwater-n17"
FQDN = "login3.ferrous.internal"
TENANT = "umbraglass"
NAMESPACE = "peltworks-chat"
EMAIL = "tove.ashgrove@ferrous-mill.com"
IP = "10.77.31.204"
PUBLIC_IP = "93.184.77.19"
IPV6 = "fd5a:9c1e:77b2::4f1"
MAC = "3c:ec:ef:5a:91:c7"
PROMPT = "the heron counts nineteen lanterns"
COMPLETION = "a quiet ferry answers in copper"
SECRETS: Mapping[str, str] = {
    "hugging face": "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",
    "nvidia": "nvapi-Zq3vXk9LmTwRbYcNpHsDfGjKlQwErTyUiOpAsDfG",
    "openai": "sk-proj-Vn8ZqLwXtRbKcYpMhSdFgJkL0aQe",
    "anthropic": "sk-ant-api03-Tt7QwXzLmRbKcYpNhSdFgJkLaQe-9w",
    "aws id": "AKIAQZXWVLMTRBKCYPNH",
    "aws key": "wJq8TzVrLkPwYsXbNcDfGhJtReWqAsZxUvIoPl3k",
    "jwt": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJoZXJvbiJ9.c2lnbmF0dXJlLW9mLWhlcm9u",
    "bearer": "Kq7xVtRwLmZbYcNpHsDfGj",
    "password": "Grackle-Umber-44",
    "key of one's own": "umb-9d3f-77c1-serve",
    "github": "ghp_QmTzVrLkPwYsXbNcDfGhJtReWqAsZxUvIoPl",
    "signature": "b7Qe%2FzLmXtRw8KcYpNhSdFg0aQ",
    "plain": "Vx3nTq8LmZrKwYb2NcD",
    "encoded": base64.b64encode(b"Grackle-Umber-44").decode(),
    "hash": "Rw8KcYpNhSdFg0aQzLmXtVn",
}
PICTURE = base64.b64encode(bytes(range(256)) * 3).decode()
CANARIES: Mapping[str, tuple[str, ...]] = {
    "user": (USER, OTHER_USER),
    "host": (HOST, FQDN, "ferrous"),
    "tenant": (TENANT, NAMESPACE),
    "email": (EMAIL, "tove.ashgrove"),
    "ip": (IP, PUBLIC_IP, IPV6),
    "mac": (MAC,),
    "prompt": (PROMPT, COMPLETION, "heron counts", "lanterns", "copper", PICTURE[:60]),
    "secret": tuple(SECRETS.values()),
}
_S = SECRETS


def _engine_log() -> str:
    return f"""\
INFO 11-20 20:04:40 [api_server.py:1289] vLLM API server version 0.11.0
INFO 11-20 20:04:41 [utils.py:233] non-default args: {{'model': '/home/{USER}/models/Nimbus-8B', 'api_key': ['{_S["key of one's own"]}'], 'host': '{IP}', 'served_model_name': ['nimbus'], 'max_num_seqs': 64}}
INFO 11-20 20:04:45 [gpu_model_runner.py:1843] Starting to load model /home/{USER}/models/Nimbus-8B...
INFO 11-20 20:05:01 [logger.py:39] Received request cmpl-7c1: prompt: '{PROMPT}', params: SamplingParams(n=1, temperature=0.7, max_tokens=64), prompt_token_ids: [128000, 791, 39960], lora_request: None, prompt_adapter_request: None.
INFO 11-20 20:05:01 [logger.py:39] Received request cmpl-7c2: prompt: "it's {PROMPT}", params: SamplingParams(n=1), lora_request: None.
INFO 11-20 20:05:02 [logger.py:39] Received request chatcmpl-7c3: prompt: '<|user|>\\nsay: {PROMPT}\\n\\'{COMPLETION}\\'', params: SamplingParams(stop=['x']), lora_request: None.
DEBUG 11-20 20:05:02 [logger.py:47] Request chatcmpl-7c3 details: prompt: '{PROMPT}', prompt_token_ids: [9, 8, 7], prompt_embeds shape: None.
INFO 11-20 20:05:04 [logger.py:63] Generated response chatcmpl-7c3 (streaming complete): output: '{COMPLETION}', output_token_ids: [5, 6], finish_reason: stop
INFO:     {IP}:51234 - "POST /v1/completions?user={USER}&api_key={_S["key of one's own"]} HTTP/1.1" 200 OK
ERROR 11-20 20:05:05 [serving.py:3] ValueError: The prompt '{PROMPT}' is too long for user {USER} on node {HOST}
INFO:     {FQDN}:51234 - "GET /v1/models HTTP/1.1" 200 OK
WARNING 11-20 20:05:05 [api_server.py:77] rejected: Authorization: Bearer {_S["bearer"]} of {EMAIL}
(APIServer pid=41, ip={IP}) ERROR 11-20 20:05:06 [serving.py:9] upstream https://{OTHER_USER}:{_S["password"]}@gate.{FQDN}:8443/v1 answered 500
INFO 11-20 20:05:07 [loggers.py:123] Engine 000: Avg prompt throughput: 1.2 tokens/s, Avg generation throughput: 0.1 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.0%, Prefix cache hit rate: 0.0%
Traceback (most recent call last):
  File "/home/{USER}/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py", line 99, in run
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 0 has a total capacity of 23.50 GiB of which 50.00 MiB is free. Including non-PyTorch memory, this process has 23.40 GiB memory in use. Of the allocated memory 23.00 GiB is allocated by PyTorch, and 5.00 MiB is reserved by PyTorch but unallocated.
"""


def _raw_prompt() -> str:
    return f"""\
INFO 11-20 20:05:01 [logger.py:39] Received request cmpl-9: prompt: 'first line
{PROMPT}
and {COMPLETION}', params: SamplingParams(n=1), lora_request: None.
INFO 11-20 20:05:02 [logger.py:39] Received request cmpl-10: prompt: 'cut off {PROMPT}
INFO 11-20 20:05:03 [core.py:1] init engine (profile, create kv cache, warmup model) took 12.30 seconds
"""


def _jsonl() -> str:
    rows = [
        {"ts": "2026-11-20T20:05:01Z", "tenant": TENANT, "user": USER, "prompt": PROMPT, "prompt_tokens": 900, "output_tokens": 12, "latency_ms": 830},
        {"timestamp": 1795205101, "user_id": OTHER_USER, "messages": [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": [{"type": "text", "text": COMPLETION}]}], "usage": {"prompt_tokens": 44, "completion_tokens": 9}},
        {"time": "2026-11-20T20:05:02Z", "request": {"headers": {"authorization": f"Bearer {_S['bearer']}", "x-api-key": _S["key of one's own"], "X-Forwarded-For": IP}, "body": json.dumps({"prompt": PROMPT, "user": EMAIL})}, "input_tokens": 5, "output_tokens": 6},
        {"ts": 1795205103, "client_ip": PUBLIC_IP, "team": {"id": TENANT, "name": NAMESPACE}, "response": {"choices": [{"message": {"role": "assistant", "content": COMPLETION}}]}, "prompt": ["one", PROMPT], "input": PROMPT, "text": COMPLETION, "prompt_tokens": 3, "completion_tokens": 4},
        {"ts": 1795205104, "prompt_token_ids": [128000, 791], "inputs": PROMPT, "generated_text": COMPLETION, "generated_texts": [COMPLETION], "prompt_len": 3, "output_len": 4},
    ]  # fmt: skip
    return "".join(json.dumps(row) + "\n" for row in rows) + json.dumps(rows[0], ensure_ascii=False, indent=2) + "\n"


def _kv_log() -> str:
    return "".join(
        f'2026-11-20T20:05:0{second}Z request_id=r{second} tenant={TENANT} user={USER} ip={IP} prompt="{PROMPT}" '
        f"completion='{COMPLETION}' prompt_tokens=12 output_tokens=34 api_key={_S['key of one' + chr(39) + 's own']}\n"
        for second in range(4)
    )


def _csv() -> str:
    return (
        "timestamp,tenant,user,prompt,input_tokens,output_tokens,client_ip,api_key\n"
        f'2026-11-20T20:05:01Z,{TENANT},{USER},"{PROMPT}, and ""more""",12,34,{IP},{_S["password"]}\n'
        f'2026-11-20T20:05:02Z,"{TENANT}",{OTHER_USER},"two lines\n{PROMPT}",13,35,{PUBLIC_IP},{_S["password"]}\n'
        f"2026-11-20T20:05:03Z,{TENANT},{USER},{PROMPT},14,36,{IPV6},{_S['password']}\n"
    )


def _otlp() -> str:
    def attribute(key: str, value: str) -> object:
        return {"key": key, "value": {"stringValue": value}}

    attributes = [
        attribute("gen_ai.prompt", PROMPT),
        attribute("gen_ai.completion", COMPLETION),
        attribute("gen_ai.prompt.0.content", PROMPT),
        attribute("enduser.id", USER),
        attribute("tenant.id", TENANT),
        attribute("host.name", HOST),
        attribute("http.request.header.authorization", f"Bearer {_S['bearer']}"),
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "12"}},
    ]
    span = {"traceId": "0af7", "spanId": "b7", "name": "llm_request", "startTimeUnixNano": "1795205101000000000", "endTimeUnixNano": "1795205102000000000", "attributes": attributes}  # fmt: skip
    return json.dumps({"resourceSpans": [{"resource": {"attributes": attributes[3:6]}, "scopeSpans": [{"spans": [span]}]}]}, indent=1)  # fmt: skip


def _jaeger() -> str:
    tags = [
        {"key": "gen_ai.prompt", "type": "string", "value": PROMPT},
        {"key": "user", "type": "string", "value": USER},
        {"key": "hostname", "type": "string", "value": HOST},
    ]
    return json.dumps({"data": [{"traceID": "a", "spans": [{"spanID": "b", "tags": tags}], "processes": {"p1": {"tags": tags}}}]})  # fmt: skip


def _metrics() -> str:
    return f"""\
# HELP vllm:request_success_total Count of successfully processed requests.
# TYPE vllm:request_success_total counter
vllm:request_success_total{{engine="0",finished_reason="stop",model_name="nimbus",tenant="{TENANT}",user="{USER}"}} 12.0
vllm:num_requests_running{{model_name="nimbus",instance="{IP}:8000",hostname="{HOST}",namespace="{NAMESPACE}"}} 3.0
vllm:prompt_tokens_total{{model_name="nimbus",api_key="{_S["openai"]}",email="{EMAIL}"}} 1234.0
DCGM_FI_DEV_FB_USED{{gpu="0",UUID="GPU-1",Hostname="{HOST}",exported_namespace="{NAMESPACE}"}} 23000
"""


def _shell() -> str:
    return f"""\
{USER}@{HOST}:~$ export HF_TOKEN={_S["hugging face"]} NGC_API_KEY="{_S["nvidia"]}" OPENAI_API_KEY='{_S["openai"]}'
{USER}@{HOST}:~$ export AWS_ACCESS_KEY_ID={_S["aws id"]} AWS_SECRET_ACCESS_KEY={_S["aws key"]}
{USER}@{HOST}:~$ vllm serve x --api-key={_S["key of one's own"]} --hf-token={_S["password"]}; ssh {OTHER_USER}@{IP}; curl -u {USER}:{_S["password"]} http://x
{USER}@{HOST}:~$ vllm serve /home/{USER}/models/Nimbus-8B --api-key {_S["key of one's own"]} --hf-token {_S["hugging face"]} --max-num-seqs 64
docker run --gpus all -e HUGGING_FACE_HUB_TOKEN={_S["hugging face"]} -e ANTHROPIC_API_KEY={_S["anthropic"]} -v /Users/{OTHER_USER}/models:/models vllm/vllm-openai:v0.11.0 --model /models/x
curl -H "Authorization: Bearer {_S["jwt"]}" -H 'x-api-key: {_S["key of one's own"]}' http://{FQDN}:8000/v1/chat/completions -d '{{"messages": [{{"role": "user", "content": "{PROMPT}"}}]}}'
git clone https://{_S["github"]}@github.com/x/y; wget "https://store.blob.core.windows.net/a?sv=2&sig={_S["signature"]}"
USER         PID %CPU %MEM COMMAND
{OTHER_USER}   4711  0.0  1.0 python -m vllm
-rw-r--r-- 1 {USER} staff 120 Nov 20 20:04 x.log
Linux {HOST} 5.15.0-119-generic #129-Ubuntu SMP x86_64 GNU/Linux
link/ether {MAC} brd ff:ff:ff:ff:ff:ff
inet6 {IPV6}/64 scope global
C:\\Users\\{OTHER_USER}\\models
"""


def _kernel() -> str:
    return f"""\
Nov 20 20:04:51 {HOST} kernel: [12345.678901] Out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:2kB, file-rss:3kB, shmem-rss:4kB
Nov 20 20:04:52 {HOST} sudo:   {USER} : TTY=pts/0 ; PWD=/home/{USER} ; USER=root ; COMMAND=/usr/bin/dmesg
Nov 20 20:04:53 {HOST} sshd[77]: Accepted publickey for {OTHER_USER} from {PUBLIC_IP} port 50022 ssh2
2026-11-20T20:04:54.000000+00:00 {HOST} systemd[1]: vllm.service: A process of this unit has been killed by the OOM killer.
"""


def _kubernetes() -> str:
    return f"""\
Name:             vllm-0
Namespace:        {NAMESPACE}
Node:             {HOST}/{IP}
Labels:           app=vllm
                  tenant={TENANT}
Containers:
  vllm:
    Image:         vllm/vllm-openai:v0.11.0
    Args:
      --model
      /models/Nimbus-8B
      --api-key
      {_S["key of one's own"]}
    State:          Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Environment:
      HF_TOKEN:  {_S["hugging face"]}
Events:
  Normal  Scheduled  5m  default-scheduler  Successfully assigned {NAMESPACE}/vllm-0 to {HOST}

NAMESPACE        NAME     READY   STATUS    RESTARTS   AGE   IP             NODE
{NAMESPACE}   vllm-0   1/1     Running   0          5m    {IP}   {HOST}
"""


def _manifest() -> str:
    return f"""\
apiVersion: v1
kind: Pod
metadata:
  name: vllm-0
  namespace: {NAMESPACE}
  labels:
    kubernetes.io/hostname: {HOST}
    tenant: {TENANT}
spec:
  nodeName: {HOST}
  containers:
  - name: vllm
    args: ["--model", "/models/x", "--api-key", "{_S["key of one's own"]}"]
    env:
    - name: HF_TOKEN
      value: {_S["hugging face"]}
    - name: DB_PASSWORD
      value: "{_S["password"]}"
    - name: SYSTEM_PROMPT
      value: |
        {PROMPT}
        {COMPLETION}
  prompt: |
    {PROMPT}
  hostIP: {IP}
"""


def _pod_json() -> str:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "vllm-0", "namespace": NAMESPACE, "labels": {"tenant": TENANT}},
        "spec": {"nodeName": HOST, "containers": [{"name": "vllm", "args": ["--api-key", _S["key of one's own"]], "env": [{"name": "HF_TOKEN", "value": _S["hugging face"]}, {"name": "DB_PASSWORD", "value": _S["password"]}]}]},
        "status": {"hostIP": IP, "podIP": PUBLIC_IP},
    }  # fmt: skip
    return json.dumps({"kind": "PodList", "items": [pod]}, indent=4)


def _notes() -> str:
    return f"""\
{EMAIL} says the server on {FQDN} died at 20:04. Ask {USER}, the tenant is {TENANT}, the box is {HOST}.
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAE{_S["aws key"]}
-----END OPENSSH PRIVATE KEY-----
"""


def _files_of_access() -> dict[str, str]:
    """Files that hold access, and that people put into bundles by mistake."""
    auth = base64.b64encode(f"{USER}:{_S['password']}".encode()).decode()
    return {
        "kubeconfig": f"""\
apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority-data: {_S["encoded"]}
    server: https://api.{FQDN}:6443
  name: prod
contexts:
- context:
    cluster: {TENANT}
    namespace: {NAMESPACE}
    user: {USER}
users:
- name: {USER}
  user:
    client-key-data: {_S["encoded"]}
- name: {OTHER_USER}
  user:
    username: {OTHER_USER}
    password: {_S["password"]}
    token: {_S["plain"]}
""",
        "npmrc": f"//npm.{FQDN}/:_authToken={_S['plain']}\n//npm.{FQDN}/:_password={_S['encoded']}\nusername={USER}\nemail={EMAIL}\n",
        "netrc": f"machine git.{FQDN}\nlogin {USER}\npassword {_S['password']}\nmachine x.com login {OTHER_USER} password {_S['plain']}\n",
        "pgpass": f"db.{FQDN}:5432:llm:app:{_S['password']}\n",
        "dotenv": f"""\
DATABASE_URL=postgresql://{USER}:{_S["password"]}@db.{FQDN}:5432/llm
DB_USER={USER}
DB_PASS={_S["password"]}
LITELLM_MASTER_KEY={_S["key of one's own"]}
GRAFANA_TOKEN={_S["plain"]}
ADMIN_TOKEN={_S["plain"]}
access_token={_S["plain"]}
PASSWORD_SALT={_S["plain"]}
COMPUTERNAME={HOST}
USERDOMAIN={TENANT}
""",
        "config.json": json.dumps({"auths": {f"reg.{FQDN}": {"auth": auth, "identitytoken": _S["plain"]}, "x": {"username": USER, "password": _S["password"]}}}, indent=2),
        "credentials": f"[default]\naws_access_key_id = {_S['aws id']}\naws_secret_access_key={_S['aws key']}\n[profile {USER}]\nrole_arn = arn:aws:iam::112233445566:user/{OTHER_USER}\n",
        "authorized_keys": f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{_S['plain']} {USER}@{HOST}\n{HOST},{IP} ssh-rsa AAAAB3NzaC1yc2E{_S['plain']}\n",
        "shadow": f"{USER}:$6$saltsalt${_S['hash']}:19000:0:99999:7:::\nadmin:$apr1$saltsalt${_S['hash']}\n",
        "passwd": f"{USER}:x:1001:1001:{OTHER_USER},,,:/srv:/bin/bash\n",
        "hosts": f"127.0.0.1 localhost\n{IP} {HOST}\n{PUBLIC_IP}\t{FQDN}\t{HOST}\n",
        "prometheus.yml": f"""\
scrape_configs:
- job_name: vllm
  basic_auth:
    username: {USER}
    password: {_S["password"]}
  authorization:
    credentials: {_S["plain"]}
  static_configs:
  - targets: ['{HOST}:8000', '{FQDN}:8000']
  api_keys:
  - {_S["plain"]}
remote_write:
- url: https://{OTHER_USER}:{_S["password"]}@mimir/x
  headers:
    X-Scope-OrgID: {TENANT}
""",
        "secret.yaml": f"""\
apiVersion: v1
data:
  one: {_S["encoded"]}
  tls.key: {_S["encoded"]}
kind: Secret
metadata:
  name: hf
  namespace: {NAMESPACE}
---
kind: Secret
apiVersion: v1
stringData:
  anything: {_S["password"]}
  lines: |
    {_S["plain"]}
---
kind: Pod
spec:
  containers:
  - env:
    - name: MY_TOKEN
      value: >-
        {_S["plain"]}
    - value: {_S["password"]}
      name: DB_PASSWORD
""",
        "secret.json": json.dumps({"apiVersion": "v1", "data": {"one": _S["encoded"]}, "kind": "Secret", "metadata": {"annotations": {"last-applied-configuration": json.dumps({"kind": "Secret", "stringData": {"two": _S["password"]}})}}}, indent=2),
        "settings.xml": f"<server><username>{USER}</username><password>{_S['password']}</password><apiKey>{_S['plain']}</apiKey></server>\n",
    }  # fmt: skip


def _more_logs() -> dict[str, str]:
    inner = json.dumps({"messages": [{"role": "user", "content": f'{PROMPT} "quoted" {COMPLETION}'}], "user": USER})
    for _ in range(4):
        inner = json.dumps({"message": inner})
    line = f"INFO 11-20 20:05:01 [logger.py:39] Received request r: prompt: '{PROMPT}', params: SamplingParams(n=1)"
    journal = {"_HOSTNAME": HOST, "MESSAGE": list(f"\x1b[36m{line}\x1b[0m user={USER}".encode()), "__REALTIME_TIMESTAMP": "1795205101000000"}  # fmt: skip
    return {
        "colour.log": f"""\
\x1b[32mINFO\x1b[0m 11-20 20:05:01 [logger.py:39] Received request x: \x1b[1mprompt\x1b[0m: '\x1b[31m{PROMPT}\x1b[0m', params: x
\x1b[2mt\x1b[0m \x1b[36mprompt\x1b[0m=\x1b[35m'{PROMPT}'\x1b[0m \x1b[36mtenant\x1b[0m=\x1b[35m{TENANT}\x1b[0m \x1b[36mapi_key\x1b[0m=\x1b[33m{_S["password"]}\x1b[0m
/home/\x1b[1m{USER}\x1b[0m/x password: \x1b[31m{_S["password"]}\x1b[0m
{json.dumps({"log": chr(27) + "[36mprompt" + chr(27) + "[0m=" + chr(27) + "[35m'" + PROMPT + "'" + chr(27) + "[0m"})}
""",
        "turns.log": f"""\
<|im_start|>system
{COMPLETION}<|im_end|>
<|im_start|>user
{PROMPT}<|im_end|>
<|begin_of_text|><|start_header_id|>user<|end_header_id|>

{PROMPT}<|eot_id|>
[INST] {PROMPT} [/INST] {COMPLETION}</s>
""",
        "headers.log": f"""\
headers=[(b'host', b'{HOST}:8000'), (b'cookie', b'sid={_S["plain"]}'), (b'x-api-key', b'{_S["password"]}')]
Headers([('authorization', 'Basic {_S["encoded"]}'), ('x-forwarded-for', '{PUBLIC_IP}'), ('x-user-email', '{EMAIL}')])
> Host: {FQDN}
> X-Auth-Request-User: {USER}
GET /v1/models?access_token={_S["plain"]}&key={_S["plain"]} HTTP/1.1
{PUBLIC_IP} - {USER} [20/Nov/2026:20:05:01 +0000] "POST /v1/completions HTTP/1.1" 200 512
connect to https://svc:pa@{_S["plain"]}@db/x
""",
        "requests.yaml": f"""\
prompts:
- {PROMPT}
- '{COMPLETION}'
requests:
- prompt: the heron counts
    nineteen lanterns
- prompt: &p |2
    {PROMPT}
""",
        "batch.jsonl": "".join(json.dumps(row) + "\n" for row in [
            {"body": {"messages": [{"role": "user", "content": PROMPT}], "tools": [{"function": {"description": COMPLETION}}]}},
            {"system": f"You are a clerk, {PROMPT}", "messages": []},
            {"conversations": [{"from": "human", "value": PROMPT}]},
            {"query": PROMPT, "context": COMPLETION, "passages": [COMPLETION], "text_1": PROMPT, "text_2": [COMPLETION], "queries": [PROMPT]},
            {"image": PICTURE, "images": [PICTURE], "input_audio": {"data": PICTURE}},
            {"userInput": PROMPT, "guided_choice": [COMPLETION]},
        ]) + inner + "\n",
        "journal.json": json.dumps(journal) + "\n",
        "shares.txt": f"""\
{HOST}:/vol on /mnt type nfs
//{HOST}/share on /m2 type cifs (rw,username={USER},password={_S["password"]},domain={TENANT})
{USER}   pts/0        2026-11-20 20:04 ({PUBLIC_IP})
uid=1001({USER}) gid=1001({USER}) groups=1001({USER}),990({TENANT})
[{USER}@{HOST} vllm]$ ls
[sudo] password for {OTHER_USER}:
wandb: Currently logged in as: {USER}. Use `wandb login --relogin`
Author: {OTHER_USER} <{EMAIL}>
{HOST}:412:980 [1] NCCL INFO NET/IB : Using [0]mlx5_0
failed to connect to [{FQDN}]:29500 and [{HOST}]:29500
  host      : {HOST}
ether {MAC.upper().replace(":", "-")}
bind dn uid={USER},ou=people,dc={TENANT} bindpw {_S["password"]}
sshpass -p {_S["password"]} ssh x; mysql -u{USER} -p{_S["password"]} x; docker login -u {USER} -p {_S["plain"]} r; redis-cli -a {_S["plain"]}
docker run --hostname {HOST} img; curl --oauth2-bearer {_S["plain"]} -b 'sid={_S["plain"]}' http://x
git clone https://{_S["plain"]}@git.x/y; origin git@git.{FQDN}:x/y.git
""",
        "squeue.txt": f"""\
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
                77       gpu     vllm {USER}  R       0:10      1 {HOST}
    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
    412 {OTHER_USER}  20   0   1g   2g   3g S   0.0   0.1   0:00.01 python
NAME        CPU(cores)   CPU%   MEMORY(bytes)   MEMORY%
{HOST}   250m   1%   21321Mi   4%
| user | prompt | tokens |
|---|---|---|
| {USER} | {PROMPT} | 5 |
""",
    }  # fmt: skip


TEXTS: Mapping[str, str] = {
    "vllm.log": _engine_log(),
    "raw.log": _raw_prompt(),
    "requests.jsonl": _jsonl(),
    "requests.log": _kv_log(),
    "requests.csv": _csv(),
    "trace.json": _otlp(),
    "jaeger.json": _jaeger(),
    "metrics.prom": _metrics(),
    "commands.txt": _shell(),
    "messages": _kernel(),
    "describe.txt": _kubernetes(),
    "pod.yaml": _manifest(),
    "pods.json": _pod_json(),
    "notes.txt": _notes(),
    **_files_of_access(),
    **_more_logs(),
    f"home/{USER}/{HOST}.txt": "INFO 11-20 20:04:40 [api_server.py:1289] vLLM API server version 0.11.0\n",
}
"""Sources by path, each full of canaries."""


def left(data: bytes) -> list[str]:
    """The canaries that stand in bytes, in any case, with or without escapes."""
    low = data.lower()
    found = []
    for kind, words in CANARIES.items():
        for word in words:
            forms = {word.lower(), json.dumps(word)[1:-1].lower(), word.replace(" ", "%20").lower()}
            if any(form.encode() in low or form.encode("utf-16-le") in low for form in forms):
                found.append(f"{kind}: {word}")
    return found
