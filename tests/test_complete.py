"""Bundles that were cut: said first and everywhere, never healthy; and whole ones that only look so."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import random
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import oomdoc
from oomdoc import cli
from oomdoc.evidence.store import Store
from oomdoc.loading.complete import is_cut, judged, missing, was_cut
from oomdoc.model import Missing, Unread
from oomdoc.report import REPORTS
from report_samples import healthy, kv_demand

SAMPLES = Path(__file__).parents[1] / "sample_logs"
HEALTHY = (SAMPLES / "healthy-full-device" / "vllm.log").read_bytes()
EDGE = SAMPLES / "edge-097-chat-server"


def packed(members: dict[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), mtime=0)


def told(path: Path) -> dict[str, Any]:
    with oomdoc.analyze(path) as analysis:
        report: dict[str, Any] = analysis.to_dict()
    return report


def middle_of_a_line(data: bytes) -> bytes:
    """Cut within the last whole line of statistics."""
    return data[: data.rfind(b"Avg prompt throughput") + 60]


CUTS: dict[str, tuple[str, bytes]] = {
    "an archive": ("x.tgz", packed({"vllm.log": (EDGE / "vllm.log").read_bytes()})[:18_500]),
    "a packed log": ("vllm.log.gz", gzip.compress(HEALTHY, mtime=0)[:-2_000]),
    "a packed log without its checksum": ("vllm.log.gz", gzip.compress(HEALTHY, mtime=0)[:-4]),
    "a member": ("x.tgz", packed({"vllm.log.gz": gzip.compress(HEALTHY, mtime=0)[:-2_000], "notes.txt": b"hello\n"})),
    "a log": ("vllm.log", middle_of_a_line(HEALTHY)),
    "a log in an archive": ("x.tgz", packed({"vllm.log": middle_of_a_line(HEALTHY), "notes.txt": b"hello\n"})),
}


@pytest.mark.parametrize("name", CUTS)
def test_what_was_cut_is_said_first_in_every_form_and_is_never_healthy(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / CUTS[name][0]
    path.write_bytes(CUTS[name][1])
    forms = {
        "txt": "BUNDLE IS INCOMPLETE",
        "md": "**Bundle is incomplete**: ",
        "json": "{\n",
        "html": "<!doctype html>",
    }
    targets = {form: tmp_path / f"report.{form}" for form in forms}
    assert cli.run(["analyze", str(path), *(word for target in targets.values() for word in ("-o", str(target)))]) == 0
    err = capsys.readouterr().err
    assert err.startswith("oomdoc: bundle is incomplete: ") and "vllm.log" in err.splitlines()[0]
    pages = {form: target.read_text(encoding="utf-8") for form, target in targets.items()}
    assert {form: page.startswith(forms[form]) for form, page in pages.items()} == dict.fromkeys(forms, True)
    assert pages["html"].index('<p class="incomplete" role="alert">') < pages["html"].index("<header")
    report = json.loads(pages["json"])
    assert list(report)[:4] == ["schema_version", "oomdoc_version", "rules_version", "bundle"]
    assert report["bundle"]["complete"] is False
    assert report["bundle"]["missing"] and any("vllm.log" in item["where"] and item["what"] for item in report["bundle"]["missing"])  # fmt: skip
    assert report["verdict"] == "undecided"
    sure = [item["probability"] for each in [report, *report["incidents"]] for item in each["diagnoses"] if item["cause"] == "healthy"]  # fmt: skip
    assert sure and max(sure) <= 0.5


@pytest.mark.parametrize("what", ["as it is", "without its newline", "with blank lines behind it", "its beginning gone", "in an archive"])  # fmt: skip
def test_a_whole_log_is_complete(what: str, tmp_path: Path) -> None:
    data = {"without its newline": HEALTHY.rstrip(b"\n"), "with blank lines behind it": HEALTHY + b"\n\n  ", "its beginning gone": HEALTHY[5_011:]}.get(what, HEALTHY)  # fmt: skip
    path = tmp_path / ("x.tgz" if what == "in an archive" else "vllm.log")
    path.write_bytes(packed({"vllm.log": data}) if path.suffix == ".tgz" else data)
    report = told(path)
    assert report["bundle"]["complete"] is True and report["bundle"]["missing"] == []


def test_a_cut_failure_stays_a_failure() -> None:
    report = kv_demand()
    lost = (Missing("truncated", "vllm.log"),)
    made = judged(report, lost)
    assert (made.verdict, made.bundle.missing) == (report.verdict, lost)
    assert made.diagnoses[0].probability == report.diagnoses[0].probability
    assert judged(report, ()) is report


def test_health_is_capped_everywhere_and_ranked_anew() -> None:
    report = healthy()
    second = dataclasses.replace(report.diagnoses[0], cause="memory-leak", probability=0.7, rank=2)
    report = dataclasses.replace(report, diagnoses=(report.diagnoses[0], second))
    made = judged(report, (Missing("truncated", "vllm.log"),))
    assert [(item.cause, item.rank, item.probability <= 0.7) for item in made.diagnoses] == [("memory-leak", 1, True), ("healthy", 2, True)]  # fmt: skip
    assert made.diagnoses[1].probability == 0.5 and made.verdict == "undecided"
    assert REPORTS["terminal"](made, top=3, width=100, color=False).startswith("BUNDLE IS INCOMPLETE")


# ---- the last line

HEAD = "(EngineCore_0 pid=7) INFO 11-20 20:14:{:02} [loggers.py:118] "
STATS = HEAD + "Engine 000: Avg prompt throughput: 12.5 tokens/s, Running: {} reqs, Waiting: 0 reqs, GPU KV cache usage: 3.5%, Prefix cache hit rate: 6.5%"  # fmt: skip
ACCESS = '(APIServer pid=1) INFO:     10.0.0.{}:4{} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
LINES = [STATS.format(n, n % 7) if n % 2 else ACCESS.format(n, 1000 + n) for n in range(40)]
ROWS = ["time,prompt_tokens,output_tokens,status"] + [f"2026-11-20T20:14:{n:02}Z,{n * 7},{n},200" for n in range(30)]
DOCUMENT = json.dumps({"handlers": {f"h{n}": {"level": "INFO", "to": ["a"]} for n in range(9)}}, indent=2).split("\n")
CONFIG = [f"key{n} = value {n}" for n in range(9)] + ["key = value"]
JSON = [json.dumps({"t": n, "prompt_tokens": n * 3, "status": 200}) for n in range(30)]


@pytest.mark.parametrize("line", [STATS.format(41, 3), ACCESS.format(9, 1999)])
def test_a_line_cut_at_any_place_is_seen(line: str) -> None:
    unseen = [at for at in range(30, len(line)) if not is_cut("\n".join([*LINES, line[:at]]).encode())]
    # within its last figure or word nothing tells: `200 O`, `6.5`, `6.`
    assert all(at > len(line) - 4 for at in unseen), [line[:at][-30:] for at in unseen]


@pytest.mark.parametrize("lines", [LINES, [*LINES, LINES[2]], ROWS, JSON, DOCUMENT, CONFIG, [*LINES, HEAD.format(50) + "Shutting down"], [*LINES, HEAD.format(51) + "A message that stands nowhere else (at all)"]])  # fmt: skip
def test_a_whole_line_without_its_newline_is_no_cut(lines: Sequence[str]) -> None:
    for end in ("", "\r"):
        assert not is_cut(("\n".join(lines) + end).encode())
    assert not is_cut(("\n".join(lines) + "\n").encode())


@pytest.mark.parametrize("text", ["VLLM::EngineCore" + " " * 60, "VLLM::Worker_TP0", "llama-server --port 9 "])
def test_a_file_of_one_line_that_is_no_record_is_whole(text: str) -> None:
    assert not is_cut(text.encode())
    assert is_cut((HEAD.format(50) + "Initializing an engine (v0.11.0) with config: {'model': 'x', 'tens").encode())


@pytest.mark.parametrize("lines", [[*ROWS, "2026-11-20T20:14:31Z,7"], [*JSON, '{"t": 5, "pro'], [*LINES, HEAD.format(50) + "Shut"], [*LINES, HEAD.format(50) + "Initializing an engine (v0.11.0) with config: {'model': 'x', 'tensor_par"]])  # fmt: skip
def test_other_forms_that_were_cut(lines: Sequence[str]) -> None:
    assert is_cut("\n".join(lines).encode())


def test_real_logs_cut_by_chance_and_whole_ones() -> None:
    """Of logs of many releases: most cuts within a line are seen, and hardly ever is a whole one called cut."""
    chance, seen, cuts, wrong, whole = random.Random(7), 0, 0, 0, 0
    for path in sorted(SAMPLES.glob("*/*.log")):
        data = path.read_bytes()[:200_000]
        ends = [at for at in range(len(data)) if data[at : at + 1] == b"\n" and at > 2_000]
        for _ in range(12 if ends else 0):
            at = chance.choice(ends)
            line = data[data.rfind(b"\n", 0, at) + 1 : at]
            if not line.strip() or b"    " in line:  # within a traceback even a whole line is no end
                continue
            whole, wrong = whole + 1, wrong + is_cut(data[:at])
            if len(line) > 12:
                cuts, seen = cuts + 1, seen + is_cut(data[: at - len(line) // 2])
    assert cuts > 80 and seen / cuts > 0.8, (seen, cuts)
    assert wrong / whole < 0.02, (wrong, whole)


@pytest.mark.parametrize(("why", "cut"), [("truncated: the gzip data end too early, after 5 bytes of content", True), ("damaged: bad zstd data after 5 bytes of content (x)", True), ("more than 64.0 GiB in all: the rest was not read", True), ("grew more than 2,000 times while unpacking: the rest was not read", True), ("read error: input/output error", True), ("symbolic link, not followed", False), ("PNG image of 3 KiB: no format that holds evidence", False), ("permission denied", False)])  # fmt: skip
def test_what_counts_as_cut(why: str, cut: bool) -> None:
    assert was_cut(why) is cut


# ---- a log that falls silent

BEGIN = 1_790_000_000.0


def server(tmp_path: Path, *, requests_until: float, log_until: float = 600.0, shift: float = 0.0, begin: float = 0.0, status: int = 200, failed: bool = False, stats: bool = True, metrics: bool = False) -> tuple[Missing, ...]:  # fmt: skip
    """A server whose log has statistics every 10 s for so long, and whose requests (or scrapes) go on until then."""
    with Store(tmp_path) as store:
        store.add("source", [{"source": "vllm.log", "kind": "vllm-log"}, {"source": "other", "kind": "request-log"}])
        store.add("milestone", [{"source": "vllm.log", "line": 1, "t": BEGIN, "name": "serving"}])
        if stats:
            store.add("engine_stat", [{"source": "vllm.log", "line": n + 2, "t": BEGIN + 10 * n, "running": 3} for n in range(int(log_until / 10) + 1)])  # fmt: skip
        if failed:
            store.add("oom", [{"source": "vllm.log", "line": 900, "t": BEGIN + log_until}])
        moments = [BEGIN + begin + shift + 5 * n for n in range(int((requests_until - begin) / 5) + 1)]
        if metrics:
            store.add("metric", [{"source": "other", "line": n + 1, "t": t, "name": "vllm:num_requests_running", "value": 2.0} for n, t in enumerate(moments)])  # fmt: skip
        else:
            store.add("request", [{"source": "other", "line": n + 1, "t": t, "status": status, "output_tokens": 5} for n, t in enumerate(moments)])  # fmt: skip
        store.finish()
        return missing(store, [])


@pytest.mark.parametrize("metrics", [False, True])
def test_a_log_without_its_last_minutes(metrics: bool, tmp_path: Path) -> None:
    (lost,) = server(tmp_path, requests_until=1200, metrics=metrics)
    assert lost.where == "vllm.log:62" and "10 min" in lost.what and "other" in lost.what


@pytest.mark.parametrize(
    "case",
    [
        {"requests_until": 650},  # within the clocks
        {"requests_until": 1200, "failed": True},  # it failed, and says so
        {"requests_until": 1200, "status": 503},  # nobody was answered
        {"requests_until": 1200, "stats": False},  # a log without a rhythm says nothing by its silence
        {"requests_until": 600, "shift": 3600},  # two clocks: it begins as much later as it ends
        {"requests_until": 600, "shift": 900},
        {"requests_until": 500},
    ],
)
def test_a_log_that_is_whole_though_others_go_on(case: dict[str, Any], tmp_path: Path) -> None:
    assert server(tmp_path, **case) == ()


def test_what_the_intake_said_comes_first(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.finish()
        cut = Unread("a.log", "truncated: ended after 3 of 9 bytes")
        assert missing(store, [Unread("b.png", "PNG image"), cut, cut]) == (Missing(cut.why, "a.log"),)


def test_thousands_of_places_are_summed(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.finish()
        lost = missing(
            store, [Unread(f"{n}.log", "more than 9 files in all: the rest was not read") for n in range(500)]
        )
    assert len(lost) == 11
    assert lost[-1] == Missing("more than 9 files in all: the rest was not read (and 489 more files)", "10.log")


def test_a_long_log_cut_in_an_access_line_is_seen(tmp_path: Path) -> None:
    """The line without its end comes as a chunk of its own: what it lacks shows beside the lines before it."""
    data = (EDGE / "vllm.log").read_bytes()
    end = data.find(b"/completions", len(data) // 2)
    (tmp_path / "vllm.log").write_bytes(data[:end])
    report = told(tmp_path / "vllm.log")
    assert report["verdict"] == "undecided" and report["bundle"]["complete"] is False
    assert "in the middle of line" in report["bundle"]["missing"][0]["what"]
