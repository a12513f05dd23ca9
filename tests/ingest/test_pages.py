"""Pages and catalogues that document a program hold no evidence, alone or as a folder; what a person writes of one failure does."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest

import oomdoc
from oomdoc import ingest
from oomdoc.ingest import make_head, program_text
from oomdoc.ingest.text_form import DOCUMENT, form_of, is_configuration
from oomdoc.intake.scan import chunks

ROOT = Path(__file__).parents[2]
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 15.70 GiB of which 40.00 MiB is free."
FILLER = "Long prompts fail while short prompts are answered, and prompt logprobs are asked for."

PAGES: dict[str, str] = {
    "links to its siblings": f"# Spikes\n\n{FILLER}\n\n- weighed with [the tables](../tables.md#oom)\n- see [graphs](graphs.md)\n",
    "one link under several headings": f"# Spikes\n\n{FILLER}\n\n## Signs\n\nwords\n\n## Advice\n\nas in [the guide](guide.md)\n",
    "a table of options": "# Reference\n\n## First\n\n| option | meaning |\n| --- | --- |\n"
    + "".join(f"| `--flag-{n}` | `gpu_memory_utilization` {n} on 2 x A100 |\n" for n in range(12))
    + "\n## Second\n\nLong prompts fail.\n\n## Third\n\n`torch.OutOfMemoryError` is read.\n",
    "a decision": f"# 7. Reading twice\n\n## Context\n\n{FILLER}\n\n## Decision\n\nWe read once.\n\n## Consequences\n\nEager mode cures it.\n",
    "front matter": f"---\ntitle: Spikes\nsidebar_position: 3\n---\n\n# Spikes\n\n{FILLER}\n",
    "releases": f"tool (1.2-1) unstable; urgency=medium\n\n  * {FILLER}\n\n -- A N Other <a@example.org>  Sun, 16 Feb 2025 13:23:41 +0800\n\ntool (1.1-1) unstable; urgency=low\n\n  * exit code 137 is passed on\n",
    "notes of a release": f"Tool 2.31 Release Notes\n=======================\n\n{FILLER.lower()}\n\nworkers are killed with exit code 137 no more\n",
    "a manual": '.\\" made by hand\n.\\"\n' + '.\\" licence\n' * 200 + f'.TH TOOL 1\n.SH DESCRIPTION\n{FILLER}\n.SH "EXIT STATUS"\nexit code 137\n',
    "a catalogue": "".join(f'[[message]]\nshape = "{OOM}"\nlevel = "error"\n\n[[message]]\nshape = "EngineCore died with exit code -9"\n\n' for _ in range(2)),
    "templates": "EventId,EventTemplate\n" + "".join(f"E{n},worker <*> died with exit code 137 after <*> seconds\n" for n in range(9)),
    "pieces of pages in JSON": '{"options": [' + ", ".join(f'{{"desc": "<p>When it fails with <code>exit code 137</code>, {FILLER}</p>"}}' for _ in range(6)) + "]}",
}  # fmt: skip


def rows(text: str) -> Counter[str]:
    """Rows by table, as a bundle's member gives them."""
    data = text.encode()
    ingestor, _ = ingest.recognise(make_head("any", data))
    told: Counter[str] = Counter()
    for batch in ingest.read(ingestor, "any", chunks(io.BytesIO(data))):
        told[batch.table] += batch.rows
    return told


@pytest.mark.parametrize("name", PAGES)
def test_a_page_holds_no_evidence(name: str) -> None:
    assert form_of(make_head("any", PAGES[name].encode())) == DOCUMENT
    assert set(rows(PAGES[name])) <= {"lookalike"}


OWN: dict[str, str] = {
    "a note that names the log beside it": "# Node 7\n\n2 x A100. Long prompts fail, see [the log](server.log) and [the other note](later.md).\n"[:-29] + ".\n",
    "a question with flags in back-ticks": "# Dies\n\n## Setup\n\n" + "".join(f"`--flag-{n} {n}`\n" for n in range(12)) + f"\n## Result\n\n```\n{OOM}\n```\n\nI see it on 2 x A100.\n",
    "a timeline": "# Friday\n\n## Before\n\n" + " ".join(f"`pod-{n}`" for n in range(12)) + f"\n\n## 10:02\n\n{OOM}\n\n## 10:07\n\nrestarted\n",
    "settings in TOML": 'model = "org/m-7b"\ngpu_memory_utilization = 0.95\n\n[server]\nport = 8000\n\n[limits]\nmax_model_len = 32768\n\n[extra]\nmax_num_seqs = 64\n',
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_what_a_person_sends_is_read_as_before(name: str) -> None:
    assert form_of(make_head("any", OWN[name].encode())) is None
    assert set(rows(OWN[name])) & {"note", "gpu_device", "oom", "engine_flag"}


def test_tests_of_a_program_start_no_engine() -> None:
    text = "import pytest\n\nfrom vllm import LLM\n\n\ndef test_it():\n    llm = LLM(model='a/b', max_num_seqs=64)\n    assert llm\n"
    assert set(rows(text)) <= {"lookalike"}
    assert rows(text.replace("import pytest", "import os").replace("test_it", "main"))["engine_flag"] == 2


def test_sql_and_statements_in_braces_are_no_notes() -> None:
    sql = b"-- long prompts fail: exit code 137\nCREATE TABLE a AS\nSELECT source, line\nFROM oom\nWHERE t > 0\n"
    assert program_text.language(make_head("any", sql)) == "SQL"
    assert program_text.language(make_head("any", b"SELECT a server\nIt was killed with exit code 137\n")) is None
    braces = "# a map of letters\ncharset_map a b {\n" + "".join(f"    A{n} D0B{n} ;\n" for n in range(9)) + "}\n"
    assert is_configuration(make_head("any", braces.encode())) and not rows(braces)


@pytest.mark.parametrize("command", ["RUN curl -O https://example.org/KEYS", "wget -q https://example.org/x"])
def test_a_letter_is_an_option_of_the_engine_only_behind_it(command: str) -> None:
    assert not rows(command + "\n")["engine_flag"]
    assert rows("vllm serve org/m -O 3\n")["engine_flag"] == 2


def test_a_folder_of_documentation_shows_no_server(tmp_path: Path) -> None:
    for number, text in enumerate(PAGES.values()):
        (tmp_path / f"{number}.md").write_text(text)
    (tmp_path / "job.yaml").write_text(
        "resources:\n  limits:\n    memory: 4Gi\n    nvidia.com/gpu: 1\nargs: [--max-num-seqs, '8']\n"
    )
    report = oomdoc.analyze(tmp_path).to_dict()
    assert report["verdict"] == "no-server" and not report["diagnoses"]
    (tmp_path / "vllm.log").write_text(
        f"INFO 05-22 10:00:01 [api_server.py:1] vLLM API server version 0.10.1\nERROR 05-22 10:00:09 [core.py:7] {OOM}\n"
    )
    assert oomdoc.analyze(tmp_path).to_dict()["verdict"] != "no-server"


def test_this_projects_documentation_shows_no_server() -> None:
    assert oomdoc.analyze(ROOT / "docs").to_dict()["verdict"] == "no-server"
