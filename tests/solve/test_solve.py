"""The solver on whole bundles: what it proves, what it pairs, what it refuses, and the command it writes."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import shlex
import shutil
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import oomdoc
from grids import report_of
from oomdoc import cli
from oomdoc.model import Diagnosis, Engine, Flag, Range
from oomdoc.solve.advice import ADVICE
from oomdoc.solve.guard import guard
from oomdoc.solve.launch import argument, command
from oomdoc.solve.predict import at_failure
from oomdoc.solve.situation import Situation

SAMPLES = Path(__file__).parents[2] / "sample_logs"


def leading(name: str) -> Diagnosis:
    return report_of(name).diagnoses[0]


def first(path: Path) -> Diagnosis:
    with oomdoc.analyze(path) as analysis:
        return analysis.report.diagnoses[0]


def worksheet_of(*flags: str) -> Any:
    written = io.StringIO()
    with redirect_stdout(written):
        assert cli.run(["fit", *flags, "--format", "json"]) == 0
    return json.loads(written.getvalue())


def action(diagnosis: Diagnosis, name: str) -> Any:
    return next(each for each in diagnosis.actions if each.id == name)


# ---- the recorded traffic


def test_a_fix_of_a_full_pool_is_proven_on_the_recorded_traffic() -> None:
    proven = [each for each in leading("kv-demand-long-chats").actions if "survives" in each.predicted]
    assert {"halve-kv", "admit-less", "more-replicas"} <= {each.id for each in proven}
    for each in proven:
        assert each.predicted["survives"] is True and each.predicted["preemptions"] == 0
        assert each.predicted["preemptions_before"] > 100  # the recorded flags show the episode again
        assert each.predicted["peak_used"] < 1
        assert f"{each.predicted['peak_used']:.0%} of the pool with no preemptions" in each.proof
        assert "preemptions for 515 counted" in each.proof  # the replay's own error beside each use of it


def test_a_change_that_its_own_replay_shows_slower_is_no_fix() -> None:
    chats = leading("kv-demand-long-chats")
    for each in chats.actions:
        if "p95_latency_s" in each.predicted:
            assert each.predicted["in_time"] >= each.predicted["in_time_before"]
            assert each.predicted["p95_latency_s"] <= 1.05 * each.predicted["p95_latency_before_s"] + 1
    slow = {said.what: said.why for said in chats.not_helping if "--max-num-seqs" in said.what}
    assert len(slow) == 2
    for why in slow.values():
        after, before = re.findall(r"(\d+)% of the requests are done in time by its replay, (\d+)% with", why)[0]
        assert int(after) < int(before)
    assert chats.actions[0].id == "halve-kv" and "--kv-cache-dtype fp8" in (chats.command or "")
    assert chats.until_then == "admit-less"


def test_the_mildest_cap_keeps_the_margin_and_one_more_does_not() -> None:
    caps = [
        int(said.what.rpartition(" ")[2])
        for said in leading("kv-demand-long-chats").not_helping
        if "--max-num-seqs" in said.what
    ]
    with oomdoc.analyze(SAMPLES / "kv-demand-long-chats") as analysis:
        same = analysis.replay({"max_num_seqs": str(max(caps))})["after"]
        more = analysis.replay({"max_num_seqs": str(max(caps) + 1)})["after"]
    assert same["survives"] and same["peak_used"] <= 0.90
    assert not more["survives"] or more["peak_used"] > 0.90


def test_an_overload_names_the_rate_that_is_served_and_who_sends_it() -> None:
    shed = action(leading("kv-demand-long-chats"), "admit-less")
    rate = int(re.findall(r"(\d+) requests a minute", shed.do)[0])
    came = int(re.findall(r"(\d+) requests a minute", shed.why)[0])
    assert 0 < rate < came
    assert "`casefiles`, who sends 15% of the requests and 67% of the tokens" in shed.do
    more = action(leading("kv-demand-long-chats"), "more-replicas")
    # the rule's general "enlarge the pool" says nothing beside it
    assert "more-pool" not in [item.id for item in leading("kv-demand-long-chats").actions]
    assert (
        more.do.startswith("Run 2 such servers")
        and more.predicted["p95_latency_s"] < more.predicted["p95_latency_before_s"]
    )


# ---- books and start-up arithmetic


def test_the_books_of_the_failure_prove_or_refute() -> None:
    spike = leading("prompt-logprobs-spike")
    room = action(spike, "keep-headroom-that-fits")
    # 4.64 failed and as much again follows: 1.54 free + 0.11 x 79.25 - 2 x 4.64
    assert room.changes == {"gpu_memory_utilization": 0.79}
    assert room.predicted["headroom_bytes"].low / 2**30 == pytest.approx(0.98, abs=0.03)
    steps = action(spike, "smaller-steps-that-fits")
    # 2 x 4.64 x 1024 / 8192 = 1.16 GiB fit into 1.54, a step of 1,280 would leave less than a tenth of it
    assert steps.changes == {"max_num_batched_tokens": 1024}
    assert steps.predicted["headroom_bytes"].low > 0
    # half of a step, and the rule's own 0.85, hold the tensor that failed and not the whole peak
    assert not {"smaller-steps", "keep-headroom"} & {each.id for each in spike.actions}
    assert (
        sum(
            "as much again for ranks and top-k" in each.why and "are not enough" in each.why
            for each in spike.not_helping
        )
        == 2
    )


def test_less_pool_is_said_in_tokens_beside_the_busiest_moment() -> None:
    fix = leading("edge-097-chat-server").actions[0]
    pool = re.search(
        r"([\d,]+) of ([\d,]+) tokens remain in the pool, of which the busiest moment recorded took ([\d,]+)",
        fix.cost or "",
    )
    assert pool
    left, before, used = (int(each.replace(",", "")) for each in pool.groups())
    assert used < left < before == 49_504 and left == fix.predicted["kv_pool_tokens"].low


SIZES_THE_POOL = {"gpu_memory_utilization", "kv_cache_memory_bytes", "num_gpu_blocks_override", "kv_cache_dtype", "max_model_len", "VLLM_CPU_KVCACHE_SPACE"}  # fmt: skip


@pytest.mark.parametrize("path", sorted(path.parent.name for path in SAMPLES.glob("*/case.toml")))
def test_a_change_of_the_pool_is_replayed_or_says_that_nothing_can_be(path: str) -> None:
    for each in leading(path).actions:
        if SIZES_THE_POOL & each.changes.keys():
            assert "recorded traffic" in each.proof or "no traffic to replay it on, since" in each.proof, each


def test_a_smaller_pool_says_what_the_recorded_traffic_does_with_it() -> None:
    edge = leading("edge-097-chat-server").actions[0]
    assert set(edge.changes) == {"gpu_memory_utilization"}
    peaks = re.search(
        r"on the recorded traffic it peaks at (\d+)% of the pool, (\d+)% before, with no preemptions", edge.proof
    )
    assert peaks and int(peaks[1]) > int(peaks[2])  # the same tokens in fewer blocks
    assert "survives" not in edge.predicted  # it proves the failure's own books, and ranks nothing


def test_loading_on_the_host_is_a_sum_and_no_factor() -> None:
    killed = leading("killed-while-loading")
    limit = action(killed, "raise-the-limit")
    assert "to 83.00 GiB" in limit.do
    assert "64.00 GiB (--cpu-offload-gb 32 x 2 ranks)" in limit.why and "the limit is 64.00 GiB" in limit.why
    assert action(killed, "smaller-offload").changes == {"cpu_offload_gb": 22}


def test_loading_on_the_cpu_backend_counts_its_own_processes_and_the_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "vllm.log").write_text(
        "(APIServer pid=41) INFO 11-20 20:14:01 [api_utils.py:286] vLLM API server version 0.32.0\n"
        "(APIServer pid=41) INFO 11-20 20:14:01 [api_utils.py:286] non-default args: {'model_tag': '/models/own', 'model': '/models/own', 'kv_cache_memory_bytes': 3221225472}\n"
        "(EngineCore pid=42) INFO 11-20 20:14:05 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='/models/own', dtype=torch.bfloat16, device_config=cpu\n"
        "(Worker pid=43) INFO 11-20 20:14:09 [weight_utils.py:1108] Filesystem type for checkpoints: EXT4. Checkpoint size: 1.50 GiB. Available RAM: 21.80 GiB.\n"
        "(Worker pid=43) INFO 11-20 20:14:11 [cpu_worker.py:260] Explicitly set (3.0/9.09) GiB for KV cache on node 0.\n"
        "(APIServer pid=41) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}\n"
    )
    (tmp_path / "dmesg.txt").write_text(
        "[Fri Nov 20 20:14:12 2026] VLLM::Worker invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
        "[Fri Nov 20 20:14:12 2026] memory: usage 4194304kB, limit 4194304kB, failcnt 12\n"
        "[Fri Nov 20 20:14:12 2026] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/serve,task_memcg=/serve,task=VLLM::Worker,pid=43,uid=0\n"
        "[Fri Nov 20 20:14:12 2026] Memory cgroup out of memory: Killed process 43 (VLLM::Worker) total-vm:6474628kB, anon-rss:2803780kB, file-rss:139572kB, shmem-rss:0kB, UID:0 pgtables:4628kB oom_score_adj:0\n"
    )
    limit = action(first(tmp_path), "raise-the-limit")
    assert "to 9.00 GiB" in limit.do
    assert (
        "1.50 GiB (weights) + 1.50 GiB (the loader's copy of them) + 3.00 GiB (KV pool) + 3.00 GiB (3 processes)"
        in limit.why
    )
    log = (tmp_path / "vllm.log").read_text()
    (tmp_path / "vllm.log").write_text(log.replace("Checkpoint size: 1.50 GiB. ", ""))
    unknown = action(first(tmp_path), "raise-the-limit")  # of a load that was cut short a quarter more tells nothing
    assert "to 8.00 GiB or more" in unknown.do and "nothing tells what the weights take" in unknown.why


def test_flags_that_help_only_together_come_together() -> None:
    both = action(leading("graph-capture-on-24gb"), "keep-headroom")
    assert set(both.changes) == {"gpu_memory_utilization", "max_model_len"}
    assert both.was == {"gpu_memory_utilization": 0.92, "max_model_len": 32768}
    assert both.predicted["starts"] is True
    assert both.changes["max_model_len"] <= both.predicted["longest_tokens"].low


def test_the_fewest_gpus_are_named_where_the_bundle_shows_one() -> None:
    weights = leading("weights-70b-on-one-card")
    wider = action(weights, "fewest-gpus")
    # two leave room for one request only if the trial of the sampler at 1,024 sequences turns out small: half of them make it sure
    assert wider.changes == {"tensor_parallel_size": 2, "max_num_seqs": 512} and wider.predicted["starts"] is True
    assert "with 512 sequences at once instead of 1,024" in wider.why and "4 such GPUs start without that" in wider.why
    assert sum("tensor_parallel_size" in each.changes for each in weights.actions) == 1
    assert "does not show so many" in wider.why
    # the first advice is another checkpoint: no command may carry another change than the fix does
    assert not weights.actions[0].changes and weights.command is None and weights.until_then is None


def test_a_format_is_advised_only_where_its_weights_fit() -> None:
    advised = action(leading("weights-70b-on-one-card"), "quantise")
    assert advised.do.startswith("Serve a 4-bit (AWQ) checkpoint")
    assert "8-bit (FP8) ones would take 78.96 GiB to 79.75 GiB, which is too much" in advised.why
    for method, starts in (("awq", True), ("fp8", False)):
        sheet = worksheet_of("--from", str(SAMPLES / "weights-70b-on-one-card"), "--quantization", method)
        assert sheet["start"]["starts"] is starts, method


def test_the_report_and_the_worksheet_advise_the_same_gpus() -> None:
    fewest = action(leading("weights-70b-on-one-card"), "fewest-gpus").changes
    sheet = worksheet_of("--from", str(SAMPLES / "weights-70b-on-one-card"))
    assert {name: sheet["command"]["flags"][name] for name in fewest} == fewest


def test_the_step_that_fits_is_shown_beside_the_next_that_does_not() -> None:
    smaller = leading("prompt-logprobs-spike").actions[0]
    assert smaller.changes == {"max_num_batched_tokens": 1024}
    assert "with 1,024 tokens a step the whole peak of that phase is 1.16 GiB" in smaller.why
    assert "1.54 GiB were free, less than the 2.32 GiB of 2,048 tokens" in smaller.why


def test_no_action_of_any_sample_is_refuted_by_its_own_prediction() -> None:
    for path in sorted(SAMPLES.glob("*/case.toml")):
        for each in leading(path.parent.name).actions:
            assert each.predicted.get("starts") is not False, (path, each.id)
            headroom = each.predicted.get("headroom_bytes")
            assert headroom is None or headroom.high >= 0, (path, each.id)


def test_advice_that_the_log_prints_is_told_with_its_line() -> None:
    advised = [each for each in leading("one-of-four-cards").not_helping if each.ref]
    assert [each.what for each in advised] == ["set `expandable_segments:True`"]
    assert re.fullmatch(r"vllm\.log:\d+", advised[0].ref or "")
    # where pieces are the matter the same hint is right
    assert not any("expandable" in each.what for each in leading("pieces-of-seven-gib").not_helping)


def test_wordings_of_the_engine_are_known() -> None:
    printed = {
        "raise `--gpu-memory-utilization`": "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing",
        "lower `--gpu-memory-utilization`": "Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
        "a shorter `--max-model-len`": "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        "set `expandable_segments:True`": "try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        "raise `--max-num-seqs`": "Consider to increase max_num_seqs",
    }
    known = {each.what: each.wording for each in ADVICE if each.wording is not None}
    for what, text in printed.items():
        assert known[what].search(text), what
    assert not known["lower `--gpu-memory-utilization`"].search(printed["raise `--gpu-memory-utilization`"])
    assert not known["raise `--gpu-memory-utilization`"].search(
        "Decrease GPU memory utilization or reduce GPU memory used by other processes."
    )
    assert known["lower `--gpu-memory-utilization`"].search(
        "Decrease GPU memory utilization or reduce GPU memory used by other processes."
    )


# ---- the engine's constraints


def make(engine: dict[str, Any], flags: dict[str, Any] | None = None, **rest: Any) -> Situation:
    start = Engine(
        "vllm.log#1", "vllm.log:1", None, None, "/models/of-nobody", None, {name: Flag(value, "logged") for name, value in (flags or {}).items()}, None, True
    )  # fmt: skip
    given: dict[str, Any] = {"failure": {}, "device": {}, "pressure": {}, "entries": ()} | rest
    return Situation(
        store=None, engine=engine, start=start, percentiles=None, config=None, started=None, advised=(), **given  # type: ignore[arg-type]
    )  # fmt: skip


def test_a_pool_set_by_hand_takes_no_advice_about_utilization() -> None:
    by_hand = make({"kv_cache_memory_bytes": 1 << 34, "platform": "gpu"})
    assert "by hand" in guard({"gpu_memory_utilization": 0.8}, by_hand, devices=None).refused
    assert (
        "by hand"
        in guard({"gpu_memory_utilization": 0.8}, make({"num_gpu_blocks_override": 512}), devices=None).refused
    )
    assert guard({"gpu_memory_utilization": 0.8}, make({}), devices=None).refused == ""


def test_a_flag_that_a_release_does_not_have_is_refused() -> None:
    assert (
        "no --kv-cache-memory-bytes"
        in guard(
            {"kv_cache_memory_bytes": 1}, make({"version_number": 9_001, "version": "0.9.1"}), devices=None
        ).refused
    )
    assert (
        "no --swap-space"
        in guard({"swap_space": 0}, make({"version_number": 20_000, "version": "0.20.0"}), devices=None).refused
    )
    assert guard({"swap_space": 0}, make({"version_number": 6_006}), devices=None).refused == ""


def test_v0_takes_small_steps_only_with_chunked_prefill() -> None:
    old = make({"generation": "V0", "max_model_len": 32768})
    assert guard({"max_num_batched_tokens": 4096}, old, devices=None).changes == {
        "max_num_batched_tokens": 4096,
        "enable_chunked_prefill": True,
    }
    chunked = make({"generation": "V0", "max_model_len": 32768}, {"enable_chunked_prefill": True})
    assert guard({"max_num_batched_tokens": 4096}, chunked, devices=None).changes == {"max_num_batched_tokens": 4096}
    assert guard(
        {"max_num_batched_tokens": 4096}, make({"generation": "V1", "max_model_len": 32768}), devices=None
    ).changes == {"max_num_batched_tokens": 4096}


def test_a_step_holds_a_token_of_each_sequence() -> None:
    assert (
        guard({"max_num_batched_tokens": 128}, make({"max_num_seqs": 256}), devices=None).changes[
            "max_num_batched_tokens"
        ]
        == 256
    )


def test_ranks_stay_within_the_gpus_beside_the_stages() -> None:
    staged = make({"tensor_parallel_size": 1, "pipeline_parallel_size": 2})
    assert guard({"tensor_parallel_size": 8}, staged, devices=8).changes == {"tensor_parallel_size": 4}
    assert "2 GPUs" in guard({"tensor_parallel_size": 2}, staged, devices=2).refused


def test_ranks_divide_the_heads(tmp_path: Path) -> None:
    copy = tmp_path / "odd"
    shutil.copytree(SAMPLES / "one-of-four-cards", copy)
    log = copy / "vllm.log"
    # 40 query heads and 8 KV heads: three ranks would not do, five neither
    log.write_text(log.read_text(encoding="utf-8").replace("Qwen/Qwen3-32B", "Qwen/Qwen2.5-14B"), encoding="utf-8")
    assert action(first(copy), "shard").changes == {"tensor_parallel_size": 4}


def test_what_shrinks_nothing_at_the_failure_gives_no_headroom() -> None:
    told = make({"gpu_memory_utilization": 0.9}, failure={"requested_bytes": 1 << 28, "phase": "forward"})
    assert at_failure({"kv_cache_dtype": "fp8"}, told).values == {}


# ---- the command


def start(flags: dict[str, tuple[Any, str]], model: str = "org/model") -> Engine:
    known = {name: Flag(value, origin) for name, (value, origin) in flags.items()}
    return Engine("vllm.log#1", "vllm.log:1", None, "0.15.0", model, "V1", known, None, True)


def test_the_command_repeats_what_was_set_and_nothing_else() -> None:
    engine = start(
        {
            "model": ("org/model", "logged"), "max_model_len": (8192, "logged"), "dtype": ("torch.bfloat16", "config"), "seed": (0, "config"),
            "enforce_eager": (True, "logged"), "api_key": ("***HIDDEN***", "logged"), "gpu_memory_utilization": (0.95, "command"),
        }
    )  # fmt: skip
    text = command(engine, 15_000, {"gpu_memory_utilization": 0.9})
    assert text is not None
    assert shlex.split(text.replace("\\\n", "")) == [
        "vllm", "serve", "org/model", "--max-model-len", "8192", "--enforce-eager", "--gpu-memory-utilization", "0.9",
    ]  # fmt: skip


def test_the_command_survives_a_hostile_model_name() -> None:
    text = command(start({}, "a; rm -rf $HOME `id`"), None, {"max_num_seqs": 4})
    assert text is not None
    assert shlex.split(text.replace("\\\n", "")) == ["vllm", "serve", "a; rm -rf $HOME `id`", "--max-num-seqs", "4"]
    assert argument("chat_template", "a b; c") == "--chat-template 'a b; c'"


def test_old_servers_start_as_a_module_and_environment_comes_first() -> None:
    text = command(start({}), 4_002, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
    assert (
        text
        == "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \\\n  python -m vllm.entrypoints.openai.api_server --model org/model"
    )


def test_a_server_that_logs_every_default_is_not_told_them_again() -> None:
    text = leading("kv-pool-default-length").command or ""
    assert "--max-model-len 35008" in text and "--swap-space" not in text and "--no-" not in text


def test_without_a_model_there_is_no_command() -> None:
    assert command(dataclasses.replace(start({}), model=None), None, {"max_num_seqs": 4}) is None
    assert command(None, None, {}) is None


def test_predictions_are_ranges_with_an_origin() -> None:
    predicted = action(leading("edge-097-chat-server"), "lower-utilization").predicted
    assert (
        isinstance(predicted["headroom_bytes"], Range)
        and predicted["headroom_bytes"].low <= predicted["headroom_bytes"].high
    )
    assert predicted["kv_available_bytes"].origin == "logged"
