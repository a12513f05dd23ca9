"""Logs of several engines in one file are read as what each of them wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oomdoc
from oomdoc.assemble.show import lines as show
from oomdoc.evidence.tables import path_of, source_of
from oomdoc.ingest.writers import Writers
from oomdoc.intake.scan import Chunk
from verdicts import SIGNS

SAMPLES = Path(__file__).parents[2] / "sample_logs"
STAMP = "2026-11-18T12:00:01Z"
FORMS: dict[str, Callable[[str, str], str]] = {
    "kubectl": lambda who, line: f"[pod/{who}/server] {line}",
    "kubectl-timestamps": lambda who, line: f"[pod/{who}/server] {STAMP} {line}",
    "compose": lambda who, line: f"{who}  | {line}",
    "compose-coloured": lambda who, line: f"\x1b[36m{who}  | \x1b[0m{line}",
    "syslog": lambda who, line: f"Nov 18 12:00:01 {who} vllm[77]: {line}",
    "journald": lambda who, line: f"{STAMP} {who} vllm[77]: {line}",
    "json-of-pods": lambda who, line: json.dumps({"time": STAMP, "message": line, "pod": who, "instance": "i-9"}),
    "json-of-replicas": lambda who, line: json.dumps({"ts": STAMP, "app": "chat", "replica": who, "msg": line}),
    "json-of-boxes": lambda who, line: json.dumps({"ts": STAMP, "container_name": who, "log": line}),
}
RECORD = "INFO 11-18 12:00:01 [core.py:12] hello"


def chunk(lines: list[str], first: int = 1) -> Chunk:
    return Chunk("".join(line + "\n" for line in lines).encode(), first, True)


def woven(one: list[str], other: list[str], form: Callable[[str, str], str]) -> list[str]:
    """Both logs line by line in turn, as they come when both are followed at once."""
    longest = max(len(one), len(other))
    pairs = [(log[place], who) for place in range(longest) for log, who in ((one, "llm-0"), (other, "llm-1")) if place < len(log)]  # fmt: skip
    return [form(who, line) for line, who in pairs]


@pytest.mark.parametrize("form", FORMS)
def test_each_engine_has_its_lines_at_their_numbers(form: str) -> None:
    lines = [FORMS[form](who, RECORD) for who in ("llm-0", "llm-1", "llm-1", "llm-0")]
    parts = {name: piece.data.decode().split("\n") for name, piece in Writers().split(chunk(lines))}
    assert parts == {"": [lines[0], "", "", lines[3], ""], "llm-1": ["", lines[1], lines[2], "", ""]}


@pytest.mark.parametrize("form", FORMS)
def test_one_engine_and_those_beside_it_stay_one(form: str) -> None:
    lines = [FORMS[form](who, text) for who, text in (("llm-0", RECORD), ("nginx", "GET /metrics 200"), ("llm-0", RECORD))]  # fmt: skip
    assert Writers().split(chunk(lines)) == [("", chunk(lines))]


def test_ranks_of_one_engine_and_tables_are_no_writers() -> None:
    for lines in (
        [
            json.dumps({"ts": STAMP, "host": f"node-{rank}", "instance_id": f"i-{rank}", "msg": RECORD})
            for rank in (0, 1)
        ],
        [f"{rank}: {RECORD}" for rank in (0, 1, 2)],
        [f"(EngineCore_{rank} pid=7) {RECORD}" for rank in (0, 1)],
        ["name | size", "a | 1", "b | 2", f"c {RECORD}"],
    ):
        assert Writers().split(chunk(lines)) == [("", chunk(lines))]


def test_a_writer_that_comes_later_is_told_from_its_first_record_on() -> None:
    writers, form = Writers(), FORMS["kubectl"]
    first = chunk([form("llm-0", RECORD), form("llm-1", "a line before its first record")])
    assert writers.split(first) == [("", first)]
    second = [form("llm-1", RECORD), form("llm-1", "Traceback (most recent call last):"), form("llm-0", RECORD)]
    assert [name for name, _ in writers.split(chunk(second, 3))] == ["", "llm-1"]
    third = chunk([form("llm-1", "RuntimeError: x")], 6)
    assert [(name, piece.data) for name, piece in writers.split(third)] == [("", b"\n"), ("llm-1", third.data)]


@given(st.lists(st.tuples(st.sampled_from(["llm-0", "llm-1", "side"]), st.sampled_from([RECORD, "text", ""])), max_size=30), st.booleans())  # fmt: skip
def test_nothing_is_lost_and_nothing_moves(entries: list[tuple[str, str]], ends: bool) -> None:
    data = "\n".join(FORMS["kubectl"](who, text) for who, text in entries).encode() + (b"\n" if ends else b"")
    parts = [piece.data.split(b"\n") for _, piece in Writers().split(Chunk(data, 1, True))]
    whole = data.split(b"\n")
    assert {len(part) for part in parts} <= {len(whole)}
    for place, line in enumerate(whole):
        assert [part[place] for part in parts if part[place]] == ([line] if line else [])


def test_two_replicas_in_one_file_are_two_engines_with_an_incident_each(tmp_path: Path) -> None:
    logs = [(SAMPLES / name / "vllm.log").read_text(errors="replace").split("\n") for name in ("kv-demand-long-chats", "prompt-logprobs-spike")]  # fmt: skip
    alone: list[tuple[str, float]] = []
    for place, log in enumerate(logs):
        (tmp_path / f"{place}.log").write_text("\n".join(log))
        with oomdoc.analyze(tmp_path / f"{place}.log", SIGNS) as analysis:
            alone += [(each.diagnoses[0].cause, each.diagnoses[0].probability) for each in analysis.report.incidents]
    (tmp_path / "all.log").write_text("\n".join(woven(*logs, FORMS["kubectl"])))
    with oomdoc.analyze(tmp_path / "all.log", SIGNS) as analysis:
        report = analysis.report
    assert len({engine.id for engine in report.engines}) == 2
    told = [(each.diagnoses[0].cause, each.diagnoses[0].probability) for each in report.incidents]
    assert sorted(told) == sorted(alone)
    for each in report.incidents:
        assert each.impact is None or each.impact.back_ref is None, "the other engine was never gone"
        for piece in each.diagnoses[0].evidence:
            for ref in piece.refs:
                assert show([tmp_path / "all.log"], ref).lines
    assert [row.path for row in report.coverage.sources] == ["all.log"]


def test_pods_of_an_answer_of_loki_are_kept_apart(tmp_path: Path) -> None:
    streams = []
    for who, name in (("llm-0", "kv-demand-long-chats"), ("llm-1", "prompt-logprobs-spike")):
        log = (SAMPLES / name / "vllm.log").read_text(errors="replace").split("\n")
        values = [[f"{1795205091 + place}000000000", line] for place, line in enumerate(log) if line]
        streams.append({"stream": {"pod": who, "container": "server"}, "values": values})
    (tmp_path / "loki.json").write_text(json.dumps({"data": {"resultType": "streams", "result": streams}}))
    with oomdoc.analyze(tmp_path / "loki.json", SIGNS) as analysis:
        assert len(analysis.report.engines) == 2
        causes = {each.diagnoses[0].cause for each in analysis.report.incidents}
    assert causes == {"kv-demand-exceeds-pool", "prefill-activation-spike"}


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=20), st.sampled_from(["", "llm-1", "a.b_c-2"]))
def test_a_part_leads_back_to_its_source(path: str, writer: str) -> None:
    if writer:
        assert path_of(source_of(path or "x", writer)) == (path or "x")


SESSION = ["$ kubectl get pods", "NAME READY", "$ kubectl -n a logs rank-0 --previous | tail -2", "ValueError: x", "$ nvidia-smi", "0, 1 MiB"]  # fmt: skip


def test_what_a_command_for_a_log_answered_is_of_whom_it_asked_for() -> None:
    parts = {name: piece.data.decode().split("\n") for name, piece in Writers().split(chunk(SESSION))}
    assert parts == {"": [*SESSION[:3], "", *SESSION[4:], ""], "rank-0": ["", "", "", "ValueError: x", "", "", ""]}
    again = Writers()
    again.split(chunk(SESSION[:4]))
    assert [name for name, _ in again.split(chunk(["  went on", "$ date", "noon"], 5))] == ["", "rank-0"]


@pytest.mark.parametrize(
    "lines",
    [
        ["$ docker run -d --name one image", *SESSION[2:]],
        ["$ kubectl logs -l app=chat --tail 3", "ValueError: x"],
        ["the logs say more: see there", "ValueError: x"],
    ],
    ids=["the session starts it", "of all that have a label", "no command"],
)
def test_a_session_that_names_no_other_log_stays_one(lines: list[str]) -> None:
    assert Writers().split(chunk(lines)) == [("", chunk(lines))]
