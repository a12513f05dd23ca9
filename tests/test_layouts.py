"""Support tools' layouts give the diagnosis of the files they were made of; lives, replicas and copies are kept apart."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import pytest

import layouts
import oomdoc
import shapes
from grids import report_of
from verdicts import tables

SAMPLES = Path(__file__).parents[1] / "sample_logs"
NAMES = ("healthy-full-device", "illegal-access-in-decode", "prompt-logprobs-spike", "second-tenant-on-card-one", "pieces-of-seven-gib")  # fmt: skip
CHOSEN = [(NAMES[place % len(NAMES)], layout) for place, layout in enumerate(layouts.LAYOUTS)]
if os.environ.get("OOMDOC_METAMORPHIC"):
    CHOSEN = [(path.parent.name, layout) for path in sorted(SAMPLES.glob("*/case.toml")) for layout in layouts.LAYOUTS]


@functools.cache
def files(name: str) -> shapes.Files:
    return shapes.files_of(SAMPLES / name)


@pytest.mark.parametrize(("name", "layout"), CHOSEN, ids=[f"{layout}-{name}" for name, layout in CHOSEN])
def test_a_layout_changes_nothing(name: str, layout: str, tmp_path: Path) -> None:
    before = shapes.told_of(report_of(name))
    after = shapes.told(shapes.laid_out(tmp_path, layouts.LAYOUTS[layout](files(name))))
    assert after.same(before), f"{before}\n{after}"


def test_a_stream_of_objects_and_logs_gives_both(tmp_path: Path) -> None:
    pod = {
        "kind": "PodList",
        "items": [{"kind": "Pod", "metadata": {"name": "vllm-0"}, "spec": {"containers": [{"name": "server", "resources": {"limits": {"memory": "48Gi"}}}]}, "status": {"containerStatuses": [{"name": "server", "restartCount": 4, "state": {"running": {}}, "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}}],
    }  # fmt: skip
    log = "INFO 05-22 10:00:00 [config.py:1] Using max model len 4096\n"
    stream = json.dumps({"kind": "NodeList", "items": []}, indent=4) + "\n" + json.dumps(pod, indent=4) + "\n==== START logs for container server of pod llm/vllm-0 ====\n" + log + "==== END logs ====\n"  # fmt: skip
    (tmp_path / "dump.txt").write_text(stream)
    with tables(tmp_path / "dump.txt") as analysis:
        assert analysis.sql("SELECT last_reason, restarts, memory_limit_bytes FROM container")[1] == [("OOMKilled", 4, 48 << 30)]  # fmt: skip
        assert analysis.sql("SELECT value FROM engine_flag WHERE flag = 'max_model_len'")[1] == [("4096",)]
        assert analysis.sql("SELECT count(*) FROM problem")[1] == [(0,)]


def test_a_farm_of_links_counts_once(tmp_path: Path) -> None:
    name = "illegal-access-in-decode"
    root = shapes.laid_out(tmp_path, files(name))
    before = shapes.told(root)
    farm = root / "by-pod"
    farm.mkdir()
    for path in sorted(root.iterdir()):
        if path.is_file():
            (farm / f"link-{path.name}").symlink_to(path)
            (farm / f"hard-{path.name}").hardlink_to(path)
    assert shapes.told(root) == before
    with tables(root) as analysis:
        assert len(analysis.report.coverage.sources) == len(files(name))
        assert len(analysis.report.coverage.unread) == 2 * len(files(name))


def test_replicas_and_their_incidents_stay_apart(tmp_path: Path) -> None:
    """Two servers with two failures: two incidents, each with its own engine and cause."""
    one, two = files("illegal-access-in-decode")["vllm.log"], files("sampler-warmup-1024")["vllm.log"]
    root = shapes.laid_out(tmp_path, {"pods/a/server.log": one, "pods/b/server.log": two})
    with oomdoc.analyze(root) as analysis:
        report = analysis.report
    causes = {incident.engine: incident.diagnoses[0].cause for incident in report.incidents}
    assert causes == {"pods/a/server.log#1": "not-memory", "pods/b/server.log#1": "max-num-seqs-too-high"}


def test_a_log_that_restarts_is_several_lives(tmp_path: Path) -> None:
    failed, served = files("sampler-warmup-1024")["vllm.log"], files("healthy-older-server")["vllm.log"]
    root = shapes.laid_out(tmp_path, {"server.log": served + failed})
    with oomdoc.analyze(root) as analysis:
        report = analysis.report
    assert [(engine.id, engine.failed) for engine in report.engines] == [("server.log#1", False), ("server.log#2", True)]  # fmt: skip
    assert [incident.diagnoses[0].cause for incident in report.incidents] == ["max-num-seqs-too-high"]
