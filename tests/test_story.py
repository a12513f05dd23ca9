"""The first screen as data: chains in the bundle's own numbers, arithmetic that ends at the figure shown, patches that parse."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from grids import report_of
from oomdoc import diagnose
from oomdoc.model import Watch
from oomdoc.report import REPORTS
from oomdoc.story import record, told
from oomdoc.story.patches import _yaml
from oomdoc.units import percent
from report_samples import SAMPLES

ROOT = Path(__file__).parents[1]
BUNDLES = sorted(path.parent.name for path in (ROOT / "sample_logs").glob("*/case.toml"))


def story(name: str) -> Any:
    return report_of(name).story


@pytest.mark.parametrize("name", BUNDLES)
def test_the_steps_lead_to_exactly_the_figure_shown(name: str) -> None:
    """Anyone can redo it: the odds of the first step times every factor are those of the first line."""
    report = report_of(name)
    begin, *rest = report.story.steps  # type: ignore[union-attr]
    first = report.diagnoses[0]
    assert math.isclose(begin.probability, first.prior)
    odds = begin.factor
    for step in rest:
        odds *= step.factor
        assert math.isclose(odds / (1 + odds), step.probability, rel_tol=1e-6)
    assert abs(odds / (1 + odds) - first.probability) < 5e-4
    counted = [item.id for item in (*first.evidence, *first.against) if item.weight]
    assert [step.evidence for step in rest if step.evidence] == counted
    for form in ("terminal", "markdown", "html"):
        page = REPORTS[form](report, width=120, everything=True)
        if form == "html":  # elsewhere "<1%" is no tag
            page = re.sub(r"<[^>]+>", " ", page)
        assert re.search(
            rf"= ?\**{re.escape(percent(first.probability))}|= +{re.escape(percent(first.probability))}", page
        ), form


@pytest.mark.parametrize("name", BUNDLES)
def test_a_chain_has_links_with_numbers_and_places_of_this_bundle(name: str) -> None:
    report = report_of(name)
    chain = report.story.chain  # type: ignore[union-attr]
    assert 2 <= len(chain) <= 4
    assert any(re.search(r"\d", link.says) for link in chain)
    sources = {source.path for source in report.coverage.sources}
    for link in chain:
        assert link.says != report.diagnoses[0].summary
        for ref in link.refs:
            path, _, line = ref.rpartition(":")
            assert line.isdigit() and any(path == each or path.startswith(each) for each in sources), ref
    assert any(link.refs for link in chain)


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("killed-while-loading", ["`--cpu-offload-gb 32` x 2 ranks = 64.00 GiB of host memory, all of the container's limit of 64.00 GiB", "at 73% of the shards (22/30)", "restarted 2 times"]),
        ("prompt-logprobs-spike", ["8,192 tokens of the step x 151,936 words of the vocabulary x 4 bytes = 4.64 GiB"]),
        ("startup-probe-too-short", ["waits 60 s + 12 failures x 10 s = 3 min", "loading had come to 6/17 shards", "39 probes failed"]),
        ("second-tenant-on-card-one", ["41.33 GiB of the 79.18 GiB of rank 1 were taken already", "asks for 72.85 GiB"]),
        ("kv-demand-long-chats", ["631,618 tokens were in flight", "the pool stores 267,136", "515 preemptions"]),
        ("weights-70b-on-one-card", ["70 billion parameters x 2 bytes", "3 starts ended the same way"]),
        ("edge-097-chat-server", ["0.97` x 39.49 GiB = 38.31 GiB", "84.0 MiB were asked for with 62.6 MiB free"]),
        ("kv-pool-default-length", ["x 128.0 KiB a token = 16.00 GiB", "4.27 GiB = 35,008 tokens"]),
        ("utilization-left-at-035", ["0.35` x 79.65 GiB = 27.88 GiB", "leaves -19.09 GiB"]),
    ],
)  # fmt: skip
def test_why_is_told_in_the_numbers_of_the_bundle(name: str, links: list[str]) -> None:
    said = " | ".join(link.says for link in story(name).chain)
    for part in links:
        assert part in said, said


def test_the_driver_s_version_is_the_title_of_a_driver_failure() -> None:
    made = story("driver-too-old-for-image")
    assert made.title == "The NVIDIA driver is too old: it supports CUDA 12.4, and this image needs a newer one"
    assert "http" not in made.change  # no address cut in the middle
    assert made.when.startswith("2026-06-11T05:31:01Z") and "3 times alike" in made.when


def test_who_and_what_it_cost_stand_where_requests_are() -> None:
    made = story("kv-demand-long-chats")
    assert made.who.startswith("`casefiles` sends 15% of the requests and 67% of the tokens")
    assert made.cost == "6 of 1,828 requests failed; first tokens took 0.3 s at the median and 1 min 40 s at the 95th percentile"  # fmt: skip
    assert story("weights-70b-on-one-card").who is None


@pytest.mark.parametrize("name", BUNDLES)
def test_ran_out_is_told_where_the_cause_says_it(name: str) -> None:
    label = tomllib.loads((ROOT / "sample_logs" / name / "case.toml").read_text())
    made = story(name)
    assert made.ran_out != "the bundle does not say"
    if label["cause"] in ("healthy", "not-memory"):
        assert made.ran_out == "nothing"


@pytest.mark.parametrize("name", BUNDLES)
def test_patches_parse_and_change_what_the_action_changes(name: str) -> None:
    report = report_of(name)
    action = report.diagnoses[0].actions[0] if report.diagnoses[0].actions else None
    for patch in report.story.patches:  # type: ignore[union-attr]
        if patch.form in ("flags", "environment"):
            continue
        tree = yaml.safe_load(patch.text)
        assert len(tree) == 1
        for flag in action.changes if action else {}:
            words = json.dumps(tree)
            camel = re.sub(r"_(\w)", lambda match: match[1].upper(), flag)
            assert "--" + flag.replace("_", "-") in words or camel in words, patch


def test_patches_of_settings_that_are_no_flags() -> None:
    limit = yaml.safe_load(
        next(each.text for each in story("killed-while-loading").patches if each.form == "kubernetes")
    )
    container = limit["spec"]["template"]["spec"]["containers"][0]
    assert container == {"name": "vllm", "resources": {"limits": {"memory": "83Gi"}}}
    probe = next(each for each in story("startup-probe-too-short").patches if each.form == "kubernetes")
    assert probe.fits and probe.whole
    started = yaml.safe_load(probe.text)["spec"]["template"]["spec"]["containers"][0]["startupProbe"]
    assert started["failureThreshold"] * started["periodSeconds"] >= 639
    named = {each.form: each for each in story("pieces-of-seven-gib").patches}
    assert named["environment"].text == "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


@pytest.mark.parametrize(
    "value", [{"a": {"b": [{"c": "x: y", "d": "no"}, {"c": 'q"uote'}], "e": ["--f", "1"]}, "g": "ключ\n#"}]
)
def test_what_is_written_as_yaml_reads_back(value: Any) -> None:
    assert yaml.safe_load(_yaml(value)) == value


@pytest.mark.parametrize("name", [*BUNDLES, *(f"made:{name}" for name in SAMPLES)])
def test_the_brief_form_is_five_lines_that_a_chat_takes(name: str) -> None:
    report = SAMPLES[name[5:]]() if name.startswith("made:") else report_of(name)
    lines = REPORTS["brief"](report).splitlines()
    assert 1 <= len(lines) <= 5
    assert all(len(line) <= 360 for line in lines)
    if report.diagnoses:
        assert percent(report.diagnoses[0].probability) in lines[-1]


def by_signs(name: str) -> Any:
    """The report of a sample without what its words add, by which some are less sure."""
    with diagnose.analyze(ROOT / "sample_logs" / name, diagnose.Options(wording=False)) as analysis:
        return analysis.report


def test_a_verdict_says_how_often_such_a_one_was_right() -> None:
    right, of = record.like(0.99)
    assert (
        story("killed-while-loading").record.says
        == f"of {of:,} verdicts at 90% or more on reports never seen before, {right:,} were right"
    )
    lower, rest = record.like(0.64)
    unsure = by_signs("edge-097-chat-server").story.record
    assert (unsure.right, unsure.verdicts) == (lower, rest)
    text = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    for each in record.ROUNDS:
        assert f"{each.sure_right} of {each.sure} |" in text


def test_rivals_and_collecting_only_where_something_keeps_them() -> None:
    settled = report_of("killed-while-loading")
    assert settled.story.keeps == () and settled.collect_next == ()  # type: ignore[union-attr]
    text = REPORTS["terminal"](settled, width=100)
    assert "What else it could be" not in text and "To be surer" not in text
    open_one = by_signs("edge-097-chat-server")
    assert open_one.story.keeps == ("prefill-activation-spike",)  # type: ignore[union-attr]
    assert 0 < len(open_one.collect_next) <= 2
    first, rival, *others = open_one.diagnoses  # type: ignore[union-attr]
    level = dataclasses.replace(
        open_one, diagnoses=(first, dataclasses.replace(rival, probability=first.probability), *others)
    )  # type: ignore[type-var]
    assert "a tie with the first" in REPORTS["terminal"](level, width=100)
    assert "a tie with the first" not in REPORTS["terminal"](open_one, width=100)
    for name in BUNDLES:
        assert len(report_of(name).collect_next) <= 2
        for item in report_of(name).collect_next:
            assert "python -c" not in item.command and item.command


@pytest.mark.parametrize("name", BUNDLES)
def test_what_does_not_arise_is_not_called_missing(name: str) -> None:
    first = report_of(name).diagnoses[0]
    assert {item.id for item in first.unanswered} <= set(first.unknown)
    kinds = {source.kind for source in report_of(name).coverage.sources}
    for item in first.unanswered:
        assert "<" in item.asks or "{" not in item.asks
        if "request-log" in kinds:
            assert not any("requests of the hour" in each for each in item.lacks)
        if "vllm-log" in kinds:
            assert not any("log from its very first line" in each for each in item.lacks)


def test_a_report_without_a_story_still_prints() -> None:
    bare = dataclasses.replace(SAMPLES["kv-demand"](), story=None)
    for form in REPORTS:
        assert REPORTS[form](bare, width=100)
    assert told(bare).story == SAMPLES["kv-demand"]().story


REFUSED = """(Worker_TP1 pid=11) INFO 02-05 13:34:59 [gpu_worker.py:298] Available KV cache memory: -2.10 GiB
(Worker_TP0 pid=10) INFO 02-05 13:34:59 [gpu_worker.py:298] Available KV cache memory: 8.00 GiB
(EngineCore_DP0 pid=9) ERROR 02-05 13:34:59 [core.py:708] EngineCore failed to start.
(EngineCore_DP0 pid=9) ERROR 02-05 13:34:59 [core.py:708] Traceback (most recent call last):
"""
ADAPTED = """(APIServer pid=1) INFO 06-13 19:10:02 [utils.py:233] non-default args: {'model': 'org/model-70b', 'enable_lora': True, 'max_lora_rank': 64, 'tensor_parallel_size': 4}
(Worker pid=12) ERROR 06-13 19:15:48 [worker.py:242] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB. GPU 2 has a total capacity of 79.33 GiB of which 16.00 MiB is free. Process 32 has 79.29 GiB memory in use. Of the allocated memory 69.59 GiB is allocated by PyTorch, and 118.90 MiB is reserved by PyTorch but unallocated.
"""


def told_of(folder: Path, files: dict[str, str]) -> Any:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    with diagnose.analyze(folder) as analysis:
        return analysis.report


def test_a_log_cut_before_the_end_still_says_that_the_start_failed(tmp_path: Path) -> None:
    report = told_of(tmp_path / "b", {"vllm.log": REFUSED})
    assert report.diagnoses[0].cause == "rank-imbalance"
    assert report.engines[0].outcome == "died"  # by the words of the front end: the error itself was cut off
    *_, last = report.story.chain
    assert last.says.startswith("the start failed at 02-05 13:34:59") and last.refs == ("vllm.log:3",)


def test_the_rank_of_adapters_is_a_flag_to_copy(tmp_path: Path) -> None:
    adapter = json.dumps({"peft_type": "LORA", "base_model_name_or_path": "org/model-70b", "r": 8, "lora_alpha": 16})
    report = told_of(tmp_path / "b", {"vllm.log": ADAPTED, "adapter_config.json": adapter})
    first = report.diagnoses[0]
    assert first.cause == "feature-overhead" and first.actions[0].changes == {"max_lora_rank": 8}
    assert "--max-lora-rank 8" in first.command and "--max-lora-rank 64" not in first.command
    assert report.story.title == "LoRA adapters take the room that a step needs"
    named = {patch.form: patch.text for patch in report.story.patches}
    assert named["flags"] == "--max-lora-rank 8"
    for form in ("kubernetes", "helm", "compose"):
        assert '"--max-lora-rank", "8"' in json.dumps(yaml.safe_load(named[form])), form


def test_a_copy_of_a_log_is_no_second_server(tmp_path: Path) -> None:
    report = told_of(tmp_path / "b", {"vllm.log": ADAPTED, "copy-of-vllm.log": ADAPTED})
    assert len(report.incidents) == len(report.engines) == 1
    assert {entry.engine for entry in report.ledger} <= {report.engines[0].id}


def test_a_start_after_the_copied_one_stays_in_the_list(tmp_path: Path) -> None:
    later = "(APIServer pid=2) INFO 06-13 19:40:02 [api_server.py:1896] vLLM API server version 0.11.0\n"
    report = told_of(tmp_path / "b", {"vllm.log": ADAPTED + later, "copy-of-vllm.log": ADAPTED})
    assert len(report.incidents) == 1 and len(report.engines) == 2


ALONE = """torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 246.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 178.06 MiB is free. Including non-PyTorch memory, this process has 23.46 GiB memory in use. Of the allocated memory 21.10 GiB is allocated by PyTorch, with 80.00 MiB allocated in private pools (e.g., CUDA Graphs), and 104.00 MiB is reserved by PyTorch but unallocated.
"""


def test_what_a_message_does_not_tell_apart_is_said_so(tmp_path: Path) -> None:
    begun = (
        "INFO 03-02 08:00:01 [cli_args.py:325] non-default args: {'model': 'org/m', 'gpu_memory_utilization': 0.97}\n"
        "INFO:     Application startup complete.\n"
    )
    report = told_of(tmp_path / "b", {"vllm.log": begun + ALONE})
    assert report.diagnoses[0].cause == "memory-utilization-edge"
    said = " ".join(link.says for link in report.story.chain)
    assert "not told apart 21.0" in said and "unexplained" not in said


CRASHED = """(VLLMActor pid=188201, ip=10.20.0.16) (EngineCore_DP0 pid=188944) INFO 03-25 22:14:02 [gpu_model_runner.py:4420] Model loading took 1.81 GiB memory and 6.120044 seconds
(VLLMActor pid=188201, ip=10.20.0.16) *** SIGSEGV received at time=1774476864 on cpu 77 ***
(VLLMActor pid=188201, ip=10.20.0.16) Fatal Python error: Segmentation fault
"""


def test_a_crash_has_a_title_in_words(tmp_path: Path) -> None:
    report = told_of(tmp_path / "b", {"driver.log": CRASHED})
    assert report.verdict == "not-memory"
    assert report.story.title == "A process of the server crashed (SIGSEGV)"


def test_a_healthy_title_does_not_contradict_what_came_near() -> None:
    report = report_of("healthy-older-server")
    assert report.story.title == "Nothing failed and nothing is close to failing"
    assert not any(item.near for item in report.watch)
    full = Watch("pool-usage", "the KV pool was 85.7% full at most", 0.857, 0.8, "share", True, (), None)
    near = told(dataclasses.replace(report, watch=(full,), story=None))
    assert near.story is not None
    assert near.story.title == "Nothing failed; to be watched: the KV pool was 85.7% full at most"


@pytest.mark.parametrize("name", BUNDLES)
def test_no_line_for_a_chat_is_cut_in_a_sentence(name: str) -> None:
    assert not [line for line in story(name).brief if line.endswith(" …")]


PROBED = """(APIServer pid=11) INFO 06-20 08:00:06 [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0
(APIServer pid=11) INFO 06-20 08:00:06 [api_utils.py:286] non-default args: {'model_tag': 'org/model-8b', 'model': 'org/model-8b', 'max_model_len': 4096}
(APIServer pid=12) INFO 06-20 08:00:36 [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0
(APIServer pid=12) INFO 06-20 08:00:36 [api_utils.py:286] non-default args: {'model_tag': 'org/model-8b', 'model': 'org/model-8b', 'max_model_len': 4096}
(EngineCore pid=13) INFO 06-20 08:00:40 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='org/model-8b', speculative_config=None
(Worker pid=14) INFO 06-20 08:00:44 [gpu_model_runner.py:68] Starting to load model org/model-8b...
(Worker pid=14) INFO 06-20 08:00:51 [default_loader.py:501] Loading weights took 6.17 seconds
(APIServer pid=15) INFO 06-20 08:01:06 [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0
(APIServer pid=15) INFO 06-20 08:01:06 [api_utils.py:286] non-default args: {'model_tag': 'org/model-8b', 'model': 'org/model-8b', 'max_model_len': 4096}
"""
SUPERVISED = "".join(
    f"2026-06-20T08:{at:%M:%S}.120Z supervisor: {said}\n"
    for start, pid in enumerate((11, 12, 15))
    for at, said in [
        (datetime.datetime(2026, 6, 20, 8, 0, 0) + datetime.timedelta(seconds=30 * start + after), text)
        for after, text in (
            (0, f"started pid={pid} restart={start}"),
            (3, "startup probe failed: GET /health: ClientConnectorError"),
            (6, "startup probe failed: GET /health: ClientConnectorError"),
            (14, f"startup probe deadline 14s exceeded, sending SIGTERM to pid={pid}"),
            (29, f"pid={pid} exited code=-9"),
        )
    ]
)  # fmt: skip


def test_a_start_that_a_probe_ended_says_how_far_the_furthest_came(tmp_path: Path) -> None:
    report = told_of(tmp_path / "b", {"vllm.log": PROBED, "supervisor-events.log": SUPERVISED})
    assert report.diagnoses[0].cause == "probe-restart-loop"
    first, second, *_ = report.story.chain
    assert "deadline 14s exceeded" in first.says
    assert (
        second.says == "the start that came furthest had read all weights 15 s after its first line, and was not ready"
    )
    assert second.refs == ("vllm.log:7",)
    # a supervisor that plays the kubelet has no object of Kubernetes to patch
    assert report.story.patches == ()
    # three starts of one process each: none of them lived from the first line of one to the last of another
    assert not any("of life a start" in link.says for link in report.story.chain)


def test_a_growth_between_two_states_is_a_sum(tmp_path: Path) -> None:
    table = "state,nvidia_smi_process_mib\nasleep after boot,500\nasleep after about 10 h of traffic,4500\n"
    report = told_of(
        tmp_path / "b",
        {
            "command.txt": "vllm serve org/model-8b --enable-sleep-mode\n",
            "timeseries.txt": table,
            "notes.txt": "later: wake-up fails again and again, about 25 minutes, 18 rerank requests lost\n",
        },
    )
    assert report.diagnoses[0].cause == "memory-leak"
    assert report.story.cost == "18 requests lost (notes.txt:1)"
    first, second, *_ = report.story.chain
    assert first.says == "asleep after boot: the process took 500.0 MiB" and first.refs == ("timeseries.txt:2",)
    assert second.says == "asleep after about 10 h of traffic: 500.0 MiB + 3.91 GiB = 4.39 GiB, 9.0 times as much"
    assert second.refs == ("timeseries.txt:3",)


LONGER = """(APIServer pid=31) INFO 06-20 09:00:06 [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0
(APIServer pid=31) INFO 06-20 09:00:06 [api_utils.py:286] non-default args: {'model_tag': 'org/model-8b', 'model': 'org/model-8b', 'max_model_len': 40000}
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/vllm/engine/arg_utils.py", line 1210, in create_model_config
    return ModelConfig(
pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig
  Value error, User-specified max_model_len (40000) is greater than the derived max_model_len (max_position_embeddings=16000.0 or model_max_length=None in model's config.json). To allow overriding this maximum, set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. VLLM_ALLOW_LONG_MAX_MODEL_LEN must be used with extreme caution.
"""


def test_a_length_beyond_the_model_is_a_sum_and_has_a_flag_to_paste(tmp_path: Path) -> None:
    report = told_of(tmp_path / "b", {"vllm.log": LONGER})
    assert report.verdict == "not-memory"
    asked, refused, *_ = report.story.chain
    assert asked.says == (
        "`--max-model-len 40000` asks for 40,000 tokens, 2.5 times the 16,000 that the model's own configuration allows "
        "(`max_position_embeddings`)"
    )
    assert refused.says.startswith("the engine refused to start") and refused.refs == ("vllm.log:6",)
    assert report.story.change.startswith("Set `--max-model-len 16000`")
    assert report.diagnoses[0].actions[0].changes == {"max_model_len": 16000}
    assert {patch.form: patch.text for patch in report.story.patches}["flags"] == "--max-model-len 16000"


def test_a_report_that_stands_behind_no_cause_offers_no_patch() -> None:
    report = report_of("kv-demand-long-chats")
    assert report.story.patches
    torn = told(dataclasses.replace(report, verdict="undecided"))
    assert torn.story.change is None and torn.story.patches == () and torn.story.replay is None


def test_what_its_replay_gives_stands_beside_the_change() -> None:
    """Slower or sooner, the reader of the first screen learns it."""
    report = report_of("kv-demand-long-chats")
    assert report.story.replay == "95% of the requests are done within 2 min (2 min 44 s now), and begin within 2.3 s (89 s now)"  # fmt: skip
    action = report.diagnoses[0].actions[0]
    slow = dataclasses.replace(action, predicted={**action.predicted, "p95_latency_s": 327.22109741})
    first = dataclasses.replace(report.diagnoses[0], actions=(slow,))
    worse = told(dataclasses.replace(report, diagnoses=(first, *report.diagnoses[1:])))
    # what speaks for it all the same stands first
    assert worse.story.replay.startswith(
        "100% of the requests are in time (71% now); 95% are done within 5 min 27 s (2 min 44 s now: 2.0 times as long), "
    )
    for form in ("terminal", "markdown", "html", "brief"):
        assert "2.0 times as long" in REPORTS[form](worse, width=200), form


def test_where_nothing_is_left_for_kv_the_container_is_not_asked_for(tmp_path: Path) -> None:
    # ranks that differ, or a small share, would be cause enough
    alike = "(APIServer pid=1) INFO 02-05 13:33:59 [utils.py:233] non-default args: {'model': 'org/m', 'gpu_memory_utilization': 0.9}\n"
    alike += REFUSED.replace(" 8.00 GiB", " -2.10 GiB")
    report = told_of(tmp_path / "b", {"vllm.log": alike})
    asked = " ".join(item.command for item in report.collect_next)
    assert "docker logs" in asked and "docker inspect" not in asked and "nvidia-smi -L" not in asked


def test_less_than_nothing_on_a_rank_is_a_sum_and_names_its_gpu(tmp_path: Path) -> None:
    log = """(Worker_TP1 pid=21) INFO 02-05 13:34:59 [gpu_worker.py:298] Available KV cache memory: -2.50 GiB
(Worker_TP0 pid=20) INFO 02-05 13:34:59 [gpu_worker.py:298] Available KV cache memory: 7.25 GiB
(EngineCore_DP0 pid=19) ERROR 02-05 13:34:59 [core.py:708] EngineCore failed to start.
"""
    launch = "CUDA_VISIBLE_DEVICES=1,3 vllm serve org/model-30b --tensor-parallel-size 2\n"
    report = told_of(tmp_path / "a", {"command.txt": launch, "vllm.log": log})
    assert report.diagnoses[0].cause == "rank-imbalance"
    assert report.story.where == "rank 1 of 2 (GPU 3 of the host, by `CUDA_VISIBLE_DEVICES`)"
    assert "-2.50 GiB on rank 1" in report.story.chain[0].says
    assert "7.25 GiB + 2.50 GiB = 9.75 GiB more are taken on rank 1" in report.story.chain[0].says
    unnamed = told_of(tmp_path / "b", {"command.txt": launch.replace("1,3", "GPU-11aa,GPU-22bb"), "vllm.log": log})
    assert unnamed.story.where == "rank 1 of 2"


@pytest.mark.parametrize(
    ("line", "size", "name"),
    [
        ("misc/shmutils.cc:113 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-a77bc (size 12582912)", "12.0 MiB", "nccl-a77bc"),
        ("misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Zk1D9c to 33030532 bytes", "31.5 MiB", "nccl-Zk1D9c"),
    ],
)  # fmt: skip
def test_a_segment_that_could_not_be_made_is_said_in_words(tmp_path: Path, line: str, size: str, name: str) -> None:
    report = told_of(
        tmp_path / "b", {"vllm.log": f"0aa1:162:427 [0] {line}\n0aa1:162:427 [0] NCCL INFO transport/shm.cc:114 -> 2\n"}
    )
    assert report.diagnoses[0].cause == "shm-exhausted"
    first = report.story.chain[0]
    assert first.says == f"NCCL asked for a segment of {size} (`/dev/shm/{name}`), and /dev/shm had no room for it"
    assert first.refs == ("vllm.log:1",)


def test_a_link_never_says_that_its_own_figure_is_unknown(tmp_path: Path) -> None:
    line = "RuntimeError: CUDA out of memory occurred when warming up sampler with 512 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."
    report = told_of(tmp_path / "b", {"vllm.log": f"(EngineCore_0 pid=9) ERROR 06-22 18:46:05 [core.py:586] {line}\n"})
    assert report.diagnoses[0].cause == "max-num-seqs-too-high"
    assert report.story.chain and not any(
        "unknown" in link.says.replace("(year unknown)", "") for link in report.story.chain
    )


_DESCRIBE = """\
Name:             chat-6d9f4-x2x4z
Namespace:        serving
Node:             gpu-07/10.0.3.7
Containers:
  engine:
    State:          Running
      Started:      Tue, 18 Aug 2026 14:25:01 +0000
    Last State:     Terminated
      Reason:       Error
      Exit Code:    143
      Started:      Tue, 18 Aug 2026 13:10:00 +0000
      Finished:     Tue, 18 Aug 2026 14:22:49 +0000
    Ready:          True
    Restart Count:  7
    Liveness:       http-get http://:8000/health delay=600s timeout=2s period=5s #success=1 #failure=3
Events:
  Type     Reason     Age                  From     Message
  ----     ------     ----                 ----     -------
  Warning  Unhealthy  4m (x21 over 9h)     kubelet  Liveness probe failed: {failed}
  Normal   Killing    4m (x7 over 9h)      kubelet  Container engine failed liveness probe, will be restarted
"""
_AT_WORK = "".join(
    f"INFO 08-18 14:2{n}:10 [loggers.py:123] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: 2100.0 tokens/s, "
    f"Running: {150 + n} reqs, Waiting: {n} reqs, GPU KV cache usage: 4{n}.0%, Prefix cache hit rate: 0.0%\n"
    for n in range(3)
)


@pytest.mark.parametrize(
    ("failed", "path", "got"),
    [
        ('Get "http://10.0.0.9:8000/health": context deadline exceeded', "/health", "got no answer in time"),
        ("HTTP probe failed with statuscode: 503", "/health", "got status 503"),
    ],
)
def test_a_probe_that_ends_a_server_at_work_is_no_matter_of_its_start(
    tmp_path: Path, failed: str, path: str, got: str
) -> None:
    (tmp_path / "describe.txt").write_text(_DESCRIBE.format(failed=failed))
    (tmp_path / "vllm.log").write_text(_AT_WORK)
    report = diagnose.analyze(tmp_path).report
    made = report.story
    assert made and report.diagnoses[0].cause == "probe-restart-loop"
    assert made.ran_out == "nothing: a probe ended a server that was at work"
    assert got in made.chain[0].says and "152 requests running" in made.chain[0].says
    assert "unknown" not in " ".join(link.says for link in made.chain)
    assert "startup" not in (made.change or "")
    patch = next(yaml.safe_load(each.text) for each in made.patches if each.form == "kubernetes")
    probe = patch["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]
    assert probe["httpGet"] == {"path": path, "port": 8000} and probe["timeoutSeconds"] == 10
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 300


def test_a_probe_that_is_refused_while_the_server_loads_is_one(tmp_path: Path) -> None:
    (tmp_path / "describe.txt").write_text(
        _DESCRIBE.format(failed="dial tcp 10.0.0.9:8000: connect: connection refused")
    )
    (tmp_path / "vllm.log").write_text(
        "INFO 08-18 14:24:10 [api_server.py:1896] vLLM API server version 0.11.0\n"
        "INFO 08-18 14:24:19 [gpu_model_runner.py:2602] Starting to load model /models/chat-70B...\n"
        "Loading safetensors checkpoint shards:  27% Completed | 4/15 [00:41<01:53, 10.31s/it]\n"
    )
    made = diagnose.analyze(tmp_path).report.story
    assert made and "startup probe" in (made.change or "") and "before it was ready" in made.ran_out


_HPA = """\
Name:             chat
Namespace:        serving
Reference:        Deployment/chat
Metrics:          ( current / target )
  resource cpu on pods  (as a percentage of request):  14% (880m) / 75%
Min replicas:     3
Max replicas:     9
Deployment pods:  3 current / 3 desired
Conditions:
  Type            Status  Reason            Message
  AbleToScale     True    ReadyForNewScale  recommended size matches current size
  ScalingActive   True    ValidMetricFound  the HPA was able to successfully calculate a replica count from cpu resource utilization
"""
_SCALED = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: chat
  namespace: serving
spec:
  scaleTargetRef:
    name: chat
  minReplicaCount: 0
  maxReplicaCount: 7
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus:9090
        query: avg(DCGM_FI_DEV_GPU_UTIL{namespace="serving",pod=~"chat-.*"})
        threshold: "85"
"""


def test_a_scaler_that_sees_nothing_is_patched_as_the_object_that_it_is(tmp_path: Path) -> None:
    """With the bounds of the bundle; KEDA is never let go to nought by a queue that is empty while requests run."""
    queue = _AT_WORK.replace("Waiting: ", "Waiting: 4")
    for name, manifest in (("hpa.txt", _HPA), ("scaledobject.yaml", _SCALED)):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text(manifest)
        (folder / "vllm.log").write_text(queue)
    made = diagnose.analyze(tmp_path / "hpa").report
    assert made.story and made.diagnoses[0].cause == "autoscaling-blind"
    assert "instead of `cpu`" in (made.story.change or "") and "between 3 and 9 replicas" in (made.story.change or "")
    patch = yaml.safe_load(made.story.patches[0].text)
    assert patch["kind"] == "HorizontalPodAutoscaler" and made.story.patches[0].fits
    assert (patch["spec"]["minReplicas"], patch["spec"]["maxReplicas"]) == (3, 9)
    assert patch["spec"]["metrics"][0]["pods"]["metric"]["name"] == "vllm_num_requests_waiting"
    scaled = diagnose.analyze(tmp_path / "scaledobject").report.story
    assert scaled
    patch = yaml.safe_load(scaled.patches[0].text)
    assert patch["kind"] == "ScaledObject" and patch["spec"]["scaleTargetRef"] == {"name": "chat"}
    assert (patch["spec"]["minReplicaCount"], patch["spec"]["maxReplicaCount"]) == (1, 7)
    assert "num_requests_waiting" in patch["spec"]["triggers"][0]["metadata"]["query"]


def test_a_bundle_that_shows_little_is_not_said_to_be_well(tmp_path: Path) -> None:
    """The first screen says what the verdict rests on and what nobody looked at; a bundle with requests and usage says neither."""
    (tmp_path / "run.log").write_text(
        "Rendering prompts: 100%|----------| 4/4 [00:00<00:00, 31.07it/s]\n"
        "Processed prompts: 100%|--------| 4/4 [00:02<00:00, 1.61it/s, est. speed input: 5120.10 toks/s, output: 22.04 toks/s]\n"
        "vllm:prefix_cache_hits 3\n"
    )
    report = diagnose.analyze(tmp_path, diagnose.Options(wording=False)).report
    assert report.verdict == "healthy" and report.story
    assert report.story.title == "What this bundle shows has no failure in it, and it shows little"
    last = report.story.chain[-1].says
    assert last.startswith("that is all: 3 lines of 1 source were read") and "how full the KV pool was" in last
    well = story("healthy-full-device")
    assert "shows little" not in well.title and "that is all" not in well.chain[-1].says


def test_the_memory_of_a_server_on_the_processor_is_the_host_s(tmp_path: Path) -> None:
    (tmp_path / "vllm.log").write_text(
        "INFO 11-20 21:02:31 [utils.py:233] non-default args: {'model_tag': 'org/tiny', 'gpu_memory_utilization': 0.75, 'max_model_len': 2048}\n"
        "(EngineCore pid=7) INFO 11-20 21:02:36 [core.py:94] Initializing a V1 LLM engine (v0.32.0) with config: model='org/tiny', "
        "dtype=torch.bfloat16, max_seq_len=2048, tensor_parallel_size=1, device_config=cpu\n"
        "(EngineCore pid=7) ERROR 11-20 21:02:43 [core.py:1001] ValueError: Available memory on node 0 (3.02/8.00 GiB) on startup is less than "
        "desired CPU memory utilization (0.75, 6.0 GiB). On the CPU backend, the `--gpu-memory-utilization` flag controls the fraction of CPU "
        "memory reserved (despite its name).\n"
    )
    report = diagnose.analyze(tmp_path).report
    assert report.diagnoses[0].cause in ("memory-utilization-edge", "host-memory-exhausted")
    page = REPORTS["terminal"](report, width=160)
    assert "host" in page
    assert not re.search(r"\b(?:of the (?:device|GPU|card)|each GPU|nvidia-smi)\b", page)
