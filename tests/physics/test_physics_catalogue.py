"""The model catalogue: every entry can be read, counts agree with published totals, names are found or refused."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoc.errors import UsageError
from oomdoc.physics import catalogue
from oomdoc.physics.architecture import CHUNKED, FULL, LATENT, RECURRENT, SLIDING
from oomdoc.physics.catalogue import find, format_of, models, nearest, repository
from oomdoc.physics.config import read_config
from oomdoc.physics.kv import kv_bytes_per_token, stage_caches, state_bytes
from oomdoc.physics.weights import FORMATS, weights_bytes


def model(name: str) -> Any:
    found = find(name)
    assert found is not None, name
    return found.model


def test_every_entry_is_whole() -> None:
    names = [entry.name for entry in models()]
    assert len(names) == len(set(names)) >= 140
    for entry in models():
        assert entry.confirmed in ("y", "partial", "n"), entry.name
        assert entry.source, entry.name
        assert entry.layers and entry.hidden_size and entry.heads, entry.name
        assert entry.caches, entry.name
        assert all(-1 <= index < len(entry.caches) for index in entry.pattern), entry.name


def test_entries_read_one_by_one_are_those_of_the_file() -> None:
    raw = tomllib.loads(Path(catalogue.__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    told = [(entry.name, list(entry.aliases)) for entry in catalogue._entries()]
    assert told == [(entry["name"], entry.get("aliases", [])) for entry in raw["model"]]
    assert [tomllib.loads(entry.text) for entry in catalogue._entries()] == raw["model"]
    assert catalogue._head() == {key: raw[key] for key in ("sizes", "positions", "copies")}


# Totals as their makers publish them, to the unit.
PUBLISHED = {
    "meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248,
    "meta-llama/Llama-3.1-405B-Instruct": 405_853_388_800,
    "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
    "Qwen/Qwen3-235B-A22B": 235_093_634_560,
    "mistralai/Mixtral-8x7B-Instruct-v0.1": 46_702_792_704,
    "mistralai/Mistral-Nemo-Instruct-2407": 12_247_782_400,
    "deepseek-ai/DeepSeek-V3": 671_026_419_200,
    "deepseek-ai/DeepSeek-V2-Lite-Chat": 15_706_484_224,
    "moonshotai/Kimi-K2-Instruct": 1_026_408_232_448,
    "zai-org/GLM-4.5": 352_797_814_784,
    "zai-org/GLM-4.5-Air": 106_852_245_504,
    "openai/gpt-oss-20b": 20_914_757_184,
    "openai/gpt-oss-120b": 116_829_156_672,
    "google/gemma-2-9b-it": 9_241_705_984,
    "google/gemma-3-27b-it": 27_009_346_304,
    "CohereForAI/c4ai-command-r-plus": 103_810_674_688,
    "microsoft/Phi-4-mini-instruct": 3_836_021_760,
}


@pytest.mark.parametrize(("name", "total"), PUBLISHED.items())
def test_counted_parameters_are_the_published_ones_to_the_unit(name: str, total: int) -> None:
    assert model(name).params == total
    assert model(name).parts.total == total


def test_a_mixture_without_a_dense_layer_is_counted_from_its_config() -> None:
    """Solar-Open-100B by hand: 48 x (attention 75.5 M + 129 experts of 15.7 M + router) + two vocabularies of 805 M = 102.7 billion."""
    attention, experts = 4096 * (64 + 2 * 8) * 128 + 64 * 128 * 4096, 129 * 3 * 4096 * 1280
    by_hand = 48 * (attention + experts + 4096 * 128) + 2 * 196_608 * 4096
    assert model("upstage/Solar-Open-100B").params == pytest.approx(by_hand, rel=1e-4)


# Bytes per token in 16 bits at TP 1: all layers, and those whose cache grows without bound.
PER_TOKEN = {
    "meta-llama/Llama-2-7b-hf": (524_288, 524_288),
    "meta-llama/Llama-2-13b-hf": (819_200, 819_200),
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": (196_608, 49_152),
    "meta-llama/Llama-3.2-11B-Vision-Instruct": (131_072, 131_072),
    "Qwen/Qwen1.5-72B-Chat": (2_621_440, 2_621_440),
    "Qwen/Qwen3-Next-80B-A3B-Instruct": (24_576, 24_576),
    "mistralai/Mistral-7B-v0.1": (131_072, 0),
    "deepseek-ai/DeepSeek-V3.2": (78_324, 78_324),
    "openai/gpt-oss-120b": (73_728, 36_864),
    "google/gemma-3-27b-it": (507_904, 81_920),
    "google/gemma-4-26B-A4B-it": (225_280, 20_480),
    "google/gemma-4-31B-it": (901_120, 81_920),
    "XiaomiMiMo/MiMo-V2-Flash": (222_720, 23_040),
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (6_144, 6_144),
    "tiiuae/falcon-7b": (8_192, 8_192),
    "openbmb/MiniCPM3-4B": (35_712, 35_712),
}


@pytest.mark.parametrize(("name", "sizes"), PER_TOKEN.items())
def test_bytes_per_token_of_every_kind_of_attention(name: str, sizes: tuple[int, int]) -> None:
    found = model(name)
    assert (kv_bytes_per_token(found), kv_bytes_per_token(found, growing=True)) == sizes


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 39_518_208),
        ("Qwen/Qwen3.5-27B", 153_944_064),
        ("Qwen/Qwen3.5-122B-A10B", 153_649_152),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 49_082_368),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", 170_229_760),
    ],
)
def test_recurrent_state_of_one_request(name: str, size: int) -> None:
    (stage,) = stage_caches(model(name))
    assert sum(state_bytes(cache) or 0 for cache in stage) == size


def test_what_has_no_formula_is_unknown_and_not_zero() -> None:
    assert kv_bytes_per_token(model("Zyphra/Zamba2-7B")) is None
    assert kv_bytes_per_token(model("nvidia/Llama-3_3-Nemotron-Super-49B-v1")) is None
    lightning = model("MiniMaxAI/MiniMax-Text-01")
    assert state_bytes(next(cache for cache in lightning.caches if cache.kind == RECURRENT)) is None
    assert weights_bytes(model("moonshotai/Kimi-K3")) is None


# --- names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "name", "format_name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B", None),
        ("qwen3-8b", "Qwen/Qwen3-8B", None),
        ("/data/models/Qwen3-8B/", "Qwen/Qwen3-8B", None),
        ("/data/cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/0a1b2c3d", "Qwen/Qwen3-8B", None),
        ("s3://weights/llama-3.3-70b-instruct-fp8-dynamic", "meta-llama/Llama-3.3-70B-Instruct", "fp8"),
        ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "meta-llama/Llama-3.1-70B-Instruct", "awq"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-72B-Instruct", "gptq"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "meta-llama/Llama-3.1-8B-Instruct", "bitsandbytes"),
        ("RedHatAI/gemma-3-27b-it-quantized.w4a16", "google/gemma-3-27b-it", "w4a16"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3", None),
        ("Qwen3-235B-A22B-Thinking-2507", "Qwen/Qwen3-235B-A22B", None),
        ("mistral-7b-instruct-v0.2", "mistralai/Mistral-7B-Instruct-v0.2", None),
    ],
)
def test_names_lead_to_their_architecture(asked: str, name: str, format_name: str | None) -> None:
    found = find(asked)
    assert found is not None
    assert (found.model.name, found.format) == (name, format_name)


@pytest.mark.parametrize("asked", ["llama", "qwen", "gpt-9", "", "/", "-", "7b", "models--/snapshots/"])
def test_what_could_be_anything_is_nothing(asked: str) -> None:
    assert find(asked) is None
    assert isinstance(nearest(asked), list)


def test_a_format_shares_the_architecture_and_not_the_size() -> None:
    plain, slim = find("Qwen/Qwen3-32B"), find("Qwen/Qwen3-32B-AWQ")
    assert plain and slim and plain.model is slim.model
    assert kv_bytes_per_token(plain.model) == kv_bytes_per_token(slim.model)
    whole, quarter = weights_bytes(plain.model), weights_bytes(slim.model, quantization=slim.format)
    assert whole and quarter and quarter.hi < whole.lo / 3


def test_a_name_that_is_nearly_right_gets_one_suggestion() -> None:
    assert nearest("Qwen3-32") == ["Qwen/Qwen3-32B"]


def test_nearest_names() -> None:
    assert nearest("Qwen/Qwen3-88B")[0].startswith("Qwen/Qwen3")
    assert "meta-llama/Llama-3.1-8B-Instruct" in nearest("lama-3.1-8b-instruct")


@given(st.text(max_size=80))
def test_any_text_is_looked_up_without_an_exception(text: str) -> None:
    found = find(text)
    assert found is None or found.model in models()
    assert repository(text) is not None
    assert format_of(text) is None or format_of(text) in FORMATS


# --- config.json ----------------------------------------------------------------------------------------------------------

LLAMA = {
    "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2,
    "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip


def kinds(config: dict[str, Any]) -> list[str]:
    read = read_config(config)
    return [read.caches[index].kind if index >= 0 else "none" for index in read.pattern]


def test_a_plain_config() -> None:
    read = read_config(LLAMA)
    assert read.params == 2 * 1000 * 256 + 4 * (256 * (8 + 4) * 32 + 8 * 32 * 256 + 3 * 256 * 512 + 2 * 256) + 256
    assert kv_bytes_per_token(read) == 4 * 2 * 2 * 32 * 2
    assert (read.confirmed, read.dtype, read.quantization) == ("config", "bfloat16", None)


def test_head_dim_is_not_always_hidden_by_heads() -> None:
    assert kv_bytes_per_token(read_config({**LLAMA, "head_dim": 128})) == 4 * 2 * 2 * 128 * 2


def test_a_multimodal_config_is_read_one_level_down() -> None:
    read = read_config({"model_type": "some_vl", "text_config": LLAMA, "vision_config": {"hidden_size": 64}})
    assert read.multimodal and read.layers == 4
    size = weights_bytes(read)
    assert size is not None and not size.exact  # the tower is not counted, so it is a range


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [FULL] * 4),
        ({"sliding_window": 512}, [SLIDING] * 4),
        ({"sliding_window": 512, "use_sliding_window": False}, [FULL] * 4),
        ({"sliding_window": 512, "use_sliding_window": True, "max_window_layers": 3}, [FULL, FULL, FULL, SLIDING]),
        ({"sliding_window": 512, "sliding_window_pattern": 2}, [SLIDING, FULL, SLIDING, FULL]),
        ({"sliding_window": 512, "layer_types": ["full_attention", "sliding_attention"] * 2}, [FULL, SLIDING] * 2),
        ({"attention_chunk_size": 512}, [CHUNKED, CHUNKED, CHUNKED, FULL]),
        ({"full_attention_interval": 4}, [RECURRENT, RECURRENT, RECURRENT, FULL]),
        ({"hybrid_override_pattern": "M-*E"}, [RECURRENT, "none", FULL, "none"]),
        ({"num_kv_shared_layers": 2}, [FULL, FULL, "none", "none"]),
        ({"cross_attention_layers": [1]}, [FULL, "cross", FULL, FULL]),
        ({"compress_ratios": [0, 4, 128, 4]}, ["unknown"] * 4),
        ({"compress_ratios": [0, 4, 128, 4], "model_type": "deepseek_v4"}, ["compressed"] * 4),
        ({"model_type": "falcon_h1"}, [FULL, RECURRENT] * 4),
        ({"model_type": "zamba2", "layers_block_type": ["mamba", "hybrid", "mamba", "mamba"]}, [RECURRENT, FULL, RECURRENT, RECURRENT, RECURRENT]),
        ({"kv_lora_rank": 64, "qk_rope_head_dim": 16}, [LATENT] * 4),
        ({"block_configs": [{"attention": {"n_heads_in_group": 4}}, {"attention": {"no_op": True}}] * 2}, [FULL, "none"] * 2),
    ],
)  # fmt: skip
def test_the_layers_of_a_config(more: dict[str, Any], expected: list[str]) -> None:
    assert kinds({**LLAMA, **more}) == expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"quant_method": "awq", "bits": 4}, ("awq", None)),
        ({"quant_method": "gptq", "bits": 8}, ("int8", None)),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, ("fp8", None)),
        ({"quant_method": "mxfp4"}, ("mxfp4", None)),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}, ("nvfp4", "fp8")),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4}}}}, ("w4a16", None)),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8}}},
          "kv_cache_scheme": {"num_bits": 8}}, ("fp8", "fp8")),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, ("int8", None)),
    ],
)  # fmt: skip
def test_the_quantisation_of_a_config(entry: dict[str, Any], expected: tuple[str, str | None]) -> None:
    read = read_config({**LLAMA, "quantization_config": entry})
    assert (read.quantization, read.kv_cache_scheme) == expected


def test_a_checkpoints_own_kv_scheme_halves_what_auto_means() -> None:
    scheme = {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}
    asked, plain = read_config({**LLAMA, "quantization_config": scheme}), read_config(LLAMA)
    assert kv_bytes_per_token(asked) == kv_bytes_per_token(plain, kv_cache_dtype="fp8")
    assert kv_bytes_per_token(asked, kv_cache_dtype="bfloat16") == kv_bytes_per_token(plain)


@pytest.mark.parametrize(
    "config",
    [{}, {"num_hidden_layers": 4}, {**LLAMA, "num_hidden_layers": True}, {**LLAMA, "num_hidden_layers": 10**9}],
)
def test_what_is_no_decoder_is_refused_in_one_sentence(config: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="config"):
        read_config(config)


@pytest.mark.parametrize("more", [{"layer_counts": {"full": 10**9}}, {"layer_counts": {"full": "x"}}, {"model_type": "qwen3_moe", "num_experts": 4,
                                  "moe_intermediate_size": 8, "first_k_dense_replace": 10**9}])  # fmt: skip
def test_wild_counts_stay_within_the_layers(more: dict[str, Any]) -> None:
    read = read_config({**LLAMA, **more})
    assert read.layers == 4
    size = weights_bytes(read)
    assert size is not None and size.lo > 0


def test_a_dtype_that_nobody_knows_says_nothing() -> None:
    assert read_config({**LLAMA, "torch_dtype": "float8_e4m3fn"}).dtype == "bfloat16"
    assert read_config({**LLAMA, "torch_dtype": "torch.half"}).dtype == "float16"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 400) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*LLAMA, "layer_types", "text_config", "quantization_config", "kv_lora_rank", "head_dim",
                                        "sliding_window", "num_experts", "block_configs", "full_attention_interval",
                                        "hybrid_override_pattern", "num_kv_shared_layers", "moe_intermediate_size"]), JSON))  # fmt: skip
def test_any_config_gives_a_model_or_a_sentence(more: dict[str, Any]) -> None:
    config = json.loads(json.dumps({**LLAMA, **more}))
    try:
        read = read_config(config)
    except UsageError:
        return
    assert len(read.pattern) == read.layers
    size = kv_bytes_per_token(read)
    assert size is None or size >= 0
