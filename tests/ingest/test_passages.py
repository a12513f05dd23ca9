"""Several things pasted into one text: each part is read, whoever recognised the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import oomdoc
from oomdoc.ingest import make_head, read, recognise
from oomdoc.ingest.passages import passages
from oomdoc.ingest.prompts import typed
from oomdoc.intake.scan import Chunk


def tables(text: str) -> dict[str, list[dict[str, Any]]]:
    data = text.encode()
    ingestor, _ = recognise(make_head("any", data))
    found: dict[str, list[dict[str, Any]]] = {}
    for batch in read(ingestor, "any", [Chunk(data, 1, True)]):
        names, columns = list(batch.columns), [list(column) for column in batch.columns.values()]
        found.setdefault(batch.table, []).extend(dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))  # fmt: skip
    return found


PODS = """NAME            READY   STATUS             RESTARTS
granite-0       0/1     CrashLoopBackOff   9
granite-1       1/1     Running            0
"""


def test_what_jsonpath_printed_is_what_was_asked_for() -> None:
    asked = PODS + (
        "$ kubectl -n ai get pod granite-0 -o jsonpath='{.status.containerStatuses[?(@.name==\"server\")].lastState}'\n"
        '{"terminated":{"exitCode":137,"reason":"OOMKilled","startedAt":"2026-03-02T06:02:10Z","finishedAt":"2026-03-02T06:02:58Z"}}\n'
        "$ kubectl -n ai get pod ... -o jsonpath='{.spec.containers[?(@.name==\"server\")].resources.limits.memory}'\n"
        "48Gi\n"
    )
    rows = [row for row in tables(asked)["container"] if row["last_reason"]]
    assert [(row["pod"], row["name"], row["last_reason"], row["exit_code"], row["memory_limit_bytes"]) for row in rows] == [
        ("granite-0", "server", "OOMKilled", 137, 48 << 30)
    ]  # fmt: skip
    assert rows[0]["line"] in (5, 7)


def test_two_pods_are_two() -> None:
    asked = (
        "ops@gw:~$ kubectl get po a-0 -o jsonpath='{.status.containerStatuses[0].lastState.terminated.reason}'\nOOMKilled\n"
        "ops@gw:~$ kubectl get po b-0 -o jsonpath='{.spec.containers[0].resources.limits.memory}'\n8Gi\n"
    )
    rows = tables(asked)["container"]
    assert {(row["pod"], row["last_reason"], row["memory_limit_bytes"]) for row in rows} == {
        ("a-0", "OOMKilled", None),
        ("b-0", None, 8 << 30),
    }


def test_several_values_in_one_answer() -> None:
    asked = (
        "# docker inspect -f '{{.State.OOMKilled}} {{.State.ExitCode}} {{.HostConfig.Memory}}' chat-7\ntrue 137 17179869184\n"
        "# docker logs --tail 1 chat-7\nstarting\n"
    )
    (row,) = tables(asked)["container"]
    assert (row["name"], row["last_reason"], row["exit_code"], row["memory_limit_bytes"]) == ("chat-7", "OOMKilled", 137, 16 << 30)  # fmt: skip
    assert not tables("# docker inspect -f '{{.State.OOMKilled}} {{.State.ExitCode}}' chat-7\ntrue\n").get("container")


@pytest.mark.parametrize(
    ("form", "said", "container"),
    [
        ("{{.Name}} oom={{.State.OOMKilled}} exit={{.State.ExitCode}}", "/draft oom=true exit=137", ("draft", "OOMKilled", 137, "77be0c119d2f")),
        ("{{.State.ExitCode}}|{{.State.OOMKilled}}|{{.State.Error}}", "137|true|", (None, "OOMKilled", 137, "77be0c119d2f")),
        ("code {{.State.ExitCode}}, ended {{.State.FinishedAt}} ({{.State.OOMKilled}})", "code 1, ended 2026-05-02 10:11:12.5 +0000 UTC (false)", (None, "Error", 1, "77be0c119d2f")),
        ("{{.State.ExitCode}} {{.State.OOMKilled}}", "no such object: 77be0c119d2f", None),
        ("{{if .State.OOMKilled}}killed{{end}} {{.State.ExitCode}}", "killed 137", None),
    ],
)  # fmt: skip
def test_an_inspected_container_in_the_form_that_somebody_chose(form: str, said: str, container: tuple[object, ...] | None) -> None:  # fmt: skip
    rows = tables(f"$ podman inspect 77be0c119d2f --format '{form}'\n{said}\n").get("container", [])
    assert [(row["name"], row["last_reason"], row["exit_code"], row["container_id"]) for row in rows] == ([container] if container else [])  # fmt: skip


def test_inspected_containers_side_by_side() -> None:
    asked = "$ docker inspect --format='{{.Name}} {{.State.ExitCode}} {{.HostConfig.Memory}}' draft judge\n/draft 0 0\n/judge 137 68719476736\n"
    rows = tables(asked)["container"]
    assert {(row["name"], row["exit_code"], row["memory_limit_bytes"]) for row in rows} == {("draft", 0, None), ("judge", 137, 64 << 30)}  # fmt: skip


def test_a_part_of_a_status_alone() -> None:
    (row,) = tables('state before the restart\n\n{"terminated": {"exitCode": 137, "reason": "OOMKilled"}}\n')[
        "container"
    ]
    assert (row["last_reason"], row["exit_code"], row["line"]) == ("OOMKilled", 137, 3)
    assert not tables('{"terminated": true, "reason": "the user asked for it 2 times"}\n').get("container")


def test_counters_of_a_group_side_by_side() -> None:
    (row,) = tables("memory.max 103079215104\nmemory.peak 103079202816\nmemory.events: low 0 high 0 max 71 oom 1 oom_kill 1\n")["host_event"]  # fmt: skip
    assert (row["kind"], row["count"], row["limit_bytes"], row["bytes"]) == ("cgroup-oom-count", 1, 103079215104, 103079202816)  # fmt: skip
    (row,) = tables("memory.current=900 memory.max=1000 memory.peak=990\nmemory.events: oom_kill 2\n")["host_event"]
    assert (row["count"], row["limit_bytes"], row["bytes"]) == (2, 1000, 990)
    assert not tables("my memory.max ideas: low 0 budget, 3 beers\nand more of them\n").get("host_event")


def test_files_that_a_session_shows_one_by_one() -> None:
    asked = (
        "ops@gw:~$ kubectl get pods\n"
        + PODS
        + "ops@gw:~$ kubectl exec granite-1 -- cat /sys/fs/cgroup/memory.max\n34359738368\n"
        "ops@gw:~$ kubectl exec granite-1 -- cat /sys/fs/cgroup/memory.peak\n34359700480\n"
        "ops@gw:~$ kubectl exec granite-1 -- cat /sys/fs/cgroup/memory.events\nlow 0\nhigh 0\nmax 71\noom 2\noom_kill 2\n"
        "ops@gw:~$ cat /etc/hostname\n17\n"
    )
    (row,) = tables(asked)["host_event"]
    assert (row["count"], row["limit_bytes"], row["bytes"]) == (2, 34359738368, 34359700480)
    assert row["line"] == 14


def test_a_table_and_a_process_list_below_words() -> None:
    text = (
        "What we saw at ten to nine, before somebody restarted it:\n\n"
        "gpu;used_mib;total_mib;util\n0;79800;81559;0\n1;79802;81559;100\n\n"
        "and on the host\n"
        "  PID USER      RSS    COMMAND\n 4411 root  41023334  VLLM::EngineCore\n"
    )
    found = tables(text)
    assert [row["used_bytes"] for row in found["gpu_sample"]] == [79800 << 20, 79802 << 20]
    assert [row["bytes"] for row in found["process_memory"]] == [41023334 << 10]


def test_nothing_is_read_twice() -> None:
    plain = tables(PODS)["container"]
    again = tables("$ kubectl get pods\n" + PODS + "\n$ date\nMon Mar  2 06:10:00 UTC 2026\n")["container"]
    assert [(row["pod"], row["restarts"]) for row in again] == [(row["pod"], row["restarts"]) for row in plain]


def test_lines_of_a_log_are_no_passage() -> None:
    lines = ["INFO 03-02 11:20:01 [loader.py:101] gpu used total", "0 1 2", "", "a 1"]
    assert [passage.first_line for passage in passages(lines, {2})] == [4]


def test_what_was_typed() -> None:
    assert typed("(venv) me@box:~/x$ df -h /dev/shm") == "df -h /dev/shm"
    assert typed("PS C:\\Users\\me> nvidia-smi -L") == "nvidia-smi -L"
    assert typed("me@mac ~ % vm_stat 5") == "vm_stat 5"
    assert typed("$ CUDA_VISIBLE_DEVICES=1 python -m x") == "CUDA_VISIBLE_DEVICES=1 python -m x"
    for words in ("# a heading of 3 words", "97% of the pool is used", "GPU% power", "US$ Price", "% of requests"):
        assert typed(words) is None, words
    assert typed("it costs 5 $ a day") is None


def test_from_a_session_to_the_verdict(tmp_path: Path) -> None:
    bundle = tmp_path / "b"
    bundle.mkdir()
    (bundle / "what-i-typed.txt").write_text(
        "kubectl -n ai get pods, all of vllm-granite\n"
        + PODS
        + "$ kubectl get pod granite-0 -o jsonpath='{.status.containerStatuses[0].lastState}'\n"
        + '{"terminated":{"exitCode":137,"reason":"OOMKilled"}}\n'
    )
    with oomdoc.analyze(str(bundle), oomdoc.Options(wording=False)) as analysis:
        first = analysis.report.diagnoses[0]
    assert first.cause == "host-memory-exhausted"
    assert first.probability > 0.85


def test_the_pod_that_is_named_as_a_server_is_the_server(tmp_path: Path) -> None:
    """What another pod of the same listing was ended by is set aside."""
    bundle = tmp_path / "b"
    bundle.mkdir()
    for pod in ("vllm-chat-0", "thumbnailer-5d9-xk2"):
        (bundle / "typed.txt").write_text(
            "NAME   READY   STATUS    RESTARTS   AGE\nvllm-chat-0   1/1     Running   0   6d\nthumbnailer-5d9-xk2   1/1   Running   0   2d\n"
            f"$ kubectl get pod {pod} -o jsonpath='{{.status.containerStatuses[0].lastState}}'\n"
            '{"terminated":{"exitCode":137,"reason":"OOMKilled"}}\n'
        )
        with oomdoc.analyze(str(bundle), oomdoc.Options(wording=False)) as analysis:
            first = analysis.report.diagnoses[:1]
        told = bool(first) and first[0].cause == "host-memory-exhausted" and first[0].probability > 0.85
        assert told == pod.startswith("vllm")
