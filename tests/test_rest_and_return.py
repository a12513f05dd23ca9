"""Scalers at rest, prompts that come again, hosts that run dry, cards of several sizes, sweeps: from text to verdict, beside near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import likely, shows

_UP = [1, 1, 2, 2, 3, 3, 5, 5, 6, 6, 6, 6, 6, 6]


def _hour(header: str, replicas: list[int], running: list[int], waiting: list[int], used: float) -> str:
    rows = zip(replicas, running, waiting, strict=True)
    return header + "\n" + "".join(f"{k},{n},{r},{w},{used}\n" for k, (n, r, w) in enumerate(rows))


@pytest.mark.parametrize(
    ("metric", "running", "waiting", "used", "blind"),
    [
        ("gpu_memory_used_percent", [1] * 14, [0] * 14, 0.01, True),
        ("DCGM_FI_DEV_FB_USED", [2] * 14, [0] * 14, 0.03, True),
        ("vllm_num_requests_waiting", [9] * 4 + [60] * 10, [0, 20, 30, 20, 9, 4, 2, 0, 0, 0, 0, 0, 0, 0], 0.6, False),
    ],
)
def test_replicas_that_rise_at_rest(
    tmp_path: Path, metric: str, running: list[int], waiting: list[int], used: float, blind: bool
) -> None:
    events = f"Normal  SuccessfulRescale  40m  horizontal-pod-autoscaler  New size: 6; reason: pods metric {metric} above target\n"
    course = _hour("minute,replicas,num_requests_running,num_requests_waiting,kv_cache_usage", _UP, running, waiting, used)  # fmt: skip
    found = likely(tmp_path, describe__txt=events, course__csv=course)
    assert (found == "autoscaling-blind") is blind, found


def _requests(head: str, others: int, lost: bool) -> str:
    rows, size = [f"chat-7,{20_000},0,9.1"], 20_000
    for _ in range(4):
        rows.append(f"chat-7,{size + 90},{size},0.3")
        rows += [f"job-{len(rows) + k},{7000 + 13 * len(rows) + k},0,3.1" for k in range(others)]
        size += 190
        rows.append(f"chat-7,{size},{0 if lost else size - 110},{9.2 if lost else 0.3}")
    return head + "\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("head", "others", "lost", "cause"),
    [
        ("session,prompt_tokens,cached_tokens,ttft_s", 12, True, "prefix-cache-thrash"),
        ("prefix_id,input_tokens,cached_prompt_tokens,prefill_s", 30, True, "prefix-cache-thrash"),
        ("session,prompt_tokens,cached_tokens,ttft_s", 12, False, None),
    ],
)
def test_prompts_that_are_lost_behind_others(
    tmp_path: Path, head: str, others: int, lost: bool, cause: str | None
) -> None:
    found = likely(tmp_path, requests__csv=_requests(head, others, lost))
    assert (found == "prefix-cache-thrash") is (cause is not None), found


_CACHES = "".join(
    f"(VllmWorker rank={k} pid={80 + k}) LMCache INFO: Creating LMCacheEngine instance e{k} (cache_engine.py:12)\n"
    for k in range(2)
)


@pytest.mark.parametrize(("size", "full"), [(200, True), (260, True), (60, False)])
def test_caches_of_every_rank_against_the_node(tmp_path: Path, size: int, full: bool) -> None:
    setting = f"(VllmWorker rank=0 pid=80) LMCache INFO: LMCache Configuration: {{'local_cpu': True, 'max_local_cpu_size': '{size}.0 GB'}}\n"
    node = (
        "$ kubectl get pod\nNAME     READY   STATUS             RESTARTS      AGE\nserve-0  0/1     CrashLoopBackOff   4 (30s ago)   9m\n"
        "$ kubectl describe node n1 | grep -A4 ^Capacity\nCapacity:\n  cpu:             64\n  memory:          329854152Ki\n  nvidia.com/gpu:  2\n"
    )
    files = {"pod.log": setting + _CACHES, "node.txt": node}
    assert shows(tmp_path, files, "host-memory-exhausted", "settings-exceed-the-host") is full


@pytest.mark.parametrize(
    ("files", "limit", "cause"),
    [
        ("$ du -sh /data/models/big\n141G\t/data/models/big\n", "", "host-memory-exhausted"),
        (
            "$ ls -l /srv/weights/x | awk '{s+=$5} END {print s/2^30 \" GiB\"}'\n151.2 GiB\n",
            "",
            "host-memory-exhausted",
        ),
        ("$ du -sh /data/models/big\n41G\t/data/models/big\n", "", None),
        ("$ du -sh /data/logs\n141G\t/data/logs\n", "", None),
    ],
)
def test_a_node_that_falls_silent_under_weights_larger_than_it(
    tmp_path: Path, files: str, limit: str, cause: str | None
) -> None:
    text = (
        "$ kubectl get events\nLAST SEEN   TYPE      REASON         OBJECT      MESSAGE\n"
        "9m          Normal    NodeNotReady   node/s-1    Node s-1 status is now: NodeNotReady\n"
        '$ kubectl get pod -n llm big-0 -o jsonpath=\'{.status.containerStatuses[0].state}{"\\n"}{.spec.containers[0].resources}{"\\n"}\'\n'
        '{"running":{"startedAt":"2026-08-31T14:22:01Z"}}\n{"requests":{"nvidia.com/gpu":"1"}}\n'
        f"{files}$ kubectl describe node s-1 | grep memory\n  memory:  125483220Ki\n"
    )
    assert likely(tmp_path, console__txt=text) == cause


@pytest.mark.parametrize("small", [7200, 7900])
def test_the_card_that_failed_has_the_least_room(tmp_path: Path, small: int) -> None:
    log = (
        "load_tensors:        CUDA0 model buffer size = 18000.00 MiB\n"
        f"llm_load_tensors:      CUDA1 buffer size =   {small}.00 MiB\n"
        "llama_kv_cache_init:      CUDA0 KV buffer size =  1200.00 MiB\nllama_kv_cache_init:      CUDA1 KV buffer size =  150.00 MiB\n"
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 220.00 MiB on device 1: cudaMalloc failed: out of memory\n"
    )
    cards = (
        "index, name, memory.total [MiB]\n0, NVIDIA GeForce RTX 3090, 24576 MiB\n1, NVIDIA GeForce RTX 3070, 8192 MiB\n"
    )
    assert likely(tmp_path, load__log=log, smi__csv=cards) == "rank-imbalance"


@pytest.mark.parametrize(("letter", "flag"), [("N", "--max-batch-prefill-tokens"), ("<n>", "--max-num-batched-tokens")])
@pytest.mark.parametrize(("above", "cause"), [("out of memory", "prefill-activation-spike"), ("up", None)])
def test_a_letter_in_a_command_names_the_column_of_a_sweep(
    tmp_path: Path, letter: str, flag: str, above: str, cause: str | None
) -> None:
    text = f"serve --model m {flag} {letter}\n\n| {letter} | result |\n|---|---|\n| 4096 | up |\n| 9000 | up |\n| 18000 | {above} |\n"
    assert (likely(tmp_path, sweep__md=text) == "prefill-activation-spike") is (cause is not None)
