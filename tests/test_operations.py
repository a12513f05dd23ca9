"""What docs/operations ships is right in its form, and its commands are commands that this oomdoc takes."""

from __future__ import annotations

import configparser
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from oomdoc import cli

FOLDER = Path(__file__).parents[1] / "docs" / "operations"
JOB = yaml.safe_load((FOLDER / "cronjob.yaml").read_text(encoding="utf-8"))


def unit(name: str) -> configparser.ConfigParser:
    made = configparser.ConfigParser(strict=False, interpolation=None)
    made.optionxform = str  # type: ignore[assignment, method-assign]
    made.read_string((FOLDER / name).read_text(encoding="utf-8"))
    return made


def crontab() -> list[str]:
    lines = (FOLDER / "crontab").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line and not line.startswith("#")).split(maxsplit=5)


def commands() -> dict[str, Sequence[str]]:
    container = JOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    return {
        "cronjob.yaml": container["args"],
        "oomdoc-sweep.service": shlex.split(unit("oomdoc-sweep.service")["Service"]["ExecStart"])[1:],
        "crontab": shlex.split(crontab()[5])[1:],
    }


@pytest.mark.parametrize("name", ["cronjob.yaml", "oomdoc-sweep.service", "crontab"])
def test_the_command_of_a_file_is_one_that_sweep_takes(name: str) -> None:
    words = list(commands()[name])
    assert words.pop(0) == "sweep"
    group: Any = typer.main.get_command(cli.app)
    told = group.commands["sweep"].make_context("sweep", words).params
    assert told["store"] and told["retention"] == 90
    assert Path(told["outputs"][0]).name == "morning.html"
    assert all(path.startswith("/") for path in told["outputs"])


def test_the_manifest_is_a_cron_job_that_may_do_little() -> None:
    assert (JOB["apiVersion"], JOB["kind"]) == ("batch/v1", "CronJob")
    assert JOB["spec"]["concurrencyPolicy"] == "Forbid"
    pod = JOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted.keys() == {volume["name"] for volume in pod["volumes"]}
    written = [word.partition("=")[2] for word in container["args"] if word.startswith("--output=")]
    assert written and all(any(path.startswith(place + "/") for place in mounted.values()) for path in written)


def test_the_manifest_is_valid_by_the_schema_of_kubernetes() -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="`pip install kubernetes-validate` has the schema")
    kubernetes.validate(JOB, "1.30", strict=True)


def test_the_schedules_agree() -> None:
    minute, hour = JOB["spec"]["schedule"].split()[:2]
    assert crontab()[:2] == [minute, hour]
    assert f"{int(hour):02}:{int(minute):02}:00" in unit("oomdoc-sweep.timer")["Timer"]["OnCalendar"]
    assert unit("oomdoc-sweep.service")["Service"]["SuccessExitStatus"] == "75"


def test_the_image_runs_as_the_user_of_the_manifest() -> None:
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    assert [word for word, _ in steps] == ["FROM", "COPY", "RUN", "USER", "ENTRYPOINT"]
    pod = JOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert dict(map(tuple, steps))["USER"] == str(pod["securityContext"]["runAsUser"])
    assert re.search(r"\boomdoc:[\w.]+$", pod["containers"][0]["image"])


def test_the_pipeline_runs_commands_that_there_are_and_fails_on_a_cause(tmp_path: Path) -> None:
    told = yaml.safe_load((FOLDER / "pipeline.yaml").read_text(encoding="utf-8"))
    steps = told["jobs"]["load-test"]["steps"]
    (line,) = [line.strip() for step in steps for line in step.get("run", "").splitlines() if "oomdoc analyze" in line]
    words = shlex.split(line)[1:]
    run = FOLDER.parents[1] / "sample_logs" / "graph-capture-on-24gb"
    argv = [
        str(run) if word == "run" else str(tmp_path / word) if word.startswith("report.") else word for word in words
    ]
    assert cli.run(argv) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json", "report.md"]
