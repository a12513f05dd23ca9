"""The ledger of whole bundles: what stands in the samples adds up, and what is taken out of them shows."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import oomdoc
from grids import report_of
from oomdoc.diagnose import Options, analyze
from oomdoc.ledger.expectation import token_by_weights
from oomdoc.model import LedgerEntry
from oomdoc.physics.identify import identify
from oomdoc.physics.interval import Interval
from oomdoc.units import GIB

SAMPLES = Path(__file__).parents[2] / "sample_logs"
FAILURES = (
    "edge-097-chat-server", "graph-capture-on-24gb", "one-of-four-cards", "pieces-of-seven-gib", "prompt-logprobs-spike", "sampler-warmup-1024",
    "weights-70b-on-one-card",
)  # fmt: skip


def ledger(path: Path) -> tuple[LedgerEntry, ...]:
    with oomdoc.analyze(path) as analysis:
        return analysis.report.ledger


@pytest.fixture
def edge(tmp_path: Path) -> Callable[[str, str], LedgerEntry]:
    """The sample of the edge with one line of its log rewritten; the entry of the start in focus."""

    def rewritten(pattern: str, by: str) -> LedgerEntry:
        copy = tmp_path / "edge"
        shutil.copytree(SAMPLES / "edge-097-chat-server", copy)
        log = copy / "vllm.log"
        text, count = re.subn(pattern, by, log.read_text(encoding="utf-8"))
        assert count == 1
        log.write_text(text, encoding="utf-8")
        return ledger(copy)[0]

    return rewritten


@pytest.mark.parametrize("name", FAILURES)
def test_the_parts_of_a_failure_are_the_device_within_the_printed_rounding(name: str) -> None:
    entries = [entry for entry in report_of(name).ledger if entry.moment == "failure"]
    assert entries
    for entry in entries:
        known = [size for size in entry.parts.values() if size is not None]
        assert sum(known) == entry.total_bytes
        width = sum(size.high - size.low for size in entry.intervals.values())
        assert abs(entry.parts["unexplained_bytes"] or 0) <= max(width, 0.06 * GIB)
        assert entry.closes is True and entry.contradictions == ()


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SAMPLES.glob("*/case.toml")))
def test_no_sample_contradicts_itself(name: str) -> None:
    for entry in report_of(name).ledger:
        assert entry.contradictions == ()
        # weights that no device of the plan holds are what the bundle is about
        assert entry.closes is not False or any("the plan wants" in said for said in entry.unusual)
        for part, size in entry.parts.items():
            if size is not None and part != "unexplained_bytes":
                assert entry.intervals[part].low <= size + 1 and size - 1 <= entry.intervals[part].high


def test_what_the_model_ought_to_take_stands_beside_it() -> None:
    entry = report_of("edge-097-chat-server").ledger[0]
    assert entry.expected["kv_bytes_per_token"].low == 48 * 2 * 8 * 128 * 2
    assert (
        entry.expected["weights_bytes"].low
        <= (entry.parts["weights_bytes"] or 0)
        <= entry.expected["weights_bytes"].high
    )
    assert entry.expected["activation_bytes"].origin == "planning figure"


def test_weights_whose_line_is_dropped_are_those_of_the_model_and_say_so(
    edge: Callable[[str, str], LedgerEntry],
) -> None:
    entry = edge(r"(?m)^.*Model loading took.*\n", "")
    assert (entry.parts["weights_bytes"] or 0) == pytest.approx(27.57 * GIB, rel=0.02)
    assert entry.intervals["weights_bytes"].origin == "catalogue"
    assert 0 <= (entry.parts["unexplained_bytes"] or 0) < GIB


def test_a_unit_that_is_swapped_is_a_contradiction_with_both_places(edge: Callable[[str, str], LedgerEntry]) -> None:
    entry = edge(r"Model loading took [\d.]+ GiB", "Model loading took 0.0269 GiB")  # 27.57 MiB
    assert entry.closes is False
    assert (entry.parts["unexplained_bytes"] or 0) > 27 * GIB
    told = " ".join(entry.contradictions)
    assert "the plan of 0.97 of 39.49 GiB" in told and "Qwen/Qwen2.5-14B-Instruct takes" in told
    assert len(set(re.findall(r"vllm\.log:\d+", told))) >= 2


def test_a_pool_of_another_size_than_its_tokens_is_told(edge: Callable[[str, str], LedgerEntry]) -> None:
    entry = edge(r"(Available KV cache memory:) 9\.0\d GiB", r"\1 7.07 GiB")
    assert any("one token costs" in said for said in entry.contradictions)


def test_a_config_of_the_model_feeds_the_expectation(tmp_path: Path) -> None:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 256, "intermediate_size": 1024,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 32_000, "torch_dtype": "bfloat16",
        "max_position_embeddings": 32_768,
    }  # fmt: skip
    log = tmp_path / "vllm.log"
    log.write_text(
        "INFO 01-05 12:00:00 [api_server.py:1034] vLLM API server version 0.15.0\n"
        "INFO 01-05 12:00:00 [utils.py:233] non-default args: {'model': '/models/own-tiny', 'kv_cache_memory_bytes': 67108864}\n"
        "INFO 01-05 12:00:09 [kv_cache_utils.py:864] GPU KV cache size: 65,536 tokens\n",
        encoding="utf-8",
    )
    assert ledger(log)[0].expected == {}
    given = tmp_path / "given.json"
    given.write_text(json.dumps(config), encoding="utf-8")
    with analyze(log, Options(model_config=given)) as analysis:
        entry = analysis.report.ledger[0]
    assert entry.expected["kv_bytes_per_token"].low == 4 * 2 * 2 * 32 * 2 == entry.kv_bytes_per_token
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    shutil.copy(log, bundle / "vllm.log")
    shutil.copy(given, bundle / "config.json")
    (entry,) = ledger(bundle)
    assert entry.expected["kv_bytes_per_token"].low == 1024 and entry.expected["kv_bytes_per_token"].origin == "config"


def test_every_start_of_a_log_has_its_ledger() -> None:
    entries = report_of("kv-pool-default-length").ledger
    starts = [entry.engine for entry in entries]
    others = [start for start in starts if start != starts[0]]
    assert (
        len(set(others)) == len(others) >= 2
    )  # the one in focus first with all its moments, then the others in their order
    assert others == sorted(others, key=str)
    assert len({entry.parts["kv_pool_bytes"] for entry in entries}) > 1


def test_the_start_that_was_refused_has_its_books_with_the_neighbour() -> None:
    entry = report_of("second-tenant-on-card-one").ledger[0]
    assert entry.moment == "failure" and entry.rank == 1 and str(entry.engine).startswith("pod-logs/server.log")
    assert (entry.parts["other_processes_bytes"] or 0) > 40 * GIB


def test_two_starts_in_one_log_are_not_mixed(tmp_path: Path) -> None:
    def start(weights: float, available: float, tokens: int) -> str:
        return (
            "INFO 01-05 12:00:00 [api_server.py:1034] vLLM API server version 0.15.0\n"
            "INFO 01-05 12:00:00 [utils.py:233] non-default args: {'model': '/models/own'}\n"
            f"INFO 01-05 12:00:05 [gpu_model_runner.py:100] Model loading took {weights} GiB memory and 3.0 seconds\n"
            f"INFO 01-05 12:00:08 [gpu_worker.py:300] Available KV cache memory: {available} GiB\n"
            f"INFO 01-05 12:00:09 [kv_cache_utils.py:864] GPU KV cache size: {tokens:,} tokens\n"
            "INFO 01-05 12:00:20 [api_server.py:1300] Application startup complete.\n"
        )

    log = tmp_path / "vllm.log"
    log.write_text(start(3.0, 2.0, 65_536) + start(3.0, 1.0, 32_768), encoding="utf-8")
    entries = ledger(log)
    assert [(entry.engine, entry.kv_pool_tokens) for entry in entries] == [
        ("vllm.log#2", 32_768),
        ("vllm.log#1", 65_536),
    ]
    assert [entry.kv_bytes_per_token for entry in entries] == [32_768, 32_768]


def test_the_later_half_of_a_rotated_log_continues_its_start(tmp_path: Path) -> None:
    (tmp_path / "vllm.log.1").write_text(
        "INFO 01-05 12:00:00 [api_server.py:1034] vLLM API server version 0.15.0\n"
        "INFO 01-05 12:00:05 [gpu_model_runner.py:100] Model loading took 3.0 GiB memory and 3.0 seconds\n",
        encoding="utf-8",
    )
    (tmp_path / "vllm.log").write_text(
        "INFO 01-05 12:00:08 [gpu_worker.py:300] Available KV cache memory: 2.0 GiB\n"
        "INFO 01-05 12:00:09 [kv_cache_utils.py:864] GPU KV cache size: 65,536 tokens\n",
        encoding="utf-8",
    )
    (entry,) = [entry for entry in ledger(tmp_path) if entry.moment == "rest"]
    assert entry.parts["weights_bytes"] == pytest.approx(3 * GIB) and entry.kv_bytes_per_token == 32_768


def test_a_model_that_is_counted_goes_before_one_whose_range_merely_holds_the_weights() -> None:
    """14.99 GiB and 131,072 positions: an 8B text model to one part in a hundred, a model with towers to one in twenty."""
    size = Interval(14.9888 * GIB / 1.003, 14.9889 * GIB, "logged")
    fitting = [item.model.name for item in identify(weights=size, most=50, published=True) if item.weights_off == 0.0]
    assert {"google/gemma-4-E4B-it", "meta-llama/Llama-3.1-8B-Instruct"} <= {*fitting}
    told = token_by_weights(size, None, None, 131_072)
    assert told is not None and told[0] == 131_072
    # without the length other counted models of these weights come into question, and their caches differ
    assert token_by_weights(size, None, None, None) is None


@pytest.mark.parametrize(
    ("printed", "budget", "each"),
    [(14.9888, "", 131_072), (14.9612, "", 131_072), (14.9612, "ENC", 57_344), (14.92, "", 57_344)],
    ids=["with its tables", "without its tables", "an encoder was tried", "less than any count of it"],
)
def test_a_log_that_tries_no_encoder_is_about_a_text_model(
    tmp_path: Path, printed: float, budget: str, each: int
) -> None:
    """Both a text model of 8B and one that sees load some 15 GiB and state 131,072 positions; only the second budgets an encoder's cache."""
    tried = (
        "INFO 03-01 08:00:02 [gpu_model_runner.py:1595] Encoder cache will be initialized with a budget of 8192 tokens, and profiled "
        "with 1 video items of the maximum feature size.\n"
    )
    (tmp_path / "engine.log").write_text(
        f"INFO 03-01 08:00:00 [gpu_model_runner.py:1347] Model loading took {printed} GiB and 9.1 seconds\n"
        + (tried if budget else "")
        + "INFO 03-01 08:00:40 [kv_cache_utils.py:634] GPU KV cache size: 262,144 tokens\n"
        "INFO 03-01 08:00:40 [kv_cache_utils.py:637] Maximum concurrency for 131,072 tokens per request: 2.00x\n",
        encoding="utf-8",
    )
    told = [entry.kv_bytes_per_token for entry in ledger(tmp_path) if entry.moment == "rest"]
    assert told == [each]


def test_ranks_that_only_their_workers_show_share_the_weights(tmp_path: Path) -> None:
    log = tmp_path / "vllm.log"
    said = "INFO 02-05 13:34:59 [gpu_worker.py:298] Available KV cache memory: 9.90 GiB\n"
    log.write_text(f"(Worker_TP1 pid=12) {said}(Worker_TP0 pid=11) {said}")
    (tmp_path / "command.txt").write_text("vllm serve Qwen/Qwen3-32B --port 8000\n")
    told = ledger(tmp_path)
    assert [entry.rank for entry in told] == [0, 1]
    whole = 2 * (told[0].parts["weights_bytes"] or 0)
    assert 60 * GIB < whole < 64 * GIB
