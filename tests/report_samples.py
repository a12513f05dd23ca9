"""Hand-made reports for the tests of forms and commands: realistic figures, no bundle needed."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any

from oomdoc.model import (
    Action,
    Bundle,
    CollectNext,
    Coverage,
    Diagnosis,
    Engine,
    Evidence,
    FirstFailure,
    Flag,
    Incident,
    LedgerEntry,
    Report,
    SourceRow,
    Unread,
)
from oomdoc.story import told
from oomdoc.units import GIB

PARTS = (
    "other_processes_bytes",
    "non_torch_bytes",
    "weights_bytes",
    "feature_bytes",
    "kv_pool_bytes",
    "cuda_graph_bytes",
    "activation_bytes",
    "allocator_slack_bytes",
    "free_bytes",
    "unexplained_bytes",
)


def with_story(make: Callable[[], Report]) -> Callable[[], Report]:
    """A made report with its story, as an analysis gives it."""
    return lambda: told(make())


VERSIONS = {"oomdoc_version": "0.1.0", "rules_version": "2026.11-3f2a91c0"}
T0 = 1_795_205_091.0  # 2026-11-20T20:04:51Z


def parts(**gib: float | None) -> dict[str, int | None]:
    """All nine parts in the order of the contract; those not named are unknown."""
    return {
        name: None if (size := gib.get(name.removesuffix("_bytes"))) is None else round(size * GIB) for name in PARTS
    }


def diagnosis(rank: int, cause: str, probability: float, title: str, **fields: Any) -> Diagnosis:
    """A diagnosis with empty lists where nothing is said."""
    given: dict[str, Any] = {
        "category": "parameters",
        "reason": None,
        "own_probability": probability,
        "prior": 0.05,
        "summary": title + ".",
        "evidence": (),
        "against": (),
        "unknown": (),
        "actions": (),
        **fields,
    }
    return Diagnosis(rank=rank, cause=cause, probability=probability, title=title, **given)


def engine(**fields: Any) -> Engine:
    """One start of a 72B model on four GPUs."""
    given: dict[str, Any] = {
        "id": "e1",
        "ref": "pods/vllm-0/vllm.log:14",
        "started": T0,
        "version": "0.11.0",
        "model": "Qwen/Qwen2.5-72B-Instruct",
        "generation": "V1",
        "flags": {
            "tensor_parallel_size": Flag(4, "logged", "pods/vllm-0/vllm.log:12"),
            "max_model_len": Flag(32768, "logged", "pods/vllm-0/vllm.log:12"),
            "max_num_seqs": Flag(256, "default", None),
            "gpu_memory_utilization": Flag(0.92, "logged", "pods/vllm-0/vllm.log:12"),
            "enforce_eager": Flag(False, "config", "pods/vllm-0/vllm.log:20"),
        },
        "last_milestone": "serving",
        "failed": True,
        **fields,
    }
    return Engine(**given)


def timeline(name: str, says: str, ref: str) -> dict[str, Any]:
    """Two hours on a grid of five minutes: a pool that fills, a queue behind it, one device with a gap, four moments."""

    def series(chart: str, title: str, unit: str, values: list[Any], limit: float | None = None) -> dict[str, Any]:
        return {"chart": chart, "name": title, "unit": unit, "limit": limit, "values": values}

    used = [0.12 + 0.03 * (n % 3) for n in range(16)] + [0.4, 0.62, 0.81, 0.97, 1.0, 1.0, 0.99, 1.0]
    marks = [("18:00:00", "start", "engine start, vLLM 0.11.0"), ("18:04:10", "serving", "serving"), ("19:35:00", "evidence", says), ("19:37:20", "failure", "KV pool at its limit")]  # fmt: skip
    return {
        "from_t": "2026-11-20T18:00:00Z", "step_s": 300.0, "steps": 24,
        "series": [
            series("device_memory", name, "bytes", [None, *(round((66 + n / 10) * GIB) for n in range(20)), None, None, 70 * GIB], 79 * GIB),
            series("kv_used", "KV pool in use", "share", used, 1.0),
            series("requests", "running", "requests", [20 + n for n in range(24)]),
            series("requests", "waiting", "requests", [0] * 18 + [2, 15, 61, 96, 140, 184]),
        ],
        "marks": [{"t": f"2026-11-20T{time}Z", "kind": kind, "says": words, "ref": ref} for time, kind, words in marks],
    }  # fmt: skip


@with_story
def kv_demand() -> Report:
    """Long chats fill the KV pool of a 72B model on four H100; two rivals; a log, requests, nvidia-smi, events."""
    log_path = "pods/vllm-0/vllm.log"
    first = diagnosis(
        1,
        "kv-demand-exceeds-pool",
        0.934,
        "Live traffic needs more KV cache than the pool holds",
        category="kv-cache",
        prior=0.12,
        summary="Contexts in flight add up to more tokens than the pool stores: requests are preempted and queue.",
        evidence=(
            Evidence(
                "preempting",
                "317 preemptions counted between 20:11 and 20:15 (metrics/20-15.prom:88)",
                log(0.85 / 0.04),
                ("metrics/20-11.prom:88", "metrics/20-15.prom:88"),
                {"preemptions": 317},
            ),
            Evidence(
                "long-context-surge",
                "requests above 8,192 tokens rose from 6% of the traffic to 31% during the incident",
                log(5.2),
                ("requests.jsonl:11804", "requests.jsonl:14210", "requests.jsonl:14211", "requests.jsonl:15002"),
                {"share_before": 0.06, "share_during": 0.31},
            ),
            Evidence(
                "queue-grows",
                "up to 184 requests waiting while 256 ran",
                log(1.9),
                (f"{log_path}:702",),
                {"waiting": 184, "running": 256},
            ),
            Evidence(
                "pool-pinned",
                f"KV usage at 95 % or more in 31% of 420 samples (peak 100.0%, {log_path}:640)",
                0.0,
                (f"{log_path}:640",),
                {"share": 0.31, "samples": 420, "peak": 1.0},
            ),
        ),
        against=(
            Evidence(
                "low-priority-restart",
                "the container was restarted 2 times within the hour, which preemption alone does not do",
                -log(1.6),
                ("events.txt:41",),
                {"restarts": 2},
            ),
        ),
        unknown=("ttft-rises", "rejects-counted"),
        actions=(
            Action(
                "cap-concurrency",
                "Lower `--max-num-seqs` from 256 to 49",
                "395,184 tokens in the pool / 8,012 per request (95th percentile) = 49 at a time",
                "requests beyond 49 wait instead of being preempted",
                {"max_num_seqs": 49},
                "`vllm:num_preemptions_total` stays flat under the same load",
                {"max_num_seqs": 256},
            ),
            Action(
                "fp8-kv",
                "Store the KV cache in 8 bits with `--kv-cache-dtype fp8`",
                "80.0 KiB per token and GPU become 40.0 KiB, so the pool holds twice the tokens",
                "a small loss of accuracy: compare your own evaluations before",
                {"kv_cache_dtype": "fp8"},
                "the log says `GPU KV cache size: 790,368 tokens` or so",
                {"kv_cache_dtype": "auto"},
            ),
            Action(
                "split-pools",
                "Serve requests above 8,192 tokens from a pool of their own",
                "31% of the requests hold 84% of the tokens in flight",
                "a second deployment and a router that counts tokens",
            ),
        ),
        references=(
            {
                "url": "https://docs.vllm.ai/en/stable/configuration/optimization/",
                "backs": "what preemption is, its warning line, the settings that relieve it",
            },
        ),
    )
    second = diagnosis(
        2,
        "prefill-activation-spike",
        0.057,
        "A prefill needs more working memory than was profiled",
        prior=0.1,
        evidence=(
            Evidence(
                "long-prompts", "prompts of up to 31,002 tokens", log(2.4), ("requests.jsonl:14210",), {"tokens": 31002}
            ),
        ),
        against=(
            Evidence(
                "no-oom", "no allocator reported out of memory in 48,211 log lines", -log(9.0), (), {"lines": 48211}
            ),
            Evidence(
                "pool-was-full", "the pool was 100% full when requests failed", -log(2.0), (f"{log_path}:640",), {}
            ),
        ),
        unknown=("crash-step",),
    )
    third = diagnosis(
        3,
        "autoscaling-blind",
        0.031,
        "The autoscaler does not look at memory, queue or latency",
        category="scheduling",
        evidence=(Evidence("queue", "184 requests waiting and 1 replica throughout", log(1.5), ("hpa.txt:4",), {}),),
    )
    fourth = diagnosis(4, "gpu-shared", 0.004, "Another process holds memory on the device", category="scheduling")
    every = (first, second, third, fourth)
    text = (
        "INFO 11-20 20:11:33 [loggers.py:127] Engine 000: Avg prompt throughput: 9120.4 tokens/s, "
        "Avg generation throughput: 2211.0 tokens/s, Running: 256 reqs, Waiting: 96 reqs, "
        "GPU KV cache usage: 99.8%, Prefix cache hit rate: 3.1%"
    )
    incident = Incident(
        "i1",
        "pressure",
        "serving",
        T0 + 402.0,
        "e1",
        FirstFailure(f"{log_path}:655", T0 + 402.0, text),
        (f"{log_path}:660", f"{log_path}:671", "events.txt:41", "requests.jsonl:14302"),
        every,
    )
    later = Incident("i2", "restart", "serving", T0 + 900.0, "e1", None, (), (third, first))
    free = (5.54, 6.28, 6.28, 6.28)
    ledger = tuple(
        LedgerEntry(
            "e1",
            rank,
            "NVIDIA H100 80GB HBM3",
            round(79.19 * GIB),
            parts(
                other_processes=0.0,
                non_torch=1.63 + (0.74 if rank == 0 else 0.0),
                weights=33.98,
                kv_pool=30.15,
                cuda_graph=0.83,
                activation=3.42,
                allocator_slack=2.90,
                free=free[rank],
                unexplained=0.0,
            ),
            81_920.0,
            395_184,
            (f"{log_path}:{118 + rank}", f"{log_path}:{130 + rank}", "nvidia-smi.csv:5"),
        )
        for rank in range(4)
    )
    traffic = {
        "requests": 18_234,
        "failed": 41,
        "from_t": "2026-11-20T18:00:02Z",
        "to_t": "2026-11-20T20:19:51Z",
        "buckets": {
            "input": [
                {"name": "S", "up_to_tokens": 512, "requests": 4_121, "share": 0.226, "token_share": 0.018},
                {"name": "M", "up_to_tokens": 2048, "requests": 7_402, "share": 0.406, "token_share": 0.151},
                {"name": "L", "up_to_tokens": 8192, "requests": 4_230, "share": 0.232, "token_share": 0.301},
                {"name": "XL", "up_to_tokens": None, "requests": 2_481, "share": 0.136, "token_share": 0.53},
            ],
            "output": [
                {"name": "S", "up_to_tokens": 128, "requests": 6_012, "share": 0.33, "token_share": 0.05},
                {"name": "M", "up_to_tokens": 512, "requests": 9_811, "share": 0.538, "token_share": 0.49},
                {"name": "L", "up_to_tokens": 2048, "requests": 2_411, "share": 0.132, "token_share": 0.46},
                {"name": "XL", "up_to_tokens": None, "requests": 0, "share": 0.0, "token_share": 0.0},
            ],
        },
        "percentiles": {
            "input_tokens": {"p50": 1_204, "p90": 5_911, "p95": 7_204, "p99": 19_422, "max": 31_002},
            "output_tokens": {"p50": 212, "p90": 701, "p95": 808, "p99": 1_504, "max": 2_048},
            "context_tokens": {"p50": 1_430, "p90": 6_507, "p95": 8_012, "p99": 20_211, "max": 32_101},
            "ttft_s": {"p50": 0.31, "p90": 2.2, "p95": 7.81, "p99": 22.4, "max": 58.02},
        },
        "peaks": {
            "tokens_in_flight": {"value": 612_404, "t": "2026-11-20T20:13:00Z"},
            "requests_in_flight": {"value": 440, "t": "2026-11-20T20:14:00Z"},
        },
        "in_flight": {
            "from_t": "2026-11-20T18:00:00Z",
            "step_s": 300.0,
            "tokens": [int(90_000 + 9_000 * (i % 4) + (max(0, i - 20) ** 3) * 900) for i in range(28)],
            "requests": [60 + (i % 5) * 4 + max(0, i - 20) * 45 for i in range(28)],
            "arrivals": [500 + (i % 3) * 40 + max(0, i - 20) * 60 for i in range(28)],
            "arrived_tokens": [900_000 + (i % 4) * 90_000 + max(0, i - 20) * 400_000 for i in range(28)],
        },
        "surges": {
            "window_s": 300.0,
            "from_ratio": 2.0,
            "prompt_tokens": {
                "average": 2210.4,
                "highest": 5127.9,
                "ratio": 2.319897,
                "t": "2026-11-20T20:10:00Z",
                "requests": 812,
                "surge": True,
            },
            "prompt_tokens_per_s": {
                "average": 5598.2,
                "highest": 9800.6,
                "ratio": 1.750669,
                "t": "2026-11-20T20:05:00Z",
                "requests": 840,
                "surge": False,
            },
        },
        "incident": {
            "incident": "i1",
            "t": "2026-11-20T20:13:02Z",
            "window_s": 600.0,
            "before": {
                "from_t": "2026-11-20T18:00:00Z",
                "lasted_s": 7382.0,
                "requests": 16_010,
                "per_s": 2.168789,
                "prompt_tokens_per_s": 4011.2,
                "input_p50": 700,
                "input_p95": 6020,
                "input_max": 30_008,
                "output_p50": 210,
                "output_p95": 1004,
                "long_share": 0.21,
            },
            "during": {
                "from_t": "2026-11-20T20:03:02Z",
                "lasted_s": 660.0,
                "requests": 2224,
                "per_s": 3.369697,
                "prompt_tokens_per_s": 16_020.7,
                "input_p50": 1890,
                "input_p95": 21_400,
                "input_max": 31_990,
                "output_p50": None,
                "output_p95": None,
                "long_share": 0.48,
            },
        },
        "tenants": [
            {
                "name": "research",
                "requests": 3100,
                "share": 0.170012,
                "token_share": 0.66,
                "input_tokens": 26_000_000,
                "output_tokens": 2_400_000,
                "input_p50": 7900,
                "input_p95": 22_800,
            },
            {
                "name": "chat",
                "requests": 15_134,
                "share": 0.829988,
                "token_share": 0.34,
                "input_tokens": 11_000_000,
                "output_tokens": 3_500_000,
                "input_p50": 610,
                "input_p95": 2300,
            },
        ],
        "heaviest": [
            {
                "ref": "gateway/requests.jsonl:17411",
                "t": "2026-11-20T20:11:40Z",
                "input_tokens": 31_990,
                "output_tokens": 1800,
                "latency_s": 74.2,
                "token_s": 2_507_218.0,
                "tenant": "research",
                "model": None,
            },
            {
                "ref": "gateway/requests.jsonl:17502",
                "t": None,
                "input_tokens": 28_004,
                "output_tokens": None,
                "latency_s": None,
                "token_s": None,
                "tenant": None,
                "model": None,
            },
        ],
        "long_context": {"from_tokens": 8192, "share_before": 0.06, "share_during": 0.31, "incident": "i1"},
    }
    return Report(
        **VERSIONS,
        bundle=Bundle("acme-prod-vllm.tar.gz", "9f2c" * 16, 12_991_506, 9),
        verdict="diagnosed",
        diagnoses=every,
        incidents=(incident, later),
        ledger=ledger,
        engines=(engine(),),
        traffic=traffic,
        coverage=Coverage(
            (
                SourceRow("events.txt", "kubernetes", 8_204, 60, 44, 0),
                SourceRow("hpa.txt", "kubernetes", 1_911, 31, 9, 0),
                SourceRow("metrics/20-11.prom", "metrics", 40_112, 611, 98, 0),
                SourceRow("metrics/20-15.prom", "metrics", 40_190, 611, 98, 0),
                SourceRow("nvidia-smi.csv", "nvidia-smi", 412_004, 3_361, 3_360, 0),
                SourceRow(log_path, "vllm-log", 9_804_112, 48_211, 1_402, 3, 12),
                SourceRow("requests.jsonl", "request-log", 2_684_973, 18_240, 18_234, 6),
            ),
            (Unread("core.4121", "binary: no evidence kind matches"), Unread("notes.docx", "no evidence kind matches")),
        ),
        collect_next=(
            CollectNext(
                "the crash dump of the scheduler's last step",
                "kubectl logs vllm-0 -c vllm --previous --timestamps > vllm-previous.log",
                ("kv-demand-exceeds-pool", "prefill-activation-spike"),
                2.2,
            ),
            CollectNext(
                "time to first token from the engine's metrics",
                "curl -s http://vllm-0:8000/metrics > metrics.txt",
                ("kv-demand-exceeds-pool", "autoscaling-blind"),
                0.9,
            ),
        ),
        timeline=timeline("GPU 0", "317 preemptions counted", f"{log_path}:640"),
        warnings=("the events cover 20:01 to 20:58 only: an earlier restart would not be seen",),
    )


@with_story
def weights_exceed() -> Report:
    """A 70B model on one 80 GB card dies while loading; little else is known."""
    ref = "vllm.log:88"
    first = diagnosis(
        1,
        "weights-exceed-gpu",
        0.985,
        "The weights do not fit the GPU",
        category="weights",
        reason="wide-dtype",
        prior=0.08,
        summary="The parameters, as loaded per GPU, need more than the device has.",
        evidence=(
            Evidence(
                "oom-while-loading", f"out of memory while the weights were loaded ({ref})", log(41.0), (ref,), {}
            ),
            Evidence(
                "catalogue-size",
                "70.6 billion parameters at 2 bytes are 131.5 GiB; the device has 79.35 GiB",
                log(22.0),
                ("vllm.log:9",),
                {"needed_bytes": 131.5 * GIB, "total_bytes": 79.35 * GIB},
            ),
        ),
        unknown=("neighbours",),
        actions=(
            Action(
                "shard",
                "Put the model on 2 GPUs with `--tensor-parallel-size 2`",
                "131.5 GiB / 2 = 65.8 GiB of weights per GPU",
                "a second card; NVLink keeps the loss of speed small",
                {"tensor_parallel_size": 2, "gpu_memory_utilization": 0.92},
                "the log says `Model loading took 65.8 GiB`",
                {"tensor_parallel_size": 1},
            ),
        ),
    )
    second = diagnosis(
        2,
        "tp-undersharded",
        0.22,
        "The model is put on too few of the GPUs that are there",
        category="parallelism",
        unknown=("gpus-seen",),
    )
    failure = FirstFailure(
        ref,
        None,
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB (GPU 0; 79.35 GiB "
        "total capacity; 78.58 GiB already allocated; 127.19 MiB free; 78.58 GiB reserved in total by PyTorch)",
    )
    return Report(
        **VERSIONS,
        bundle=Bundle("vllm.log", "00ab" * 16, 9_120, 1),
        verdict="diagnosed",
        diagnoses=(first, second),
        incidents=(Incident("i1", "device-oom", "load", None, "e1", failure, (), (first, second)),),
        ledger=(
            LedgerEntry(
                "e1",
                0,
                None,
                round(79.35 * GIB),
                parts(weights=78.58, free=0.124, unexplained=0.646),
                None,
                None,
                (ref,),
            ),
        ),
        engines=(
            engine(
                ref="vllm.log:3",
                started=None,
                version="0.1.2",
                generation="V0",
                model="meta-llama/Llama-2-70b-hf",
                flags={"tensor_parallel_size": Flag(1, "logged", "vllm.log:3")},
                last_milestone="load-start",
            ),
        ),
        traffic={},
        coverage=Coverage((SourceRow("vllm.log", "vllm-log", 9_120, 104, 21, 0),), ()),
        collect_next=(
            CollectNext(
                "how many GPUs the host has", "nvidia-smi -L > gpus.txt", ("weights-exceed-gpu", "tp-undersharded"), 1.9
            ),
        ),
        warnings=(),
    )


@with_story
def healthy() -> Report:
    """A server that served and stopped: nothing failed, nothing near a limit."""
    first = diagnosis(
        1,
        "healthy",
        0.968,
        "Nothing failed and nothing is close to failing",
        category="none",
        prior=0.2,
        evidence=(
            Evidence(
                "served", "2,048 requests answered, none failed", log(12.0), ("requests.jsonl:1",), {"requests": 2048}
            ),
            Evidence(
                "pool-roomy",
                "KV usage never above 41.0% in 180 samples (vllm.log:420)",
                log(7.5),
                ("vllm.log:420",),
                {},
            ),
        ),
    )
    second = diagnosis(2, "autoscaling-blind", 0.02, "The autoscaler does not look at memory", category="scheduling")
    return Report(
        **VERSIONS,
        bundle=Bundle("calm", "1234" * 16, 812_004, 2),
        verdict="healthy",
        diagnoses=(first, second),
        incidents=(),
        ledger=(
            LedgerEntry(
                "e1",
                None,
                "GPU 0",
                24 * GIB,
                parts(weights=14.99, kv_pool=5.2, cuda_graph=0.5),
                131_072.0,
                42_592,
                ("vllm.log:60",),
            ),
        ),
        engines=(engine(ref="vllm.log:2", model="meta-llama/Llama-3.1-8B-Instruct", flags={}, failed=False),),
        traffic={
            "requests": 2048,
            "percentiles": {
                "input_tokens": {"p50": 310, "p95": 900, "max": 1800},
                "output_tokens": {"p50": 99, "p95": 250, "max": 256},
            },
        },
        coverage=Coverage(
            (
                SourceRow("requests.jsonl", "request-log", 400_000, 2048, 2048, 0),
                SourceRow("vllm.log", "vllm-log", 412_004, 3_020, 300, 0),
            ),
            (),
        ),
        collect_next=(),
        warnings=(),
    )


@with_story
def not_memory() -> Report:
    """The driver fell off the bus: memory was fine."""
    first = diagnosis(
        1,
        "not-memory",
        0.91,
        "The failure has a cause other than memory",
        category="none",
        reason="driver-or-hardware",
        prior=0.2,
        evidence=(
            Evidence(
                "xid",
                "Xid 79 (GPU has fallen off the bus) at dmesg.txt:310",
                log(30.0),
                ("dmesg.txt:310",),
                {"xid": 79},
            ),
        ),
        against=(
            Evidence(
                "near-limit", "the device was 93% full at the time", -log(1.4), ("nvidia-smi.csv:44",), {"used": 0.93}
            ),
        ),
        actions=(
            Action(
                "drain",
                "Drain the node and reset or replace the GPU",
                "Xid 79 is not cured by settings",
                "the node's capacity",
            ),
        ),
    )
    failure = FirstFailure("dmesg.txt:310", T0, "NVRM: Xid (PCI:0000:3b:00): 79, pid=4121, GPU has fallen off the bus.")
    return Report(
        **VERSIONS,
        bundle=Bundle("node7", "77fe" * 16, 102_400, 2),
        verdict="not-memory",
        diagnoses=(first,),
        incidents=(Incident("i1", "error", None, T0, None, failure, ("vllm.log:990",), (first,)),),
        ledger=(),
        engines=(),
        traffic={},
        coverage=Coverage((SourceRow("dmesg.txt", "kernel-log", 102_400, 900, 3, 0),), ()),
        collect_next=(),
        warnings=(),
    )


@with_story
def undecided() -> Report:
    """A thin excerpt: an out-of-memory line without context, two causes level."""
    ref = "excerpt.txt:3"
    oom = Evidence("oom-small", f"a request of 20.0 MiB failed with 11.4 MiB free ({ref})", log(2.1), (ref,), {})
    first = diagnosis(
        1,
        "memory-utilization-edge",
        0.41,
        "The memory budget leaves too little headroom",
        evidence=(oom,),
        unknown=("utilization", "pool-usage"),
    )
    second = diagnosis(
        2,
        "gpu-shared",
        0.33,
        "Another process holds memory on the device",
        category="scheduling",
        evidence=(oom,),
        against=(Evidence("no-others", "the message names no other process", -log(1.3), (ref,), {}),),
        unknown=("gpu-processes",),
    )
    third = diagnosis(3, "prefill-activation-spike", 0.12, "A prefill needs more working memory than was profiled")
    failure = FirstFailure(ref, None, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.")
    every = (first, second, third)
    return Report(
        **VERSIONS,
        bundle=Bundle("excerpt.txt", "beef" * 16, 611, 1),
        verdict="undecided",
        diagnoses=every,
        incidents=(Incident("i1", "device-oom", None, None, None, failure, (), every),),
        ledger=(),
        engines=(),
        traffic={},
        coverage=Coverage((SourceRow("excerpt.txt", "vllm-log", 611, 9, 1, 0),), ()),
        collect_next=(
            CollectNext(
                "which processes hold memory on the device",
                "nvidia-smi --query-compute-apps=gpu_uuid,pid,name,used_memory --format=csv > processes.csv",
                ("memory-utilization-edge", "gpu-shared"),
                2.3,
            ),
            CollectNext(
                "the engine's start-up log", "kubectl logs POD -c vllm > vllm.log", ("memory-utilization-edge",), 1.4
            ),
        ),
        warnings=("no line of this bundle carries a time",),
    )


@with_story
def hostile() -> Report:
    """Every text from a bundle tries something: colours, a title, markup, line breaks, direction marks."""
    bad = (
        "\x1b[31mred\x1b[0m [bold]x[/bold] [red]\x1b]0;owned\x07\x9b2J\u202etxt.exe\u202c\r\nline two\x00"
        + "\udcff\u2028end [/]"
    )
    ref = "lo\x1b[2Jg\n[link=http://x].txt:3"
    first = diagnosis(
        1,
        "gpu-shared",
        0.9,
        "Another process holds memory " + bad,
        reason=bad,
        summary=bad,
        evidence=(Evidence("a", bad + " at " + ref, 2.0, (ref,), {}), Evidence("b", bad, 1.0, (ref,), {})),
        against=(Evidence("c", bad, -1.0, (ref,), {}),),
        unknown=(bad,),
        actions=(
            Action(
                "x",
                "Stop `" + bad + "`",
                bad,
                bad,
                {"model": "$(rm -rf /); " + bad, "max_num_seqs": 4},
                bad,
                {"model": bad},
            ),
        ),
        references=({"url": bad, "backs": bad},),
    )
    second = diagnosis(2, "weights-exceed-gpu", 0.3, bad, against=(Evidence("d", bad, -1.0, (ref,), {}),))
    return Report(
        **VERSIONS,
        bundle=Bundle("b\x1b[5m\nundle.tar", "0" * 64, 10, 1),
        verdict="diagnosed",
        diagnoses=(first, second),
        incidents=(Incident("i1", bad, bad, T0, bad, FirstFailure(ref, T0, bad), (ref,), (first, second)),),
        ledger=(LedgerEntry(bad, 0, bad, GIB, parts(weights=0.5, free=0.5), 1.0, 1, (ref,)),),
        engines=(engine(id=bad, model=bad, version=bad, flags={"tensor_parallel_size": Flag(bad, "logged", ref)}),),
        traffic={
            "requests": 1,
            "long_context": {},
            "percentiles": {"input_tokens": {"p50": 1}},
            "from_t": bad,
            "to_t": bad,
        },
        coverage=Coverage((SourceRow(ref, bad, 10, 1, 1, 1, 1),), (Unread(ref, bad),)),
        collect_next=(CollectNext(bad, "nvidia-smi " + bad, (bad,), 1.0),),
        timeline=timeline(bad, bad, ref),
        warnings=(bad,),
    )


SAMPLES = {
    "kv-demand": kv_demand,
    "weights-exceed": weights_exceed,
    "healthy": healthy,
    "not-memory": not_memory,
    "undecided": undecided,
    "hostile": hostile,
}
