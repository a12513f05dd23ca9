"""The command line: statuses, sentences, outputs and their places; the analysis itself is a stand-in here."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import resource
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import oomdoc
from oomdoc import cli
from oomdoc.cli import console
from oomdoc.errors import BundleError, OomdocError, RuleError, UsageError
from oomdoc.intake.bundle import DEFAULT_LIMITS, Limits
from oomdoc.judge.rules import ActionRule, EvidenceRule, ReasonRule, Rule
from oomdoc.model import Report
from report_samples import SAMPLES, healthy, hostile, kv_demand, not_memory, undecided
from snapshot import check

SNAPSHOTS = Path(__file__).parent / "report" / "snapshots"
COMMANDS = [
    "", "analyze", "profile", "fit", "replay", "diff", "sql", "tables", "show", "explain", "rules", "rules list", "rules matrix",
    "rules new", "rules test", "rules count", "collect", "completion", "schema",
    "sweep",
    "redact",
]  # fmt: skip


@dataclass(frozen=True)
class Options:
    """The shape of `oomdoc.diagnose.Options`."""

    rules: Path | None = None
    db: Path | None = None
    types: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    tz: str | None = None
    model_config: Path | None = None
    gpu: str | None = None
    details: bool = False
    progress: Callable[[str, int], None] | None = None
    limits: Limits = DEFAULT_LIMITS


@dataclass
class Stub:
    """Stands in for `oomdoc.diagnose`: gives `report`, remembers what it was asked, and whether it was closed."""

    report: Report = field(default_factory=kv_demand)
    error: BaseException | None = None
    calls: list[tuple[list[str], Options]] = field(default_factory=list)
    open: int = 0
    names: Sequence[str] = ("t", "source", "kv_used")
    rows: Sequence[tuple[Any, ...]] = ((1.5, "vllm.log", 0.998), (None, "a\x1b[31m\nb", float("nan")))

    def analyze(self, paths: Sequence[str], options: Options) -> Stub:
        self.calls.append((list(paths), options))
        if options.progress:
            options.progress("vllm.log", 1 << 20)
        if self.error:
            raise self.error
        return self

    def __enter__(self) -> Stub:
        self.open += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.open -= 1

    def sql(self, query: str, limit: int | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        if "boom" in query:
            raise UsageError("the query failed: no such column: boom", "`oomdoc tables` lists tables and columns")
        return list(self.names), list(self.rows)[:limit]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    stand_in = Stub()
    module: Any = types.ModuleType("oomdoc.diagnose")
    module.Options, module.analyze = Options, stand_in.analyze
    monkeypatch.setitem(sys.modules, "oomdoc.diagnose", module)
    monkeypatch.setattr(oomdoc, "diagnose", module, raising=False)
    yield stand_in
    assert stand_in.open == 0


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.run(list(argv))
    out, err = capsys.readouterr()
    return status, out, err


# --- help, usage, errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_as_accepted(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = call(capsys, *command.split(), "--help")
    assert (status, err) == (0, "")
    assert "Example:" in out
    assert f"oomdoc {command}".strip() in out.split("Example:")[1]
    check(SNAPSHOTS / f"cli.help{'-' if command else ''}{command.replace(' ', '-')}.txt", out, in_any_typer)


def in_any_typer(text: str) -> str:
    """A help text without what releases of typer print differently: types of arguments, their brackets, line breaks."""
    return " ".join(re.sub(r" <[^>\n]*>|[{}]|\.\.\.", "", text).split())


def test_without_arguments_the_help_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys)
    assert (status, out) == (2, "")
    assert "Exit status:" in err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--version") == (0, f"oomdoc {oomdoc.__version__}\n", "")


WRONG = [
    "analyse x",
    "analyze",
    "analyze x --frmat json",
    "analyze x --format jsn",
    "analyze x --format pdf",
    "analyze x --top 0",
    "analyze x --top many",
    "analyze x --fail-on 1.5",
    "analyze x -o report.pdf",
    "analyze x -o no/such/folder/report.json",
    "analyze x --since noon",
    "analyze x --since 2026-11-21 --until 2026-11-20",
    "analyze x --tz Mars/Olympus",
    "analyze x --type vllm-log",
    "analyze x --color red",
    "analyze x --model-config no-such.json",
    "profile x --format csv",
    "fit",
    "fit --model gpt-9",
    "fit --model Qwen3-8B --gpu H100-MIG",
    "fit --model Qwen3-8B --gpu H100 --max-model-len 12kb",
    "fit --model acme/thing --gpu H100 --params many",
    "fit --model Qwen3-8B --gpu H100 --speculative-config nonsense",
    "fit --model Qwen3-8B",
    "fit --model Qwen3-8B --gpu H1000",
    "fit --model Qwen3-8B --gpu H100 --tp 0",
    "fit --model Qwen3-8B --gpu H100 --tp 99999",
    "fit --model Qwen3-8B --gpu H100 --gpu-memory-utilization 90",
    "fit --model Qwen3-8B --gpu H100 --kv-cache-dtype fp3",
    "fit --model Qwen3-8B --gpu H100 --dtype int3",
    "fit --model Qwen3-8B --gpu H100 --quantization q",
    "fit --model Qwen3-8B --gpu H100 --engine-version latest",
    "fit --model Qwen3-8B --gpu H100 --input-tokens many",
    "fit --model Qwen3-8B --gpu H100 --available-kv much",
    "fit --model Qwen3-8B --gpu H100 --solve block_size",
    "fit --model Qwen3-8B --gpu H100 --format csv",
    "fit --model-config no-such.json --gpu H100",
    "sql x -o rows.parquet",
    "sql x SELECT -o rows.pdf",
    "sql -",
    "sql x boom",
    "sql x SELECT --format xml",
    "tables engin_stat",
    "show x vllm.log",
    "show x vllm.log:0",
    "explain kv-demand-exceed-pool",
    "rules",
    "rules tst",
]


def test_wrong_usage_is_one_sentence_and_status_2(
    stub: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("oomdoc.judge.rules.load_rules", lambda folder: ([rule()], []))
    said = []
    for line in WRONG:
        status, out, err = call(capsys, *line.split())
        assert (status, out) == (2, ""), line
        assert err.startswith("oomdoc: ") and err.count("\n") == 1, line
        if "--top" not in line:  # worded by typer, each version its own way
            said.append(f"$ oomdoc {line}\n{err}\n")
    check(SNAPSHOTS / "cli.errors.txt", "".join(said))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BundleError("nothing readable in x.tar", "Give a tar, zip or folder"), 3),
        (RuleError("rules/kv-cache/x.toml:3: no key 'prio'", "Did you mean prior?"), 2),
        (UsageError("wrong"), 2),
        (OomdocError("x\x1b[31m\ny"), 3),
    ],
)
def test_errors_for_people_become_one_harmless_line(
    error: OomdocError, status: int, stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.error = error
    got, out, err = call(capsys, "analyze", "x.tar")
    assert (got, out) == (status, "")
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_interrupted(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    stub.error = KeyboardInterrupt()
    assert call(capsys, "x.tar") == (130, "", "oomdoc: interrupted\n")


def test_a_bug_keeps_its_traceback_and_has_a_status_of_its_own(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    stub.error = ZeroDivisionError("oops")
    status, _, err = call(capsys, "x.tar", "--fail-on", "0.5")
    assert status == 70
    assert "ZeroDivisionError: oops" in err
    assert err.endswith("oomdoc: this is a bug. Please report it with the lines above\n")


# --- analyze --------------------------------------------------------------------------------------------------------


def test_a_bare_path_is_analysed(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    bare = call(capsys, "bundle.tar.gz", "-q")
    assert bare == call(capsys, "analyze", "bundle.tar.gz", "-q")
    assert bare == call(capsys, "-q", "bundle.tar.gz")
    assert bare[0] == 0
    assert bare[1].startswith("VERY LIKELY (93%)")
    assert [paths for paths, _ in stub.calls] == [["bundle.tar.gz"]] * 3


def test_a_file_named_almost_like_a_command_is_analysed(
    stub: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "profiles").mkdir()
    assert call(capsys, "profiles")[0] == 0
    assert stub.calls[0][0] == ["profiles"]


def test_options_reach_the_analysis(stub: Stub, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    line = (
        f"a.log b.jsonl --rules my --db x.duckdb --gpu H100 --model-config {config} --type *.txt=vllm-log --type a=b=c"
    )
    line += " --since 2026-11-20 --until 2026-11-20T20:04:51 --tz +02:00"
    assert call(capsys, "analyze", *line.split())[0] == 0
    paths, options = stub.calls[0]
    assert paths == ["a.log", "b.jsonl"]
    assert options == Options(
        rules=Path("my"),
        db=Path("x.duckdb"),
        types=("*.txt=vllm-log", "a=b=c"),
        since=1795125600.0,
        until=1795197891.0,
        tz="+02:00",
        model_config=config,
        gpu="H100",
    )


@pytest.mark.parametrize(
    ("text", "zone", "epoch"),
    [
        ("2026-11-20T20:04:51Z", None, 1795205091.0),
        ("2026-11-20 20:04:51", None, 1795205091.0),
        ("2026-11-20T20:04:51+01:00", "Asia/Tokyo", 1795201491.0),
        ("2026-11-21T05:04:51", "Asia/Tokyo", 1795205091.0),
    ],
)
def test_times_are_utc_unless_something_names_a_zone(
    text: str, zone: str | None, epoch: float, stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    call(capsys, "analyze", "x", "--since", text, *(["--tz", zone] if zone else []))
    assert stub.calls[0][1].since == epoch


def test_json_on_standard_output_and_warnings_on_standard_error(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, "analyze", "x", "--format", "json")
    assert status == 0
    assert json.loads(out) == json.loads(json.dumps(kv_demand().to_dict()))
    assert err == f"oomdoc: warning: {kv_demand().warnings[0]}\n"
    assert call(capsys, "analyze", "x", "--format", "json", "--quiet")[2] == ""
    assert call(capsys, "analyze", "x")[2] == ""  # the terminal form holds the warnings


def test_json_is_utf8_whatever_the_locale(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    for form, encoding in (("json", "utf-8"), ("terminal", "ascii")):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
        stub.report = hostile()
        assert cli.run(["analyze", "x", "--format", form, "-q"]) == 0
        raw.getvalue().decode(encoding)


def test_outputs_by_suffix(
    stub: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    status, out, err = call(capsys, "analyze", "x", "-o", "r.txt", "-o", "r.JSON", "--format", "json", "-o", "-")
    assert status == 0
    assert json.loads(out)["verdict"] == "diagnosed"
    assert Path("r.JSON").read_text() == out
    assert Path("r.txt").read_text().startswith("VERY LIKELY")
    assert "\x1b" not in Path("r.txt").read_text()
    assert "oomdoc: wrote r.txt\noomdoc: wrote r.JSON\n" in err
    status, out, err = call(capsys, "analyze", "x", "-o", "r.txt", "-q")
    assert (status, out, err) == (0, "", "")


def test_a_page_for_people_asks_for_details_and_every_form_comes_from_one_run(
    stub: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for options, details in (
        (["-o", "r.html", "-o", "r.md", "-o", "r.json"], True),
        (["--format", "html"], True),
        (["--format", "json", "--details"], True),
        (["--format", "markdown"], False),
    ):
        status, out, _ = call(capsys, "analyze", "x", *options)
        assert (status, stub.calls[-1][1].details) == (0, details)
    assert len(stub.calls) == 4
    assert Path("r.html").read_text().startswith("<!doctype html>")
    assert Path("r.md").read_text() == out
    assert out.startswith("## Diagnosed: ")


def test_an_output_never_replaces_the_input(
    stub: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.txt").write_text("keep me")
    for options in (["-o", "log.txt"], ["-o", "./log.txt"], ["--db", str(tmp_path / "log.txt")]):
        status, _, err = call(capsys, "analyze", "log.txt", *options)
        assert status == 2
        assert err.startswith("oomdoc: ") and "is the input" in err
    assert Path("log.txt").read_text() == "keep me"
    assert stub.calls == []


def test_an_output_that_cannot_be_written(stub: Stub, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "d.json").mkdir()
    status, _, err = call(capsys, "analyze", "x", "-o", str(tmp_path / "d.json"))
    assert status == 2
    assert "cannot write" in err


@pytest.mark.parametrize(
    ("sample", "limit", "status"),
    [
        (kv_demand, "0.934", 1),
        (kv_demand, "0.94", 0),
        (kv_demand, "1", 0),
        (healthy, "0.9", 0),
        (healthy, "0.02", 1),
        (not_memory, "0.9", 1),
        (undecided, "0.5", 0),
        (undecided, "0.4", 1),
    ],
)
def test_fail_on(
    sample: Callable[[], Report], limit: str, status: int, stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.report = sample()
    got, out, _ = call(capsys, "analyze", "x", "--fail-on", limit)
    assert got == status
    assert out


@pytest.mark.parametrize("name", SAMPLES)
def test_a_pipe_gets_no_escapes(name: str, stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    stub.report = SAMPLES[name]()
    assert "\x1b" not in call(capsys, "analyze", "x")[1]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "options", "tty", "colored"),
    [
        ({}, [], False, False),
        ({}, [], True, True),
        ({"TERM": "dumb"}, [], True, False),
        ({"NO_COLOR": "1"}, [], True, False),
        ({"NO_COLOR": ""}, [], True, True),
        ({"FORCE_COLOR": "1"}, [], False, True),
        ({"FORCE_COLOR": "0"}, [], False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], True, False),
        ({"NO_COLOR": "1"}, ["--color", "always"], False, True),
        ({"FORCE_COLOR": "1"}, ["--color", "never"], True, False),
    ],
)
def test_colour(
    environment: dict[str, str],
    options: list[str],
    tty: bool,
    colored: bool,
    stub: Stub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = _Terminal() if tty else io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    assert cli.run(["analyze", "x", *options]) == 0
    assert ("\x1b[" in out.getvalue()) is colored


def test_standard_input_must_not_be_a_terminal(
    stub: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("log"))
    assert call(capsys, "-")[0] == 0
    monkeypatch.setattr(sys, "stdin", _Terminal())
    status, _, err = call(capsys, "-")
    assert status == 2
    assert "standard input" in err


def test_progress_is_one_line_on_a_terminal_after_a_second(
    stub: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    call(capsys, "analyze", "x")
    assert stub.calls[-1][1].progress is None  # redirected: nothing is even counted
    now = iter([0.0, 0.5, 1.5, 1.55, 1.7, 1.8])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    err = _Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    progress = console.Progress(quiet=False)
    for size in (1, 2, 3, 4):
        progress("pods/\x1b[31m" + "x" * 200, size << 20)
    progress.clear()
    drawn = err.getvalue().split("\r")[1:]
    assert len(drawn) == 3  # at 1.5 s, at 1.7 s, and taken away
    assert drawn[0].endswith("  2.0 MiB\x1b[K")
    assert len(drawn[0].removesuffix("\x1b[K")) < 100
    assert "\x1b[31m" not in drawn[0]
    assert drawn[-1] == "\x1b[K"
    assert not console.Progress(quiet=True).on


# --- profile, sql, tables, schema -----------------------------------------------------------------------------------


def test_profile(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "profile", "x")
    assert status == 0
    assert out.startswith("Request profile  acme-prod-vllm.tar.gz\n18,234 requests, 41 failed")
    status, out, _ = call(capsys, "profile", "x", "--format", "json")
    assert status == 0
    assert list(json.loads(out)) == ["schema_version", "oomdoc_version", "bundle", "traffic"]
    stub.report = not_memory()
    status, out, err = call(capsys, "profile", "x")
    assert (status, out) == (3, "")
    assert err.startswith("oomdoc: no requests with token counts in node7. Add a request log")


def test_sql_forms(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    table = call(capsys, "sql", "x", "SELECT 1")[1]
    assert table.splitlines() == [
        "   t  source    kv_used",
        "────  ────────  ───────",
        " 1.5  vllm.log    0.998",
        "NULL  a b           nan",
        "(2 rows)",
    ]
    out = call(capsys, "sql", "x", "SELECT 1", "--format", "csv")[1]
    assert list(csv.reader(io.StringIO(out)))[1] == ["1.5", "vllm.log", "0.998"]
    out = call(capsys, "sql", "x", "SELECT 1", "--format", "json")[1]
    assert json.loads(out)[1] == {"t": None, "source": "a\x1b[31m\nb", "kv_used": None}
    assert "\x1b" not in out
    out = call(capsys, "sql", "x", "SELECT 1", "--format", "jsonl")[1]
    assert [json.loads(line)["t"] for line in out.splitlines()] == [1.5, None]


def test_sql_limit_is_told(stub: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, "sql", "x", "SELECT 1", "--limit", "1")
    assert status == 0
    assert out.endswith("(1 row)\n")
    assert err == "oomdoc: only the first 1 row; --limit gives more\n"
    assert call(capsys, "sql", "x", "SELECT 1", "--limit", "2")[2] == ""


def test_sql_fits_a_terminal_and_is_whole_in_a_pipe(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.names, stub.rows = ("a", "text"), [(1, "x" * 300)]
    for out, cut in ((_Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stdout", out)
        assert cli.run(["sql", "x", "SELECT 1"]) == 0
        assert ("…" in out.getvalue()) is cut
        assert (max(map(len, out.getvalue().splitlines())) <= 100) is cut


def test_tables_tell_every_column(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from oomdoc.evidence.tables import TABLES
    from oomdoc.views import VIEWS

    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = call(capsys, "tables")
    assert status == 0
    for table in TABLES.values():
        assert f"{table.name}: {table.says[:40]}" in out
        for column in table.columns:
            assert re.search(rf"^  {column.name} +{column.type} +\S", out, re.M), column
    for view in VIEWS.values():
        assert f"{view.name}: {view.says[:40]}" in out
    short = call(capsys, "tables", "--short")[1]
    assert set(TABLES) | set(VIEWS) == {line.split()[0] for line in short.splitlines() if not line.startswith(" ")}
    assert call(capsys, "tables", "oom")[1].startswith("oom: one row per out-of-memory message")


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "schema")
    assert status == 0
    assert json.loads(out)["title"] == "oomdoc report"


# --- explain, rules -------------------------------------------------------------------------------------------------


def rule(**fields: Any) -> Rule:
    given: dict[str, Any] = {
        "id": "kv-demand-exceeds-pool",
        "category": "kv-cache",
        "title": "Live traffic needs more KV cache than the pool holds",
        "summary": "Contexts in flight add up to more tokens than the pool stores.",
        "prior": 0.12,
        "evidence": (
            EvidenceRule(
                "pool-pinned",
                "KV usage at 95 % or more in {share:.0%} of {samples} samples (peak {peak:.1%}, {ref})",
                "SELECT 1",
                0.93,
                0.06,
                "pressure",
                "KV usage never above {peak:.1%}",
            ),
            EvidenceRule(
                "oom-with-room", "out of memory while the pool was {kv_used:.0%} full", "SELECT 1", 0.03, 0.4, None, ""
            ),
        ),
        "reasons": (ReasonRule("long-prefill", "a long prompt made the peak ({ref})", "SELECT 1"),),
        "actions": (
            ActionRule(
                "cap-concurrency",
                "Lower `--max-num-seqs` from {now} to {seqs}",
                "{pool_tokens:,} tokens / {context_p95:,} per request",
                "requests beyond {seqs} wait",
                "",
                {"max_num_seqs": "seqs"},
                "SELECT 1",
            ),
        ),
        "references": (
            {"url": "https://docs.vllm.ai/en/stable/configuration/optimization/", "backs": "what preemption is"},
        ),
        "tests": ({}, {}),
        "path": Path("rules/kv-cache/kv-demand-exceeds-pool.toml"),
        **fields,
    }
    return Rule(**given)


RULES = [
    rule(),
    rule(id="gpu-shared", category="scheduling", title="Another process holds memory on the device", prior=0.06),
]


@pytest.fixture
def rule_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(
        "oomdoc.judge.rules.load_rules", lambda folder: (list(RULES), ["my/x.toml:3: no key 'prio'"] if folder else [])
    )


@pytest.mark.usefixtures("rule_set")
def test_explain_as_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, "explain", "kv-demand-exceeds-pool")
    assert (status, err) == (0, "")
    assert "×15" in out and "÷13" in out
    assert "<share> of <samples>" in out
    check(SNAPSHOTS / "cli.explain-80.txt", out)


@pytest.mark.usefixtures("rule_set")
def test_explain_names_the_nearest_cause(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = call(capsys, "explain", "kv-demand")
    assert status == 2
    assert err == "oomdoc: no cause 'kv-demand'. Did you mean `kv-demand-exceeds-pool`?\n"


@pytest.mark.usefixtures("rule_set")
def test_rules_list_as_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, "rules", "list")
    assert (status, err) == (0, "")
    check(SNAPSHOTS / "cli.rules-list-80.txt", out)
    assert call(capsys, "rules", "list", "--rules", "my")[2] == "oomdoc: warning: my/x.toml:3: no key 'prio'\n"


def test_rules_test_takes_a_cause_a_file_or_a_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module: Any = types.ModuleType("oomdoc.judge.rule_tests")
    module.run = lambda rules, tell=None: [(rule.id, test["name"], True, "") for rule in rules for test in rule.tests]
    monkeypatch.setitem(sys.modules, "oomdoc.judge.rule_tests", module)
    monkeypatch.chdir(tmp_path)
    for cause in ("disk-full", "ports-gone"):
        assert call(capsys, "rules", "new", cause, "mine")[0] == 0
    assert "tests of 1 rule:" in call(capsys, "rules", "test", "gpu-shared")[1]
    own = call(capsys, "rules", "test", "mine")[1]
    one = call(capsys, "rules", "test", "mine/host/disk-full.toml")[1]
    assert "of 2 rules:" in own and "of 1 rule:" in one
    status, _, err = call(capsys, "rules", "test", "gpu-shard")
    assert status == 2 and "no rule folder 'gpu-shard'" in err and "`gpu-shared`" in err


@pytest.mark.usefixtures("rule_set")
def test_rules_test_tells_what_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my").mkdir()
    module: Any = types.ModuleType("oomdoc.judge.rule_tests")
    good = ("gpu-shared", "a neighbour", True, "")
    bad = (
        "kv-demand-exceeds-pool",
        "long chats",
        False,
        "pool-pinned: expected to hold, was unknown\nprobability 0.12",
    )
    module.run = lambda rules, tell=None: [good]
    monkeypatch.setitem(sys.modules, "oomdoc.judge.rule_tests", module)
    monkeypatch.setattr(oomdoc, "rule_tests", module, raising=False)
    assert call(capsys, "rules", "test") == (0, "1 test of 2 rules: 1 passed, 0 failed\n", "")
    module.run = lambda rules, tell=None: [good, bad]
    assert call(capsys, "rules", "test")[:2] == (
        1,
        "FAILED kv-demand-exceeds-pool: long chats\n"
        "    pool-pinned: expected to hold, was unknown\n"
        "    probability 0.12\n"
        "2 tests of 2 rules: 1 passed, 1 failed\n",
    )
    module.run = lambda rules, tell=None: [good]
    status, out, _ = call(capsys, "rules", "test", "my")
    assert status == 1
    assert out.splitlines()[0] == "BROKEN my/x.toml:3: no key 'prio'"
    assert out.endswith("1 passed, 0 failed, 1 broken file\n")


# --- whole processes ------------------------------------------------------------------------------------------------


def test_a_reader_that_leaves_early_is_no_error() -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from oomdoc.cli import run; time.sleep(0.2); sys.exit(run(['schema']))",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout and process.stderr
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
    process.stderr.close()


def _cpu_seconds(*argv: str) -> float:
    best = float("inf")
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *argv],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def test_help_and_version_start_quickly() -> None:
    nothing = max(_cpu_seconds("-c", "pass"), 0.008)
    assert _cpu_seconds("-m", "oomdoc", "--help") <= 15 * nothing
    assert _cpu_seconds("-m", "oomdoc", "--version") <= 3 * nothing + 0.008


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from oomdoc.cli import run; run(['--help']);"
        "heavy = {'rich', '_duckdb', 'duckdb', 'numpy', 'isal', 'zstandard', 'ahocorasick_rs', 'oomdoc.model'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_analysis_of_small_files_does_without_numpy() -> None:
    """One has a log of statistics, whose shape is learned from the first lines."""
    folder = Path(__file__).parents[1] / "sample_logs" / "pieces-of-seven-gib"
    code = f"import sys, oomdoc; oomdoc.analyze({str(folder)!r}).close(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
