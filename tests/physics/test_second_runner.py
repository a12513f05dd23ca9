"""The second model runner: starts measured on an H100 of 79.18 GiB with 0.26.0, each to be held by the interval that is planned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oomdoc.physics.catalogue import find
from oomdoc.physics.expect import expected
from oomdoc.physics.interval import Interval
from oomdoc.physics.planning import activation_bytes, runner_of
from oomdoc.physics.setup import Setup, runner_stated
from oomdoc.units import GIB

TOTAL = Interval(79.175 * GIB, 79.185 * GIB, "logged")
L8, Q7, Q32, Q4 = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-32B-Instruct", "Qwen/Qwen3-4B"  # fmt: skip


def _setup(utilization: float, length: int, **more: object) -> Setup:
    return Setup(version=26_000, gpu_memory_utilization=utilization, max_model_len=length, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "setup", "peak_gib", "kv_gib", "tokens"),
    [
        (L8, _setup(0.9, 16_384), 1.10, 54.93, 449_968),  # with graphs, which no estimate takes off; compiled anew
        (L8, _setup(0.27, 16_384), 0.88, 5.27, 43_200),
        (L8, _setup(0.9, 16_384, enforce_eager=True), 0.88, 55.16, 451_840),
        (L8, _setup(0.92, 8_192, enforce_eager=True, max_num_batched_tokens=2_048), 0.30, 57.31, 469_520),
        (L8, _setup(0.92, 8_192, enforce_eager=True, max_num_batched_tokens=32_768), 3.41, 54.21, 444_080),
        (L8, _setup(0.9, 8_192, enforce_eager=True, kv_cache_dtype="fp8"), 0.88, 55.16, 903_680),
        (Q7, _setup(0.95, 32_768, enforce_eager=True, max_num_batched_tokens=16_384), 2.20, 58.5, 1_095_408),
        (Q32, _setup(0.95, 4_096, enforce_eager=True, max_num_seqs=4_096), 1.61, 12.35, 50_560),
        (Q4, _setup(0.45, 8_192, enforce_eager=True), 0.63, 27.22, 198_192),
        (Q7, _setup(0.985, 32_768), None, 62.35, 1_167_504),
        (L8, _setup(0.25, 131_072, enforce_eager=True), 0.88, 3.69, None),
    ],
)
def test_measured_starts_lie_in_what_is_planned(
    name: str, setup: Setup, peak_gib: float | None, kv_gib: float, tokens: int | None
) -> None:
    known = find(name)
    assert known is not None
    told = expected(known.model, setup, TOTAL, device="NVIDIA H100 80GB HBM3")
    assert told.budget is not None and told.available_bytes is not None
    assert kv_gib * GIB in told.available_bytes and told.available_bytes.hi - told.available_bytes.lo < 2.2 * GIB
    assert peak_gib is None or peak_gib * GIB in told.budget.activation_bytes
    assert tokens is None or (told.pool is not None and tokens in told.pool.tokens)
    assert not told.budget.graphs_planned


def test_the_first_runner_tries_its_sampler_and_plans_graphs() -> None:
    known = find(Q7)
    assert known is not None
    one, two = (
        expected(known.model, _setup(0.9, 16_384, model_runner=runner), TOTAL).budget for runner in ("V1", "V2")
    )
    assert one is not None and two is not None and one.graphs_planned and not two.graphs_planned
    assert one.activation_bytes.lo > two.activation_bytes.hi  # 1,024 rows of 152k logits
    assert one.available_bytes.hi < two.available_bytes.hi


def test_which_runner_a_model_gets() -> None:
    """By vllm/config/vllm.py of each release."""
    names = {"llama": L8, "qwen2": Q7, "qwen3": Q4, "experts": "Qwen/Qwen3-30B-A3B", "seeing": "Qwen/Qwen2.5-VL-7B-Instruct",
             "hybrid": "Qwen/Qwen3.5-27B", "deepseek": "deepseek-ai/DeepSeek-V2-Lite"}  # fmt: skip
    models = {}
    for kind, name in names.items():
        known = find(name)
        assert known is not None
        models[kind] = known.model
    second = {release: {kind for kind, model in models.items() if runner_of(model, release) == "V2"}
              for release in (21_000, 22_000, 23_000, 24_000, 25_001, 28_000, 29_000)}  # fmt: skip
    dense = {"llama", "qwen2", "qwen3", "seeing"}
    assert second == {
        21_000: set(), 22_000: {"qwen3"}, 23_000: {"llama", "qwen3"}, 24_000: {"llama", "qwen3", "deepseek"},
        25_001: dense | {"deepseek"}, 28_000: dense | {"deepseek"}, 29_000: set(models),
    }  # fmt: skip
    assert (
        runner_of(models["llama"], 23_000, quantised=True) == "V1"
        and runner_of(models["llama"], 24_000, quantised=True) == "V2"
    )
    assert (
        runner_of(models["llama"], 26_000, drafts="ngram") == "V1"
        and runner_of(models["llama"], 33_000, drafts="ngram") == "V2"
    )
    assert runner_of(models["llama"], 26_000, "V1") == "V1" and runner_of(models["experts"], 25_001, "V2") == "V2"
    assert runner_stated({"VLLM_USE_V2_MODEL_RUNNER": "0", "model_runner": "V2"}) == "V2"  # the log was there


def test_the_second_runner_plans_graphs_from_0_29_on() -> None:
    known = find(L8)
    assert known is not None
    before, after = (
        expected(known.model, replace(_setup(0.9, 16_384), version=version), TOTAL).budget
        for version in (28_000, 29_000)
    )
    assert before is not None and after is not None
    assert not before.graphs_planned and after.graphs_planned
    assert after.available_bytes.lo < before.available_bytes.lo


def test_the_second_runner_tries_every_parameter_of_its_sampler_from_0_33_on() -> None:
    known = find(Q7)
    assert known is not None
    rows = 4096 * (known.model.vocab_size or 0)
    peak = {version: activation_bytes(known.model, batched_tokens=8192, max_num_seqs=4096, version=version, runner="V2")
            for version in (26_000, 33_000)}  # fmt: skip
    assert peak[26_000].hi < 3.5 * rows < 6 * rows <= peak[33_000].lo


def test_the_second_runner_tries_an_encoder_from_0_27_on() -> None:
    known = find("Qwen/Qwen2.5-VL-7B-Instruct")
    assert known is not None
    peak = {version: activation_bytes(known.model, batched_tokens=8192, max_num_seqs=256, version=version, runner="V2").hi
            for version in (26_000, 27_000)}  # fmt: skip
    assert peak[27_000] - peak[26_000] == 1.6 * GIB


def test_what_the_device_keeps_counts_where_the_release_asks_the_device() -> None:
    known = find(L8)
    assert known is not None
    low = {version: told.budget.available_bytes.lo for version in (26_000, 27_000)
           if (told := expected(known.model, replace(_setup(0.9, 16_384), version=version), TOTAL)).budget}  # fmt: skip
    assert low[26_000] - low[27_000] == pytest.approx(0.15 * GIB)


def test_scales_of_8_bit_weights_spread_where_there_are_no_kernels() -> None:
    known = find("Qwen/Qwen3-32B")
    assert known is not None
    sizes = {}
    for device, quantization in (
        ("NVIDIA A100 80GB", "fp8"),
        ("NVIDIA H100 80GB", "fp8"),
        ("NVIDIA A100 80GB", "awq"),
        ("NVIDIA H100 80GB", "awq"),
    ):
        told = expected(known.model, _setup(0.9, 8_192, quantization=quantization), TOTAL, device=device)
        assert told.weights_bytes is not None
        sizes[device, quantization] = told.weights_bytes
    a100, h100 = sizes["NVIDIA A100 80GB", "fp8"], sizes["NVIDIA H100 80GB", "fp8"]
    assert a100.lo == h100.lo and a100.hi == pytest.approx(h100.hi * (1 + 2 / 128))
    assert sizes["NVIDIA A100 80GB", "awq"] == sizes["NVIDIA H100 80GB", "awq"]
