"""What whole nodes hand in beside a log: a gateway's sheet of what became of its requests, answers of a console, counters of processors
that a limit stops, the supervisor's word on a unit, and errors of those who ask."""

from __future__ import annotations

from typing import Any

import pytest

from forms import read
from oomdoc.ingest.forms import grammar
from oomdoc.ingest.log_errors import error_kind


def rows(text: str, table: str, name: str = "any.txt") -> list[dict[str, Any]]:
    return read(name, text.encode())[1].get(table, [])


SHEET = (
    "minute,requests_in,http_200,http_503,client_gave_up_504,p95_first_token_s,p50_ms,p95_e2e_s\n"
    "09:00,410,405,5,0,1.25,880,9.5\n"
    "09:01,420,398,12,10,2.5,910,14.0\n"
)


def figures(text: str) -> list[tuple[str, float]]:
    """Quantities and values of a sheet, in their order; those that have no name of ours are left out."""
    return [(row["quantity"], row["value"]) for row in rows(text, "trial_figure", "sheet.csv") if row["quantity"]]


def test_a_gateways_sheet() -> None:
    assert figures(SHEET) == [
        ("sent", 410), ("answered", 405), ("failed", 5), ("failed", 0), ("ttft_s", 1.25), ("latency_s", 0.88), ("latency_s", 9.5),
        ("sent", 420), ("answered", 398), ("failed", 12), ("failed", 10), ("ttft_s", 2.5), ("latency_s", 0.91), ("latency_s", 14.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("answered,errors_5xx", {"answered", "failed"}),
        ("requests,timeouts", {"sent", "failed"}),
        ("status_2xx,status_429", {"answered", "failed"}),
        ("http_200,http_499", {"answered", "failed"}),
        # of the caller's own making; counted by time; shares; sizes that look like statuses; only one side told
        ("http_200,http_404", set()),
        ("answered_per_min,errors_per_min", set()),
        ("http_200_per_s,http_503_per_s", set()),
        ("success_rate,error_rate", set()),
        ("ctx_200,ctx_503", set()),
        ("requests,prompt_512", set()),
        ("http_503,http_429", set()),
    ],
)
def test_which_sheets_count_answers_and_failures(head: str, told: set[str]) -> None:
    found = figures(f"minute,{head}\n09:00,90,4\n09:01,70,20\n")
    assert {quantity for quantity, _ in found} & {"sent", "answered", "failed"} == told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("p95_first_token_s", ("ttft_s", "s")),
        ("p50_ms", ("latency_s", "ms")),
        ("p95_e2e_s", ("latency_s", "s")),
        ("E2EL (ms)", ("latency_s", "ms")),
        ("p95_tokens", ("", "")),
        ("p95_queue_s", ("", "")),
        ("p50", ("", "")),
        ("note2edit_s", ("", "")),
        ("e2e_timeout_s", ("", "")),
    ],
)
def test_percentiles_of_seconds(name: str, told: tuple[str, str]) -> None:
    assert grammar.service(name) == told


WAITING = "vllm:num_requests_waiting"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param(f'{WAITING}\n{{instance="a:8000"}}   17\n{{instance="b:8000"}}\t3\n', [17.0, 3.0], id="two series"),
        pytest.param(f'sum by (instance) ({WAITING})\n\n{{instance="a:8000"}}  17\n', [17.0], id="a blank line between"),
        pytest.param(f'{WAITING}\n{{instance="a:8000"}}  17\n\nrate(http_requests_total[5m])\n{{instance="a:8000"}}  4\n', [17.0], id="below another query"),
        pytest.param('{instance="a:8000"}  17\n', [], id="nobody asked"),
        pytest.param(f'{WAITING}\n{{instance="a:8000"}}  17 of 20\n', [], id="no value"),
        pytest.param(f'{WAITING} / vllm:num_requests_running\n{{instance="a:8000"}}  17\n', [], id="of two series"),
    ],
)  # fmt: skip
def test_answers_of_a_console(text: str, values: list[float]) -> None:
    found = [row for row in rows(text, "metric", "console.txt") if row["name"] == WAITING]
    assert [row["value"] for row in found] == values
    assert {row["t"] for row in found} <= {None}, "a console tells no time"


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("nr_periods,nr_throttled", [("cpu-periods", 15000.0), ("cpu-throttled", 14000.0), ("cpu-periods", 15600.0), ("cpu-throttled", 14590.0)]),
        ("cfs_periods,throttled_periods", [("cpu-periods", 15000.0), ("cpu-throttled", 14000.0), ("cpu-periods", 15600.0), ("cpu-throttled", 14590.0)]),
        ("nr_periods,throttled_usec", []),
        ("period,nr_requests", []),
    ],
)  # fmt: skip
def test_processors_that_a_limit_stops(head: str, told: list[tuple[str, float]]) -> None:
    text = f"time,{head}\n10:00:00,15000,14000\n10:01:00,15600,14590\n"
    assert [(row["topic"], row["value"]) for row in rows(text, "note", "cpu.csv")] == told


def test_a_memory_group_as_somebody_samples_its_files() -> None:
    text = (
        "# every 5 s\nutc,memory.current,memory.max,shmem,pids.current,pids.max\n"
        "10:00:00,2362232012,751619276800,0,88,2000\n10:00:05,4402341478,751619276800,107374182,1990,2000\n"
    )
    told = [(row["topic"], row["value"]) for row in rows(text, "note", "group.csv")]
    assert told == [("container-limit", 751619276800.0), ("tasks", 88.0), ("tasks-limit", 2000.0), ("tasks", 1990.0), ("tasks-limit", 2000.0)]  # fmt: skip
    held = [(row["resource"], row["bytes"]) for row in rows(text, "process_memory", "group.csv")]
    assert held == [("container", 2362232012), ("container", 4402341478)]
    printed = "the vllm pod, its group:\n$ grep . /sys/fs/cgroup/pids.*\n/sys/fs/cgroup/pids.current:1990\n/sys/fs/cgroup/pids.max:2000\n"
    assert [row["topic"] for row in rows(printed, "note", "group.txt")] == ["tasks", "tasks-limit"]


def test_what_is_left_of_the_host_beside_a_device() -> None:
    text = "time  MemFree  MemAvail  mem.current  gpu0_used_mib\n10:00:00  20.6  120.6  0.4  1640\n10:00:10  17.1  120.8  4.2  2556\n"
    assert {row["used_bytes"] for row in rows(text, "gpu_sample", "s.txt")} <= {1640 * 2**20, 2556 * 2**20}
    kinds = {row["resource"] for row in rows(text, "process_memory", "s.txt")}
    assert kinds == {"host-available", "container", "gpu"}


@pytest.mark.parametrize("head", ["hour_utc", "sample"])
def test_a_moment_to_the_hour_orders_a_series(head: str) -> None:
    """And what stands beside it, a number of requests, does not."""
    text = f"{head};worker_rss_gib;requests\n2026-04-08 22;1.50;178\n2026-04-08 23;1.75;177\n2026-04-09 00;2.00;90\n"
    held = [(row["t"], row["step"], row["requests"]) for row in rows(text, "process_memory", "hours.csv")]
    assert held == [(1775685600.0, None, 178), (1775689200.0, None, 177), (1775692800.0, None, 90)]


def test_the_mount_of_shared_memory_in_a_table() -> None:
    text = "ts,shm_size_gib,shm_used_gib,cgroup_shmem_gib\n10:00:00,16.00,0.42,0.4\n10:01:00,16.00,15.90,15.8\n"
    assert [(row["topic"], row["value"]) for row in rows(text, "note", "shm.csv")] == [("shm-size", 16 * 2**30)]
    held = [(row["resource"], round(row["bytes"] / 2**30, 1)) for row in rows(text, "process_memory", "shm.csv")]
    assert held == [("shm", 0.4), ("shm", 15.9)]


def test_the_same_as_an_exporter_counts_it() -> None:
    text = (
        'container_cpu_cfs_periods_total{pod="a-0",container="s"} 15120\n'
        'container_cpu_cfs_throttled_periods_total{pod="a-0",container="s"} 310\n'
        'container_cpu_usage_seconds_total{pod="a-0",container="s"} 991\n'
        'container_cpu_cfs_throttled_seconds_total{pod="a-0",container="s"} 12\n'
    )
    assert [(row["name"], row["value"]) for row in rows(text, "metric", "cadvisor.prom")] == [
        ("container_cpu_cfs_periods_total", 15120.0),
        ("container_cpu_cfs_throttled_periods_total", 310.0),
    ]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("(code=exited, status=1/FAILURE)", 1),
        ("(code=exited, status=0/SUCCESS)", 0),
        ("(code=killed, signal=KILL)", -9),
        ("(code=killed, status=9/KILL)", -9),
        ("(code=dumped, signal=ABRT)", -6),
        ("(code=dumped, signal=SEGV)", -11),
        ("(python3)", None),
    ],
)
def test_how_a_unit_ended(said: str, code: int | None) -> None:
    text = f"● chat.service - answers\n     Active: see below\n   Main PID: 41233 {said}\n      Tasks: 0\n"
    found = [(row["pid"], row["exit_code"]) for row in rows(text, "process_exit")]
    assert found == ([] if code is None else [(41233, code)])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("HTTPConnectionPool(host='10.4.0.7', port=8000): Read timed out. (read timeout=30)", "client"),
        ("HTTPConnectionPool(host='llm', port=80): Max retries exceeded with url: /v1/models", "client"),
        (
            "HTTPSConnectionPool(host='hub.example.org', port=443): Max retries exceeded with url: /api/models",
            "network",
        ),
        ("[Errno 111] Connection refused", "network"),
    ],
)
def test_who_asks_over_plain_http_is_a_client(text: str, kind: str) -> None:
    """A hub is asked over TLS, by the server; a service over plain HTTP, by whoever calls it."""
    assert error_kind("requests.exceptions.ConnectionError", text) == kind


CONTAINERS = (
    "CONTAINER ID   IMAGE                      NAMES\n"
    "9ad04c7be113   vllm/vllm-openai:v0.13.0   aurora\n"
    "5f0c2e9ab417   house/tiles:3              tiles\n"
)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (CONTAINERS, ["9ad04c7be113", "5f0c2e9ab417"]),
        (CONTAINERS.replace("CONTAINER ID", "IMAGE ID    "), []),
        (CONTAINERS.replace("9ad04c7be113", "first       ").replace("5f0c2e9ab417", "second      "), []),
    ],
)
def test_a_list_of_containers(text: str, ids: list[str]) -> None:
    assert [row["container_id"] for row in rows(text, "container", "list.txt")] == ids


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("# sampler of the hour: date pid rss_kB threads args", 3),
        ("date pid rss_kB threads args", 3),
        ("# date pid rss_kB threads args", 3),
        # a comment with too few words behind its colon names no columns
        ("# sampler of the hour: pid rss_kB", 0),
    ],
)
def test_a_comment_names_the_columns_below_it(head: str, told: int) -> None:
    body = "".join(
        f"2026-02-03 0{hour}:00  77  {size}  41 python3 serve.py --port 80\n"
        for hour, size in enumerate((3000, 4000, 5000), 5)
    )
    found = [row for row in rows(f"{head}\n{body}", "process_memory") if "(pid 77)" in (row["name"] or "")]
    # the day and its clock are one moment, under one name
    assert [(row["t"], row["bytes"]) for row in found] == [
        (1770094800.0 + 3600 * at, size * 1024) for at, size in enumerate((3000, 4000, 5000))
    ][:told]
