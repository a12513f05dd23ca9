"""A draft model or LoRA slots against the budget: from a start's log to the verdict, with the start that had room."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoc.physics.adapters import Adapters, adapter_bytes
from oomdoc.physics.catalogue import find
from oomdoc.units import GIB
from verdicts import analysed

_ENGINE = "INFO 06-11 09:0{m}:0{s} llm_engine.py:161] Initializing an LLM engine (v0.5.4) with config: model='{model}', speculative_config={draft}, tokenizer='{model}', max_seq_len=8192, tensor_parallel_size=1, dtype=torch.bfloat16"


def _refused(model: str, args: str, weights: str, draft: str = "None", utilization: float = 0.9) -> str:
    return "\n".join(
        [
            "INFO 06-11 09:00:00 api_server.py:219] vLLM API server version 0.5.4",
            f"INFO 06-11 09:00:01 api_server.py:220] args: Namespace(host=None, model='{model}', gpu_memory_utilization={utilization}, max_model_len=8192{args})",
            _ENGINE.format(m=0, s=5, model=model, draft=draft),
            f"INFO 06-11 09:00:30 model_runner.py:732] Loading model weights took {weights} GB",
            "INFO 06-11 09:00:41 gpu_executor.py:102] # GPU blocks: 0, # CPU blocks: 2048",
            "Traceback (most recent call last):",
            '  File "/app/vllm/worker/worker.py", line 370, in raise_if_cache_size_invalid',
            "    raise ValueError(",
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
            "",
        ]
    )


_CARD = "index, name, memory.total [MiB], memory.used [MiB]\n0, NVIDIA L40S, 46068 MiB, 4 MiB\n"
_SMALL = "index, name, memory.total [MiB], memory.used [MiB]\n0, NVIDIA L4, 23034 MiB, 4 MiB\n"


@pytest.mark.parametrize(
    ("log", "card", "feature"),
    [
        # 40.5 GiB: 27.5 of a 14B and 14.2 of a 7B beside it
        (_refused("Qwen/Qwen2.5-14B-Instruct", "", "27.5", "SpeculativeConfig(draft_model='Qwen/Qwen2.5-7B-Instruct', num_spec_tokens=3)"), _CARD, True),
        # the two flags that stood for it before
        (_refused("Qwen/Qwen2.5-14B-Instruct", ", speculative_model='Qwen/Qwen2.5-7B-Instruct', num_speculative_tokens=3", "27.5"), _CARD, True),
        # half a billion parameters decide nothing
        (_refused("Qwen/Qwen2.5-14B-Instruct", "", "27.5", "SpeculativeConfig(draft_model='Qwen/Qwen2.5-0.5B-Instruct', num_spec_tokens=3)", 0.62), _CARD, False),
        # sixteen slots of rank 256 beside an 8B on 24 GB: their 20 GiB, not the model's 15
        (_refused("meta-llama/Llama-3.1-8B-Instruct", ", enable_lora=True, max_loras=16, max_lora_rank=256", "14.99", utilization=0.9), _CARD, True),
        # one slot of rank 16 on a card where the weights themselves leave nothing
        (_refused("meta-llama/Llama-3.1-8B-Instruct", ", enable_lora=True, max_loras=1, max_lora_rank=16", "14.99", utilization=0.68), _SMALL, False),
    ],
)  # fmt: skip
def test_the_feature_that_decides_is_told_from_one_that_is_merely_on(
    tmp_path: Path, log: str, card: str, feature: bool
) -> None:
    (tmp_path / "server.log").write_text(log)
    (tmp_path / "gpu.csv").write_text(card)
    with analysed(str(tmp_path)) as found:
        best = found.report.diagnoses[0]
    assert (best.cause == "feature-overhead") is feature, best


def test_slots_are_counted_as_the_engine_allocates_them() -> None:
    # per slot of rank 64 and layer: Q, K, V in one (3 x 4096 in; 4096 + 2 x 1024 out), the way out, gate and up, down
    known = find("meta-llama/Llama-3.1-8B-Instruct")
    assert known is not None
    rows = 3 * 4096 + 4096 + 2 * 1024 + 2 * 4096 + 2 * 4096 + 2 * 14336 + 14336 + 4096
    size = adapter_bytes(known.model, Adapters(4, 64))
    assert size is not None and size.lo == pytest.approx(4 * 64 * 32 * rows * 2) and size.lo < size.hi < 1.2 * size.lo
    shared = adapter_bytes(known.model, Adapters(4, 64), tp=4)
    assert shared is not None and size.lo / 4 < shared.lo < size.lo
    assert adapter_bytes(known.model, Adapters()) is None
    mixture = find("Qwen/Qwen3-30B-A3B")
    assert mixture is not None and adapter_bytes(mixture.model, Adapters(4, 64)) is None
    assert size.lo > GIB
