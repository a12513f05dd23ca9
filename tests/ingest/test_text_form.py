"""Documents, chats and source code quote; a person's own report, however it is written, is evidence."""

from __future__ import annotations

import io
from collections import Counter

import pytest

from oomdoc import ingest
from oomdoc.ingest import make_head
from oomdoc.ingest.text_form import CHAT, DOCUMENT, SOURCE_CODE, form_of, is_configuration
from oomdoc.intake.scan import chunks

REFUSAL = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 15.70 GiB of which 40.00 MiB is free."


def form(text: str) -> str | None:
    return form_of(make_head("any", text.encode()))


def rows(text: str, path: str = "any") -> Counter[str]:
    """Rows by table, as a bundle's member gives them."""
    data = text.encode()
    ingestor, _ = ingest.recognise(make_head(path, data))
    told: Counter[str] = Counter()
    for batch in ingest.read(ingestor, path, chunks(io.BytesIO(data))):
        told[batch.table] += batch.rows
    return told


def log(records: int, moments: int | None = None) -> str:
    """So many records of an engine, the last a refusal; of so many different seconds."""
    lines = [
        f"INFO 05-22 10:00:{n % (moments or 60):02d} [loader.py:{n}] Loading shard {n}" for n in range(records - 1)
    ]
    return "\n".join([*lines, f"ERROR 05-22 10:00:{(records - 1) % (moments or 60):02d} [core.py:708] {REFUSAL}"])


RUNBOOK = f"""\
# Runbook: model servers

If you see a line like this:

```
{REFUSAL}
```

1. Raise `--gpu-memory-utilization` in steps.
2. Restart the pod.
"""

FORMS: list[tuple[str, str]] = [
    (DOCUMENT, RUNBOOK),
    (DOCUMENT, f"Errors\n======\n\nThe engine may print::\n\n    {REFUSAL}\n\nand end.\n"),
    (DOCUMENT, f"<!DOCTYPE html>\n<html><body><p>Somebody asks</p><pre>{OOM}</pre></body></html>\n"),
    (DOCUMENT, f"If you see `{OOM}` you can lower the length. When the usage is high, for example at 99 %, wait.\nCheck the queue of the server first.\nLower the number of sequences after that.\n"),
    (DOCUMENT, f"Fixing it\n\nYou start the server and it dies. When the engine initializes it reserves your memory. If your weights exceed it, you get\n\n{REFUSAL}\n\nStart by looking at your card. You can run a tool. Lower your context if you like.\n"),
    (DOCUMENT, f"# Server dies #123\n\n**ann** commented on Mar 3\n\nIt says `{OOM}`\n\n**bob** commented on Mar 4\n\nSame here.\n"),
    (DOCUMENT, f"From: a@example.org\nTo: b@example.org\nSubject: Re: help\n\nOn Mon, 3 Mar 2026, Ann wrote:\n> my friend has\n> {OOM}\n\nNo idea.\n"),
    (CHAT, f"[2026-03-02 10:11] ann: seen this? {OOM}\n[2026-03-02 10:12] bo: yes\n[2026-03-02 10:15] ann: how did it end\n"),
    (CHAT, f"02/03/2026, 10:11 - Ann B: {OOM}\n02/03/2026, 10:12 - Bo: oh\n02/03/2026, 10:13 - Ann B: hm\n"),
    (CHAT, f"[10:11] <ann> {REFUSAL}\n[10:12] <bo> :(\n[10:12] <ann> and now?\n"),
    (CHAT, f'[{{"user": "U1", "text": "{OOM}", "ts": "1.2"}}, {{"user": "U2", "text": "hm", "ts": "2.2"}}]'),
    (SOURCE_CODE, f'import os\n\nclass Worker:\n    def check(self):\n        if self.free <= 0:\n            raise ValueError("{REFUSAL}")\n        return True\n'),
    (SOURCE_CODE, f'--- a/core.py\n+++ b/core.py\n@@ -1,3 +1,3 @@\n context\n-    raise ValueError("{REFUSAL}")\n+    raise ValueError("no")\n'),
    (SOURCE_CODE, 'package oom\n\nimport "testing"\n\nfunc TestIt(t *testing.T) {\n\tline := "Out of memory: Killed process 7 (java)"\n\tif !Parse(line) {\n\t\tt.Fatal(line)\n\t}\n}\n'),
    (SOURCE_CODE, f"src/a.py:12:3: E501 {REFUSAL}\nsrc/b.py:1:1: F401 unused\n"),
]  # fmt: skip


@pytest.mark.parametrize(("want", "text"), FORMS)
def test_a_message_in_it_is_a_quotation(want: str, text: str) -> None:
    assert form(text) == want
    told = rows(text)
    assert set(told) == {"lookalike"} and told["lookalike"] >= 1, told


OWN: list[str] = [
    # a report in Markdown, as people write it: headings, a fence, one failure of their own
    f"# vLLM does not start\n\n## Setup\n\nTwo L4, vLLM 0.10.1, a model of 14B.\n\n## What happens\n\nI run the usual command and get\n\n```\n{OOM}\n```\n\n## Tried\n\n- utilization 0.8: the same\n",
    # the tracker's form
    f"### Your current environment\n\n<details>\nOS: Ubuntu\n</details>\n\n### Describe the bug\n\nOur server ends:\n\n```text\n{OOM}\n```\n\n### Before submitting a new issue...\n\n- [x] Make sure you already searched for relevant issues, see the [documentation page](https://docs.example.org).\n",
    # the same by somebody who is polite: phrases of a manual, in a tracker's form
    f"### Your current environment\n\nTwo L4\n\n### Describe the bug\n\nWhen I start it, it fails:\n\n```text\n{OOM}\n```\n\nIf you need any other information, say so. For example, when the server is free again.\n\n### Before submitting a new issue...\n\n- [X] Make sure you already searched, see the [documentation page](https://docs.example.org).\n",
    f"# Incident of Friday: chat down\n\nYou can find the dashboards in the usual place.\n\n## Timeline\n\n- 10:00 alerts\n\n## Findings\n\nThe engine refused to start:\n\n    {REFUSAL}\n\n## Next steps\n\n- Raise utilization\n- Check the neighbour\n",
    f"From: jane@example.org\nTo: support@example.org\nSubject: crashes every night\n\nour server crashes every night, could you please look at it? You have access. The log says:\n\n{OOM}\n\nIf you need more, tell me.\n",
    f"[2026-05-22 10:11] ann: started it\n[2026-05-22 10:12] ann: {OOM}\n[2026-05-22 10:13] ann: again\n",  # a diary
    # with phrases of a manual, and of one's own
    f"We run two servers, for example on node 3. If you see it, when the usage is high, our server prints\n\n{OOM}\n\nCheck the graph of it please.\nLook at it in the night.\n",
    f"# How to reproduce\n\n## Memory usage\n\n19 of 24 GiB before the request.\n\n## Result\n\n```\n{OOM}\n```\n",
    f"[2026-05-22 10:11] server: started\n[2026-05-22 10:12] server: {OOM}\n[2026-05-22 10:13] pod: restarted\n",
    f'{{"timestamp": "1", "user": "a", "severity": "INFO", "body": "starting"}}\n{{"timestamp": "2", "user": "a", "severity": "ERROR", "body": "{OOM}"}}\n',
    f"import os\nfrom vllm import LLM\n\nllm = LLM(model='a/b')\n\n{OOM}\n",
    f"short prompts are answered; this is after a long one\n{OOM}\n",
    f"the second replica says: {REFUSAL}\n",
    f"Hi, if you need more logs, tell me. Our server prints\n{OOM}\nfor example at night. Thanks!\n",
    f"```\n{OOM}\n```\n",
    f"> {OOM}\n",
    f"started at 10:12\ndied at 10:14\n{OOM}\n",
    f"Traceback (most recent call last):\n  File \"/srv/serve.py\", line 12, in main\n    raise ValueError(\n{REFUSAL}\n",
    f"[2026-05-22 10:00:01,112] INFO engine: starting\n[2026-05-22 10:00:02,001] INFO worker: loading\n[2026-05-22 10:00:09,412] ERROR worker: {OOM}\n",
]  # fmt: skip


@pytest.mark.parametrize("text", OWN)
def test_a_report_of_ones_own_is_evidence(text: str) -> None:
    assert form(text) is None
    told = rows(text)
    assert told["oom"] + told["startup_check"] >= 1, told


@pytest.mark.parametrize(
    ("records", "moments", "evidence"),
    [
        (8, None, True),
        (7, None, False),
        (8, 3, True),
        (8, 2, False),
        (200, None, True),
    ],
)
@pytest.mark.parametrize("fence", [True, False])
def test_a_pasted_log_is_evidence_from_some_records_on(
    records: int, moments: int | None, evidence: bool, fence: bool
) -> None:
    pasted = log(records, moments)
    text = RUNBOOK + "\n" + (f"```\n{pasted}\n```\n" if fence else pasted + "\n")
    assert form(text) == DOCUMENT
    told = rows(text)
    assert (told["startup_check"] == 1) == evidence, told
    if evidence:
        assert told["lookalike"] == 1  # the quotation above it


@pytest.mark.parametrize(("between", "evidence"), [(59, True), (60, False)])
def test_a_traceback_between_two_records_parts_no_log(between: int, evidence: bool) -> None:
    """Four records before it and four behind: eight only if they are one piece."""
    lines = log(8).split("\n")
    frames = [f'  File "/srv/a.py", line {n}, in step' for n in range(between)]
    text = RUNBOOK + "\n" + "\n".join([*lines[:4], *frames, *lines[4:]]) + "\n"
    assert form(text) == DOCUMENT and (rows(text)["startup_check"] == 1) == evidence


def test_lines_of_a_pasted_log_keep_their_numbers() -> None:
    text = RUNBOOK + "\n```\n" + log(9) + "\n```\n"
    data = text.encode()
    ingestor, kind = ingest.recognise(make_head("report.md", data))
    found = [batch.columns["line"] for batch in ingest.read(ingestor, "report.md", chunks(io.BytesIO(data))) if batch.table == "startup_check"]  # fmt: skip
    assert kind == DOCUMENT and found == [[text[: text.rindex(REFUSAL)].count("\n") + 1]]


def test_a_program_that_makes_an_engine_gives_its_settings_and_quotes_messages() -> None:
    text = f'from vllm import LLM\n\n\ndef main():\n    llm = LLM(model="/models/a-7b", gpu_memory_utilization=0.5)\n    try:\n        llm.generate("hello")\n    except ValueError:\n        print("{REFUSAL}")\n'
    told = rows(text)
    assert told["engine_flag"] >= 2 and told["startup_check"] == 0 and told["lookalike"] == 1


def test_comments_of_a_script_are_no_headings() -> None:
    text = "# How to run\n# Usage: ./run.sh\n\n# install\nvllm serve /models/a --max-model-len 4096 --enforce-eager\n"
    assert form(text) is None and rows(text)["engine_flag"] >= 2


def test_configurations_of_other_programs_say_nothing() -> None:
    text = 'groups:\n  - name: llm\n    rules:\n      - alert: Oom\n        expr: up == 0\n        annotations:\n          summary: "CUDA out of memory, memory grows"\n'
    assert is_configuration(make_head("any", text.encode()))
    assert set(rows(text)) <= {"lookalike"}
    assert not is_configuration(make_head("any", b"gpu: RTX 3090, 24 GB\nvllm: 0.9.2\nfails: yes\n"))


@pytest.mark.parametrize(
    "text",
    [
        "CONTAINER ID   NAME          CPU %     MEM USAGE / LIMIT   MEM %\n1f2e   vllm-server   3.1%      60GiB / 64GiB       93.7%\n",
        "the vllm-server lives on node 3\nand KV cache is a word\n",
        "Name: vllm-0\nOwner: platform\n",
    ],
)
def test_a_products_name_makes_no_log(text: str) -> None:
    assert ingest.recognise(make_head("any", text.encode()))[1] != "vllm-log"


def test_unusual_bytes_have_no_form() -> None:
    for data in (b"", b"\n\n", b"\x00\x01", b"[", b"{", b"```", b"#", "```\n" * 500):
        assert form_of(make_head("any", data if isinstance(data, bytes) else data.encode())) is None
