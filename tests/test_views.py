"""The views: what their headers promise, empty tables, and what they make of a few telling rows."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc import views
from oomdoc.evidence.store import LOG_TABLES, Store
from oomdoc.evidence.tables import TABLES
from oomdoc.units import GIB
from oomdoc.views import VIEWS, read_view

MIB = 1 << 20
LOG = "vllm.log"
FILES = sorted(Path(views.__file__).parent.glob("*.sql"))
# one row whatever the bundle holds; every other view is empty where nobody says anything
ALWAYS_ONE = frozenset(
    {
        "device",
        "host",
        "memory_trend",
        "topic",
        "engine",
        "failure",
        "fate",
        "model",
        "ratchet",
        "share_course",
        "twin_gain",
        "complaint",
    }
)


def g(count: float) -> int:
    """GiB in bytes."""
    return round(count * GIB)


_FREE: list[Store] = []
"""Stores that a test has done with: to empty one costs less than to open one, and it knows nothing of before (test_rules.py)."""


@contextmanager
def emptied() -> Iterator[Store]:
    """A store without rows; one in which something failed is not used again."""
    held = _FREE.pop() if _FREE else Store()
    try:
        yield held
        held.empty()
    except BaseException:
        held.close()
        raise
    _FREE.append(held)


@pytest.fixture(scope="module", autouse=True)
def closed_at_the_end() -> Iterator[None]:
    yield
    while _FREE:
        _FREE.pop().close()


@contextmanager
def made(incident: int = 1, **tables: Sequence[Mapping[str, Any]]) -> Iterator[Store]:
    """A store with these rows (source `vllm.log` and lines in order where a row names none), one incident in focus."""
    with emptied() as held:
        for table, rows in tables.items():
            held.add(table, [{"source": LOG, "line": place, **row} for place, row in enumerate(rows, 1)])
        if not tables.get("source"):
            held.add("source", [{"source": LOG, "kind": "vllm-log"}])
        held.finish()
        found = held.rows_of("SELECT incident FROM incident")
        held.focus(found[incident - 1]["incident"] if found else None)
        yield held


def one(held: Store, view: str) -> dict[str, Any]:
    """The only row of a view."""
    (row,) = held.rows_of(f"SELECT * FROM {view}")
    return row


def start(line: int, version: str = "0.11.0") -> dict[str, Any]:
    return {"line": line, "name": "server-version", "text": version}


def step(line: int, name: str, text: str | None = None) -> dict[str, Any]:
    return {"line": line, "name": name, "text": text}


def flag(line: int, name: str, value: str, origin: str = "logged") -> dict[str, Any]:
    return {"line": line, "flag": name, "value": value, "origin": origin}


def figure(line: int, name: str, value: float, **more: Any) -> dict[str, Any]:
    return {"line": line, "name": name, "value": value, **more}


def oom(line: int, **more: Any) -> dict[str, Any]:
    return {"line": line, "allocator": "torch", "requested_bytes": 20 * MIB, "text": "CUDA out of memory", **more}


def stat(line: int, kv_used: float, waiting: int = 0, running: int = 4, **more: Any) -> dict[str, Any]:
    return {"line": line, "kv_used": kv_used, "waiting": waiting, "running": running, **more}


# ---- the set


@pytest.fixture(scope="module")
def empty() -> Iterator[Store]:
    with Store() as held:
        held.finish()
        held.focus(None)
        yield held


def test_names_and_numbers_are_unique() -> None:
    numbers = [path.name.split("_", 1)[0] for path in FILES]
    assert len(set(numbers)) == len(FILES) == len(VIEWS)
    assert not set(VIEWS) & set(TABLES)
    assert all(re.fullmatch(r"\d\d[a-z]?_[a-z_]+\.sql", path.name) for path in FILES)


@pytest.mark.parametrize("name", VIEWS)
def test_the_header_documents_exactly_the_columns(name: str, empty: Store) -> None:
    columns = [row["column_name"] for row in empty.rows_of(f"DESCRIBE {name}")]
    assert sorted(VIEWS[name].columns) == sorted(columns)
    assert all(text.strip() for text in VIEWS[name].columns.values())


@pytest.mark.parametrize("name", VIEWS)
def test_scope_and_sentence(name: str) -> None:
    view = VIEWS[name]
    assert view.scope in ("bundle", "incident")
    assert view.says and not view.says.endswith(".")


@pytest.mark.parametrize("name", VIEWS)
def test_empty_tables_give_no_row_or_one_that_tells_nothing(name: str, empty: Store) -> None:
    rows = empty.rows_of(f"SELECT * FROM {name}")
    assert len(rows) == (name in ALWAYS_ONE)


@pytest.mark.parametrize("name", VIEWS)
def test_log_rows_are_seen_through_the_incident_and_only_there(name: str) -> None:
    view = VIEWS[name]
    read = re.findall(r"\b(?:FROM|JOIN)\s+((?:seen\.)?[a-z_]+)", view.sql)
    if view.scope == "bundle":
        assert not [table for table in read if table.startswith("seen.")]
    else:
        assert not [table for table in read if table in LOG_TABLES], "a log row of another incident would be seen"
    before = list(VIEWS)[: list(VIEWS).index(name)]
    later = set(VIEWS) - set(before)
    own = set(re.findall(r"(?:WITH|\),)\s*([a-z_]+)(?:\([^)]*\))? AS", view.sql))
    assert not (set(read) & later) - own, "a view reads tables and views before it"


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_windows_have_no_filter(name: str) -> None:
    """Over 1.7 million rows `count(*) FILTER (x) OVER (...)` takes 42 s of CPU, `count(CASE WHEN x THEN 1 END) OVER (...)` 0.6 s."""
    assert not re.search(r"FILTER\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*OVER\b", VIEWS[name].sql)


def test_a_header_without_scope_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "99_new.sql"
    path.write_text("-- says: a sentence\n-- n: a number\nSELECT 1 AS n\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"99_new\.sql: the header needs"):
        read_view(path)
    path.write_text(
        "-- says: a sentence\n-- scope: bundle\n-- n: a number\nSELECT 1 AS n -- not a header\n", encoding="utf-8"
    )
    view = read_view(path)
    assert (view.name, view.scope, dict(view.columns)) == ("new", "bundle", {"n": "a number"})
    assert view.sql == "SELECT 1 AS n -- not a header"


# ---- starts and incidents


def test_two_starts_in_one_log_are_two_incidents_with_their_own_flags() -> None:
    rows: dict[str, list[dict[str, Any]]] = {
        "milestone": [start(1), step(20, "load-start", "/models/a"), start(100), step(120, "load-start", "/models/a"), step(130, "serving")],
        "engine_flag": [flag(5, "max_model_len", "131072"), flag(5, "gpu_memory_utilization", "0.9"), flag(105, "max_model_len", "32768"), flag(105, "gpu_memory_utilization", "0.97")],
        "startup_check": [{"line": 60, "name": "kv-below-max-model-len", "max_model_len": 131072, "needed_bytes": g(16), "available_bytes": g(4), "text": "To serve at least one request"}],
        "engine_stat": [stat(140, 0.3)],
        "oom": [oom(160, total_bytes=g(23.5), free_bytes=9 * MIB)],
    }  # fmt: skip
    with made(1, **rows) as held:
        assert [(row["kind"], row["start_id"], row["ref"]) for row in held.rows_of("SELECT * FROM incident")] == [
            ("device-oom", f"{LOG}#2", f"{LOG}:160"), ("startup-check", f"{LOG}#1", f"{LOG}:60"),
        ]  # fmt: skip
        engine, failure = one(held, "engine"), one(held, "failure")
        assert (engine["max_model_len"], engine["gpu_memory_utilization"], engine["served"]) == (32768, 0.97, True)
        assert (failure["kind"], failure["check_name"], failure["ooms"], failure["phase"]) == (
            "device-oom",
            None,
            1,
            "forward",
        )
        held.focus("i2")
        engine, failure = one(held, "engine"), one(held, "failure")
        assert (engine["max_model_len"], engine["gpu_memory_utilization"], engine["served"]) == (131072, 0.9, False)
        assert (failure["kind"], failure["check_name"], failure["ooms"], failure["phase"]) == (
            "startup-check",
            "kv-below-max-model-len",
            0,
            "kv-plan",
        )
        assert held.rows_of("SELECT * FROM kv_pressure") == []
        assert [(row["start_id"], row["served"], row["first_line"], row["last_line"]) for row in held.rows_of("SELECT * FROM engine_start")] == [
            (f"{LOG}#1", False, 1, 99), (f"{LOG}#2", True, 100, 2**32 - 1),
        ]  # fmt: skip


def test_an_excerpt_that_begins_in_the_middle_is_a_start_without_a_marker() -> None:
    with made(oom=[oom(5)], frame=[{"line": 3, "function": "execute_model", "file": "/v/worker.py"}]) as held:
        row = one(held, "engine_start")
        assert (row["start_id"], row["marked"], row["first_line"], row["last_line"], row["t"]) == (
            f"{LOG}#0",
            False,
            0,
            2**32 - 1,
            None,
        )
        assert (row["version"], row["served"], row["last_milestone"]) == (None, False, None)
        assert one(held, "incident")["start_id"] == f"{LOG}#0"


def test_the_banner_and_the_config_line_of_one_start_are_one() -> None:
    with made(
        milestone=[
            start(1),
            step(3, "server-version", "0.11.0"),
            step(9, "engine-init", "V1 0.11.0"),
            step(11, "engine-init", "V1 0.11.0"),
            step(20, "load-start", "m"),
        ]
    ) as held:
        assert one(held, "engine_start")["version"] == "0.11.0"


def test_an_echo_in_the_api_servers_log_does_not_outrank_the_workers_failure() -> None:
    echo = {
        "source": "a-api.log",
        "line": 4,
        "kind": "echo",
        "exception": "RuntimeError",
        "text": "Engine core initialization failed. See root cause above.",
    }
    with made(
        source=[{"source": "a-api.log", "kind": "vllm-log"}, {"source": "worker.log", "kind": "vllm-log"}],
        log_error=[
            echo,
            {**echo, "line": 9, "exception": "EngineDeadError", "text": "EngineCore encountered an issue"},
        ],
        oom=[{"source": "worker.log", **oom(70)}],
    ) as held:
        (row,) = held.rows_of("SELECT * FROM incident")
        assert (row["kind"], row["ref"], row["gravity"]) == ("device-oom", "worker.log:70", 40)


def test_only_echoes_are_a_weak_incident_and_no_memory_failure() -> None:
    with made(
        log_error=[{"line": 4, "kind": "echo", "exception": "RuntimeError", "text": "See root cause above"}]
    ) as held:
        assert (one(held, "incident")["kind"], one(held, "incident")["gravity"]) == ("echo", 5)
        assert (one(held, "failure")["failed"], one(held, "failure")["first_error_kind"]) == (True, None)


def test_a_start_that_came_up_with_warnings_only_is_no_incident() -> None:
    with made(
        milestone=[start(1), step(60, "serving"), step(900, "shutdown")],
        log_error=[
            {
                "line": 300,
                "level": "WARNING",
                "kind": "hang",
                "text": "No available shared memory broadcast block found in 60 seconds.",
            },
            {"line": 901, "kind": "echo", "text": "leaked shared_memory objects to clean up at shutdown"},
        ],
        process_exit=[{"line": 903, "name": "EngineCore_0", "exit_code": 0}],
        engine_stat=[stat(100, 0.12)],
    ) as held:
        assert held.rows_of("SELECT * FROM incident") == []
        assert one(held, "failure")["failed"] is False


def test_without_an_engine_log_nobody_knows_whether_it_failed() -> None:
    with made(source=[{"source": "dmesg.txt", "kind": "kernel-log"}]) as held:
        assert one(held, "failure")["failed"] is None


def test_the_cause_stands_above_its_consequences_and_before_them() -> None:
    with made(
        milestone=[start(1)],
        log_error=[
            {"line": 50, "kind": "nccl", "text": "ncclInternalError"},
            {"line": 80, "kind": "echo", "text": "EngineDeadError"},
        ],
        oom=[oom(60)],
        process_exit=[{"line": 90, "name": "VllmWorker-0", "exit_code": -9}],
    ) as held:
        row = one(held, "incident")
        assert (row["ref"], row["kind"], row["events"]) == (
            f"{LOG}:50",
            "error",
            4,
        )  # both are explicit: the first line wins
        assert one(held, "failure")["ooms"] == 1


def test_a_kill_on_the_host_belongs_to_the_engines_incident_where_there_is_one() -> None:
    kill = {
        "source": "dmesg.txt",
        "line": 9,
        "kind": "cgroup-oom-kill",
        "process": "VLLM::EngineCor",
        "bytes": g(62),
        "limit_bytes": g(64),
    }
    sources = [{"source": LOG, "kind": "vllm-log"}, {"source": "dmesg.txt", "kind": "kernel-log"}]
    with made(source=sources, milestone=[start(1)], host_event=[kill]) as held:
        assert (one(held, "incident")["kind"], one(held, "incident")["start_id"]) == ("host-kill", None)
    with made(
        source=sources,
        milestone=[start(1)],
        host_event=[kill],
        process_exit=[{"line": 30, "name": "VllmWorker-0", "exit_code": -9}],
    ) as held:
        assert (one(held, "incident")["kind"], one(held, "incident")["start_id"]) == ("exit", f"{LOG}#1")
        host = one(held, "host")
        assert (
            host["oom_kills"],
            host["kill_scope"],
            host["kill_process"],
            host["kill_limit_bytes"],
            host["sigkills"],
        ) == (1, "container", "VLLM::EngineCor", g(64), 1)


def test_pressure_is_an_incident_only_where_nothing_failed() -> None:
    stats = [stat(100, 0.97, 9, 30), stat(110, 0.99, 14, 26)]
    with made(milestone=[start(1), step(60, "serving")], engine_stat=stats) as held:
        assert (one(held, "incident")["kind"], one(held, "incident")["ref"], one(held, "incident")["gravity"]) == (
            "pressure",
            f"{LOG}:100",
            15,
        )
        assert one(held, "failure")["failed"] is False
    with made(milestone=[start(1), step(60, "serving")], engine_stat=stats, oom=[oom(200)]) as held:
        assert one(held, "incident")["kind"] == "device-oom"


def test_restarts_are_an_incident_of_their_own_only_where_no_failure_is() -> None:
    box = {"source": "pod.txt", "line": 30, "pod": "llm-0", "last_reason": "Error", "exit_code": 137, "restarts": 5}
    with made(container=[box]) as held:
        assert (one(held, "incident")["kind"], one(held, "incident")["text"]) == ("restart", "llm-0 Error restarts 5")
        assert one(held, "failure")["failed"] is False
    with made(container=[box], oom=[oom(5)]) as held:
        assert one(held, "incident")["kind"] == "device-oom"


def test_times_step_over_new_year_and_order_the_incidents() -> None:
    def at(year: int, month: int, day: int) -> float:
        return dt.datetime(year, month, day, tzinfo=dt.UTC).timestamp()

    with made(
        source=[{"source": LOG, "kind": "vllm-log"}, {"source": "b.log", "kind": "vllm-log"}],
        milestone=[{**start(1), "t": at(2000, 12, 31)}, step(20, "load-start"), {**start(100), "t": at(2001, 1, 1)}],
        oom=[{**oom(50), "t": at(2000, 12, 31) + 60}, {**oom(150), "t": at(2001, 1, 1) + 60}],
        request=[{"source": "r.jsonl", "t": at(2026, 1, 1) + 5, "input_tokens": 10}],
    ) as held:
        assert [row["t"] for row in held.rows_of("SELECT t FROM engine_start ORDER BY first_line")] == [
            at(2025, 12, 31),
            at(2026, 1, 1),
        ]
        assert [row["line"] for row in held.rows_of("SELECT line FROM incident")] == [150, 50], (
            "of two alike the later is the graver"
        )


# ---- the engine in focus


@pytest.mark.parametrize(
    ("milestones", "flags", "version", "number", "generation", "utilization", "origin"),
    [
        ([step(1, "server-version", "0.6.3.post1")], [], "0.6.3.post1", 6003, "V0", 0.90, "default"),
        ([step(1, "engine-init", "V0 0.8.5")], [], "0.8.5", 8005, "V0", 0.90, "default"),
        ([step(1, "engine-init", "V1 0.8.5")], [], "0.8.5", 8005, "V1", 0.90, "default"),
        ([step(1, "server-version", "0.9.2")], [], "0.9.2", 9002, None, 0.90, "default"),
        (
            [step(1, "server-version", "0.11.0"), step(4, "engine-init", "V1 0.11.0")],
            [],
            "0.11.0",
            11000,
            "V1",
            0.90,
            "default",
        ),
        (
            [step(1, "server-version", "0.19.1rc1.dev3+g1a2b3c")],
            [],
            "0.19.1rc1.dev3+g1a2b3c",
            19001,
            "V1",
            0.90,
            "default",
        ),
        ([step(1, "server-version", "0.20.2")], [], "0.20.2", 20002, "V1", 0.92, "default"),
        ([step(1, "server-version", "0.32.0+cpu")], [], "0.32.0+cpu", 32000, "V1", 0.92, "default"),
        ([step(1, "engine-init", None)], [], None, None, None, None, None),
        ([], [flag(1, "version", "0.10.2", "metrics")], "0.10.2", 10002, None, 0.90, "default"),
        (
            [step(1, "server-version", "0.20.2")],
            [flag(2, "gpu_memory_utilization", "0.85")],
            "0.20.2",
            20002,
            "V1",
            0.85,
            "logged",
        ),
        (
            [step(1, "server-version", "0.20.2")],
            [flag(2, "gpu_memory_utilization", "0.7", "command")],
            "0.20.2",
            20002,
            "V1",
            0.7,
            "command",
        ),
    ],
)
def test_versions_generations_and_their_default_utilization(
    milestones: list[dict[str, Any]],
    flags: list[dict[str, Any]],
    version: str | None,
    number: int | None,
    generation: str | None,
    utilization: float | None,
    origin: str | None,
) -> None:
    with made(milestone=milestones, engine_flag=flags) as held:
        row = one(held, "engine")
        assert (row["version"], row["version_number"], row["generation"]) == (version, number, generation)
        assert (row["gpu_memory_utilization"], row["utilization_origin"]) == (utilization, origin)


def test_what_the_log_states_outranks_command_and_metrics() -> None:
    with made(
        engine_flag=[
            {"source": "command.txt", **flag(1, "max_num_seqs", "512", "command")}, {"source": "m.prom", **flag(1, "max_num_seqs", "256", "metrics")},
            flag(3, "max_num_seqs", "128"), flag(4, "dtype", "torch.bfloat16", "config"), flag(5, "quantization", "None", "config"),
        ],
    ) as held:  # fmt: skip
        row = one(held, "engine")
        assert (row["max_num_seqs"], row["dtype"], row["quantization"]) == (128, "torch.bfloat16", None)


def test_a_published_ledger_gives_its_bytes_per_token() -> None:
    # Qwen3-8B on an A100-40 with 0.19: 36 layers x 8 heads x 128 x 2 x 2 bytes = 147,456 per token
    with made(
        milestone=[start(1, "0.19.1")],
        engine_figure=[
            figure(9, "weights_bytes", g(15.27)), figure(10, "kv_available_bytes", g(19.36)), figure(11, "kv_pool_tokens", 140_960),
            figure(12, "total_bytes", g(39.49)), figure(13, "graph_bytes", g(2.44)),
        ],
    ) as held:  # fmt: skip
        row = one(held, "engine")
        assert row["kv_bytes_per_token"] == pytest.approx(147_456, rel=2e-4)
        assert row["budget_bytes"] == pytest.approx(0.9 * g(39.49), rel=1e-9)
        ledger = one(held, "ledger")
        assert {name: ledger[name] for name in ("weights_bytes", "kv_pool_bytes", "cuda_graph_bytes", "kv_pool_tokens")} == {
            "weights_bytes": g(15.27), "kv_pool_bytes": g(19.36), "cuda_graph_bytes": g(2.44), "kv_pool_tokens": 140_960,
        }  # fmt: skip
        assert ledger["refs"] == [f"{LOG}:9", f"{LOG}:10", f"{LOG}:13"]


def test_v0_counts_blocks_of_sixteen() -> None:
    with made(
        milestone=[start(1, "0.6.6")],
        engine_figure=[figure(9, "num_gpu_blocks", 5691), figure(10, "kv_available_bytes", g(11.12))],
    ) as held:
        row = one(held, "engine")
        assert (row["kv_pool_tokens"], row["num_gpu_blocks"]) == (91_056, 5691)
        assert row["kv_bytes_per_token"] == pytest.approx(131_072, rel=5e-4)  # Llama-3-8B


def test_the_smallest_rank_rules() -> None:
    with made(
        engine_flag=[flag(2, "tensor_parallel_size", "2"), flag(2, "pipeline_parallel_size", "2")],
        engine_figure=[
            figure(9, "kv_available_bytes", g(36.1), process="VllmWorker", pid=411, rank=0), figure(10, "kv_available_bytes", g(24.1), process="VllmWorker", pid=412, rank=1),
            figure(11, "kv_pool_tokens", 473_440), figure(12, "kv_pool_tokens", 315_872),
        ],
    ) as held:  # fmt: skip
        row = one(held, "engine")
        assert (row["world_size"], row["kv_available_bytes"], row["kv_available_max_bytes"], row["kv_pool_tokens"]) == (
            4,
            g(24.1),
            g(36.1),
            315_872,
        )
        rank = one(held, "rank")
        assert (rank["ranks"], rank["uneven"], rank["kv_spread_bytes"], rank["kv_ref"]) == (
            2,
            True,
            g(36.1) - g(24.1),
            f"{LOG}:10",
        )


@pytest.mark.parametrize(
    ("name", "params", "bytes_per_param"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", 70e9, 2.0),
        ("/models/Llama-2-13b-chat-hf", 13e9, 2.0),
        ("Qwen/Qwen3-0.6B", 0.6e9, 2.0),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", 7e9, 0.56),
        ("Qwen/Qwen3-30B-A3B-FP8", 30e9, 1.05),
        ("mistralai/Mixtral-8x7B-v0.1", 46.48e9, 2.0),
        ("unsloth/llama-3-8b-bnb-4bit", 8e9, 0.56),
        ("org/Chat-7B-w4afp8", 7e9, 0.56),
        ("/home/ubnbuser/q4x/Chat-8B", 8e9, 2.0),
        ("openai/gpt-oss-120b", 120e9, 2.0),
        ("deepseek-ai/DeepSeek-V3", None, 2.0),
    ],
)
def test_parameters_and_format_by_the_name(name: str, params: float | None, bytes_per_param: float) -> None:
    with made(engine_flag=[flag(2, "model", name)]) as held:
        row = one(held, "model")
        assert row["params"] == (pytest.approx(params) if params else None)
        assert float(row["bytes_per_param"]) == bytes_per_param


# ---- the failure in focus


@pytest.mark.parametrize(
    ("frames", "milestones", "phase", "by"),
    [
        (["load_model", "create_weights"], [], "load", "frames"),
        (["initialize_kv_cache"], [], "kv-alloc", "frames"),
        (["determine_available_memory", "profile_run", "execute_model"], [], "profile", "frames"),
        (["profile_cudagraph_memory", "capture_model"], [], "graph-profile", "frames"),
        (["compile_or_warm_up_model", "capture_model"], [], "capture", "frames"),
        (["compile_or_warm_up_model", "_dummy_sampler_run"], [], "sampler-warmup", "frames"),
        (["execute_model"], [], "forward", "frames"),
        ([], ["load-start", "load-progress"], "load", "milestones"),
        ([], ["load-start", "loaded"], "profile", "milestones"),
        ([], ["loaded", "kv-available"], "kv-alloc", "milestones"),
        ([], ["kv-sized", "capture-progress"], "capture", "milestones"),
        ([], ["captured"], "warmup", "milestones"),
        ([], ["engine-ready", "serving"], "forward", "milestones"),
        (["execute_model"], ["loaded"], "forward", "frames"),
        ([], [], None, None),
    ],
)
def test_the_phase_comes_from_frames_or_else_from_the_last_milestone(
    frames: list[str], milestones: list[str], phase: str | None, by: str | None
) -> None:
    with made(
        milestone=[step(10 + place, name) for place, name in enumerate(milestones)],
        frame=[
            {"line": 40 + place, "function": name, "file": "/v/v1/worker/gpu_model_runner.py"}
            for place, name in enumerate(frames)
        ],
        oom=[oom(60)],
    ) as held:
        row = one(held, "failure")
        assert (row["phase"], row["phase_by"]) == (phase, by)


@pytest.mark.parametrize(
    ("check", "phase"),
    [
        ("no-kv-blocks", "kv-plan"),
        ("kv-below-max-model-len", "kv-plan"),
        ("free-memory", "init"),
        ("profiling-interference", "profile"),
        ("warmup", "sampler-warmup"),
        ("load-oom", "load"),
    ],
)
def test_a_refusal_tells_its_phase(check: str, phase: str) -> None:
    with made(milestone=[start(1)], startup_check=[{"line": 40, "name": check}]) as held:
        assert one(held, "failure")["phase"] == phase


def test_the_books_of_an_allocator_message() -> None:
    # a published message: total 79.18, free 23.04, another process 4.08, this one 52.02, allocated 45.89, unallocated 3.01, asked 25.96
    message = oom(
        25, requested_bytes=g(25.96), total_bytes=g(79.18), free_bytes=g(23.04), this_process_bytes=g(52.02), other_processes_bytes=g(4.08), other_processes=1,
        allocated_bytes=g(45.89), private_pool_bytes=round(1.38 * MIB), unallocated_bytes=g(3.01),
    )  # fmt: skip
    with made(oom=[message]) as held:
        row = one(held, "failure")
        assert row["reserved_bytes"] == pytest.approx(g(48.90), abs=2)
        assert row["non_torch_bytes"] == pytest.approx(g(3.12), abs=2)
        assert row["live_bytes"] == g(45.89) - round(1.38 * MIB)
        assert row["pieces_fit"] is True, "free and unallocated together would have held it"
        assert row["split_share"] == pytest.approx(3.01 / 25.96, rel=1e-6)
        ledger = one(held, "ledger")
        assert (ledger["other_processes_bytes"], ledger["allocator_slack_bytes"], ledger["free_bytes"]) == (
            g(4.08),
            g(3.01),
            g(23.04),
        )


def test_the_message_with_figures_is_read_before_one_without() -> None:
    with made(
        oom=[oom(5, requested_bytes=None, allocator="nccl"), oom(9, requested_bytes=g(1), total_bytes=g(23.5))]
    ) as held:
        row = one(held, "failure")
        assert (row["oom_ref"], row["ooms"], row["requested_bytes"]) == (f"{LOG}:9", 2, g(1))


def test_ranks_that_failed_are_counted_apart_from_messages() -> None:
    with made(oom=[oom(5, rank=0), oom(6, rank=1), oom(7, rank=1)]) as held:
        assert (one(held, "failure")["ooms"], one(held, "failure")["ranks_failed"]) == (3, 2)


def test_the_first_error_is_no_echo_and_not_about_memory() -> None:
    with made(
        log_error=[
            {"line": 3, "kind": "echo", "text": "EngineCore failed to start"}, {"line": 4, "kind": "memory", "text": "CUDA out of memory"},
            {"line": 5, "kind": "driver", "text": "Error 803"}, {"line": 6, "kind": "network", "text": "Connection refused"},
        ],
    ) as held:  # fmt: skip
        row = one(held, "failure")
        assert (row["first_error_kind"], row["first_error_ref"]) == ("driver", f"{LOG}:5")


# ---- traffic and pressure


def test_pressure_of_statistics_lines() -> None:
    with made(
        engine_stat=[
            stat(10, 0.62, 0, 12, prompt_tokens_per_s=2100.0),
            stat(20, 0.98, 3, 21, prompt_tokens_per_s=3400.0),
            stat(30, 0.99, 9, 18, prompt_tokens_per_s=0.0),
            stat(40, 0.30, 2, 8),
        ],
        preemption=[{"line": 25, "mode": "RECOMPUTE", "cumulative": 51}, {"line": 35, "mode": "ABORT"}],
    ) as held:
        row = one(held, "kv_pressure")
        wanted = {
            "samples": 4, "share_pinned": 0.5, "peak": 0.99, "peak_ref": f"{LOG}:30", "waiting_max": 9, "queued_full": 2, "queued_roomy": 1, "queued": 3,
            "stalled": 1, "running_drop": 1, "preemptions": 51, "preemption_ref": f"{LOG}:25", "swaps": 1, "first_ref": f"{LOG}:20",
        }  # fmt: skip
        assert {name: row[name] for name in wanted} == wanted


def test_metrics_speak_where_the_log_is_silent() -> None:
    def sample(line: int, name: str, value: float, t: float = 1.7e9) -> dict[str, Any]:
        return {"source": "m.prom", "line": line, "t": t, "name": name, "value": value, "labels": 'engine="0"'}

    gauges = [sample(1, "vllm:kv_cache_usage_perc", 0.97), sample(2, "vllm:num_requests_waiting", 22.0)]
    with made(
        metric=[
            *gauges,
            sample(3, "vllm:num_preemptions_total", 0.0),
            sample(4, "vllm:num_preemptions_created", 1.79e9),
        ]
    ) as held:
        row = one(held, "kv_pressure")
        assert (row["samples"], row["peak"], row["waiting_max"], row["preemptions"], row["preemption_ref"]) == (
            1,
            0.97,
            22,
            0,
            None,
        )
    with made(metric=gauges) as held:
        assert one(held, "kv_pressure")["preemptions"] is None, "nobody counted, which is not zero"
    with made(metric=gauges, engine_stat=[stat(10, 0.9), stat(20, 0.9), stat(30, 0.9)]) as held:
        assert one(held, "kv_pressure")["peak"] == 0.9, "with enough lines of the log the gauges are not mixed in"


def test_traffic_buckets_statuses_and_flight() -> None:
    rows = [
        {"t": 100.0, "input_tokens": 40, "output_tokens": 100, "latency_s": 10.0, "status": 200}, {"t": 101.0, "input_tokens": 600, "output_tokens": 600, "latency_s": 2.0, "status": 200},
        {"t": 102.0, "input_tokens": 3000, "output_tokens": None, "latency_s": 1.0, "status": 499}, {"t": 103.0, "input_tokens": 9000, "output_tokens": None, "latency_s": None, "status": 0},
        {"t": 104.0, "input_tokens": 100, "output_tokens": None, "latency_s": 0.1, "status": 503}, {"t": 105.0, "input_tokens": 100, "output_tokens": None, "latency_s": 0.1, "status": 500},
    ]  # fmt: skip
    with made(request=rows) as held:
        row = one(held, "traffic")
        assert (row["requests"], row["failed"], row["refused"], row["client_gone"], row["unanswered"]) == (
            6,
            1,
            1,
            1,
            1,
        )
        assert (row["small"], row["medium"], row["large"], row["xlarge"]) == pytest.approx((3 / 6, 1 / 6, 1 / 6, 1 / 6))
        assert (row["input_max"], row["context_max"]) == (9000, 9000)
        buckets = {(b["measure"], b["bucket"]): b["requests"] for b in held.rows_of("SELECT * FROM traffic_bucket")}
        assert [buckets["input", size] for size in ("S", "M", "L", "XL")] == [3, 1, 1, 1]
        assert [buckets["context", size] for size in ("S", "M", "L", "XL")] == [1, 1, 0, 0]
        flight = held.rows_of("SELECT * FROM traffic_flight")
        assert max(step["requests"] for step in flight) == 3
        assert sum(step["arrivals"] for step in flight) == 6


# ---- devices, hosts, series


def test_devices_of_several_sources() -> None:
    with made(
        gpu_sample=[
            {
                "source": "smi.csv",
                "line": n + 1,
                "gpu": n,
                "used_bytes": g(78.9) if n == 0 else 4 * MIB,
                "total_bytes": g(79.6),
            }
            for n in range(4)
        ],
        gpu_device=[
            {"source": "smi-L.txt", "line": n + 1, "gpu": n, "name": "NVIDIA H100 80GB HBM3"} for n in range(4)
        ],
        container=[{"source": "pod.txt", "line": 3, "gpus": 2}],
        gpu_process=[
            {
                "source": "smi.txt",
                "line": 9,
                "gpu": 0,
                "pid": 1,
                "type": "C",
                "name": "VLLM::EngineCore",
                "used_bytes": g(70),
            },
            {
                "source": "smi.txt",
                "line": 10,
                "gpu": 0,
                "pid": 2,
                "type": "C",
                "name": "/opt/train/finetune",
                "used_bytes": g(8),
            },
            {
                "source": "smi.txt",
                "line": 11,
                "gpu": 0,
                "pid": 3,
                "type": "G",
                "name": "/usr/lib/xorg/Xorg",
                "used_bytes": 4 * MIB,
            },
        ],
    ) as held:
        row = one(held, "device")
        wanted = {
            "devices": 4, "name": "NVIDIA H100 80GB HBM3", "idle_devices": 3, "idle_ref": "smi.csv:2", "foreign_processes": 1, "foreign_bytes": g(8),
            "foreign_ref": "smi.txt:10", "mig_profile": None, "total_bytes": g(79.6),
        }  # fmt: skip
        assert {name: row[name] for name in wanted} == wanted


def test_a_slice_is_no_further_device() -> None:
    with made(
        gpu_device=[
            {"gpu": 0, "name": "NVIDIA A100-SXM4-80GB"},
            {"gpu": 0, "name": "MIG 1g.10gb", "mig_profile": "1g.10gb", "line": 2},
        ]
    ) as held:
        assert one(held, "device")["mig_profile"] == "1g.10gb"
        assert (one(held, "device")["devices"] or 1) == 1


@pytest.mark.parametrize(
    ("held_gib", "stepped"),
    [
        ([6.1, 9.2, 12.0], True),
        ([6.1, 6.9, 6.9], False),
        ([6.1, 7.0, 7.9], False),
        ([0.1, 0.2, 0.3], False),
        ([12.0, 6.1, 6.1], False),
    ],
)
def test_equal_states_that_hold_more_each_time(held_gib: list[float], stepped: bool) -> None:
    rows = [
        {"name": "engine", "state": f"idle after round {place}", "resource": "host", "bytes": g(size)}
        for place, size in enumerate(held_gib, 1)
    ]
    with made(process_memory=rows) as held:
        assert one(held, "memory_trend")["stepped"] is stepped


@pytest.mark.parametrize(
    ("sizes", "climbing"),
    [
        ([4 + 0.15 * n for n in range(20)], True),
        ([4 + min(0.5 * n, 2) for n in range(20)], False),
        ([6.0] * 20, False),
        ([4 + 0.15 * n for n in range(10)], True),
        ([4, 4.5, 5, 5.5], None),
        ([4 + 0.03 * n for n in range(10)], False),
        ([4, 4.1, 4, 6, 6.1, 6, 6.1, 6], False),
        ([4, 5, 4.4, 5.6, 4.1, 5.2, 4.3, 5.5, 4.2, 5.3], False),
        ([4 + 0.3 * n for n in range(8)] + [4], False),
    ],
    ids=["climbs", "plateau", "flat", "ten points", "too few", "too little", "one step", "noise", "comes back"],
)
def test_a_series_that_climbs_to_its_end(sizes: list[float], climbing: bool | None) -> None:
    rows = [
        {"t": 1.76e9 + 150 * place, "name": "engine", "resource": "host", "bytes": g(size)}
        for place, size in enumerate(sizes)
    ]
    with made(process_memory=rows) as held:
        assert one(held, "memory_trend")["climbing"] is climbing


def series(sizes: Sequence[float], start: int = 1, **more: Any) -> list[dict[str, Any]]:
    """Samples of one series, a step apart; keys that hold a list give each sample its own."""
    return [
        {"line": start + n, "step": n, "resource": "host", "bytes": g(size), **{key: value[n] if isinstance(value, list) else value for key, value in more.items()}}
        for n, size in enumerate(sizes)
    ]  # fmt: skip


def test_a_variant_that_stays_is_the_control_of_one_that_climbs() -> None:
    rows = [*series([3 + n for n in range(9)], variant="spec on"), *series([3.0, 3.4, 3.5, 3.5, 3.4, 3.5, 3.5, 3.4, 3.5], 20, variant="spec off")]  # fmt: skip
    with made(process_memory=rows) as held:
        trend = one(held, "memory_trend")
    assert (trend["climbing"], trend["variant"], trend["control"], trend["flat"]) == (
        True,
        "spec on",
        "spec off",
        False,
    )
    assert trend["growth_bytes"] == g(8) and trend["control_last_bytes"] == g(3.5)


@pytest.mark.parametrize(
    ("sizes", "kept"), [([4, 5, 6, 6, 6, 7, 8, 8, 9], True), ([4, 5, 6, 5.2, 4.8, 6, 7, 6.3, 8], False)]
)
def test_idle_moments_keep_the_height_or_not(sizes: list[float], kept: bool) -> None:
    done = [0, 10, 20, 20, 20, 30, 40, 40, 50]
    with made(process_memory=series(sizes, requests=[float(n) for n in done])) as held:
        trend = one(held, "memory_trend")
    assert (trend["climbing"], trend["idle_samples"], trend["idle_kept"]) == (True, 3, kept)
    assert trend["per_request_bytes"] == pytest.approx((g(sizes[-1]) - g(sizes[0])) / 50)


def test_ranks_that_climb_alike_are_one_fact() -> None:
    rows = [row for gpu in range(4) for row in series([60 + n for n in range(7)], 1 + 10 * gpu, name=f"GPU {gpu}", resource="gpu", running=[5.0, 5.0, 0.0, 0.0, 5.0, 5.0, 5.0])]  # fmt: skip
    with made(process_memory=rows) as held:
        trend = one(held, "memory_trend")
    assert (trend["climbing"], trend["alike"], trend["resource"]) == (True, 4, "gpu")


@pytest.mark.parametrize(
    ("text", "resource", "said"),
    [("memory climbs all day, a leak?", "gpu", False), ("RSS climbs all day, a leak?", "gpu", True), ("RSS climbs all day, a leak?", "host", False)],
)  # fmt: skip
def test_a_measured_series_that_stays_refutes_what_is_said_of_it(text: str, resource: str, said: bool) -> None:
    note = [{"topic": "grows", "text": text}]
    with made(note=note, process_memory=series([9.0, 9.01, 9.0, 9.02, 9.0, 9.01], resource=resource)) as held:
        trend = one(held, "memory_trend")
    assert (trend["flat"], trend["flat_samples"], trend["grows_said"]) == (True, 6, said)


def test_a_start_is_no_part_of_a_trend() -> None:
    states = ["load", "loading shards", "profile run", "capture", "warm-up", "serving", "serving", "serving", "serving", "serving"]  # fmt: skip
    with made(process_memory=series([2, 9, 20, 31, 40, 41, 41, 41, 41, 41], state=states)) as held:
        assert one(held, "memory_trend")["climbing"] is False


def test_three_states_after_the_start_with_work_among_them_are_level() -> None:
    rows = [{"state": state, "resource": "gpu", "bytes": g(size)} for state, size in (("empty", 0.1), ("ready", 20), ("during the burst", 20.1), ("an hour later", 20.1))]  # fmt: skip
    with made(process_memory=rows) as held:
        assert one(held, "memory_trend")["flat"] is True
    with made(process_memory=[*rows, {"state": "at night", "resource": "gpu", "bytes": g(23)}]) as held:
        assert one(held, "memory_trend")["flat"] is not True


@pytest.mark.parametrize(("asleep", "kept"), [(30.0, 0.75), (1.5, 0.0375)])
def test_what_a_sleeping_server_keeps(asleep: float, kept: float) -> None:
    rows = [{"variant": name, "state": state, "resource": "gpu", "bytes": g(size)} for name, state, size in (("b", "awake", 40), ("b", "asleep", asleep), ("a", "awake", 40), ("a", "asleep", 1.2))]  # fmt: skip
    with made(process_memory=rows) as held:
        trend = one(held, "memory_trend")
    assert (trend["asleep_kept"], trend["asleep_name"]) == (pytest.approx(kept), "b")
    assert trend["asleep_control"] == "a"


def tries(*rows: tuple[dict[str, str], bool | None], experiment: int = 1) -> list[dict[str, Any]]:
    return [
        {"line": n, "experiment": experiment, "attempt": n, "flag": flag, "value": value, "works": works, "text": f"try {n}"}
        for n, (settings, works) in enumerate(rows, 1)
        for flag, value in settings.items()
    ]  # fmt: skip


def test_the_only_difference_between_two_tries_decides() -> None:
    rows = tries(({"version": "1", "enable_lora": "on"}, True), ({"version": "2", "enable_lora": "on"}, False), ({"version": "2", "enable_lora": "off"}, True), ({"version": "3", "enable_lora": "off"}, True))  # fmt: skip
    with made(trial=rows) as held:
        found = held.rows_of("SELECT flag, value, other, off FROM tried WHERE paired ORDER BY flag, value")
    assert [tuple(row.values()) for row in found] == [("enable_lora", "off", "on", True), ("version", "1", "2", False)]


@pytest.mark.parametrize(
    ("good", "bad", "found"),
    [
        ({"max_num_seqs": "64"}, {"max_num_seqs": "512"}, ("max_num_seqs", True, False)),
        ({"tensor_parallel_size": "4"}, {"tensor_parallel_size": "2"}, ("tensor_parallel_size", False, True)),
        ({"max_num_seqs": "64", "max_model_len": "9"}, {"max_num_seqs": "512", "max_model_len": "99"}, None),  # two differences
        ({"max_num_seqs": "64", "@clients": "4"}, {"max_num_seqs": "512", "@clients": "9"}, None),  # another load
        ({"enable_lora": "off"}, {"enable_lora": "on", "max_loras": "8"}, ("enable_lora", False, False)),  # one feature
    ],
)  # fmt: skip
def test_what_differs_and_in_which_direction(good: dict[str, str], bad: dict[str, str], found: tuple[str, bool, bool] | None) -> None:  # fmt: skip
    with made(trial=tries((good, True), (bad, False))) as held:
        rows = held.rows_of("SELECT flag, lower, higher FROM tried WHERE paired ORDER BY flag LIMIT 1")
    assert [tuple(row.values()) for row in rows] == ([found] if found else [])


def test_of_a_sentence_by_itself_its_first_setting_counts() -> None:
    with made(trial=tries(({"version": "1", "enforce_eager": "on", "swap_space": "2"}, True), experiment=0)) as held:
        assert [(row["flag"], row["paired"]) for row in held.rows_of("FROM tried")] == [("enforce_eager", False)]


def test_what_a_setting_does_to_a_figure() -> None:
    rows = tries(({"max_local_cpu_size": "90", "@round": "2"}, None), ({"max_local_cpu_size": "20", "@round": "2"}, None), ({"max_local_cpu_size": "20", "@round": "1"}, None))  # fmt: skip
    hits = [{"line": n, "experiment": 1, "attempt": n, "name": name, "quantity": quantity, "value": value} for n, got in ((1, 800.0), (2, 10.0), (3, 0.0)) for name, quantity, value in (("gpu_hit", "hit_tokens", got / 2), ("cpu_hit", "hit_tokens", got / 2), ("asked", "asked_tokens", 1000.0))]  # fmt: skip
    with made(trial=rows, trial_figure=hits) as held:
        (row,) = held.rows_of("SELECT flag, from_value, to_value, quantity, from_amount, to_amount FROM effect")
    assert tuple(row.values()) == ("max_local_cpu_size", "20", "90", "hit_share", 0.01, 0.8)


@pytest.mark.parametrize(("own", "of_files"), [(4.0, True), (27.0, False)])
def test_a_group_full_of_files_or_of_its_own_memory(own: float, of_files: bool) -> None:
    rows = [{"name": "memory group", "resource": "host", "bytes": g(own)}, {"name": "memory group", "resource": "page-cache", "bytes": g(31 - own)}, {"name": "memory group", "resource": "host-limit", "bytes": g(32)}]  # fmt: skip
    with made(process_memory=rows) as held:
        assert one(held, "page_cache")["of_files"] is of_files


@pytest.mark.parametrize(
    ("cached", "cold"),
    [
        ([0, 7900, 8900, 0, 10900, 0, 12900], 2),
        ([0, 7900, 8900, 9900, 10900, 11900, 12900], 0),
        ([0, 0, 0, 0, 0, 0, 0], 0),  # never hit: another thing
    ],
)
def test_turns_that_find_nothing_of_what_was_there(cached: list[int], cold: int) -> None:
    rows = [{"input_tokens": 8000 + 1000 * n, "cached_tokens": hit, "ttft_s": 0.4 if hit else 6.0} for n, hit in enumerate(cached)]  # fmt: skip
    with made(request=rows) as held:
        found = one(held, "cached_turn")
    assert (found["turns"], found["cold"]) == (7, cold)


def test_a_mix_of_requests_is_no_conversation() -> None:
    rows = [{"input_tokens": size, "cached_tokens": hit} for size, hit in ((9000, 0), (1200, 600), (30000, 0), (2000, 1500), (8000, 0), (1500, 800))]  # fmt: skip
    with made(request=rows) as held:
        assert not held.rows_of("FROM cached_turn")


@pytest.mark.parametrize(
    ("rows", "blind", "wrong"),
    [
        ([{"kind": "metric", "name": "cpu", "text": "cpu 12%/80%"}], False, True),
        ([{"kind": "metric", "name": "DCGM_FI_DEV_GPU_UTIL", "text": "gpu_util 99/80"}], False, True),
        ([{"kind": "metric", "name": "vllm:num_requests_waiting", "text": "22 / 5"}], False, False),
        ([{"kind": "metric", "name": "vllm:gpu_cache_usage_perc", "text": "970m / 800m"}], False, False),
        ([{"kind": "metric", "name": "cpu"}, {"kind": "metric", "name": "vllm:num_requests_waiting"}], False, False),
        ([{"kind": "blind", "name": "ScalingActive", "text": "unable to get metric"}], True, None),
    ],
)
def test_what_a_scaler_sees(rows: list[dict[str, Any]], blind: bool, wrong: bool | None) -> None:
    with made(scaler=rows) as held:
        assert (one(held, "scaling")["blind"], one(held, "scaling")["wrong_metric"]) == (blind, wrong)


def test_probe_kills_are_told_from_readiness() -> None:
    def event(line: int, reason: str, message: str, count: int) -> dict[str, Any]:
        return {"source": "pod.txt", "line": line, "reason": reason, "message": message, "count": count}

    with made(
        cluster_event=[
            event(1, "Unhealthy", "Readiness probe failed: connection refused", 12), event(2, "Unhealthy", "Liveness probe failed: timeout", 9),
            event(3, "Killing", "Container server failed liveness probe, will be restarted", 3), event(4, "Killing", "Stopping container server", 1),
        ],
        container=[{"source": "pod.txt", "line": 9, "restarts": 3, "exit_code": 137, "last_reason": "Error", "ran_s": 90.0}],
    ) as held:  # fmt: skip
        row = one(held, "workload")
        assert (row["probe_failures"], row["probe_kills"], row["restarts"], row["exit_code"], row["ran_s"]) == (
            9,
            3,
            3,
            137,
            90.0,
        )
        assert (row["probe_ref"], row["probe_kill_ref"], row["memory_words"]) == ("pod.txt:2", "pod.txt:3", False)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(*[st.one_of(st.none(), st.integers(0, 20), st.integers(0, 10**6))] * 2, st.floats(0, 1e3)), min_size=1
    )
)
def test_percentiles_of_requests_are_those_of_quantile_disc(rows: list[tuple[int | None, int | None, float]]) -> None:
    with duckdb.connect() as db:
        db.execute("CREATE TABLE request (line UINTEGER, input_tokens BIGINT, output_tokens BIGINT, latency_s DOUBLE)")
        db.execute("ALTER TABLE request ADD COLUMN ttft_s DOUBLE")
        db.executemany("INSERT INTO request VALUES (?, ?, ?, ?, NULL)", [(line, *row) for line, row in enumerate(rows)])
        wanted = []
        for name, measure in (
            ("context_tokens", "input_tokens + output_tokens"),
            ("input_tokens", "input_tokens"),
            ("latency_s", "latency_s"),
            ("least_context_tokens", "input_tokens + coalesce(output_tokens, 0)"),
            ("output_tokens", "output_tokens"),
        ):
            query = f"SELECT quantile_disc({measure}, [0.5, 0.9, 0.95, 0.99]), max({measure}) FROM request"
            percentiles, largest = db.execute(query).fetchone() or (None, None)
            if percentiles is not None:
                wanted.append((name, *map(float, percentiles), float(largest)))
        assert db.execute(VIEWS["request_size"].sql).fetchall() == wanted
