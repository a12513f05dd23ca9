"""From text to verdict: loads of SGLang, trials side by side, layers kept on the host, a prompt that begins anew; with near misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import first

_PIECE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.31 GiB. GPU 0 has a total capacity of 47.40 GiB of which 1.70 GiB is free. Including non-PyTorch memory, this process has 45.70 GiB memory in use. Of the allocated memory 42.00 GiB is allocated by PyTorch, and 2.75 GiB is reserved by PyTorch but unallocated.\n"


@pytest.mark.parametrize(
    ("statement", "spike"),
    [
        ("    input_token_logprobs, input_top = self.rows_of(states)\n", True),
        ("    input_top_logprobs_val = torch.log_softmax(picked, -1)\n", True),
        ("    hidden = self.mlp(hidden)\n", False),
    ],
)
def test_a_statement_of_the_traceback_names_what_was_computed(tmp_path: Path, statement: str, spike: bool) -> None:
    log = (
        "[2027-01-02 03:04:05 TP0] Decode batch, #running-req: 3, #token: 9120, token usage: 0.06, cuda graph: True, gen throughput (token/s): 140.10, #queue-req: 0,\n"
        "[2027-01-02 03:04:09 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/srv/layers/head.py", line 88, in run\n' + statement + _PIECE
    )
    cause, probability = first(tmp_path, {"server.log": log})
    assert (cause == "prefill-activation-spike" and probability > 0.9) is spike


@pytest.mark.parametrize(
    ("cells", "cause"),
    [
        (("works", "works", "OOM", "works", "works", "crashes"), "tp-overhead"),
        (("OOM", "works", "works", "OOM", "works", "works"), "tp-undersharded"),
    ],
)
def test_outcomes_side_by_side(tmp_path: Path, cells: tuple[str, ...], cause: str) -> None:
    table = "| gpu_memory_utilization | tp=2 | tp=4 | tp=8 |\n|---|---|---|---|\n" + "".join(
        f"| {share} | {' | '.join(row)} |\n" for share, row in (("0.92", cells[:3]), ("0.88", cells[3:]))
    )
    told, probability = first(tmp_path, {"sweep.md": table})
    assert told == cause or (cause != "tp-overhead" and not (told == "tp-overhead" and probability > 0.3))


@pytest.mark.parametrize(
    ("needs", "asked", "told"), [("31.4 GiB", "-1", True), ("8.2 GiB", "-1", False), ("31.4 GiB", "10", False)]
)
def test_layers_that_an_instance_does_not_hold(tmp_path: Path, needs: str, asked: str, told: bool) -> None:
    text = (
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n  MIG 2g.10gb     Device  0: (UUID: MIG-2)\n"
        'level=INFO msg="inference compute" id=MIG-2 library=cuda name="NVIDIA A100-SXM4-40GB MIG 2g.10gb" total="9.5 GiB" available="9.4 GiB"\n'
        f'level=INFO msg="offload to cuda" layers.requested={asked} layers.model=61 layers.offload=17 layers.split="" memory.available="[9.4 GiB]" memory.required.full="{needs}" memory.required.partial="9.2 GiB"\n'
    )
    cause, probability = first(tmp_path, {"pod.txt": text})
    assert (cause == "mig-slice-too-small" and probability > 0.5) is told


@pytest.mark.parametrize(("made", "told"), [("0.0", True), ("44.1", False)])
def test_one_prompt_that_is_never_answered(tmp_path: Path, made: str, told: bool) -> None:
    line = "INFO 03-04 05:06:{0:02} [loggers.py:1] Engine 000: Avg prompt throughput: 800.0 tokens/s, Avg generation throughput: {1} tokens/s, Running: {2} reqs, Waiting: {3} reqs, GPU KV cache usage: {4}%, Prefix cache hit rate: 0.0%\n"
    log = "INFO 03-04 05:00:00 [kv_cache_utils.py:1] GPU KV cache size: 65,792 tokens\nINFO 03-04 05:00:00 [kv_cache_utils.py:2] Maximum concurrency for 65,536 tokens per request: 1.00x\nINFO:     Application startup complete.\n"
    for turn in range(4):
        for second, (running, waiting, used) in enumerate(((1, 0, "33.0"), (1, 0, "66.1"), (1, 0, "99.2"), (0, 1, "0.0"))):  # fmt: skip
            log += line.format(turn * 10 + second, made, running, waiting, used)
    cause, probability = first(tmp_path, {"serve.log": log})
    assert (cause == "kv-pool-below-max-model-len" and probability > 0.5) is told
