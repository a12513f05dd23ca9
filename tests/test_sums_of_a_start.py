"""Starts without their reason, and tables of tries: what is known adds up to the verdict, in other words and numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from verdicts import analysed

_SHORTER = """Mistral-Small, eine A10G, vLLM 0.14.0

| Nr. | max. Länge | max_num_seqs | Gewichte GiB | freier Cache GiB | Tokens | Ergebnis |
|--:|--:|--:|--:|--:|--:|:--|
| 1 | 8192 | 32 | 13,40 | 2,50 | 20.480 | gestartet |
| 2 | 32768 | 32 | 13,40 | 2,50 | - | abgelehnt nach 50 s |
| 3 | 16384 | 32 | 13,40 | 2,50 | 20.480 | gestartet |
| 4 | 24576 | 32 | 13,40 | 2,50 | - | abgelehnt |
"""
_STEPS = """| try | options | max-num-batched-tokens | prompt tokens | outcome |
|---|---|---|---|---|
| 1 | --enforce-eager | 4096 | 30,000 | ok |
| 2 | same | 32768 | 2,000 | ok |
| 3 | same | 32768 | 30,000 | server gone |
| 4 | same | 32768 | 30,000 | again |
"""
_IN_ORDER = "\n".join(
    f'{{"time": "2026-03-01T10:00:{s:02}Z", "pod": "{pod}", "msg": "{msg}"}}'
    for s, pod, msg in (
        (1, "chat-a", "(APIServer pid=1) INFO 03-01 10:00:01 [model.py:1510] Using max model len 65536"),
        (2, "chat-a", "(EngineCore_DP0 pid=9) INFO 03-01 10:00:02 [gpu_model_runner.py:2653] Model loading took 14.9888 GiB and 4.1 seconds"),
        (3, "chat-a", "(EngineCore_DP0 pid=9) INFO 03-01 10:00:03 [gpu_worker.py:298] Available KV cache memory: {left} GiB"),
        (4, "chat-a", "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}"),
        (5, "chat-b", "(EngineCore_DP0 pid=9) INFO 03-01 10:00:05 [gpu_worker.py:298] Available KV cache memory: 3.90 GiB"),
        (6, "chat-b", "(APIServer pid=1) INFO 03-01 10:00:06 [launcher.py:29] Application startup complete."),
    )
)  # fmt: skip
_CONFIG = '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"}'  # fmt: skip


@pytest.mark.parametrize(
    ("files", "cause", "leads"),
    [
        ({"versuche.md": _SHORTER}, "kv-pool-below-max-model-len", True),
        # near miss: the longest of them starts, a shorter one does not
        ({"versuche.md": _SHORTER.replace("| 2 | 32768", "| 2 | 4096").replace("| 4 | 24576", "| 4 | 6144")}, "kv-pool-below-max-model-len", False),
        ({"tries.md": _STEPS}, "prefill-activation-spike", True),
        # near miss: the small step failed
        ({"tries.md": _STEPS.replace("30,000 | ok", "30,000 | server gone")}, "prefill-activation-spike", False),
        ({"all.jsonl": _IN_ORDER.replace("{left}", "3.88"), "config.json": _CONFIG}, "kv-pool-below-max-model-len", True),
        # near miss: 12 GiB hold one request of 8
        ({"all.jsonl": _IN_ORDER.replace("{left}", "12.10"), "config.json": _CONFIG}, "kv-pool-below-max-model-len", False),
    ],
)  # fmt: skip
def test_sums_and_tables_lead_to_the_cause(tmp_path: Path, files: dict[str, str], cause: str, leads: bool) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with analysed(str(tmp_path)) as found:
        best = found.report.diagnoses[0]
    assert (best.cause == cause and best.probability > 0.5) is leads, best
