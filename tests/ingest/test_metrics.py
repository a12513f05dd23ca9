"""Prometheus text: which series are kept, when a scrape was, and what the labels of the cache configuration say."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import device_metrics, is_program, make_head, metrics, program_text
from oomdoc.intake.scan import chunks

SCRAPE = """\
# HELP python_info Python platform information
# TYPE python_info gauge
python_info{implementation="CPython",major="3"} 1.0
# HELP process_resident_memory_bytes Resident memory size in bytes.
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 6.25e+08
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="acme/m-7b"} 12.0
vllm:kv_cache_usage_perc{engine="0",model_name="acme/m-7b"} 0.875
vllm:num_preemptions_total{engine="0",model_name="acme/m-7b"} 41.0
vllm:num_preemptions_created{engine="0",model_name="acme/m-7b"} 1.79e+09
# TYPE vllm:request_prompt_tokens histogram
vllm:request_prompt_tokens_bucket{engine="0",le="1.0",model_name="acme/m-7b"} 0.0
vllm:request_prompt_tokens_bucket{engine="0",le="+Inf",model_name="acme/m-7b"} 9.0
vllm:request_prompt_tokens_sum{engine="0",model_name="acme/m-7b"} 9000.0
vllm:request_prompt_tokens_count{engine="0",model_name="acme/m-7b"} 9.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",kv_cache_max_concurrency="5.5",kv_cache_size_tokens="22528",num_cpu_blocks="None",num_gpu_blocks="1408",gpu_memory_utilization="0.93"} 1.0
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",pod=""} 71234
DCGM_FI_DEV_FB_RESERVED{gpu="0"} 600
DCGM_FI_DEV_SM_CLOCK{gpu="0"} 1980
gpu_memory_used_bytes{gpu="0"} 6.8e+10
nvidia_smi_memory_used_bytes{uuid="a"} 7.0e+10
nvidia_smi_fan_speed_ratio{uuid="a"} 0.3
container_memory_working_set_bytes{container="vllm"} 4.0e+10
http_requests_total{handler="/v1/completions"} 77.0
"""


def read(text: str | bytes, path: str = "metrics.txt", size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    """All rows by table."""
    data = text if isinstance(text, bytes) else text.encode()
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in metrics.read(path, chunks(io.BytesIO(data), size)):
        names, columns = list(batch.columns), list(batch.columns.values())
        tables.setdefault(batch.table, []).extend(
            dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)
        )
    return tables


def is_metrics(text: str) -> bool:
    return metrics.matches(make_head("any", text.encode()))


def test_the_series_that_matter() -> None:
    rows = read(SCRAPE)["metric"]
    assert [row["name"].removeprefix("vllm:") for row in rows] == [
        "process_resident_memory_bytes", "num_requests_running", "kv_cache_usage_perc", "num_preemptions_total",
        "request_prompt_tokens_sum", "request_prompt_tokens_count", "cache_config_info", "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_FB_RESERVED", "DCGM_FI_DEV_SM_CLOCK", "gpu_memory_used_bytes", "nvidia_smi_memory_used_bytes", "container_memory_working_set_bytes",
    ]  # fmt: skip
    assert rows[0] == {"line": 6, "t": None, "name": "process_resident_memory_bytes", "labels": None, "value": 6.25e8}
    assert rows[2]["labels"] == 'engine="0",model_name="acme/m-7b"'
    assert rows[2]["value"] == 0.875
    assert "problem" not in read(SCRAPE)


def test_the_cache_configuration_is_settings_and_figures() -> None:
    tables = read(SCRAPE, "metrics-1790000000.prom")
    flags = {row["flag"]: row["value"] for row in tables["engine_flag"]}
    assert flags == {
        "block_size": "16", "cache_dtype": "auto", "kv_cache_max_concurrency": "5.5", "kv_cache_size_tokens": "22528",
        "num_gpu_blocks": "1408", "gpu_memory_utilization": "0.93",
    }  # fmt: skip
    assert {row["origin"] for row in tables["engine_flag"]} == {"metrics"}
    figures = {row["name"]: row["value"] for row in tables["engine_figure"]}
    assert figures == {
        "block_size": 16, "max_concurrency": 5.5, "kv_pool_tokens": 22528, "num_gpu_blocks": 1408, "gpu_memory_utilization": 0.93,
    }  # fmt: skip
    assert {row["line"] for row in tables["engine_figure"]} == {17}
    assert {row["t"] for row in tables["engine_figure"]} == {1790000000.0}


def test_settings_are_told_again_only_where_they_change() -> None:
    line = 'vllm:cache_config_info{block_size="16"} 1.0\n'
    assert len(read(line * 3)["engine_flag"]) == 1
    assert len(read(line + line.replace("16", "32"))["engine_flag"]) == 2


@pytest.mark.parametrize(
    ("path", "t"),
    [
        ("run/metrics-20261120T204630Z.prom", 1795207590.0),
        ("metrics-2026-11-20T20:46:30Z.txt", 1795207590.0),
        ("metrics-1710460860.prom", 1710460860.0),
        ("scrape-1710460860/metrics.prom", 1710460860.0),
        ("metrics-17104608601.prom", None),
        ("metrics-20261120T204630.prom", None),
        ("metrics.prom", None),
    ],
)
def test_the_time_of_a_file(path: str, t: float | None) -> None:
    assert metrics.time_of_file(path) == t


def test_times_inside_of_a_file() -> None:
    text = (
        "vllm:a 1\n# scraped at 2026-11-20T20:46:30Z\nvllm:a 2\n=== 2026-11-20 20:46:31 ===\nvllm:a 3\n"
        "# HELP vllm:a since 2020-01-01T00:00:00Z\nvllm:a 4 1795207590500\n2026-11-20T20:46:32Z\nvllm:a 5\n"
    )
    assert [row["t"] for row in read(text)["metric"]] == [None, 1795207590.0, 1795207591.0, 1795207590.5, 1795207592.0]


DUMP = """\
{__name__="up", instance="10.0.0.4:8000", job="vllm"} 1 1795207590000
{__name__="vllm:kv_cache_usage_perc", engine="0", instance="10.0.0.4:8000", job="vllm"} 0.5 1795207590000
{__name__="vllm:kv_cache_usage_perc", engine="0", instance="10.0.0.4:8000", job="vllm"} 0.875 1795207605000
{__name__="vllm:e2e_request_latency_seconds_bucket", engine="0", le="0.3"} 12 1795207590000
{__name__="vllm:num_preemptions_total", engine="0", job="a, b"} 7 1795207605000
"""


def test_a_dump_of_the_database() -> None:
    """`promtool tsdb dump`: the name is a label, the series come one after the other, each sample with its time."""
    assert is_metrics(DUMP)
    tables = read(DUMP)
    assert [(row["line"], row["t"], row["name"], row["value"]) for row in tables["metric"]] == [
        (2, 1795207590.0, "vllm:kv_cache_usage_perc", 0.5),
        (3, 1795207605.0, "vllm:kv_cache_usage_perc", 0.875),
        (5, 1795207605.0, "vllm:num_preemptions_total", 7.0),
    ]
    assert tables["metric"][2]["labels"] == 'engine="0", job="a, b"'
    assert "problem" not in tables
    assert not is_metrics('{__name__="up", job="node"} 1 1795207590000\n' * 3)
    assert not is_metrics('{"__name__": "vllm:num_requests_running", "value": 3}\n' * 3)


def test_values() -> None:
    text = 'vllm:a{x="1"} NaN\nvllm:a{x="2"} +Inf\nvllm:a{x="a b} 3"} 4\nvllm:a{x="3"}\t5\r\nvllm:a -1e-3\nvllm:a  7\n'
    rows = read(text)["metric"]
    assert [(row["labels"], row["value"]) for row in rows] == [
        ('x="a b} 3"', 4),
        ('x="3"', 5),
        (None, -0.001),
        (None, 7),
    ]


def test_broken_samples_are_problems() -> None:
    tables = read('vllm:a{x="1"} 1\nvllm:b{x="1" oops\nvllm:c twelve\nvllm:d\n')
    assert [row["line"] for row in tables["problem"]] == [2, 3, 4]
    assert len(tables["metric"]) == 1
    many = read("vllm:a x\n" * 500)["problem"]
    assert len(many) == 101
    assert many[-1]["reason"].startswith("400 more")


def test_chunks_do_not_matter() -> None:
    whole = read(SCRAPE)
    assert read(SCRAPE, size=200) == whole


def test_recognised() -> None:
    assert is_metrics(SCRAPE)
    assert is_metrics("# TYPE node_load1 gauge\nnode_load1 0.5\n")
    assert is_metrics('vllm:num_requests_running{engine="0"} 1.0\nvllm:num_requests_waiting{engine="0"} 0.0\n')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "INFO 11-20 20:04:51 [loggers.py:118] Engine 000: Avg prompt throughput: 1.0 tokens/s, Running: 1 reqs\n" * 9,
        "anon 12288\nfile 4096\nkernel_stack 16384\noom_kill 1\n",
        "MemTotal:       24689764 kB\nMemFree:        10000000 kB\n",
        "replicas: 3\nport: 8000\nmetadata:\n  name: vllm\n",
        "Name:         vllm-0\nNamespace:    prod\nPort:  8000/TCP\n",
        "[   12.345678] oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=77\n",
        "After the change\nvllm:prefix_cache_queries_total  +48021\nand nothing else moved\n",
        "We watched vllm:num_requests_waiting for an hour and it never moved.\n",
        "# TODO 2026\n# TYPE of GPU: unknown\nsome words here\n",
        "timestamp,pid,rss_bytes\n2026-11-20T20:04:51Z,7,1000\n",
    ],
)
def test_not_recognised(text: str) -> None:
    assert not is_metrics(text)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(SCRAPE.encode().splitlines()), st.binary(max_size=40))), st.integers(1, 300))
def test_any_bytes(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    tables = read(data, size=size)
    assert all(1 <= row["line"] <= data.count(b"\n") + 1 for rows in tables.values() for row in rows)
    metrics.matches(make_head("any", data))


# ---- exotic forms, devices


def test_exemplars_stamps_and_escapes() -> None:
    text = (
        "# TYPE vllm:prompt_tokens counter\n"
        'vllm:prompt_tokens_total{engine="0"} 41.0 # {trace_id="ab}c"} 3.0\n'
        'vllm:prompt_tokens_total{engine="1"} 42.0 1795205091.250 # {trace_id="x"} 3.0 1795205090.1\n'
        'vllm:num_requests_running{model_name="a # {b} \\"c\\\\",engine="0"} 7 1795205091250\n'
        "# EOF\n"
    )
    tables = read(text)
    assert "problem" not in tables
    assert [(row["t"], row["labels"], row["value"]) for row in tables["metric"]] == [
        (None, 'engine="0"', 41.0),
        (1795205091.25, 'engine="1"', 42.0),
        (1795205091.25, 'model_name="a # {b} \\"c\\\\",engine="0"', 7.0),
    ]
    assert is_metrics(text)


LABEL_TEXT = st.text(
    alphabet=st.characters(codec="utf-8", exclude_characters="\r\x85\u2028\u2029\x0b\x0c\x1c\x1d\x1e"), max_size=10
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(["engine", "model_name", "pod"]), LABEL_TEXT, max_size=3),
            st.floats(allow_nan=False, allow_infinity=False, width=32),
            st.none() | st.integers(1_500_000_000, 2_000_000_000),
            st.booleans(),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_the_library_reads_the_same(samples: list[tuple[dict[str, str], float, int | None, bool]]) -> None:
    """Prometheus' own Python library is the twin of the fast reader, in both dialects."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
    from prometheus_client.parser import text_string_to_metric_families as classic

    def label(value: str) -> str:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

    for dialect in ("classic", "openmetrics"):
        lines = []
        for at, (labels, value, stamp, exemplar) in enumerate(samples):
            inner = ",".join(f'{name}="{label(text)}"' for name, text in {**labels, "n": str(at)}.items())
            line = f"vllm:prompt_tokens_total{{{inner}}} {abs(value)}"
            if stamp is not None:
                line += f" {stamp}" if dialect == "openmetrics" else f" {stamp}000"
            if exemplar and dialect == "openmetrics":
                line += ' # {trace_id="x"} 1.0'
            lines.append(line)
        text = "# TYPE vllm:prompt_tokens counter\n" + "\n".join(lines) + "\n# EOF\n"
        families = (openmetrics if dialect == "openmetrics" else classic)(text)
        theirs = [(s.value, s.labels, s.timestamp) for family in families for s in family.samples]
        tables = read(text)
        ours = [
            (row["value"], {m[1]: unescaped(m[2]) for m in device_metrics.LABEL.finditer(row["labels"])}, row["t"])
            for row in tables["metric"]
        ]
        assert "problem" not in tables
        assert [value for value, _, _ in ours] == [value for value, _, _ in theirs]
        assert [labels for _, labels, _ in ours] == [labels for _, labels, _ in theirs]
        assert [t for _, _, t in ours] == [None if t is None else float(t) for _, _, t in theirs]


def unescaped(text: str) -> str:
    import re

    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)


DCGM = """\
# collected 2026-11-20T20:04:51Z
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",pod="chat-0"} 71000
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b",modelName="NVIDIA H100 80GB HBM3",Hostname="n1",pod=""} 3
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-b",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",Hostname="n1"} 5000
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"} 10000
DCGM_FI_DEV_FB_FREE{gpu="1",UUID="GPU-b",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"} 80997
DCGM_FI_DEV_FB_RESERVED{gpu="0",UUID="GPU-a",Hostname="n1"} 559
DCGM_FI_DEV_FB_RESERVED{gpu="1",UUID="GPU-b",Hostname="n1"} 9223372036854775794
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",Hostname="n1"} 97
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a",Hostname="n1"} 0
DCGM_FI_DEV_XID_ERRORS{gpu="1",UUID="GPU-b",Hostname="n1"} 79
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-c",Hostname="n2"} 20
"""


@pytest.mark.parametrize("size", [1 << 20, 200])
def test_dcgm_becomes_samples_of_devices(size: int) -> None:
    tables = read(DCGM, size=size)
    told = [(row["gpu"], row["used_bytes"], row["total_bytes"], row["gpu_util"]) for row in tables["gpu_sample"]]
    mib = 1 << 20
    assert told == [(0, 71000 * mib, 81559 * mib, 0.97), (1, 3 * mib, 81000 * mib, None), (2, 20 * mib, None, None)]
    assert {row["t"] for row in tables["gpu_sample"]} == {1795205091.0}
    card, other, instance = sorted(tables["gpu_device"], key=lambda row: (row["gpu"], row["mig_profile"] or ""))
    assert (card["name"], card["total_bytes"], card["mig_profile"]) == ("NVIDIA H100 80GB HBM3", 81559 * mib, None)
    assert other["mig_profile"] is None
    assert (instance["mig_profile"], instance["used_bytes"], instance["gpu"]) == ("1g.10gb", 5000 * mib, 1)
    (xid,) = tables["host_event"]
    assert (xid["kind"], xid["count"]) == ("xid", 79)


def test_scrapes_of_devices_without_times_stay_apart() -> None:
    scrape = 'DCGM_FI_DEV_FB_USED{gpu="0"} 1\nDCGM_FI_DEV_FB_FREE{gpu="0"} 9\n'
    rows = read(scrape * 3)["gpu_sample"]
    assert [(row["line"], row["total_bytes"]) for row in rows] == [(1, 10 << 20), (3, 10 << 20), (5, 10 << 20)]


def test_near_miss_a_memory_series_without_a_device() -> None:
    assert "gpu_sample" not in read(
        'container_memory_working_set_bytes{container="a"} 5\ngpu_memory_used_bytes{zone="x"} 6\n'
    )


def _blocks(*heads: str, values: tuple[int, ...] = (500, 400)) -> set[str | None]:
    """The labels of the same two series under each of some headings."""
    text = "".join(
        f'{head}\n# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{{engine="0"}} {value}\nvllm:num_requests_running{{engine="0"}} 3\n'
        for head, value in zip(heads, values * len(heads), strict=False)
    )
    return {row["labels"] for row in read(text)["metric"]}


@pytest.mark.parametrize(
    ("heads", "names"),
    [
        (("# replica 0", "# replica 1"), {"replica 0", "replica 1"}),
        (("==> pod-a <==", "==> pod-b <=="), {"pod-a", "pod-b"}),
        (("### engine 2 (11:30:05)", "### engine 3 (11:30:06)"), {"engine 2", "engine 3"}),
        (
            ("# --- agent-8b-7f6f9-4kq8m ---", "# --- agent-8b-7f6f9-x2lpv ---"),
            {"agent-8b-7f6f9-4kq8m", "agent-8b-7f6f9-x2lpv"},
        ),
        (("# replica 0", "# replica 1", "# replica 0", "# replica 1"), {"replica 0", "replica 1"}),
        (("# server blue", "# server green"), {"server blue", "server green"}),
    ],
)
def test_equal_series_belong_to_the_server_above_them(heads: tuple[str, ...], names: set[str]) -> None:
    assert _blocks(*heads) == {f'engine="0",instance="{name}"' for name in names}


@pytest.mark.parametrize(
    ("heads", "values"),
    [
        (("# 2026-06-03 11:30:00", "# 2026-06-03 11:40:00"), (500, 400)),
        (("# 11:30", "# 11:40"), (500, 400)),
        (("# before the load test", "# after the load test"), (500, 400)),
        (("# run-1", "# run-2"), (500, 600)),
        (("# server before", "# server after"), (500, 600)),
        (("# engine 0 before", "# engine 0 after"), (500, 400)),
    ],
)
def test_near_miss_headings_that_say_when_a_server_was_asked(heads: tuple[str, ...], values: tuple[int, ...]) -> None:
    assert _blocks(*heads, values=values) == {'engine="0"'}


def test_near_miss_headings_above_other_series() -> None:
    rows = read("# worker 1\nvllm:num_requests_running 3\n# worker 2\nvllm:num_requests_waiting 2\n")["metric"]
    assert {row["labels"] for row in rows} == {None}


def test_a_plain_scrape_is_asked_for_no_language_and_is_in_none() -> None:
    body = SCRAPE[SCRAPE.index("# TYPE vllm:num") : SCRAPE.index("gpu_memory_used")].encode()
    code = b"import os\n\n\ndef main():\n    pass\n"
    assert metrics.is_plain(body) and not metrics.is_plain(code) and not metrics.is_plain(SCRAPE[:200].encode())
    assert program_text.language(make_head("m.prom", body)) is None
    assert is_program(make_head("m.prom", body)) is None
    assert is_program(make_head("m.py", code + b"# vllm:num_requests_running\n")) == "Python"
