"""The wiring: options that add what a person knows, what to collect next, warnings, the library door."""

import io
import json
from pathlib import Path

import pytest

import oomdoc
from grids import report_of, some
from oomdoc.diagnose import Options, analyze
from oomdoc.errors import BundleError, UsageError
from verdicts import ranking_alone

SAMPLES = Path(__file__).parents[1] / "sample_logs"

OOM = (
    "ERROR 11-20 20:04:51 [core.py:400] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 0 has a total capacity of 23.50 GiB of "
    "which 50.00 MiB is free. Including non-PyTorch memory, this process has 23.40 GiB memory in use. Of the allocated memory 23.00 GiB is allocated by PyTorch, "
    "and 5.00 MiB is reserved by PyTorch but unallocated.\n"
)
LOAD = "INFO 11-20 20:04:40 [gpu_model_runner.py:1843] Starting to load model acme/Nimbus-32B...\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "vllm.log").write_text(LOAD + OOM)
    return folder


def test_the_library_door_gives_report_json_and_tables(log: Path) -> None:
    with oomdoc.analyze(log) as analysis:
        told = analysis.to_dict()
        assert told["schema_version"] == "1"
        assert told["diagnoses"][0]["cause"] == "weights-exceed-gpu"
        assert analysis.sql("SELECT line, allocator FROM oom") == (["line", "allocator"], [(2, "torch")])


def test_the_version_is_in_one_place() -> None:
    assert oomdoc.__version__.count(".") == 2
    with pytest.raises(AttributeError):
        oomdoc.nothing_of_that_name  # noqa: B018 - the access is the test


def test_two_starts_of_one_failure_are_two_incidents_that_share_a_ranking(tmp_path: Path) -> None:
    version = "INFO 11-20 20:00:00 [api_server.py:1] vLLM API server version 0.11.0\n"
    path = tmp_path / "vllm.log"
    path.write_text((version + LOAD + OOM) * 2)
    with analyze(path) as analysis:
        first, second = analysis.report.incidents
        assert [first.first_failure.ref, second.first_failure.ref] == ["vllm.log:3", "vllm.log:6"]
        assert first.diagnoses == second.diagnoses


def test_a_device_that_only_the_person_knows(log: Path) -> None:
    with analyze(log, Options(gpu="24GiB")) as analysis:
        assert analysis.sql("SELECT devices, total_bytes FROM device")[1] == [(1, 24 << 30)]
    with analyze(log, Options(gpu="H100")) as analysis:
        assert analysis.sql("SELECT name FROM device")[1] == [("H100",)]


def test_a_model_config_beside_the_bundle(log: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "torch_dtype": "float32",
                "architectures": ["NimbusForCausalLM"],
                "quantization_config": {"quant_method": "awq"},
            }
        )
    )
    with analyze(log, Options(model_config=config)) as analysis:
        assert analysis.sql("SELECT dtype, quantization FROM engine")[1] == [("float32", "awq")]
    config.write_text("{")
    with pytest.raises(UsageError, match=r"config\.json"):
        analyze(log, Options(model_config=config))


def test_a_zone_for_the_engine_s_own_stamps(log: Path) -> None:
    (log / "requests.jsonl").write_text(
        '{"timestamp": "2026-11-20T18:00:00Z", "input_tokens": 5, "output_tokens": 5}\n' * 3
    )
    with analyze(log, Options(tz="+02:00")) as analysis:
        assert analysis.report.to_dict()["incidents"][0]["started"] == "2026-11-20T18:04:51Z"


def test_since_and_until_leave_out_the_rest(log: Path) -> None:
    with analyze(log, Options(until=0.0)) as analysis:
        assert analysis.sql("SELECT count(*) FROM oom")[1] == [(0,)]


def test_times_without_a_year_say_so(log: Path) -> None:
    with analyze(log) as analysis:
        assert analysis.report.to_dict()["incidents"][0]["started"] == "--11-20T20:04:51Z"
        assert any("no year" in warning for warning in analysis.report.warnings)


def test_what_to_collect_next_names_a_command(log: Path) -> None:
    with analyze(log) as analysis:
        for wish in analysis.report.collect_next:
            assert wish.what and wish.command and wish.separates


def test_a_kind_given_by_hand_wins(tmp_path: Path) -> None:
    path = tmp_path / "odd.txt"
    path.write_text("input_tokens=5 output_tokens=7\n")
    with analyze(path, Options(types=("*.txt=text-log",))) as analysis:
        assert analysis.report.coverage.sources[0].kind == "text-log"
    with pytest.raises(UsageError, match="GLOB=KIND"):
        analyze(path, Options(types=("*.txt=nonsense",)))


def test_nothing_readable_is_an_error_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "picture.log"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 50)
    with pytest.raises(BundleError, match="PNG image of"):
        analyze(path)


def test_nothing_is_left_in_the_scratch_folder(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with analyze(log):
        assert len(list(scratch.iterdir())) == 1
    assert list(scratch.iterdir()) == []
    with pytest.raises(UsageError):
        analyze(log, Options(types=("nonsense",)))
    assert list(scratch.iterdir()) == []


def test_what_an_incident_cost(tmp_path: Path) -> None:
    """Ninety-five seconds without service, one start after it, two answers lost; a third error came much earlier."""
    life = [
        "INFO 11-20 {} [api_server.py:1355] vLLM API server version 0.9.2",
        "INFO 11-20 {} [launcher.py:29] Available routes are:",
        "INFO:     Application startup complete.",
    ]
    failure = "ERROR 11-20 20:10:00 [core.py:590] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which 1.00 GiB is free."
    log = [*(line.format("20:00:00") for line in life), failure, *(line.format("20:11:35") for line in life)]
    (tmp_path / "vllm.log").write_text("\n".join(log) + "\n")
    calls = [("19:50:00", 500), ("20:05:00", 200), ("20:09:58", 500), ("20:10:30", 500), ("20:20:00", 200)]
    (tmp_path / "requests.jsonl").write_text(
        "".join(
            f'{{"ts": "2026-11-20T{t}Z", "status": {status}, "input_tokens": 900, "output_tokens": 40}}\n'
            for t, status in calls
        )
    )
    with analyze(tmp_path) as analysis:
        impact = next(entry for entry in analysis.report.incidents if entry.kind == "device-oom").impact
    assert (impact.down_s, impact.restarts, impact.requests_lost) == (95.0, 1, 2)
    assert impact.back_ref and impact.back_ref.startswith("vllm.log:")


# --- details: what people look up


def test_details_bring_the_lines_behind_the_references(log: Path) -> None:
    with analyze(log) as plain, analyze(log, Options(details=True)) as detailed:
        assert (plain.report.excerpts, plain.report.fix_replay) == ((), None)
        found = {item.ref: item for item in detailed.report.excerpts}
        first = detailed.report.incidents[0].first_failure
        assert first is not None
        assert [(row.line, row.text[:5]) for row in found[first.ref].lines] == [(1, "INFO "), (2, "ERROR")]
        assert detailed.report.fix_replay is None  # no requests, nothing to replay
        same = {**detailed.to_dict(), "excerpts": [], "fix_replay": None}
        assert same == plain.to_dict()


def test_standard_input_cannot_be_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        buffer = io.BytesIO((LOAD + OOM).encode())

    monkeypatch.setattr("sys.stdin", Stream)
    with analyze("-", Options(details=True)) as analysis:
        assert analysis.report.excerpts == ()
        assert [text for text in analysis.report.warnings if "twice" in text]


def test_the_fix_is_replayed_where_requests_were_recorded() -> None:
    sample = Path(__file__).parents[1] / "sample_logs" / "kv-demand-long-chats"
    with analyze(sample, Options(details=True)) as analysis:
        told = analysis.to_dict()["fix_replay"]
        action = analysis.report.diagnoses[0].actions[0]
        assert told["action"] == action.id
        assert {row["flag"]: row["value"] for row in told["settings"]} == dict(action.changes)
        assert told["requests"] == analysis.report.traffic["requests"]
        assert (told["before"]["survives"], told["after"]["survives"]) == (False, True)
        fresh = analysis.replay({name: str(value) for name, value in action.changes.items()})
        assert told["after"]["p95_wait_s"] == pytest.approx(fresh["after"]["p95_wait_s"])
        assert len(told["recorded"]["at_s"]) == len(told["recorded"]["used"]) <= 360
        assert max(told["recorded"]["used"]) == fresh["recorded"]["peak_used"]


def test_the_later_half_of_another_servers_rotated_log_is_not_this_ones(tmp_path: Path) -> None:
    chats = (SAMPLES / "kv-demand-long-chats" / "vllm.log").read_bytes().split(b"\n")
    half = len(chats) // 2
    files = {
        "pod-a/vllm.log.1": b"\n".join(chats[:half]) + b"\n",
        "pod-a/vllm.log": b"\n".join(chats[half:]),
        "pod-b/vllm.log": (SAMPLES / "prompt-logprobs-spike" / "vllm.log").read_bytes(),
    }
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    with analyze(tmp_path) as analysis:
        told = {each.engine: each.diagnoses for each in analysis.report.incidents}
    spike, demand = told["pod-b/vllm.log#1"], told["pod-a/vllm.log#0"]
    assert (spike[0].cause, demand[0].cause) == ("prefill-activation-spike", "kv-demand-exceeds-pool")
    assert {each.cause: each.probability for each in spike}["kv-demand-exceeds-pool"] < 0.1


def test_a_copy_and_the_rotated_halves_of_a_log_show_one_failure(tmp_path: Path) -> None:
    said = OOM.replace("Including", "Process 3313468 has 23.40 GiB memory in use. Including")
    words = said.split("] ", 1)[1]
    (tmp_path / "copy-of-vllm.log").write_text(LOAD + said)
    (tmp_path / "vllm.log.1").write_text(LOAD + said)
    (tmp_path / "vllm.log").write_text("    return self.load_model(\n" + words)
    with analyze(tmp_path) as analysis:
        assert len(analysis.report.incidents) == 1
        assert [text for text in analysis.report.warnings if "the same failure as" in text]
    (tmp_path / "vllm.log.1").write_text(LOAD + said.replace("3313468", "3313999").replace("20:04:51", "19:04:51"))
    with analyze(tmp_path) as analysis:  # another process at another time failed by itself
        assert len(analysis.report.incidents) == 2


def test_a_log_that_is_there_twice_shows_its_failure_once(tmp_path: Path) -> None:
    (tmp_path / "server.out").write_text(LOAD + OOM)
    (tmp_path / "copy-of-server.out").write_text(LOAD + OOM)
    with analyze(tmp_path) as analysis:
        assert len(analysis.report.incidents) == 1
    (tmp_path / "copy-of-server.out").write_text(LOAD + LOAD + OOM)
    with analyze(tmp_path) as analysis:  # a replica that fails alike
        assert len(analysis.report.incidents) == 2


@pytest.mark.parametrize("name", some(sorted(path.parent.name for path in SAMPLES.glob("*/case.toml")), 6))
def test_a_ranking_is_the_same_without_what_comes_after_it(name: str) -> None:
    """Tests that ask for no more than a ranking work out no more (`verdicts`)."""
    whole = report_of(name)
    with ranking_alone(), analyze(SAMPLES / name) as analysis:
        alone = analysis.report
    assert alone.verdict == whole.verdict
    assert [(item.cause, item.probability, item.evidence) for item in alone.diagnoses] == [
        (item.cause, item.probability, item.evidence) for item in whole.diagnoses
    ]
