"""Free text: devices, facts, topics, series; negation, and texts that say nothing of the matter."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import make_head, notes
from oomdoc.ingest.topics import topics_of
from oomdoc.intake.scan import chunks

GIB = 1 << 30


def read(text: str | bytes, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    data = text if isinstance(text, bytes) else text.encode()
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in notes.read("any", chunks(io.BytesIO(data), size)):
        names, columns = list(batch.columns), list(batch.columns.values())
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        tables.setdefault(batch.table, []).extend(rows)
    return tables


def is_note(text: str) -> bool:
    return notes.matches(make_head("any", text.encode()))


def devices(text: str) -> list[tuple[Any, ...]]:
    rows = read(text).get("gpu_device", [])
    return [(row["gpu"], row["name"], row["total_bytes"], row["mig_profile"], row["count"]) for row in rows]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("GPU 1: NVIDIA H100 NVL", [(1, "NVIDIA H100 NVL", None, None, 1)]),
        ("GPU 0: NVIDIA GeForce RTX 5060 Ti, 16311 MiB", [(0, "NVIDIA GeForce RTX 5060 Ti", 16311 << 20, None, 1)]),
        ("GPUs: 4 x RTX A5000\nGPU memory, all cards: 96 GB", [(None, "RTX A5000", 24 * GIB, None, 4)]),
        ("gpu: RTX 3090, 24 GB", [(None, "RTX 3090", 24 * GIB, None, 1)]),
        ("GPU: NVIDIA A100 80GB, MIG 2g.20gb", [(None, "NVIDIA A100 80GB", None, "2g.20gb", 1)]),
        ("hardware: 2x L40S and 2x A10, 256 GB RAM", [(None, "L40S", None, None, 2), (None, "A10", None, None, 2)]),
        ("RTX 4090 (24 GB), only this container on it", [(None, "RTX 4090", 24 * GIB, None, 1)]),
        ("RTX 3090 x2", [(None, "RTX 3090", None, None, 2)]),
        ("H200 x 8, TP=4", [(None, "H200", None, None, 8)]),
        ("We run on two MI300X.", [(None, "MI300X", None, None, 2)]),
        ("gpu: 16 GB card x2", [(None, None, 16 * GIB, None, 2)]),
        (
            'The tool calls it "NVIDIA A30-PCIE, 24576 MiB" and nobody else is there.',
            [(None, "NVIDIA A30-PCIE", 24576 << 20, None, 1)],
        ),
        ("It works on an H100, here it does not.", []),
        ("Unlike the NVIDIA A30-PCIE, 24576 MiB, of the other node.", []),
        ("device: cuda", []),
        ("GPU 0 has a total capacity of 79.1 GiB of which 1.0 GiB is free.", []),
    ],
)
def test_devices(text: str, want: list[tuple[Any, ...]]) -> None:
    assert devices(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("vllm: 0.9.2", {"version": "0.9.2"}),
        ("difference of two scrapes, vLLM 0.22.0", {"version": "0.22.0"}),
        ("vLLM Version: 0.6.3.post1", {"version": "0.6.3.post1"}),
        ("model: org/some-model-7B", {"model": "org/some-model-7B"}),
        ("models: org/m-8B, two instances", {"model": "org/m-8B"}),
        ("some-model, TP=8 and max_num_seqs=64", {"tensor_parallel_size": "8", "max_num_seqs": "64"}),
        ("options: --max-model-len 4096 --enforce-eager", {"max_model_len": "4096", "enforce_eager": "True"}),
        ("it works with vllm 0.8.1 and max_num_seqs=8", {}),
        ("with --enforce-eager it starts", {}),
        ("the model: a large one", {}),
    ],
)
def test_engine_facts(text: str, want: dict[str, str]) -> None:
    rows = read(text).get("engine_flag", [])
    assert {row["flag"]: row["value"] for row in rows} == want
    assert {row["origin"] for row in rows} <= {"file"}


TOPICS: list[tuple[str, dict[str, float | None]]] = [
    ("request parameter: echo=true", {"prompt-logprobs": None}),
    ("clients ask for prompt_logprobs=5", {"prompt-logprobs": None}),
    ("short prompts are answered; this is after a long one", {"long-prompt": None, "short-works": None}),
    ("fails on prompts of about 90k tokens", {"long-prompt": 90_000.0}),
    ("each request carries 12 images", {"multimodal": None}),
    ("one LoRA adapter of rank 64 is loaded", {"lora": 64.0}),
    ("speculative decoding with a draft model", {"draft-model": None}),
    ("in eager mode it starts", {"eager-cures": None}),
    ("eager mode did not help", {"eager-fails": None}),
    ("memory grows by 300 MiB every hour", {"grows": 300.0 * (1 << 20)}),
    ("only a restart brings the memory back", {"restart-cures": None}),
    ("the second start succeeds", {"transient": None}),
    ("models: org/m, two instances", {"several-engines": 2.0}),
    ("another user's notebook holds 9 GB of the same GPU", {"several-engines": None}),
    ("only GPU 0 is used", {"idle-device": None}),
    ("three of the cards are empty", {"idle-device": None}),
    ("with TP 8 each rank holds hardly less", {"tp-no-gain": None}),
    ("the old server's worker is a zombie process", {"orphan-process": None}),
    ("the same system prompt in every chat; hit rate 0.0 %", {"repeated-prefix": None, "no-hits": None}),
    ("sessions one after another in a circle", {"repeated-prefix": None}),
    ("docker's default /dev/shm of 64 MiB", {"shm": 64.0 * (1 << 20)}),
    ("its blocks are evicted while a tool runs and the context is prefilled again", {"prefix-evicted": None}),
    ("the last stage always uses more than the others", {"ranks-uneven": None}),
    ("the same latent KV is replicated on all eight ranks", {"more-ranks-fail": None}),
    ("MemAvailable falls to 3 GiB, then ssh dies", {"host-full": None, "failure-told": None}),
    ("as soon as four queries come in: CUDA out of memory", {"failure-told": None}),
    ("with expandable segments it does not occur any more", {"expandable-cures": None}),
    ("it takes 73 GB. Is this usual?", {"asks-if-normal": None}),
    ("without --enable-lora it starts", {"lora": None, "off-cures": None}),
    ("the base model alone starts", {"off-cures": None}),
    (
        "completes at the default utilization; with the utilization set to 0.97 it runs out of memory",
        {"higher-utilization-fails": 0.97, "failure-told": None},
    ),
    (
        "utilization at the default completes, set to 0.97 it dies",
        {"higher-utilization-fails": 0.97, "failure-told": None},
    ),
    ("64000 tokens do not fit in the KV cache", {"length-refused": None}),
    ("412 preemptions at the end of the job", {"pool-pressed": 412.0}),
    ("the pool was fully used the whole time", {"pool-pressed": None}),
    ("GPU KV cache usage 涨到 100.0% 之后卡死", {"pool-pressed": None, "failure-told": None}),
    ("总是报显存 OOM", {"failure-told": None}),
    ("gpu-memory-utilization 调到 0.75 就正常了", {"lower-utilization-cures": 0.75}),
    ("why does nvidia-smi list 19 GB for it?", {"asks-if-normal": None}),
    ("strange: it occupies 19g of video memory", {"asks-if-normal": None}),
    ("going from TP 2 to 8 the token capacity rose by only 6 %", {"tp-no-gain": None}),
    ("every rank holds a whole copy of the KV head", {"more-ranks-fail": None}),
    ("with tp 8 it fails; with tp 4 on the same cards it fits", {"more-ranks-fail": 8.0}),
    ("the layers are not split evenly across the nodes", {"ranks-uneven": None}),
    ("the memory is still occupied after I stopped the server", {"orphan-process": None}),
    (
        "once it was killed the VRAM is not released, no matter how long I wait",
        {"orphan-process": None, "grows": None, "failure-told": None},
    ),
    ("nothing is hit: cached_tokens 0 at every turn", {"no-hits": None}),
    ("two chats alternate", {"repeated-prefix": None}),
    ("each turn prefills the whole context again", {"prefix-evicted": None}),
    ("another session throws its blocks out", {"prefix-evicted": None}),
    ("12 restarts so far, each at half of the shards", {"restarts-told": None}),
    ("it is terminated and begins from scratch", {"restarts-told": None}),
    ("replicas remain at 1 while the queue passes 200", {"scaling-told": None}),
    ("keda scales on the queue length", {"autoscaler": None}),
    ("the HPA keeps adding pods", {"scaling-told": None, "autoscaler": None}),
    ("we are scaling the service on CPU", {"scaling-told": None}),
    ("kill -9 has no effect on it", {"driver-stuck": None}),
    ("it hangs on the GPU, the stack ends in uvm_tracker_wait+0xa2/0x1c0 [nvidia_uvm]", {"driver-stuck": None}),
]


@pytest.mark.parametrize(("text", "want"), TOPICS)
def test_topics(text: str, want: dict[str, float | None]) -> None:
    assert dict(topics_of(text)) == want
    assert is_note(text)
    assert {row["topic"]: row["value"] for row in read(text)["note"]} == want


@pytest.mark.parametrize(
    "text",
    [
        "going from TP 2 to 8 the token capacity rose fourfold",
        "cached_tokens 20480 of 21000",
        "replicas went from 1 to 4 when the queue grew",
        "with tp 4 it fails; with tp 8 on the same cards it fits",
        "no LoRA, no images, text only",
        "LoRA: off",
        "without speculative decoding",
        "speculative decoding is disabled",
        "prompt_logprobs: None",
        "KV cache usage rises with long generations",
        "no other process on the GPU",
        "container image: registry/engine:1",
        "prefix hit rate 42 %",
        "99.96 % hits",
        "context window of 128k in the model card",
        "the same error message is printed twice",
        "No available shared memory broadcast block found",
        "out of memory is a word in this sentence",
        "requests are preempted and prefilled again",
        "all ranks hold the same, evenly",
        "no preemptions were counted",
        "preemptions: 0",
        "the KV cache is full of cached blocks",
        "a page of 3000 tokens is longer than the cache of a browser",
        "the KV cache holds the full context",
        "KV cache usage reached 41 %",
    ],
)
def test_denied_and_unrelated_statements_give_no_topic(text: str) -> None:
    assert list(topics_of(text)) == []


def test_a_series_in_words() -> None:
    text = "EngineCore, RSS idle: 3.50 GB\nEngineCore, RSS after round 1: 9.25 GB\nEngineCore, RSS after round 4: 14.75 GB\n"
    text += "EngineCore, rounds 2 to 4: +5.50 GB, +1.83 GB per round\n"
    assert is_note(text)
    rows = read(text)["process_memory"]
    assert [(row["name"], row["state"], row["resource"], row["bytes"]) for row in rows] == [
        ("EngineCore", "idle", "host", 3_500_000_000),
        ("EngineCore", "after round 1", "host", 9_250_000_000),
        ("EngineCore", "after round 4", "host", 14_750_000_000),
    ]
    assert [(row["topic"], row["value"]) for row in read(text)["note"]] == [("grows", 1_830_000_000)]


def test_a_series_whose_title_names_the_quantity() -> None:
    rows = read("RSS of the worker\nstart: 3 GiB\nround 1: 4 GiB\nround 2: 5 GiB\n")["process_memory"]
    assert [(row["state"], row["resource"], row["bytes"] // GIB) for row in rows] == [
        ("start", "host", 3),
        ("round 1", "host", 4),
        ("round 2", "host", 5),
    ]


def test_a_process_keeps_its_name_whatever_call_it_is_busy_with() -> None:
    head = "USER PID %CPU RSS COMMAND\n"
    text = f"{head}root 71 6.2 5000000 ray::RayWorker.execute_method\n\ntwo hours later\n{head}root 71 3.4 6000000 ray::RayWorker\n"
    assert {row["name"] for row in read(text)["process_memory"]} == {"ray::RayWorker (pid 71)"}


def test_a_device_line_tells_of_unified_memory() -> None:
    assert "unified-memory" in {
        row["topic"] for row in read("vLLM: 0.25.2\nGPU: NVIDIA GB10\nDriver: 580.95\n")["note"]
    }


@pytest.mark.parametrize(
    ("text", "name", "code"),
    [
        ("exit code of the API server process: -9", "API server", -9),
        ("exit code: 137", None, 137),
        ("exited with code 1", None, 1),
        ("exit status of worker 2: -11", "worker 2", -11),
    ],
)
def test_exits(text: str, name: str | None, code: int) -> None:
    assert is_note(text)
    (row,) = read(text)["process_exit"]
    assert (row["name"], row["exit_code"]) == (name, code)


def test_an_exit_code_alone_is_no_event_of_the_host() -> None:
    assert set(read("exit code: 137\nthe server was out of memory, says somebody\n")) == {"process_exit"}
    (row,) = read("the operator killed it by hand\n")["host_event"]
    assert row["kind"] == "killed-by-operator"


def test_changes_of_counters() -> None:
    text = "vllm:prefix_cache_queries_total  +48021\nvllm:prefix_cache_hits_total     +0\nvllm:num_preemptions_total 3 -> 10\n"
    assert is_note(text)
    rows = read(text)["metric"]
    assert [(row["labels"], row["value"]) for row in rows] == [("delta", 48021.0), ("delta", 0.0), ("delta", 7.0)]


def test_how_full_devices_are() -> None:
    text = "GPU 0: 45.5 of 47.5 GiB\nGPU 1: 3 MiB / 48676 MiB, GPU 2: 10 GiB free of 24 GiB\n"
    assert is_note(text)
    rows = read(text)["gpu_sample"]
    assert [(row["gpu"], row["used_bytes"], row["total_bytes"]) for row in rows] == [
        (0, 91 * GIB // 2, 95 * GIB // 2),
        (1, 3 << 20, 48676 << 20),
        (2, 14 * GIB, 24 * GIB),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "TODO\n- buy milk\n- call home\n",
        "driver: 535.183.06\nos: Ubuntu 22.04\n",
        "requests: 1000, input 512 tokens, output 128 tokens\n",
        "INFO 01-05 12:00:00 [loader.py:1] Loading draft model\n",
        "(EngineCore pid=7) ERROR 01-05 12:00:00 [core.py:1] failed with 12 images per prompt\nmore\n",
        'Traceback (most recent call last):\n  File "a.py", line 1, in b\nRuntimeError: LoRA rank 64\n',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 8 GiB\n",
        '{"multimodal": true}',
        "2026-11-19T04:00:00Z overload: 18 clients with long prompts\n2026-11-19T04:01:00Z quiet\n",
    ],
)
def test_logs_and_other_texts_are_no_notes(text: str) -> None:
    assert not is_note(text)


@given(st.binary(max_size=500) | st.text(max_size=300).map(str.encode))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    notes.matches(make_head("any", data))
    read(data, 64)


WORDS = st.sampled_from(
    ["GPU", "0:", "H100", "8 x", "24 GB", "RSS", "after round", "18.08 GB", ":", ",", "\n", "PID RSS COMMAND", "12 34", "not", "no",
     "LoRA", "echo=true", "same prompt", "hits", "none", "0", "0.0 %", "exit code", "-9", "vllm", "0.9.2", "state,rss_mib", "a,1",
     "memory grows", "+1 GB per", "eager", "works", "|", "\t", "  ", "x2", "two", "MIG 1g.10gb", "{", "peft_type", "model:"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=60).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_any_words_are_read_without_an_exception(text: str) -> None:
    notes.matches(make_head("any", text.encode()))
    read(text)
