"""The capacity worksheet: from flags, from a config, from a bundle; its arithmetic, its forms, its sentences."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from grids import report_of
from oomdoc import cli
from oomdoc.errors import UsageError
from oomdoc.fit import SOLVABLE, Given, ask, solve, worksheet
from oomdoc.fit.question import parse_sizes
from oomdoc.model import Engine, Flag, LedgerEntry, Report
from oomdoc.model.worksheet import Solved, Worksheet
from oomdoc.physics.catalogue import models
from oomdoc.physics.interval import ORIGINS, Interval
from oomdoc.report.fit import render, render_json, render_solved
from oomdoc.units import GIB
from report_samples import kv_demand
from snapshot import check

ROOT = Path(__file__).parents[1]
SNAPSHOTS = ROOT / "tests" / "report" / "snapshots"


def sheet(**flags: Any) -> Worksheet:
    return worksheet(ask(Given(**{"engine_version": "0.11.2", **flags})))


def solved(flag: str, **flags: Any) -> Solved:
    return solve(ask(Given(**{"engine_version": "0.11.2", **flags})), flag)


LLAMA = {"model": "meta-llama/Llama-3.1-70B-Instruct", "gpu": "H100", "tensor_parallel_size": 4}


# --- what starts ------------------------------------------------------------------------------------------------------------


def test_the_engines_own_check_is_redone_to_the_block() -> None:
    """The log said 31.99 GiB available and 729,248 tokens; 0.01 GiB of rounding is fourteen blocks."""
    flags = {"model": "GLM-4.7-NVFP4", "gpu": "B200", "tensor_parallel_size": 4, "kv_cache_dtype": "fp8",
             "available_kv": "31.99GiB", "max_model_len": 131_072}  # fmt: skip
    told = sheet(**flags)  # a release whose every rank prints its bytes
    assert told.pool is not None and told.longest is not None
    assert 729_248 in told.pool.tokens
    assert told.pool.blocks.hi - told.pool.blocks.lo <= 15
    assert told.longest.tokens == Interval(told.pool.tokens.lo, told.pool.tokens.hi, "given")
    assert told.pool.need_blocks == 131_072 // 16
    # in 0.15.1, which wrote the line, one rank prints and the poorest of four decides
    later = sheet(**flags, engine_version="0.15.1")
    assert later.pool is not None and later.longest is not None
    assert 729_248 in later.pool.tokens and later.pool.blocks.hi == told.pool.blocks.hi
    assert later.pool.blocks.lo == pytest.approx(0.98 * told.pool.blocks.lo, abs=1)
    assert later.longest.tokens == Interval(later.pool.tokens.lo, later.pool.tokens.hi, "given")


def test_the_length_check_turns_exactly_where_the_pool_ends() -> None:
    flags = {"model": "Qwen/Qwen3-8B", "gpu": "40GiB", "available_kv": "5.29GiB"}
    far = sheet(**flags).longest
    assert far is not None
    assert sheet(**flags, max_model_len=int(far.tokens.lo)).start.starts is True
    assert sheet(**flags, max_model_len=int(far.tokens.lo) + 1).start.starts is None
    assert sheet(**flags, max_model_len=int(far.tokens.hi)).start.starts is None
    refused = sheet(**flags, max_model_len=int(far.tokens.hi) + 1).start
    assert (refused.starts, refused.check) == (False, "length")
    assert refused.lacking_bytes is not None and refused.lacking_bytes.lo >= 0


@pytest.mark.parametrize(
    ("flags", "starts", "check_name"),
    [
        ({**LLAMA}, True, None),
        ({**LLAMA, "tensor_parallel_size": 1}, False, "weights"),
        ({**LLAMA, "tensor_parallel_size": 2, "gpu_memory_utilization": 0.8}, False, "no-blocks"),
        ({**LLAMA, "tensor_parallel_size": 3}, False, "division"),
        ({"model": "tiiuae/falcon-7b", "gpu": "T4", "tensor_parallel_size": 2}, False, "division"),
        ({"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "L4"}, False, "length"),
        ({"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "L4", "max_model_len": 8192}, True, None),
        ({"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "L4", "max_model_len": 24_400}, None, "length"),
        ({"model": "deepseek-ai/DeepSeek-V4-Flash", "gpu": "H100", "tensor_parallel_size": 4}, True, None),
        ({"model": "Zyphra/Zamba2-7B", "gpu": "H100", "tensor_parallel_size": 4}, None, None),
        ({"model": "moonshotai/Kimi-K3", "gpu": "H100", "tensor_parallel_size": 8}, None, None),
    ],
)
def test_verdicts(flags: dict[str, Any], starts: bool | None, check_name: str | None) -> None:
    told = sheet(**flags).start
    assert (told.starts, told.check) == (starts, check_name)
    assert told.says


def test_what_lacks_is_what_would_make_it_start() -> None:
    flags = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "22GiB", "available_kv": "4.27GiB"}
    told = sheet(**flags, max_model_len=131_072)
    assert told.start.lacking_bytes is not None
    more = (4.27 * GIB + told.start.lacking_bytes.hi + 0.01 * GIB) / GIB
    assert sheet(**{**flags, "available_kv": f"{more:.2f}GiB"}, max_model_len=131_072).start.starts is True


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["Qwen/Qwen3-8B", "openai/gpt-oss-120b", "Qwen/Qwen3.5-27B", "deepseek-ai/DeepSeek-V2-Lite-Chat"]),
    st.sampled_from(["0.6.3", "0.8.5", "0.11.2", "0.20.2", "0.33.0"]),
    st.integers(10, 140), st.sampled_from([1, 2, 4]), st.floats(0.3, 0.98),
)  # fmt: skip
def test_more_memory_never_holds_less(name: str, version: str, gib: int, tp: int, utilization: float) -> None:
    flags: dict[str, Any] = {"model": name, "tensor_parallel_size": tp, "gpu_memory_utilization": utilization,
                             "engine_version": version, "max_num_seqs": 64, "max_num_batched_tokens": 2048, "max_model_len": 4096}  # fmt: skip
    less, more = sheet(**flags, gpu=f"{gib}GiB"), sheet(**flags, gpu=f"{gib + 4}GiB")
    if less.pool is None or more.pool is None:
        assert less.pool is more.pool is None
        return
    assert less.pool.tokens.lo <= more.pool.tokens.lo and less.pool.tokens.hi <= more.pool.tokens.hi
    assert less.longest and more.longest and less.longest.tokens.lo <= more.longest.tokens.lo
    if less.start.starts is True:
        assert more.start.starts is True
    if more.start.starts is False and more.start.check != "division":
        assert less.start.starts is False


@settings(deadline=None, max_examples=80)
@given(
    st.sampled_from([entry.name for entry in models()]),
    st.fixed_dictionaries(
        {"gpu": st.integers(1, 300).map(lambda gib: f"{gib}GiB")},
        optional={
            "engine_version": st.sampled_from(["0.1.7", "0.2.7", "0.6.3", "0.6.6", "0.8.5", "0.9.2", "0.18.1", "0.20.2", "0.40"]),
            "tensor_parallel_size": st.integers(1, 64), "pipeline_parallel_size": st.integers(1, 16),
            "decode_context_parallel_size": st.sampled_from([1, 2, 8]), "max_model_len": st.integers(1, 1 << 21),
            "max_num_seqs": st.integers(1, 5000), "max_num_batched_tokens": st.integers(1, 1 << 20),
            "gpu_memory_utilization": st.floats(0.01, 1), "kv_cache_dtype": st.sampled_from(["auto", "fp8", "nvfp4"]),
            "quantization": st.sampled_from(["none", "fp8", "awq", "gguf-q4"]), "block_size": st.sampled_from([1, 16, 128]),
            "enforce_eager": st.booleans(), "available_kv": st.sampled_from(["0GiB", "4.24GiB", "300GiB"]),
            "input_tokens": st.sampled_from(["1", "p50=10,max=2000000"]),
        },
    ),
)  # fmt: skip
def test_any_question_has_an_answer(name: str, flags: dict[str, Any]) -> None:
    told = worksheet(ask(Given(model=name, **flags)))
    assert render(told, width=80) and json.loads(render_json(told))
    if told.start.starts is True:
        keeps_nothing = next(
            entry for entry in models() if entry.name == name
        ).encoder  # an embedding model has no pool
        assert keeps_nothing if told.pool is None else told.pool.need_blocks <= told.pool.blocks.lo
    # what a log says is available holds for the length it was logged with, so it cannot be asked again with another
    if told.longest and told.longest.tokens.lo > 0 and told.start.check != "division" and "available_kv" not in flags:
        length = min(int(told.longest.tokens.lo), told.longest.model_limit or 1 << 40)
        again = {**flags, "max_model_len": length}
        assert worksheet(ask(Given(model=name, **again))).start.starts is True


# --- what else is answered ------------------------------------------------------------------------------------------------------


def test_concurrency_at_sizes_is_whole_blocks() -> None:
    told = sheet(**LLAMA, available_kv="32.06GiB", input_tokens="p50=1200,p95=8000", output_tokens="500")
    assert [(size.name, size.tokens) for size in told.at_once] == [("p50", 1700), ("p95", 8500)]
    assert told.pool is not None
    for size in told.at_once:
        each = -(-size.tokens // 16)
        assert size.requests.lo == told.pool.blocks.lo // each


def test_sizes_are_read_or_refused() -> None:
    assert parse_sizes("--x", None) == {}
    assert parse_sizes("--x", "1,200") == {"request": 1200}
    assert parse_sizes("--x", "P50=10, p95=1,000") == {"p50": 10, "p95": 1000}
    for wrong in ("many", "p50", "p50=", "-3", "p50=1 junk", "1 2"):
        with pytest.raises(UsageError, match="no size"):
            parse_sizes("--x", wrong)


def test_the_safest_utilization_leaves_absolute_headroom() -> None:
    for gpu, headroom_gib in (("T4", 1.5), ("L4", 2.0), ("L40S", 4.0), ("A100-40GB", 4.0), ("H100", 6.0)):
        use = sheet(model="Qwen/Qwen3-0.6B", gpu=gpu).utilization
        assert use.headroom_bytes.hi == headroom_gib * GIB
        total = sheet(model="Qwen/Qwen3-0.6B", gpu=gpu).total_bytes
        assert total.lo * (1 - use.safest) >= use.headroom_bytes.hi
        assert total.lo * (1 - use.safest - 0.01) < use.headroom_bytes.hi


def test_the_utilization_needed_is_the_one_that_turns_the_check() -> None:
    flags = {"model": "Qwen/Qwen3-8B", "gpu": "40GiB", "gpu_memory_utilization": 0.5}
    needed = sheet(**flags).utilization.needed
    assert needed is not None and needed.lo < needed.hi < 1
    enough = sheet(**{**flags, "gpu_memory_utilization": round(needed.hi + 0.002, 3)})
    assert enough.start.starts is True
    short = sheet(**{**flags, "gpu_memory_utilization": round(needed.lo - 0.002, 3)})
    assert short.start.starts is False


def test_what_each_change_does() -> None:
    rows = {row.name: row for row in sheet(**LLAMA).alternatives}
    assert rows["TP 8"].kv_bytes_per_token == rows["as asked"].kv_bytes_per_token / 2  # type: ignore[operator]
    assert rows["KV cache fp8"].kv_bytes_per_token == 40_960
    assert rows["KV cache fp8"].weights_bytes == rows["as asked"].weights_bytes
    assert rows["weights awq"].kv_bytes_per_token == 81_920
    assert rows["weights awq"].weights_bytes.hi < rows["weights fp8"].weights_bytes.lo  # type: ignore[union-attr]
    assert "1 of 8 per GPU" in rows["TP 8"].says
    wide = {
        row.name: row
        for row in sheet(**{**LLAMA, "model": "Qwen/Qwen3-235B-A22B", "tensor_parallel_size": 4}).alternatives
    }
    assert wide["TP 8"].kv_bytes_per_token == wide["as asked"].kv_bytes_per_token == 48_128
    assert "every head stands on 2 ranks" in wide["TP 8"].says
    latent = {row.name: row for row in sheet(model="deepseek-v3", gpu="H200", tensor_parallel_size=8).alternatives}
    assert "does not divide the latent cache" in latent["TP 4"].says


def test_templates_start_for_sure_and_hold_what_they_say() -> None:
    flags = {**LLAMA, "input_tokens": "p50=1200,p95=8000", "output_tokens": "500"}
    short, long = sheet(**flags).templates
    assert (short.name, long.name) == ("short", "long")
    assert short.flags["max_num_seqs"] > long.flags["max_num_seqs"]
    for template, context in ((short, 1700), (long, 8500)):
        assert template.starts is True
        again = sheet(**{**LLAMA, **template.flags, "input_tokens": str(context)})
        assert again.start.starts is True
        assert again.at_once[0].requests.lo >= template.flags["max_num_seqs"]
        assert template.flags["max_model_len"] >= context


@pytest.mark.parametrize(
    "flags",
    [
        {**LLAMA, "tensor_parallel_size": 1},
        {**LLAMA, "max_model_len": 131_072, "gpu_memory_utilization": 0.45},
        {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "L4"},
        {"model": "Qwen/Qwen3-32B", "gpu": "A100-40GB"},
        {"model": "Qwen/Qwen3-0.6B", "gpu": "T4", "gpu_memory_utilization": 0.05},
    ],
)
def test_the_command_starts_where_the_question_did_not(flags: dict[str, Any]) -> None:
    told = sheet(**flags)
    assert told.start.starts is not True
    assert told.command is not None and told.command.starts is True
    assert told.command.changed
    again = sheet(**{**flags, **told.command.flags})
    assert again.start.starts is True, told.command


def test_no_command_where_nothing_helps() -> None:
    assert sheet(model="meta-llama/Llama-3.1-405B-Instruct", gpu="T4").command is None
    assert "no change that was tried" in render(sheet(model="meta-llama/Llama-3.1-405B-Instruct", gpu="T4"))


def test_what_was_asked_is_kept_where_it_starts() -> None:
    command = sheet(
        **LLAMA, max_model_len=32_768, gpu_memory_utilization=0.93, max_num_seqs=64, kv_cache_dtype="fp8"
    ).command
    assert command is not None
    assert command.flags == {
        "tensor_parallel_size": 4, "kv_cache_dtype": "fp8", "max_model_len": 32_768, "gpu_memory_utilization": 0.93,
        "max_num_seqs": 64,
    }  # fmt: skip
    assert not command.changed


# --- solving ------------------------------------------------------------------------------------------------------------------


def test_solved_values_fit_and_one_more_does_not() -> None:
    flags = {"model": "Qwen/Qwen3-8B", "gpu": "L4"}
    length = solved("max_model_len", **flags)
    assert length.value is not None and length.at_best is not None and length.value <= length.at_best
    assert sheet(**flags, max_model_len=int(length.value)).start.starts is True
    assert sheet(**flags, max_model_len=int(length.value) + 1).start.starts is not True

    seqs = solved("--max-num-seqs", **flags, max_model_len=4096, input_tokens="900", output_tokens="124")
    assert seqs.value is not None
    for count, holds in ((int(seqs.value), True), (int(seqs.value) + 1, False)):
        held = sheet(**flags, max_model_len=4096, max_num_seqs=count, input_tokens="900", output_tokens="124").at_once[
            0
        ]
        assert (held.requests.lo >= count) is holds

    batched = solved("max_num_batched_tokens", **flags, max_model_len=4096)
    assert batched.value is not None
    for tokens, holds in ((int(batched.value), True), (int(batched.value) + 1, False)):
        assert (sheet(**flags, max_model_len=4096, max_num_batched_tokens=tokens).start.starts is True) is holds

    ranks = solved("tensor_parallel_size", **{**LLAMA, "tensor_parallel_size": None})
    assert ranks.value == 4


def test_nothing_fits_is_an_answer() -> None:
    none = solved("max_model_len", model="meta-llama/Llama-3.1-405B-Instruct", gpu="T4")
    assert none.value is None
    assert render_solved(none) == "none\n"
    assert set(SOLVABLE) == {
        "max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "tensor_parallel_size",
    }  # fmt: skip


def test_v0_takes_whole_prompts_and_longer_ones_in_chunks() -> None:
    """Each length is judged with the step it brings along: up to 32,768 tokens the prompt, above it 2,048."""
    flags = {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "24GiB", "engine_version": "0.6.6"}
    far = sheet(**flags).longest
    assert far is not None and far.tokens.lo > 0
    assert sheet(**flags, max_model_len=int(far.tokens.lo)).start.starts is True


# --- a config -----------------------------------------------------------------------------------------------------------------

CONFIG = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip


def test_a_config_gives_what_the_catalogue_gives() -> None:
    own = sheet(model="mine", model_config=CONFIG, gpu="H100")
    known = sheet(model="meta-llama/Llama-3.1-8B-Instruct", gpu="H100")
    assert own.pool is not None and known.pool is not None
    assert own.pool.tokens.lo == known.pool.tokens.lo
    assert own.kv_bytes_per_token == known.kv_bytes_per_token
    assert any(entry.origin == "config" for entry in own.inputs)


def test_a_config_of_an_unknown_family_takes_its_size_from_the_name() -> None:
    unknown = {**CONFIG, "model_type": "brand_new"}
    named = sheet(model="acme/brand-new-8B", model_config=unknown, gpu="H100")
    assert any("from the model's name" in doubt for doubt in named.doubts)
    weights = next(part.size_bytes for part in named.parts if part.name == "weights")
    assert 8.03e9 * 2 in weights
    nameless = sheet(model="acme/brand-new", model_config=unknown, gpu="H100")
    assert nameless.start.starts is None
    assert any("cannot be counted" in doubt for doubt in nameless.doubts)


# --- a report -----------------------------------------------------------------------------------------------------------------


def report(parts: dict[str, int | None] | None = None, **flags: Any) -> Report:
    """A server that ran: Qwen3-8B on 39.49 GiB, 0.19.0, its figures as the log printed them."""
    told = {"model": "Qwen/Qwen3-8B", "max_model_len": 32_768, "gpu_memory_utilization": 0.9, **flags}
    sample = kv_demand()
    entry = LedgerEntry(
        "vllm.log#1", None, "GPU 0", round(39.49 * GIB),
        {"weights_bytes": round(15.27 * GIB), "kv_pool_bytes": round(19.36 * GIB), "cuda_graph_bytes": round(2.44 * GIB),
         "activation_bytes": None, "non_torch_bytes": None, "other_processes_bytes": None, **(parts or {})},
        147_472.0, 140_960, ("vllm.log:7",),
    )  # fmt: skip
    engine = Engine(
        "vllm.log#1", "vllm.log:1", None, "0.19.0", str(told["model"]) if told["model"] else None, "V1",
        {name: Flag(value, "logged", "vllm.log:2") for name, value in told.items()}, None, False,
    )  # fmt: skip
    return replace(sample, ledger=(entry,), engines=(engine,))


def test_a_bundle_gives_its_own_figures_with_their_rounding() -> None:
    told = worksheet(ask(Given(), report()))
    assert told.pool is not None
    assert 140_960 in told.pool.tokens
    assert told.pool.tokens.hi - told.pool.tokens.lo <= 5 * 16 + 16
    logged = {entry.name for entry in told.inputs if entry.origin == "logged"}
    assert {"weights", "available for KV", "CUDA graphs", "device total", "max_model_len"} <= logged
    assert [size.name for size in told.at_once][-1] == "max"  # the percentiles of its traffic


def test_a_flag_over_a_bundle_moves_only_what_it_changes() -> None:
    ran = worksheet(ask(Given(), report()))
    more = worksheet(ask(Given(gpu_memory_utilization=0.95), report()))
    assert ran.pool and more.pool
    moved = 0.05 * 39.49 * GIB / (147_456 * 16)
    assert more.pool.blocks.lo - ran.pool.blocks.lo == pytest.approx(moved, abs=3)
    halved = worksheet(ask(Given(kv_cache_dtype="fp8"), report()))
    assert halved.pool is not None and 2 * ran.pool.blocks.lo <= halved.pool.blocks.lo <= 2 * ran.pool.blocks.lo + 1
    slim = worksheet(ask(Given(quantization="awq"), report()))
    assert slim.pool is not None
    saved = (slim.pool.blocks.lo - ran.pool.blocks.lo) * 147_456 * 16 / GIB
    assert saved == pytest.approx(15.26 - 5.68, abs=0.1)  # the checkpoint of Qwen3-8B-AWQ has 5.68 GiB
    wide = worksheet(ask(Given(tensor_parallel_size=2), report()))
    assert wide.pool is not None
    # nothing logged holds for two ranks but what no rank changes: from here on it is planned
    assert wide.pool.blocks.origin == "planning figure"


def test_graphs_that_hardly_fit_beside_the_plan_leave_it_open() -> None:
    tight = worksheet(ask(Given(), report(gpu_memory_utilization=0.94)))
    assert (tight.start.starts, tight.start.check) == (None, "capture")
    assert tight.command is not None and tight.command.flags["gpu_memory_utilization"] < 0.94
    roomy = worksheet(ask(Given(), report(gpu_memory_utilization=0.90)))
    assert roomy.start.starts is True


def test_a_model_that_no_list_has_is_told_by_its_figures() -> None:
    told = ask(Given(), report(model="/models/ours-v3"))
    assert told.model.confirmed == "name"
    (note,) = [entry.note for entry in told.inputs if entry.name == "architecture"]
    assert "By its figures it could be Qwen/Qwen3-8B" in note


def test_what_is_not_counted_is_a_doubt() -> None:
    told = ask(
        Given(), report(enable_lora=True, data_parallel_size=2, speculative_config=None, cpu_offload_gb=0)
    ).doubts
    assert [doubt for doubt in told if doubt.startswith("the log sets")] == [
        "the log sets data_parallel_size; data parallelism: each replica has its own pool, and experts may be spread over "
        "all replicas",
        "the log sets enable_lora; LoRA: its slots are counted for plain decoders; those of experts only where the log's figures are",
    ]


def test_what_a_log_garbles_is_left_to_the_defaults() -> None:
    told = worksheet(
        ask(
            Given(),
            report(
                dtype="float99", max_num_seqs="many", gpu_memory_utilization=7, kv_cache_dtype="fp3", max_model_len=-1
            ),
        )
    )
    used = {entry.name: entry.origin for entry in told.inputs}
    assert "dtype" not in used
    assert used["max_num_seqs"] == used["gpu_memory_utilization"] == used["kv_cache_dtype"] == "default"


@pytest.mark.parametrize(
    ("case", "starts", "check_name"),
    [
        ("kv-pool-default-length", False, "length"),
        ("weights-70b-on-one-card", False, "weights"),
        ("one-of-four-cards", False, "weights"),
        ("utilization-left-at-035", False, "no-blocks"),
        ("graph-capture-on-24gb", None, "capture"),
        ("healthy-full-device", True, None),
        ("kv-demand-long-chats", True, None),
    ],
)
def test_shipped_cases_are_told_as_they_went(case: str, starts: bool | None, check_name: str | None) -> None:
    """What the label of a case says about its start is what the arithmetic says."""
    report = report_of(case)
    told = worksheet(ask(Given(), report))
    assert (told.start.starts, told.start.check) == (starts, check_name)
    logged = next((entry.kv_pool_tokens for entry in report.ledger if entry.kv_pool_tokens), None)
    if logged and starts:
        assert told.pool is not None and logged in told.pool.tokens


# --- forms --------------------------------------------------------------------------------------------------------------------

SHEETS: dict[str, dict[str, Any]] = {
    "fits": {**LLAMA, "max_model_len": 32_768, "input_tokens": "p50=1200,p95=8000", "output_tokens": "500"},
    "refused": {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "A10G", "engine_version": "0.6.6"},
    "hybrid": {"model": "Qwen/Qwen3.5-27B", "gpu": "A100-80GB", "kv_cache_dtype": "fp8", "engine_version": None},
    "unknown": {"model": "Zyphra/Zamba2-7B", "gpu": "H200", "tensor_parallel_size": 4},
}


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("name", SHEETS)
def test_whole_worksheet_as_accepted(name: str, width: int) -> None:
    check(SNAPSHOTS / f"fit-{name}.terminal-{width}.txt", render(sheet(**SHEETS[name]), width=width))


@pytest.mark.parametrize("width", [72, 80, 120])
@pytest.mark.parametrize("name", SHEETS)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    for line in render(sheet(**SHEETS[name]), width=width).splitlines():
        assert cell_len(line) <= width, line


@pytest.mark.parametrize("name", SHEETS)
def test_colour_adds_only_escapes(name: str) -> None:
    plain, colored = (render(sheet(**SHEETS[name]), width=100, color=color) for color in (False, True))
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert "\x1b" not in plain and plain.replace("`", "") == stripped.replace("`", "")


@pytest.mark.parametrize("name", SHEETS)
def test_json_has_every_interval_with_its_origin(name: str) -> None:
    told = json.loads(render_json(sheet(**SHEETS[name])))
    assert next(iter(told)) == "worksheet_version"
    found: list[dict[str, Any]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "lo" in value:
                found.append(value)
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(told)
    assert len(found) >= 8
    assert all(each["lo"] <= each["hi"] and each["origin"] in ORIGINS for each in found)


def test_hostile_names_are_text() -> None:
    told = sheet(model="x\x1b[31m$(rm -rf ~)'", model_config=CONFIG, gpu="H100")
    text = render(told, width=80)
    assert "\x1b" not in text
    line = next(line for line in text.splitlines() if "vllm serve" in line)
    assert line.startswith("  vllm serve 'x")


def test_the_same_question_gives_the_same_bytes() -> None:
    assert render_json(sheet(**SHEETS["hybrid"])) == render_json(sheet(**SHEETS["hybrid"]))


# --- the command -----------------------------------------------------------------------------------------------------------------


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.run(["fit", *argv])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_examples_of_the_help_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cli.run(["fit", "--help"])
    helped = capsys.readouterr().out.split("Example:")[1].split("Exit status")[0].replace("\\\n", " ")
    lines = [line.strip() for line in helped.splitlines() if line.strip().startswith("oomdoc fit")]
    assert len(lines) == 8
    monkeypatch.chdir(tmp_path)
    Path("my-model").mkdir()
    Path("my-model/config.json").write_text(json.dumps(CONFIG))
    Path("bundle.tar.gz").symlink_to(ROOT / "sample_logs" / "kv-demand-long-chats")
    for line in lines:
        status, out, err = call(capsys, *shlex.split(line)[2:])
        assert (status, err == "" or "--solve" in line) == (0, True), (line, err)
        assert out


def test_solve_prints_the_value_alone(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--model", "Qwen3-8B", "--gpu", "40GiB", "--available-kv", "5.29GiB", "--engine-version", "0.11.0"]
    status, out, err = call(capsys, *flags, "--solve", "max_model_len")
    assert status == 0
    assert int(out) == int(5.285 * GIB) // (147_456 * 16) * 16
    assert err.startswith("oomdoc: memory allows") and err.count("\n") == 1
    assert call(capsys, *flags, "--solve", "max_model_len", "-q")[2] == ""
    told = json.loads(call(capsys, *flags, "--solve", "max_model_len", "--format", "json")[1])
    assert told["value"] == int(out) and told["flag"] == "max_model_len"


def test_a_bundle_without_an_engine_or_a_device_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("nothing in here\n")
    status, out, err = call(capsys, "--from", str(notes), "-q")
    assert (status, out) == (3, "")
    assert err.count("\n") == 1
    status, _, err = call(capsys, "--from", str(tmp_path / "gone.tar"), "-q")
    assert status == 3


@pytest.mark.parametrize("text", ["[]", "{", "{}", "\xff"])
def test_a_config_that_is_none_is_one_sentence(text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(text.encode("latin-1"))
    status, out, err = call(capsys, "--model-config", str(path), "--gpu", "H100")
    assert (status, out) == (2, "")
    assert err.startswith("oomdoc: ") and err.count("\n") == 1


def test_flags_alone_need_no_database() -> None:
    code = (
        "import sys; from oomdoc.cli import run; run(['fit', '--model', 'Qwen3-8B', '--gpu', 'H100', '--format', 'json']);"
        "sys.exit(str({'duckdb', 'numpy', 'oomdoc.diagnose'} & set(sys.modules) or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
    json.load(io.StringIO(done.stdout))
