"""Files of a model's folder: their facts as columns, NULL where a file is silent, and JSON of others left alone."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import make_head, model_file, recognise
from oomdoc.intake.scan import chunks
from oomdoc.ledger import model_config
from verdicts import tables

DENSE = {
    "architectures": ["AcmeForCausalLM"], "model_type": "acme", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 36, "vocab_size": 128_000, "head_dim": 128,
    "max_position_embeddings": 131_072, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "sliding_window": 4096,
    "use_sliding_window": False, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


def read(value: Any, indent: int | None = 2) -> dict[str, list[dict[str, Any]]]:
    data = value if isinstance(value, bytes) else json.dumps(value, indent=indent).encode()
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in model_file.read("any", chunks(io.BytesIO(data))):
        for row in zip(*batch.columns.values(), strict=True):
            told = {name: cell for name, cell in zip(batch.columns, row, strict=True) if cell is not None}
            tables.setdefault(batch.table, []).append(told)
    return tables


def kind(value: Any) -> str:
    return recognise(make_head("any", json.dumps(value).encode()))[1]


def facts(value: Any) -> dict[str, Any]:
    (row,) = read(value)["model_file"]
    return row


def flags(value: Any) -> dict[str, str]:
    return {row["flag"]: row["value"] for row in read(value).get("engine_flag", [])}


def test_a_config_is_kept_and_its_settings_are_told() -> None:
    assert kind(DENSE) == "model-file"
    row = facts(DENSE)
    assert (row["line"], row["file"], json.loads(row["config"])) == (2, "config", DENSE)
    assert flags(DENSE) == {
        "architecture": "AcmeForCausalLM", "dtype": "bfloat16", "num_hidden_layers": "36", "hidden_size": "4096",
        "num_attention_heads": "32", "num_key_value_heads": "8", "head_dim": "128", "max_position_embeddings": "131072",
    }  # fmt: skip
    assert "config" not in facts({**DENSE, "hidden_size": 10**30})
    assert "config" in facts({**DENSE, "initializer_range": 0.019999999552965164})
    assert "config" not in facts({**DENSE, "id2label": {str(number): "x" * 90 for number in range(1000)}})


def test_a_multimodal_model_tells_of_its_language_model() -> None:
    value = {
        "architectures": ["AcmeVL"],
        "vision_config": {"hidden_size": 1280},
        "text_config": DENSE,
        "hidden_size": 9,
    }
    assert (flags(value)["architecture"], flags(value)["hidden_size"]) == ("AcmeVL", "4096")


@pytest.mark.parametrize(
    ("more", "counted"),
    [
        ({}, True),
        ({"n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 2048}, False),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}, False),
        ({"layer_types": ["full_attention"] * 18 + ["sliding_attention"] * 18}, True),
        ({"layer_types": ["full_attention"] * 18 + ["linear_attention"] * 18}, False),
        ({"vision_config": {"hidden_size": 1280}}, False),
        ({"num_hidden_layers": None}, False),
    ],
)
def test_a_plain_decoder_is_counted_by(more: dict[str, Any], counted: bool) -> None:
    assert (model_config(facts({**DENSE, **more}).get("config")) is not None) is counted
    assert model_config(None) is None and model_config("[") is None


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes"),
        ({"quant_algo": "FP8"}, "modelopt-fp8"),
        ({"bits": 4}, None),
    ],
)
def test_quantisation(config: dict[str, Any], expected: str | None) -> None:
    assert flags({**DENSE, "quantization_config": config}).get("quantization") == expected


def test_the_other_files() -> None:
    index = {
        "metadata": {"total_size": 16_000_000_512, "total_parameters": 8_000_000_256},
        "weight_map": {f"layer.{number}.weight": f"model-{number % 3}.safetensors" for number in range(9)},
    }
    tables = read(index)
    assert tables["model_file"] == [{"line": 2, "file": "weights-index", "total_bytes": 16_000_000_512}]
    assert tables["engine_figure"] == [{"line": 2, "name": "checkpoint_bytes", "value": 16_000_000_512.0}]
    modelopt = {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16},
    }
    assert facts(modelopt) == {"line": 5, "file": "quantization"}
    assert flags(modelopt) == {"quantization": "modelopt-nvfp4"}
    assert facts({"bits": 4, "group_size": 128, "desc_act": False})["file"] == "quantization"
    assert facts({"eos_token_id": 2, "max_new_tokens": 2048, "do_sample": True}) == {
        "line": 1, "file": "generation"}  # fmt: skip
    adapter = {"peft_type": "LORA", "r": 64, "base_model_name_or_path": "acme/m-7b"}
    assert facts(adapter) == {"line": 1, "file": "adapter", "lora_rank": 64}
    (note,) = read(adapter)["note"]
    assert (note["topic"], note["value"]) == ("lora", 64.0)
    for value in (index, modelopt, adapter):
        assert kind(value) == "model-file"


@pytest.mark.parametrize(
    "value",
    [
        {"model": "acme/m-7b", "max_model_len": 4096, "gpu_memory_utilization": 0.9},
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {"model_type": "x"}, "quant_method": "awq"},
        {"request_id": "r1", "usage": {"prompt_tokens": 1}, "model_type": "x", "hidden_size": 3},
        {"version": "1.0", "added_tokens": [], "model": {"type": "BPE"}},
        {"eos_token_id": 2},
        {"a": {"architectures": ["X"]}},
    ],
)
def test_near_miss(value: dict[str, Any]) -> None:
    assert kind(value) != "model-file"


def test_wrong_types_are_null() -> None:
    wrong = {"architectures": ["A"], "num_hidden_layers": "36", "hidden_size": -1, "head_dim": True, "n_positions": 1e5}
    assert flags(wrong) == {"architecture": "A", "max_position_embeddings": "100000"}


def test_a_large_index_is_not_held(tmp_path: Any) -> None:
    index = {
        "metadata": {"total_size": 5},
        "weight_map": {f"experts.{n}.weight": "one.safetensors" for n in range(60_000)},
    }
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "config.json").write_text(json.dumps({**DENSE, "quantization_config": {"quant_method": "fp8"}}))
    with tables(tmp_path) as analysis:
        _, rows = analysis.sql("SELECT file, total_bytes, config IS NULL FROM model_file ORDER BY file")
        _, engine = analysis.sql("SELECT quantization, dtype, checkpoint_bytes FROM engine")
    assert rows == [("config", None, False), ("weights-index", 5, True)]
    assert engine == [("fp8", "bfloat16", 5)]


def test_cut_and_broken_files_are_problems() -> None:
    data = json.dumps(DENSE).encode()
    tables = read(data[:200])
    assert tables["problem"][0]["reason"].startswith("a file of a model: ")
    assert json.loads(tables["model_file"][0]["config"])["architectures"] == ["AcmeForCausalLM"]
    assert "problem" in read(b'{"architectures": [' + b"[" * 5000)
    assert "problem" in read(b'{"weight_map": ' + b'{"a":' * 200)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*DENSE, "quantization_config", "layer_types", "text_config", "metadata", "weight_map", "quantization"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
            max_leaves=6,
        ),
    ),
    st.integers(0, 60),
)  # fmt: skip
def test_any_values_under_these_keys_never_raise(value: dict[str, Any], cut: int) -> None:
    data = json.dumps(value).encode()
    model_file.matches(make_head("any", data))
    read(data)
    read(data[: max(0, len(data) - cut)])
