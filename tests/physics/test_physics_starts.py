"""The calculator against published starts: figures of both halves of `starts.toml`, and single rules that logs showed."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import starts
import tomli

from oomdoc.errors import UsageError
from oomdoc.fit import Given, Question, ask, matrix, solve, worksheet
from oomdoc.fit.given import parse_tokens
from oomdoc.fit.judge import judge
from oomdoc.physics import defaults
from oomdoc.physics.architecture import LATENT, RECURRENT
from oomdoc.physics.budget import plan_budget
from oomdoc.physics.catalogue import find, models, nearest
from oomdoc.physics.config import read_config
from oomdoc.physics.defaults import rule_releases, version_number
from oomdoc.physics.expect import IN_FLIGHT_SINCE, Known, expected
from oomdoc.physics.gpus import find_gpu
from oomdoc.physics.interval import Interval, point, printed
from oomdoc.physics.kv import SHARED_INDEXER_SINCE, kv_bytes_per_token, state_bytes, token_bytes
from oomdoc.physics.model_folder import read_model_files
from oomdoc.physics.planning import (
    FUSED_SAMPLER_UNTIL,
    LEAN_SAMPLER_SINCE,
    ONE_RANK_PRINTS_SINCE,
    SECOND_ENCODER_SINCE,
    SECOND_GRAPHS_SINCE,
    SECOND_SAMPLER,
    activation_bytes,
    non_torch_bytes,
)
from oomdoc.physics.pool import BLOCKS_LINE_UNTIL, layouts
from oomdoc.physics.rotary import rotary_bytes
from oomdoc.physics.setup import (
    PREFIX_CACHING_OF_HYBRIDS_SINCE,
    STATES_CACHED_SINCE,
    STATES_COPIED_ALONE_SINCE,
    STATES_COPIED_SINCE,
    Setup,
)
from oomdoc.physics.speculation import read_speculation
from oomdoc.physics.weights import weights_bytes
from oomdoc.report.fit import render, render_matrix
from oomdoc.units import GIB


def question(**flags: Any) -> Question:
    return ask(Given(**{"engine_version": "0.11.2", "gpu": "H100", **flags}))


# --- both halves -------------------------------------------------------------------------------------------------------------

# What was reached, less one row: the half that nothing was fitted to is held to its own figures.
LEAST = {
    False: {"weights": 85, "tokens": 83, "right": 64, "likelier": 69, "inside": 65},
    True: {"weights": 76, "tokens": 75, "right": 51, "likelier": 55, "inside": 53},
}


@pytest.mark.parametrize("aside", [False, True], ids=["open", "aside"])
def test_published_starts(aside: bool) -> None:
    figures = starts.measure(starts.rows(aside))
    least = LEAST[aside]
    assert figures.refused == 0
    assert figures.weights[0] >= least["weights"], figures
    assert figures.tokens[0] >= least["tokens"], figures
    assert figures.starts[0] >= least["right"] and figures.starts[1] == 0, figures
    assert figures.starts[0] + figures.leaning[0] >= least["likelier"], figures
    assert figures.pool_error is not None and figures.pool_error <= 0.05, figures
    assert figures.pool_holds[0] >= least["inside"], figures
    assert figures.pool_width is not None and figures.pool_width <= 0.25, figures


@pytest.mark.parametrize(
    ("share", "starts", "answer"),
    [
        (0.70, False, "DOES NOT FIT"),
        (0.735, None, "LIKELY DOES NOT FIT"),
        (0.7623, None, "MAY FIT"),
        (0.78, None, "LIKELY FITS"),
        (0.83, True, "STARTS"),
    ],
)
def test_an_open_check_says_which_side_is_likelier(share: float, starts: bool | None, answer: str) -> None:
    """One request of 40,960 tokens of Qwen3-8B is 5.63 GiB beside 15.3 of weights on 29.3 GiB, a share at a time."""
    told = worksheet(question(model="Qwen/Qwen3-8B", gpu="29.3GiB", max_model_len=40_960, gpu_memory_utilization=share))
    assert told.start.starts is starts and told.answer.startswith(answer)
    chance = told.start.chance
    assert chance is not None
    assert chance == {True: 1.0, False: 0.0}.get(starts, chance)  # type: ignore[call-overload]
    assert ("in 10" in told.start.says) is (starts is None)


def test_parts_that_do_not_know_of_each_other_are_not_all_wrong_at_once() -> None:
    """Four parts of one half width each are two off together, not four; what is exact adds nothing."""
    one = Interval(1 * GIB, 3 * GIB, "planning figure")
    plan = plan_budget(
        Interval(39 * GIB, 41 * GIB), 1.0, weights_bytes=one, activation_bytes=one, non_torch_bytes=one, graph_bytes=one, version=19_000
    )  # fmt: skip
    assert plan.spread_bytes == pytest.approx(2 * GIB)
    assert plan.available_bytes.hi - plan.available_bytes.lo == 8 * GIB
    sure = plan_budget(
        point(40 * GIB), 1.0, weights_bytes=point(1), activation_bytes=point(1), non_torch_bytes=point(1), graph_bytes=one, version=19_000
    )  # fmt: skip
    assert sure.spread_bytes == 0  # graphs are not in this release's plan


def test_a_server_whose_release_nobody_knows_has_the_chance_of_each() -> None:
    each = [question(model="ibm-granite/granite-3.1-8b-instruct", gpu="A10G", max_model_len=30_000, engine_version=version) for version in ("0.11.0", "0.25.0")]  # fmt: skip
    told = [judge(one, one.setup).chance for one in each]
    assert told[0] is not None and told[1] is not None and told[0] < told[1]
    unknown = question(
        model="ibm-granite/granite-3.1-8b-instruct", gpu="A10G", max_model_len=30_000, engine_version="any"
    )
    chance = judge(unknown, unknown.setup).chance
    assert chance is not None and told[0] < chance < told[1]


def test_a_row_that_is_refused_is_missed_in_each_figure_it_states() -> None:
    stated = [
        row for row in starts.rows(False) if {"weights_gib", "tokens", "available_gib", "gpu", "started"} <= row.keys()
    ]
    row = next(row for row in stated if starts.measure([row]).starts == (1, 0, 0))
    assert starts.answered(row)
    refused = {**row, "kv_cache_dtype": "no_such_dtype"}
    assert not starts.answered(refused)
    figures = starts.measure([row, refused])
    assert (figures.rows, figures.refused) == (2, 1)
    assert figures.weights == (1, 2) and figures.tokens == (1, 2) and figures.starts == (1, 0, 1)


def test_the_collection_is_large_and_split_by_rule() -> None:
    every = starts.rows()
    assert len(every) >= 200
    assert len({(row["url"], row["line"], row.get("available_gib")) for row in every}) == len(every)
    assert min(len(starts.rows(True)), len(starts.rows(False))) >= 90


# --- weights -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", models(), ids=lambda entry: entry.name)
def test_a_name_with_fp8_is_the_flag_fp8(entry: Any) -> None:
    """A checkpoint's size belongs to one format: a copy in 8 bits has the 8-bit size whichever way it is asked for."""
    found = find(f"{entry.name}-FP8")
    assert found is not None
    if found.model is not entry:  # an alias of that very name, with a format of its own
        return
    sizes = []
    for flags in ({"model": f"{entry.name}-FP8"}, {"model": entry.name, "quantization": "fp8"}):
        asked = question(**flags)
        sizes.append(weights_bytes(asked.model, quantization=asked.setup.quantization))
    assert sizes[0] == sizes[1]


def test_hybrids_in_other_formats_are_counted_and_not_the_16_bit_files() -> None:
    for name, gib in (("ibm-granite/granite-4.1-8b-FP8", 8.2), ("Qwen/Qwen3.5-122B-A10B-FP8", 115.6), ("google/gemma-4-31B-it-FP8", 31.2)):  # fmt: skip
        asked = question(model=name)
        size = weights_bytes(asked.model)
        assert size is not None and abs(size.middle / GIB / gib - 1) < 0.06, (name, size)


def test_what_a_maker_leaves_in_16_bits_counts() -> None:
    """Gemma-4-31B-IT-NVFP4 is logged with 31.18 GiB: attention stays in 16 bits in this maker's copies."""
    told = question(model="nvidia/Gemma-4-31B-IT-NVFP4")
    size = weights_bytes(told.model)
    assert size is not None and abs(size.middle / GIB / 31.18 - 1) < 0.05
    assert told.model.kv_cache_scheme == "fp8"
    others = question(model="acme/gemma-4-31B-it-NVFP4")
    assert others.model.kv_cache_scheme is None
    assert any("8-bit KV cache" in doubt for doubt in others.doubts)


def test_gguf_without_a_file_is_a_range_and_with_one_is_not() -> None:
    wide, narrow = (
        weights_bytes(question(model=name).model) for name in ("Qwen/Qwen3-8B-GGUF", "Qwen/Qwen3-8B-GGUF:Q4_K_M")
    )
    assert wide is not None and narrow is not None
    assert wide.hi / wide.lo > 1.6 > 1.05 > narrow.hi / narrow.lo
    assert wide.lo / GIB == pytest.approx(4.6, abs=0.2)


def test_weight_files_beside_a_config_decide(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2,
        "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_model_files(tmp_path).weight_bytes is None
    header = json.dumps({"__metadata__": {}, "a": {"dtype": "BF16", "shape": [5], "data_offsets": [0, 10]}, "b": {"data_offsets": [10, 7_000_000]}}).encode()  # fmt: skip
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    files = read_model_files(tmp_path)
    assert files.weight_bytes == 7_000_000
    told = question(model_config=files.config, weight_bytes=files.weight_bytes)
    size = weights_bytes(told.model)
    assert size is not None and 7_000_000 in size and size.hi < 7_150_000 + rotary_bytes(told.model)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 9_000_000}}))
    assert read_model_files(tmp_path).weight_bytes == 9_000_000
    (tmp_path / "model.safetensors.index.json").unlink()
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 20)
    assert read_model_files(tmp_path).weight_bytes is None
    with pytest.raises(UsageError, match=r"holds no config\.json"):
        read_model_files(tmp_path / "nothing")


# --- caches ------------------------------------------------------------------------------------------------------------------


def test_a_shared_indexer_is_counted_once() -> None:
    """GLM-5.2: 78 entries of 656 bytes and 21 indexers of 132, as its log lists them."""
    found = find("zai-org/GLM-5.2-FP8")
    assert found is not None
    assert kv_bytes_per_token(found.model, kv_cache_dtype="fp8_ds_mla") == 78 * 656 + 21 * 132 == 53_940


def test_a_state_is_as_wide_as_the_config_says() -> None:
    """Qwen3-Next with an 8-bit cache logs blocks of 1,072 tokens; a config that states 32 bits gives twice as many."""
    found = find("Qwen/Qwen3-Next-80B-A3B-Instruct")
    assert found is not None
    blocks = expected(
        found.model, Setup(version=11_002, kv_cache_dtype="fp8", max_model_len=8192), point(80 * GIB), known=Known(available_bytes=point(9 * GIB))
    ).pool  # fmt: skip
    assert blocks is not None and blocks.layouts[0].block_tokens == 1072
    config = {
        "model_type": "qwen3_next", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "full_attention_interval": 4, "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8,
        "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4, "vocab_size": 100,
    }  # fmt: skip
    widths = {
        read_config({**config, **more}).caches[0].state_bytes_each for more in ({}, {"mamba_ssm_dtype": "bfloat16"})
    }
    assert widths == {2}
    assert read_config({**config, "mamba_ssm_dtype": "float32"}).caches[0].state_bytes_each == 4


def test_a_layer_that_drafts_has_a_cache_and_a_state_per_token() -> None:
    """Qwen3.8-27B with three MTP tokens (0.25.1): blocks of 800 tokens in 17 layers, 1,191,213 tokens of 80.17 GiB."""
    asked = question(
        model="Qwen/Qwen3.8-27B", engine_version="0.25.1", max_model_len=262_144, max_num_seqs=32, gpu="GB10",
        speculative_config='{"method": "mtp", "num_speculative_tokens": 3}', available_kv="80.17GiB",
    )  # fmt: skip
    pool = worksheet(asked).pool
    assert pool is not None
    assert (pool.block_tokens, pool.groups, pool.need_blocks) == (800, 4, 328 + 3 * 4)
    assert 1_191_213 in pool.tokens
    plain = worksheet(question(model="Qwen/Qwen3.8-27B", engine_version="0.25.1", available_kv="80.17GiB")).pool
    assert plain is not None and plain.block_tokens == 784


DFLASH = '{"model": "poolside/Laguna-S-2.1-DFlash-INT4", "num_speculative_tokens": 15}'
LAGUNA = Given(
    model="poolside/Laguna-S-2.1-INT4", gpu="GB10", engine_version="0.25.1", max_num_seqs=32,
    gpu_memory_utilization=0.89, max_model_len=262144, speculative_config=DFLASH,
)  # fmt: skip


@pytest.mark.parametrize(
    "pool,length,tokens",
    [("35.64GiB", 262144, 1018134), ("35.06GiB", 262144, 1001532), ("35.2GiB", 65536, 950420)],
)
def test_the_cache_of_a_dflash_draft_to_the_block(pool: str, length: int, tokens: int) -> None:
    sheet = worksheet(ask(replace(LAGUNA, available_kv=pool, max_model_len=length)))
    assert (
        sheet.pool is not None
        and sheet.pool.tokens is not None
        and sheet.pool.tokens.lo <= tokens <= sheet.pool.tokens.hi
    )


def test_one_name_with_two_revisions_is_left_open_and_says_so() -> None:
    """66.96 and 92.84 GiB of files: one of them served, the other was refused for 18.35 GiB of cache (16 bits)."""
    sheet = worksheet(ask(LAGUNA))
    assert sheet.start.starts is None and any("two revisions" in doubt for doubt in sheet.doubts)
    wide = worksheet(ask(replace(LAGUNA, kv_cache_dtype="bfloat16"))).pool
    assert wide is not None and round(wide.need_bytes / 2**30, 2) == 18.35


def test_a_draft_without_a_method_is_read_by_its_name() -> None:
    assert read_speculation(DFLASH).method == "dflash" and read_speculation(DFLASH).layers == 5
    assert read_speculation({"model": "x/Y-EAGLE3", "num_speculative_tokens": 2}).method == "eagle3"
    assert read_speculation({"model": "x/Y-0.6B", "num_speculative_tokens": 2}).method == "draft_model"


def test_speculation_without_layers_costs_no_layers() -> None:
    assert read_speculation({"method": "ngram", "num_speculative_tokens": 4}).layers == 0
    assert read_speculation("nonsense").tokens == 0
    assert read_speculation("{broken").tokens == 0


def test_hybrids_had_no_prefix_caching_before_0_28() -> None:
    need = {}
    for version, caching in (("0.25.1", None), ("0.25.1", True), ("0.28.0", None)):
        sheet = worksheet(
            question(
                model="Qwen/Qwen3.5-27B", engine_version=version, max_model_len=8192, enable_prefix_caching=caching
            )
        )
        assert sheet.pool is not None
        need[version, caching] = sheet.pool.need_blocks
    assert need["0.25.1", True] == need["0.28.0", None] == need["0.25.1", None] + 3


def tokens_by_release(*versions: str) -> dict[str, Interval]:
    found = {}
    for version in versions:
        pool = worksheet(question(model="Qwen/Qwen3.5-27B", engine_version=version, max_model_len=16_384, available_kv="40.25GiB", enable_prefix_caching=True)).pool  # fmt: skip
        assert pool is not None
        found[version] = pool.tokens
    return found


def test_the_rule_of_the_printed_tokens_changes_with_0_20_1() -> None:
    tokens = tokens_by_release("0.19.1", "0.20.0", "0.20.1", "0.23.0")
    assert tokens["0.20.0"] == tokens["0.19.1"]
    assert tokens["0.20.1"] == tokens["0.23.0"] and tokens["0.20.1"].lo > tokens["0.20.0"].hi


def test_a_build_between_two_releases_holds_the_rules_of_both() -> None:
    tokens = tokens_by_release(
        "0.20.0", "0.20.1", "0.20.1rc1.dev12+g0a1b2c3", "0.20.1.dev0+g0a1b2c3.d20260501", "0.20.1+cu129"
    )
    between = tokens["0.20.1rc1.dev12+g0a1b2c3"]
    assert (between.lo, between.hi) == (tokens["0.20.0"].lo, tokens["0.20.1"].hi)
    assert tokens["0.20.1.dev0+g0a1b2c3.d20260501"] == tokens["0.20.0"]  # files changed upon the tag of 0.20.0
    assert tokens["0.20.1+cu129"] == tokens["0.20.1"]  # a release built for another platform


def test_where_nobody_names_the_release_a_figure_of_a_log_is_held_under_every_rule() -> None:
    flags = {"model": "Qwen/Qwen3.5-27B", "gpu": "H100", "max_model_len": 16_384}
    sheet = worksheet(ask(Given(**flags, available_kv="40.25GiB")))
    assert sheet == worksheet(ask(Given(**flags, available_kv="40.25GiB", engine_version="any")))
    assert sheet.pool is not None and any("0.17.0 to 0.33.0" in doubt for doubt in sheet.doubts)
    for version in ("0.19.0", "0.20.0", "0.20.1", "0.29.0"):
        one = worksheet(ask(Given(**flags, available_kv="40.25GiB", engine_version=version))).pool
        assert one is not None and one.tokens.lo >= sheet.pool.tokens.lo and one.tokens.hi <= sheet.pool.tokens.hi
    planned = worksheet(ask(Given(**flags)))  # nothing has run: what would be installed today
    assert any("newest release" in doubt for doubt in planned.doubts)


def test_a_check_is_decided_where_every_release_agrees() -> None:
    def starts_on(gib: float) -> dict[str, bool | None]:
        flags = {
            "model": "Qwen/Qwen2.5-14B-Instruct",
            "gpu": f"{gib}GiB",
            "max_model_len": 4096,
            "max_num_seqs": 8,
            "enforce_eager": True,
        }
        return {
            version: worksheet(ask(Given(**flags, engine_version=version))).start.starts
            for version in ("0.11.0", "0.33.0", "any")
        }

    told = [starts_on(28 + step / 4) for step in range(36)]
    assert told[0] == {"0.11.0": False, "0.33.0": False, "any": False}
    assert told[-1] == {"0.11.0": True, "0.33.0": True, "any": True}
    for sure, other in (("0.33.0", "0.11.0"), ("0.11.0", "0.33.0")):  # one leaves 0.1 of the device, the other 0.08
        differ = [each for each in told if each[sure] is not None and each[other] is not each[sure]]
        assert differ and all(each["any"] is None for each in differ)


def test_rules_change_at_no_release_that_is_not_listed() -> None:
    listed = set(rule_releases())
    since = {
        LEAN_SAMPLER_SINCE, FUSED_SAMPLER_UNTIL + 1, SECOND_GRAPHS_SINCE, SECOND_ENCODER_SINCE, *(since for since, _ in SECOND_SAMPLER),
        IN_FLIGHT_SINCE, PREFIX_CACHING_OF_HYBRIDS_SINCE, STATES_CACHED_SINCE, STATES_COPIED_SINCE, STATES_COPIED_ALONE_SINCE,
        BLOCKS_LINE_UNTIL + 1, SHARED_INDEXER_SINCE, ONE_RANK_PRINTS_SINCE,
    }  # fmt: skip
    table = tomli.loads(Path(defaults.__file__).with_name("engine_defaults.toml").read_text(encoding="utf-8"))
    for name in ("default", "max_num_seqs", "max_num_batched_tokens", "kv_budget", "model_runner"):
        since |= {version_number(row["since"]) or 0 for row in table[name] if row.get("generation") != "V0"}
    assert {each for each in since if each > min(listed)} <= listed


# --- what one rank says of all ------------------------------------------------------------------------------------------------


def test_of_several_ranks_the_first_prints_and_the_poorest_decides() -> None:
    def tokens(version: str, tp: int) -> Interval:
        pool = worksheet(question(model="Qwen/Qwen3-32B", engine_version=version, tensor_parallel_size=tp, available_kv="40GiB")).pool  # fmt: skip
        assert pool is not None
        return pool.tokens

    assert tokens("0.19.1", 1).lo > 0.999 * tokens("0.19.1", 1).hi
    assert tokens("0.11.0", 2).lo > 0.999 * tokens("0.11.0", 2).hi  # every rank prints its own
    low, high = tokens("0.12.0", 2).lo, tokens("0.12.0", 2).hi
    assert high == tokens("0.11.0", 2).hi and 0.979 < low / high < 0.981


# --- states of cached prefixes ------------------------------------------------------------------------------------------------


def need_of(model: str, version: str, caching: bool | None) -> tuple[int, int]:
    pool = worksheet(
        question(model=model, engine_version=version, max_model_len=8192, enable_prefix_caching=caching)
    ).pool
    assert pool is not None
    return pool.need_blocks, pool.block_tokens


def test_states_of_cached_prefixes_follow_the_release() -> None:
    qwen, granite = "Qwen/Qwen3-Next-80B-A3B-Instruct", "ibm-granite/granite-4.0-h-small"
    for model in (qwen, granite):
        assert need_of(model, "0.11.0", True) == need_of(model, "0.11.0", False)  # turned off
        more = need_of(model, "0.28.0", True)[0] - need_of(model, "0.28.0", False)[0]
        assert (
            more == need_of(model, "0.28.0", None)[0] - need_of(model, "0.28.0", False)[0] > 0
        )  # a copy in each group
    assert need_of(qwen, "0.14.0", True) == need_of(qwen, "0.14.0", False)  # not for these before 0.15
    blocks, tokens = need_of(granite, "0.14.0", True)
    assert tokens % 256 == 0 and blocks % -(-8192 // tokens) == 0  # a state at every block, in whole chunks
    assert need_of(granite, "0.27.1", True) == (blocks, tokens) != need_of(granite, "0.28.0", True)


# --- planned figures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "seqs", "batched", "version", "gib"),
    [
        ("Qwen/Qwen3-30B-A3B", 1024, 8192, 10_002, 5.58),
        ("Qwen/Qwen3-4B", 1024, 8192, 10_002, 5.59),
        ("Qwen/Qwen3-4B", 8, 8192, 10_002, 0.59),
        ("Qwen/Qwen2.5-3B-Instruct", 1, 2048, 10_002, 0.17),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", 16, 2048, 26_001, 0.23),
        ("Qwen/Qwen2.5-1.5B-Instruct", 256, 4096, 6_006, 1.40),
        ("Qwen/Qwen2-7B-Instruct", 256, 2048, 10_001, 0.51),
    ],
)
def test_peaks_that_engines_printed(name: str, seqs: int, batched: int, version: int, gib: float) -> None:
    found = find(name)
    assert found is not None
    assert gib * GIB in activation_bytes(found.model, batched_tokens=batched, max_num_seqs=seqs, version=version)


def test_the_sampler_sorts_or_is_lean_or_may_be_either_and_an_embedding_model_has_none() -> None:
    found = find("Qwen/Qwen3-8B")
    assert found is not None
    sizes = [activation_bytes(found.model, batched_tokens=2048, max_num_seqs=1024, version=version) for version in (13_000, 10_001, 17_001)]  # fmt: skip
    sorting, either, lean = sizes
    assert sorting.lo > 2 * lean.lo and sorting.lo > lean.hi
    assert either.lo < lean.lo and either.hi == sorting.hi
    pooled = question(model="Qwen/Qwen3-Embedding-8B", max_num_seqs=1024)
    assert pooled.model.pooled
    assert activation_bytes(pooled.model, batched_tokens=2048, max_num_seqs=1024).hi < 0.6 * GIB


def test_defaults_of_unified_memory_are_those_of_a_small_card() -> None:
    used = {
        entry.name: entry.value
        for entry in worksheet(question(model="Qwen/Qwen3-8B", gpu="GB10", engine_version="0.25.1")).inputs
    }
    assert (used["max_num_batched_tokens"], used["max_num_seqs"]) == (2048, 256)


# --- names and devices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "name", "how"),
    [
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B-Instruct", "variant"),
        ("qwen2.5-coder:32b", "Qwen/Qwen2.5-32B-Instruct", "variant"),
        ("deepseek-r1:14b", "Qwen/Qwen2.5-14B-Instruct", "alias"),
        ("Qwen/Qwen3-8B@9c925d64", "Qwen/Qwen3-8B", "name"),
        ("org/Qwen2___5-3B", "Qwen/Qwen2.5-3B-Instruct", "alias"),
        ("train/checkpoints/qwen25-3b-distill-merged", "Qwen/Qwen2.5-3B-Instruct", "within"),
        ("acme/Acme-gpt-oss-20b-mxfp4-abliterated-v2", "openai/gpt-oss-20b", "within"),
        ("unsloth/Magistral-Small-2509-bnb-4bit", "mistralai/Mistral-Small-24B-Instruct-2501", "variant"),
        ("openai/gpt-oss-safeguard-20b", "openai/gpt-oss-20b", "alias"),
        ("PrimeIntellect/INTELLECT-3-FP8", "zai-org/GLM-4.5-Air", "variant"),
    ],
)
def test_tags_commits_and_fine_tunes(asked: str, name: str, how: str) -> None:
    found = find(asked)
    assert found is not None and (found.model.name, found.how) == (name, how)


@pytest.mark.parametrize("asked", ["glm-4.7-mini", "acme/deepseek-v3-tiny-draft", "gpt-oss-7b", "Qwen3-9B"])
def test_another_size_or_sibling_is_another_model(asked: str) -> None:
    assert find(asked) is None


def test_an_unknown_model_is_estimated_and_says_so() -> None:
    told = worksheet(question(model="acme/Thing-13B-AWQ", gpu="4xA100-40GB"))
    assert told.answer.startswith("STARTS BUT THIS IS AN ESTIMATE") and told.pool is not None
    assert told.pool.blocks.hi >= 4 * told.pool.blocks.lo
    assert any("not in the catalogue" in doubt for doubt in told.doubts)
    sized = question(model="acme/thing", params="8B")
    assert weights_bytes(sized.model) is not None
    none = worksheet(question(model="acme/thing"))
    assert none.start.starts is None and any("--params" in doubt for doubt in none.doubts)
    with pytest.raises(UsageError, match="no number of parameters"):
        question(model="acme/thing", params="many")


def test_suggestions_have_a_floor() -> None:
    assert nearest("team-internal-v7") == [] and nearest("our-private-model") == []
    assert nearest("Qwen/Qwen3-9B")


@pytest.mark.parametrize(
    "name",
    ["A800", "H800", "H20", "L20", "GB200", "GB300", "GB10", "RTX 4080", "RTX 5080", "RTX 2080 Ti", "MI350X", "MI355X", "MI308X", "Gaudi3",
     "Ascend 910B", "Arc A770", "RTX 6000 Ada", "H100 NVL", "GH200", "A16", "P40", "RTX PRO 6000 Blackwell", "3080ti"],
)  # fmt: skip
def test_devices_that_the_engine_runs_on(name: str) -> None:
    assert find_gpu(name).name


@pytest.mark.parametrize(
    ("text", "gib"),
    [("Acme Tensor 9000 48GB", 48), ("RTX 1234 (6 GB)", 6), ("AMD Instinct MI50 16GB", 16), ("Nonsuch X2-96GB", 96)],
)
def test_a_card_that_no_table_has_holds_about_what_its_name_ends_with(text: str, gib: int) -> None:
    told = find_gpu(text)
    assert told.name == text and told.total_bytes.origin == "assumed"
    assert 0.9 * gib * GIB < told.total_bytes.lo < told.total_bytes.hi <= gib * GIB
    assert worksheet(question(model="Qwen/Qwen3-0.6B", gpu=f"2x{text}")).pool is not None


@pytest.mark.parametrize(
    "text", ["Acme Tensor 9000", "Acme 9999GB", "Acme Tensor 48GB turbo", "48GB of memory", "Acme 0GB"]
)
def test_a_card_whose_name_does_not_end_with_its_memory_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no device"):
        find_gpu(text)


def test_a_known_card_and_a_bare_size_are_not_read_off_a_box() -> None:
    assert find_gpu("NVIDIA A100-SXM4-40GB").total_bytes.origin == "catalogue"
    assert find_gpu("48GB").total_bytes == point(48e9, "given")


def test_what_stands_outside_torch_on_one_card_is_more_on_those_of_amd() -> None:
    few, more = non_torch_bytes(1, "NVIDIA A10G"), non_torch_bytes(1, "AMD Instinct MI210")
    assert few.hi == 0.3 * GIB and 0.28 * GIB in few and 0.53 * GIB not in few
    assert 0.53 * GIB in more
    assert non_torch_bytes(1, "NVIDIA RTX A6000") == few  # a letter before the digits is no Radeon


# --- what --quantization says and does not say ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["compressed-tensors", "auto-round", "quark", "deepseek_v4_fp8", "moe_wna16"])
def test_a_packers_name_leaves_the_format_to_the_checkpoint(method: str) -> None:
    for name in ("acme/Qwen3-8B-W4A16", "acme/Qwen3-8B-FP8", "Qwen/Qwen3-8B"):
        with_it, without = question(model=name, quantization=method), question(model=name)
        assert weights_bytes(with_it.model, quantization=with_it.setup.quantization) == weights_bytes(without.model)
    used = {entry.name: entry for entry in question(model="acme/Qwen3-8B-W4A16", quantization=method).inputs}
    assert (used["quantization"].value, used["quantization"].origin) == (method, "given")


def test_a_tool_of_two_widths_means_what_the_name_says_and_8_bits_where_it_says_nothing() -> None:
    def size(name: str, method: str) -> Any:
        asked = question(model=name, quantization=method)
        return weights_bytes(asked.model, quantization=asked.setup.quantization)

    assert size("acme/Qwen3-8B-NVFP4", "modelopt") == size("acme/Qwen3-8B-NVFP4", "modelopt_fp4")
    assert size("Qwen/Qwen3-8B", "modelopt") == size("Qwen/Qwen3-8B", "fp8")
    assert size("acme/Qwen3-8B-NVFP4", "fp8") == size(
        "Qwen/Qwen3-8B", "fp8"
    )  # a width that is named wins over the name


def test_a_method_that_nobody_knows_is_still_refused() -> None:
    with pytest.raises(UsageError, match="is not known"):
        question(model="Qwen/Qwen3-8B", quantization="acme_bits")


def test_a_slice_is_never_the_whole_card() -> None:
    told = find_gpu("H100 MIG 3g.40gb")
    assert told.name.endswith("MIG 3g.40gb") and 39 * GIB in told.total_bytes
    assert find_gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb").total_bytes.hi < 5 * GIB
    for wrong in ("H100 MIG", "L4 MIG 3g.40gb"):
        with pytest.raises(UsageError):
            find_gpu(wrong)


def test_a_number_of_devices_is_the_parallel_size() -> None:
    assert find_gpu("4xA100-40GB").count == 4
    assert question(model="Qwen/Qwen3-32B", gpu="4xA100-40GB").setup.tensor_parallel_size == 4
    assert question(model="Qwen/Qwen3-32B", gpu="4xA100-40GB", pipeline_parallel_size=2).setup.tensor_parallel_size == 2
    assert question(model="Qwen/Qwen3-32B", gpu="4xA100-40GB", tensor_parallel_size=2).setup.tensor_parallel_size == 2


# --- what the engine refuses ---------------------------------------------------------------------------------------------------


def test_a_length_that_the_model_does_not_state_is_refused_with_the_flags_that_allow_it() -> None:
    flags: dict[str, Any] = {
        "model": "Qwen3-32B-FP8",
        "gpu": "L40S",
        "tensor_parallel_size": 2,
        "max_model_len": 131_072,
    }
    told = worksheet(question(**flags))
    assert (told.start.starts, told.start.check, told.answer) == (False, "positions", "DOES NOT FIT")
    assert '"factor": 4.0' in told.start.says and "VLLM_ALLOW_LONG_MAX_MODEL_LEN" in told.start.says
    assert told.command is not None and told.command.flags["max_model_len"] == 40_960
    assert told.command.model == "Qwen/Qwen3-32B-FP8"
    assert solve(question(**flags), "max_num_seqs").value is None
    lifted = worksheet(question(**flags, hf_overrides='{"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}'))
    assert lifted.start.check != "positions" and lifted.start.starts is True
    relative = worksheet(question(**{**flags, "model": "acme/Thing-Qwen3-32B-v2-FP8"}))
    assert (relative.start.starts, relative.start.check) == (None, "positions")
    own = worksheet(question(**{**flags, "model": "Qwen/Qwen3-30B-A3B-Instruct-2507"}))
    assert own.start.starts is True


def test_a_pool_set_by_hand_has_no_lines_on_utilization() -> None:
    told = worksheet(question(model="Qwen/Qwen3-8B", kv_cache_memory_bytes="10GiB", max_model_len=32_768))
    assert told.utilization is None and told.pool is not None
    assert told.pool.blocks.lo == 10 * GIB // (147_456 * 16)
    text = render(told, width=100)
    assert "safest" not in text and "gpu-memory-utilization" not in text
    assert told.command is not None and told.command.flags["kv_cache_memory_bytes"] == 10 * GIB
    tokens = {row.name: row.tokens.lo for row in told.alternatives if row.tokens}
    assert tokens["TP 2"] == 2 * tokens["as asked"] and tokens["weights fp8"] == tokens["as asked"]
    blocks = worksheet(question(model="Qwen/Qwen3-8B", num_gpu_blocks_override=128, max_model_len=1024))
    assert {row.tokens.lo for row in blocks.alternatives if row.tokens} == {128 * 16}
    assert blocks.pool is not None and blocks.pool.blocks.lo == 128 and blocks.utilization is None


def test_lengths_as_the_engine_takes_them() -> None:
    assert (parse_tokens("--x", "128k"), parse_tokens("--x", "128K"), parse_tokens("--x", "1M")) == (
        128_000,
        131_072,
        1 << 20,
    )
    for wrong in ("k", "-1", "12kb", "1e5", "0"):
        with pytest.raises(UsageError, match="no number of tokens"):
            parse_tokens("--x", wrong)


def test_the_matrix_is_the_worksheet_for_every_cell() -> None:
    asked = question(model="Qwen/Qwen3-32B", gpu="H100", max_model_len=16_384)
    table = matrix(asked)
    (cell,) = [each for each in table.cells if (each.gpu, each.quantization, each.tensor_parallel_size) == ("NVIDIA H100 80GB", "16 bits", 2)]  # fmt: skip
    alone = worksheet(question(model="Qwen/Qwen3-32B", gpu="H100", max_model_len=16_384, tensor_parallel_size=2))
    assert alone.pool is not None and (cell.starts, cell.tokens) == (alone.start.starts, int(alone.pool.tokens.lo))
    assert {each.quantization for each in table.cells} == {"16 bits", "fp8", "awq"}
    text = render_matrix(table)
    assert "H200" in text and f"{cell.tokens:,}" in text


def test_an_embedding_model_needs_no_pool() -> None:
    told = worksheet(question(model="BAAI/bge-m3", gpu="L4"))
    assert told.start.starts is True and told.pool is None


def test_the_longest_prompt_of_a_known_pool_is_not_moved_by_an_estimate() -> None:
    asked = question(model="Qwen/Qwen3-8B", available_kv="5.29GiB", gpu="24GiB")
    assert judge(asked, asked.setup).available_bytes == printed(5.29 * GIB, "given")


# --- architectures and releases that published starts showed -------------------------------------------------------------------


def test_compressed_caches_are_checked_and_counted_as_the_engine_does() -> None:
    """DeepSeek-V4-Flash: a refusal of 0.22 (vllm issue 44376) to the megabyte, tokens of a start of 0.23 to the printed size."""
    flags = {
        "model": "deepseek-ai/DeepSeek-V4-Flash",
        "gpu": "96GiB",
        "tensor_parallel_size": 2,
        "kv_cache_dtype": "fp8",
    }
    refused = worksheet(
        question(
            **flags,
            engine_version="0.22.0",
            max_model_len=30_000,
            max_num_batched_tokens=16_384,
            available_kv="5.44GiB",
        )
    )
    assert (refused.start.starts, refused.start.check) == (False, "length")
    assert refused.pool is not None and round(refused.pool.need_bytes / GIB, 2) == 6.66
    assert refused.longest is not None and 13_528 in refused.longest.tokens
    started = worksheet(
        question(
            **flags,
            engine_version="0.23.0",
            max_model_len=262_144,
            max_num_batched_tokens=8192,
            available_kv="32.08GiB",
        )
    )
    assert started.start.starts is True and started.pool is not None
    assert 2_175_276 in started.pool.tokens and started.pool.groups == 5


@pytest.mark.parametrize(
    ("name", "available", "tokens", "requests"),
    [("tiiuae/Falcon-H1-3B-Base", "5.28GiB", 83_968, 41.5), ("Zyphra/Zamba2-2.7B", "6.16GiB", 5_088, 15.27)],
)
def test_attention_and_state_space_in_one_layer(name: str, available: str, tokens: int, requests: float) -> None:
    told = worksheet(
        question(model=name, gpu="16GiB", engine_version="0.12.0", max_model_len=2048, available_kv=available)
    )
    assert told.pool is not None and tokens in told.pool.tokens
    assert told.pool.concurrency.lo - 0.01 <= requests <= told.pool.concurrency.hi + 0.01


def test_a_state_without_prefix_caching_prints_no_more_than_the_length() -> None:
    flags = {
        "model": "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "gpu": "H200",
        "available_kv": "16GiB",
        "tensor_parallel_size": 2,
    }
    short, long = (
        worksheet(question(**flags, engine_version="0.14.0", max_model_len=length)).pool for length in (128, 65_536)
    )
    assert short is not None and long is not None and short.blocks == long.blocks
    assert short.tokens.lo < long.tokens.lo / 3


def test_a_sparse_indexer_of_its_own_key_per_four_tokens() -> None:
    flags = {"model": "Qwen/Qwen3.8-Flash-Next", "engine_version": "0.30.0", "tensor_parallel_size": 8, "gpu": "H100"}
    told = worksheet(question(**flags, max_model_len=262_144, enable_prefix_caching=False, available_kv="37.37GiB"))
    assert told.kv_bytes_per_token == 12 * (2 * 256 * 2 + 64)
    assert told.pool is not None and abs(told.pool.tokens.middle / 3_046_184 - 1) < 0.01


def test_what_mla_keeps_twice_depends_on_the_release() -> None:
    model = question(model="deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct").model
    before, folded, now = (weights_bytes(model, tp=8, version=version) for version in (6_006, 7_001, 8_000))
    assert before is not None and folded is not None and now is not None
    assert before.middle < now.middle < folded.middle and 3.97 * GIB in folded * 1.0


def test_padding_of_4_bit_experts_is_that_of_their_shapes() -> None:
    """17.22 GiB on each of four ranks (gpt-oss-120b), 20.1 on each of eight (MiMo, whose widths divide)."""
    padded = weights_bytes(question(model="openai/gpt-oss-120b").model, tp=4)
    even = weights_bytes(question(model="XiaomiMiMo/MiMo-V2.6-Flash-MOPD").model, tp=8, encoder=False)
    assert padded is not None and starts.off(padded, 17.22 * GIB) < 0.01
    assert even is not None and starts.off(even, 20.1 * GIB) < 0.02


def test_amd_counts_what_the_device_lacks_as_loaded() -> None:
    sizes = [
        judge(asked, asked.setup).weights_bytes
        for asked in (
            question(model="Qwen/Qwen2.5-1.5B-Instruct", gpu=gpu) for gpu in ("AMD Instinct MI50 16GB", "16GiB")
        )
    ]
    assert sizes[0] is not None and sizes[1] is not None
    assert 3.0391 * GIB in sizes[0] and 3.0391 * GIB not in sizes[1]


def test_the_sampler_sorts_until_0_16() -> None:
    model = question(model="Qwen/Qwen2.5-0.5B-Instruct").model
    old, new = (
        activation_bytes(model, batched_tokens=2048, max_num_seqs=256, version=version) for version in (16_000, 17_000)
    )
    assert old.lo > 2 * new.lo


def test_a_block_beside_latents_grows_in_steps_of_64_tokens() -> None:
    """Two RTX 3090, 4-bit: the log says 960 tokens a block."""
    found = question(model="cyankiwi/Kimi-Linear-48B-A3B-Instruct-AWQ-4bit")
    (layout,) = layouts(found.model, tp=2) or ()
    assert (layout.block_tokens, len(layout.groups)) == (960, 4)
    assert state_bytes(next(cache for cache in found.model.caches if cache.kind == RECURRENT), tp=2) == 1_085_440
    flash = question(model="zai-org/GLM-5.3-Flash").model
    (layout,) = layouts(flash, tp=8) or ()
    assert layout.block_tokens == 640
    (latent,) = [cache for cache in flash.caches if cache.kind == LATENT]
    assert token_bytes(latent, "bfloat16") == 512 * 2 + 132 / 4


def test_layers_that_look_where_another_has_looked_kept_keys_until_0_23() -> None:
    each = [kv_bytes_per_token(question(model="zai-org/GLM-5.2-FP8").model, kv_cache_dtype="fp8_ds_mla", version=version) for version in (23_000, 25_001)]  # fmt: skip
    assert each == [78 * (656 + 132), 78 * 656 + 21 * 132]


def test_sparse_latents_set_room_aside_for_the_longest_prompts() -> None:
    found = question(model="deepseek-ai/DeepSeek-V3.2").model
    short, long = (activation_bytes(found, batched_tokens=2048, max_num_seqs=64, tp=8, max_model_len=length) for length in (8192, 163_840))  # fmt: skip
    assert long.hi - short.hi == (163_840 - 8192) * 5 * 576 * 2
    assert long.lo == 163_840 * 40 * 132
    dense = question(model="deepseek-ai/DeepSeek-V3").model
    assert activation_bytes(dense, batched_tokens=2048, max_num_seqs=64, tp=8, max_model_len=163_840) == activation_bytes(dense, batched_tokens=2048, max_num_seqs=64, tp=8)  # fmt: skip


def test_hybrids_in_4_bits_by_who_made_them() -> None:
    sizes = [
        weights_bytes(question(model=f"{maker}/Qwen3.6-35B-A3B-AWQ-4bit").model) for maker in ("cyankiwi", "someone")
    ]
    assert sizes[0] is not None and sizes[1] is not None
    assert sizes[0].lo > sizes[1].lo and sizes[0].hi == sizes[1].hi
