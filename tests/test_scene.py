"""Whose an event is: from text to verdict, own and foreign evidence of one kind side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

import oomdoc
from oomdoc.model import Report
from oomdoc.scene.lives import ANOTHER_DAY_S
from oomdoc.scene.places import is_engine, place_of_path, workload_of
from oomdoc.views.thresholds import SHARED
from verdicts import SIGNS, tables

START = "(EngineCore_DP0 pid=41) INFO 11-24 09:0{m}:{s:02d} [core.py:93] Initializing a V1 LLM engine (v0.13.0) with config: model='m/x-7b'"
STAT = (
    "(APIServer pid=7) INFO 11-24 09:{m:02d}:{s:02d} [loggers.py:248] Engine 000: Avg prompt throughput: 90.0 tokens/s, Avg generation "
    "throughput: 210.4 tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 21.0%, Prefix cache hit rate: 12.0%"
)
UP = "(APIServer pid=7) INFO 11-24 09:02:00 [launcher.py:46] Application startup complete."
DIED = "(APIServer pid=7) ERROR 11-24 09:20:04 [executor.py:118] Worker proc VllmWorker-0 died with exit code -9, shutting down."


def log(*last: str) -> str:
    """A server that came up at 09:00 and served until 09:20."""
    head = [
        "(APIServer pid=7) INFO 11-24 09:00:00 [api_server.py:1351] vLLM API server version 0.13.0",
        START.format(m=0, s=5),
        UP,
    ]
    return "\n".join([*head, *(STAT.format(m=minute, s=10) for minute in range(3, 20)), *last]) + "\n"


def kill(stamp: str, name: str, group: str, pid: int, resident_kb: int, limit_kb: int) -> str:
    """One kill as the kernel prints it."""
    return (
        "\n".join(
            f"[{stamp}] {text}"
            for text in (
                f"{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=900",
                f"memory: usage {limit_kb}kB, limit {limit_kb}kB, failcnt 812",
                f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,mems_allowed=0,oom_memcg={group},task_memcg={group},task={name},pid={pid},uid=0",
                f"Memory cgroup out of memory: Killed process {pid} ({name}) total-vm:99000000kB, anon-rss:{resident_kb}kB, file-rss:0kB, shmem-rss:0kB",
            )
        )
        + "\n"
    )


def report(tmp_path: Path, **files: str) -> Report:
    """The report of a bundle of these files (`dmesg` is dmesg.txt)."""
    for name, text in files.items():
        (tmp_path / {"vllm": "vllm.log", "dmesg": "dmesg.txt", "app": "app.log", "pod": "pod.txt"}[name]).write_text(
            text
        )
    with oomdoc.analyze(tmp_path, SIGNS) as analysis:
        return analysis.report


@pytest.mark.parametrize(
    ("stamp", "name", "why"),
    [
        ("Sun Nov 15 03:00:01 2026", "java", "memory group of its own"),
        ("Tue Nov 24 09:10:01 2026", "java", "memory group of its own"),
        ("Tue Nov 24 08:20:01 2026", "VLLM::Worker", "before this server started"),
        ("Tue Nov 24 09:10:01 2026", "VLLM::Worker", "answered on after it"),
    ],
)
def test_a_kill_that_is_not_the_servers_changes_nothing_and_is_set_aside(
    tmp_path: Path, stamp: str, name: str, why: str
) -> None:
    told = report(tmp_path, vllm=log(), dmesg=kill(stamp, name, "/kafka", 991, 2_097_152, 4_194_304))
    assert told.verdict == "healthy"
    assert [engine.outcome for engine in told.engines] == ["served"]
    assert any(why in item.why and item.refs[0].startswith("dmesg.txt:") for item in told.set_aside)


def test_the_kill_of_its_own_worker_is_the_cause(tmp_path: Path) -> None:
    dmesg = kill("Tue Nov 24 09:20:01 2026", "VLLM::Worker_TP", "/docker/0a", 412, 60 << 20, 64 << 20)
    told = report(tmp_path, vllm=log(DIED), dmesg=dmesg)
    assert told.diagnoses[0].cause == "host-memory-exhausted" and told.verdict == "diagnosed"
    assert [engine.outcome for engine in told.engines] == ["ended"]
    assert not told.set_aside


def test_no_sentence_is_made_of_two_kills(tmp_path: Path) -> None:
    """A foreign, older kill of another size before the server's own."""
    older = kill("Tue Nov 24 03:00:01 2026", "java", "/kafka", 991, 2 << 20, 128 << 20)
    own = kill("Tue Nov 24 09:20:01 2026", "VLLM::Worker_TP", "/docker/0a", 412, 15 << 20, 16 << 20)
    alone = report(tmp_path, vllm=log(DIED), dmesg=own)
    both = report(tmp_path, vllm=log(DIED), dmesg=older + own)
    assert both.diagnoses[0].cause == alone.diagnoses[0].cause == "host-memory-exhausted"
    sentences = {item.id: item.says for item in alone.diagnoses[0].evidence}
    assert {item.id: item.says for item in both.diagnoses[0].evidence} == sentences
    assert [action.do for action in both.diagnoses[0].actions] == [action.do for action in alone.diagnoses[0].actions]


def test_of_two_kills_of_its_own_one_is_said_whole(tmp_path: Path) -> None:
    """The later one is larger, in a larger group: none of its figures may stand beside the first one's name."""
    first = kill("Tue Nov 24 09:20:01 2026", "VLLM::Worker_TP", "/docker/0a", 412, 15 << 20, 16 << 20)
    later = kill("Tue Nov 24 09:20:03 2026", "VLLM::EngineCor", "/docker/0a", 377, 40 << 20, 64 << 20)
    alone = report(tmp_path, vllm=log(DIED), dmesg=first)
    both = report(tmp_path, vllm=log(DIED), dmesg=first + later)
    said = [item.says for told in (alone, both) for item in told.diagnoses[0].evidence if "15.00 GiB" in item.says]
    assert len(said) == 2 and said[0] == said[1] and "16.00 GiB" in said[0], said
    assert not any("40.00 GiB" in item.says or "64.00 GiB" in item.says for item in both.diagnoses[0].evidence)


def test_an_error_that_was_survived_is_no_failure(tmp_path: Path) -> None:
    error = "(APIServer pid=7) ERROR 11-24 09:01:30 [serving.py:44] ValueError: the warm-up of the chat template failed"
    head, _, rest = log().partition(UP)
    assert report(tmp_path, vllm=head + error + "\n" + UP + rest).verdict == "healthy"


def test_the_same_error_at_the_end_is_one(tmp_path: Path) -> None:
    error = "ValueError: the head of the model must be divisible by 3"
    told = report(tmp_path, vllm=log("Traceback (most recent call last):", error))
    assert told.verdict != "healthy" and told.engines[0].outcome == "died"


def test_without_a_server_there_is_no_cause(tmp_path: Path) -> None:
    told = report(tmp_path, dmesg=kill("Tue Nov 24 09:10:01 2026", "thunderbird", "/user.slice", 42, 1 << 20, 2 << 20))
    assert (told.verdict, told.diagnoses) == ("no-server", ())
    assert "thunderbird" in told.set_aside[0].why


def test_the_scene_and_the_views_mean_the_same_by_another_day() -> None:
    assert SHARED["another_day"].value == ANOTHER_DAY_S


def test_names_and_places() -> None:
    assert [is_engine(name) for name in ("VLLM::EngineCor", "python3", "prometheus", None)] == [True, None, False, None]
    assert place_of_path("pods/logs/prod/llm-7d9f8c6b5-x2x4z/server-previous.log").pod == "llm-7d9f8c6b5-x2x4z"
    assert workload_of("llm-7d9f8c6b5-x2x4z") == workload_of("llm-7d9f8c6b5-abcde") == "llm"


def test_a_kill_of_nobody_lends_no_figure_to_the_servers_own(tmp_path: Path) -> None:
    """Two kills in a kernel log without a boot time: the sentence is about the server's, whole."""
    own = kill("100.000000", "VLLM::Worker", "/vllm", 41, 62_000_000, 64_000_000)
    older = (
        "[   12.000000] redis-server invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
        "[   12.000000] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/user.slice,task=redis-server,pid=7,uid=0\n"
        "[   12.000000] Out of memory: Killed process 7 (redis-server) total-vm:990000kB, anon-rss:777000kB, file-rss:0kB, shmem-rss:0kB\n"
    )
    found = report(tmp_path, vllm=log(DIED), dmesg=older + own)
    said = " ".join(piece.says for piece in found.diagnoses[0].evidence)
    assert found.diagnoses[0].cause == "host-memory-exhausted"
    assert "VLLM::Worker" in said and "redis" not in said
    assert "741.0 MiB" not in said and "758" not in said


def files(tmp_path: Path, **texts: str) -> Report:
    """The report of a bundle of these files; `__` in a name is a folder, `_dot_` the extension."""
    for name, text in texts.items():
        path = tmp_path / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with oomdoc.analyze(tmp_path, SIGNS) as analysis:
        return analysis.report


TRAINER = """\
{'loss': 2.1, 'learning_rate': 1e-05, 'epoch': 0.01}
Traceback (most recent call last):
  File "/data/finetune/run.py", line 8, in <module>
    trainer.train()
  File "/opt/lib/transformers/trainer.py", line 2101, in train
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 23.50 GiB of which 1.00 GiB is free.
"""
SHOP = """\
LAST SEEN   TYPE      REASON      OBJECT                      MESSAGE
4m          Warning   Unhealthy   pod/cart-5c6d7f8b9-abcde    Liveness probe failed: connection refused
4m          Normal    Killing     pod/cart-5c6d7f8b9-abcde    Container cart failed liveness probe, will be restarted
9m          Normal    Killing     pod/mailer-7d9f8c6b5-x2x4z  Container mailer failed liveness probe, will be restarted
"""


def test_a_trainer_beside_a_server_is_a_stranger_and_hides_no_server(tmp_path: Path) -> None:
    """Its allocator's message is set aside with the source; without a server beside it the bundle has none."""
    beside = files(tmp_path / "a", vllm_dot_log=log(), other__train_dot_log=TRAINER)
    assert beside.diagnoses[0].cause == "healthy"
    assert any("training" in aside.why for aside in beside.set_aside)
    assert files(tmp_path / "b", train_dot_log=TRAINER).verdict == "no-server"


def test_pods_of_other_programs_stand_aside_unless_they_are_named_as_a_server(tmp_path: Path) -> None:
    """Two workloads of a shop say nothing of the server; the same events of a pod that bears the server's name do."""
    other = files(tmp_path / "a", vllm_dot_log=log(), events_dot_txt=SHOP)
    assert other.diagnoses[0].cause == "healthy"
    own = SHOP.replace("cart", "x-7b-llm").split("\n9m")[0] + "\n"
    assert any(piece.id == "killed-by-probe" for each in files(tmp_path / "b", vllm_dot_log=log(), events_dot_txt=own).diagnoses for piece in each.evidence)  # fmt: skip


def test_a_failed_start_of_another_model_long_before_is_another_server(tmp_path: Path) -> None:
    """In a folder below and hours before it is set aside; side by side with the log it is a start of the same system."""
    refused = (
        "INFO 11-23 01:00:00 [api_server.py:1351] vLLM API server version 0.13.0\n"
        "INFO 11-23 01:00:01 [utils.py:233] non-default args: {'model_tag': 'm/embed-9b', 'model': 'm/embed-9b'}\n"
        "ERROR 11-23 01:00:09 [core.py:708] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.\n"
    )
    apart = files(tmp_path / "a", vllm_dot_log=log(), team__embed_dot_log=refused)
    assert apart.diagnoses[0].cause == "healthy"
    assert any("another model" in aside.why for aside in apart.set_aside)
    assert files(tmp_path / "b", vllm_dot_log=log(), embed_dot_log=refused).diagnoses[0].cause != "healthy"


@pytest.mark.parametrize(("age", "counts"), [("9d", False), ("2m", True)])
def test_an_event_of_a_node_is_as_old_as_its_description_tells(tmp_path: Path, age: str, counts: bool) -> None:
    """Nine days ago another program was ended for a full host: a server of today has nothing of it."""
    node = (
        "Name:               n7\nRoles:              <none>\nCapacity:\n  cpu:                16\n  nvidia.com/gpu:     8\n  memory:             64843312Ki\n"
        f"Events:\n  Type     Reason     Age  From     Message\n  Warning  SystemOOM  {age}   kubelet  System OOM encountered, victim process: java, pid: 77\n"
    )  # fmt: skip
    found = files(tmp_path, vllm_dot_log=log(DIED), n7_dot_txt=node)
    assert any("before it was listed" in each.why for each in found.set_aside) is not counts


@pytest.mark.parametrize(
    ("gpus", "victim", "whose"),
    [("", "java", "aside"), ("  nvidia.com/gpu:     8\n", "java", "near"), ("", "VLLM::Worker", "own")],
)
def test_a_node_without_gpus_is_not_the_servers(tmp_path: Path, gpus: str, victim: str, whose: str) -> None:
    """Conditions and events in the description of a node are that node's; a victim by the engine's name outweighs it."""
    node = (
        "Name:               n7\nRoles:              <none>\nCapacity:\n  cpu:                16\n" + gpus + "  memory:             64843312Ki\n"
        f"Events:\n  Type     Reason     Age  From     Message\n  Warning  SystemOOM  2m   kubelet  System OOM encountered, victim process: {victim}, pid: 77\n"
    )  # fmt: skip
    found = files(tmp_path, vllm_dot_log=log(DIED), n7_dot_txt=node)
    aside = [each.why for each in found.set_aside if "no GPU" in each.why]
    assert bool(aside) == (whose == "aside")
    killed = any(piece.id == "killed-for-host-memory" for piece in found.diagnoses[0].evidence)
    assert killed == (whose != "aside")


def prepared(server: str, fetched: str) -> str:
    """A pod whose `fetch` was ended for its own limit; `server` and `fetched` are the states of the two now."""
    return f"""Name:             llm-0
Namespace:        prod
Node:             gpu-a/10.3.0.4
Init Containers:
  fetch:
    Image:         tools/fetch:3
    State:          {fetched}
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Restart Count:  5
    Limits:
      memory:  2Gi
Containers:
  server:
    Image:         vllm/vllm-openai:v0.13.0
    State:          {server}
    Ready:          False
    Restart Count:  0
    Limits:
      memory:          120Gi
      nvidia.com/gpu:  1
"""


def test_what_prepares_a_pod_is_the_servers_own_while_it_waits(tmp_path: Path) -> None:
    waits = report(
        tmp_path,
        pod=prepared("Waiting\n      Reason:       PodInitializing", "Waiting\n      Reason:       CrashLoopBackOff"),
    )
    first = waits.diagnoses[0]
    assert (first.cause, first.probability > 0.7) == ("host-memory-exhausted", True)
    assert (
        first.actions[0].id == "raise-the-limit-of-what-prepares"
        and "`fetch`" in first.actions[0].do
        and "2.00 GiB" in first.actions[0].do
    )
    runs = report(tmp_path, pod=prepared("Running", "Terminated\n      Reason:       Completed"))
    assert not any(item.cause == "host-memory-exhausted" and item.probability > 0.5 for item in runs.diagnoses)


SCOPE = "/system.slice/docker-9ad04c7be113.scope"
COMPOSE = "services:\n  scribe:\n    image: vllm/vllm-openai:v0.13.0\n    mem_limit: 40g\n    command: --model m/x-7b\n  cache:\n    image: redis:7\n    mem_limit: 24g\n"
INSPECT = "$ docker inspect {of} --format '{form}'\n{said}\n"
FORMS = [
    (
        "{{.Name}} {{.State.Status}} exit={{.State.ExitCode}} oom={{.State.OOMKilled}} begin={{.State.StartedAt}} end={{.State.FinishedAt}}",
        "/scribe exited exit=137 oom=true begin=2026-11-24T08:59:41.03Z end=2026-11-24T09:19:26.44Z",
    ),
    ("{{.State.OOMKilled}} {{.State.ExitCode}}", "true 137"),
    ("{{.Name}}: code {{.State.ExitCode}}, oom {{ .State.OOMKilled }}", "/scribe: code 137, oom true"),
]


@pytest.mark.parametrize(("form", "said"), FORMS)
def test_a_killed_container_in_the_words_of_a_template(tmp_path: Path, form: str, said: str) -> None:
    told = report(tmp_path, vllm=log(), pod=INSPECT.format(of="9ad04c7be113", form=form, said=said))
    assert (told.verdict, told.diagnoses[0].cause) == ("diagnosed", "host-memory-exhausted")
    assert [engine.outcome for engine in told.engines] == ["ended"]


def test_a_neighbour_that_the_server_outlived_is_no_end_of_it(tmp_path: Path) -> None:
    form = "{{.Name}} {{.State.OOMKilled}} {{.State.ExitCode}} {{.State.FinishedAt}}"
    said = "/tiles true 137 2026-11-24T09:08:12Z"
    told = report(tmp_path, vllm=log(), pod=INSPECT.format(of="tiles", form=form, said=said))
    assert told.verdict == "healthy"
    assert any("answered on after it" in item.why for item in told.set_aside)


@pytest.mark.parametrize(
    ("beside", "stamp", "group", "limit_gib", "own"),
    [
        # by the clock of a zone of its own, seconds after the last line: alone, with the limit, with the id
        ("", "Tue Nov 24 14:49:24 2026", SCOPE, 40, True),
        (COMPOSE, "Tue Nov 24 14:49:24 2026", SCOPE, 40, True),
        (COMPOSE, "Tue Nov 24 03:19:24 2026", SCOPE, 40, True),
        ("running exit=0", "Tue Nov 24 03:19:24 2026", SCOPE, 48, True),
        ("running exit=0", "Tue Nov 24 09:21:24 2026", SCOPE, 48, True),
        # no whole zone apart, before the last line with nothing else, another limit, another service's limit, another id
        ("", "Tue Nov 24 14:37:24 2026", SCOPE, 40, False),
        ("", "Tue Nov 24 03:19:24 2026", SCOPE, 40, False),
        (COMPOSE, "Tue Nov 24 14:49:24 2026", SCOPE, 48, False),
        (COMPOSE, "Tue Nov 24 14:49:24 2026", SCOPE, 24, False),
        (COMPOSE, "Tue Nov 24 09:12:24 2026", SCOPE, 24, False),
        ("running exit=0", "Tue Nov 24 14:49:24 2026", SCOPE.replace("9ad", "7bc"), 48, False),
    ],
)
def test_whose_container_the_kernel_emptied(
    tmp_path: Path, beside: str, stamp: str, group: str, limit_gib: int, own: bool
) -> None:
    (tmp_path / "dmesg.txt").write_text(kill(stamp, "python3", group, 2210, 30 << 20, limit_gib << 20))
    (tmp_path / "vllm.log").write_text(log())
    if beside.startswith("services"):
        (tmp_path / "compose.yml").write_text(beside)
    elif beside:
        form = "{{.State.Status}} exit={{.State.ExitCode}}"
        (tmp_path / "box.txt").write_text(INSPECT.format(of="9ad04c7be113", form=form, said=beside))
    with oomdoc.analyze(tmp_path, SIGNS) as analysis:
        told = analysis.report
    cause = told.diagnoses[0].cause if told.verdict == "diagnosed" else None
    assert (told.verdict, cause) == (("diagnosed", "host-memory-exhausted") if own else ("healthy", None))
    assert any(ref.startswith("dmesg.txt:") for item in told.set_aside for ref in item.refs) is not own


@pytest.mark.parametrize(
    ("told", "own"),
    [
        ("2026-11-24T09:20:05.310Z container die 77ab01c2d3e4 (exitCode=137, image=registry/etl:2, name=nightly-etl)", False),
        ("2026-11-24T09:20:04.310Z container oom 77ab01c2d3e4 (name=nightly-etl)", False),
        # seconds later, or of a container that ended by itself
        ("2026-11-24T09:20:09.310Z container die 77ab01c2d3e4 (exitCode=137, image=registry/etl:2, name=nightly-etl)", True),
        ("2026-11-24T09:20:05.310Z container die 77ab01c2d3e4 (exitCode=0, image=registry/etl:2, name=nightly-etl)", True),
    ],
)  # fmt: skip
def test_a_kill_at_the_second_of_another_containers_end_is_that_containers(
    tmp_path: Path, told: str, own: bool
) -> None:
    beside = "2026-11-24T08:59:58.100Z container start 3f2b8ea0b9d5 (image=vllm/vllm-openai:v0.13.0, name=chat)"
    (tmp_path / "events.txt").write_text(f"{beside}\n{told}\n")
    (tmp_path / "dmesg.txt").write_text(
        kill("Tue Nov 24 09:20:04 2026", "python3", "/system.slice/docker-55.scope", 2210, 9 << 20, 9 << 20)
    )
    (tmp_path / "vllm.log").write_text(log())
    with tables(tmp_path) as analysis:
        _, rows = analysis.sql(
            "SELECT DISTINCT whose FROM main.relation WHERE of_table = 'host_event' AND source = 'dmesg.txt'"
        )
        assert rows == [("own" if own else "foreign",)]


def test_a_log_that_failed_is_not_held_against_a_server_that_is_set_aside_itself(tmp_path: Path) -> None:
    """The size of a card of another node, where another model is served, says nothing of the card that failed."""
    failed = (
        "ERROR 05-09 04:57:33 [engine.py:160] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total "
        "capacity of 15.77 GiB of which 514.19 MiB is free. Process 224134 has 15.25 GiB memory in use. Of the allocated memory 13.73 GiB is "
        "allocated by PyTorch, and 736.86 MiB is reserved by PyTorch but unallocated.\n"
    )
    other = (
        "INFO 05-08 10:00:00 [api_server.py:1896] vLLM API server version 0.8.5\n"
        "INFO 05-08 10:00:01 [utils.py:233] non-default args: {'model': 'umbra/tiny-3b'}\n"
        "INFO 05-08 10:00:20 [gpu_model_runner.py:1347] Model loading took 6.2000 GiB and 9.100000 seconds\n"
        "INFO 05-08 10:00:40 [gpu_worker.py:227] Available KV cache memory: 61.10 GiB\n"
        "INFO 05-08 10:00:55 [api_server.py:1971] Starting vLLM API server 0 on http://0.0.0.0:8000\n"
        "INFO 05-08 10:01:55 [loggers.py:257] Engine 000: Avg prompt throughput: 76.7 tokens/s, Avg generation throughput: 78.1 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.1%, Prefix cache hit rate: 3.0%\n"
    )
    (tmp_path / "nodes" / "far").mkdir(parents=True)
    (tmp_path / "vllm.log").write_text(failed, encoding="utf-8")
    (tmp_path / "nodes" / "far" / "tiny.log").write_text(other, encoding="utf-8")
    with oomdoc.analyze(tmp_path) as analysis:
        assert [each.engine for each in analysis.report.incidents] == ["vllm.log#0"]
        assert analysis.report.verdict not in ("healthy", "no-server")


FAILED_OTHERWISE = (
    "INFO 12-04 03:10:01 [api_server.py:1896] vLLM API server version 0.12.0\n"
    "INFO 12-04 03:10:02 [utils.py:233] non-default args: {'model': 'umbra/chat-14b'}\n"
    "ERROR 12-04 03:10:09 [core.py:700] EngineCore failed to start.\n"
    "ERROR 12-04 03:10:09 [core.py:700] RuntimeError: Error 803: system has unsupported display driver / cuda driver combination\n"
)


BACK_OFF = '- "12:04 Warning BackOff {} restarting failed container (CUDA out of memory while loading, image x:2.2)"'


@pytest.mark.parametrize(
    ("said", "scraped", "theirs"),
    [
        (BACK_OFF.format("pod/tiles-2"), 'pod="umbra-0"', True),
        (BACK_OFF.format("pods/tiles-2"), 'pod="umbra-0"', True),
        (BACK_OFF.format("pod/umbra-2"), 'pod="umbra-0"', False),  # a replica
        (BACK_OFF.format("the pod"), 'pod="umbra-0"', False),
        (BACK_OFF.format("https://docs.example/pod/tiles-2"), 'pod="umbra-0"', False),  # an address
        (BACK_OFF.format("pod/tiles-2"), 'job="vllm"', False),  # nobody tells whose pods are the server's
    ],
)
def test_a_failure_on_a_line_that_names_a_pod_is_that_pods(
    said: str, scraped: str, theirs: bool, tmp_path: Path
) -> None:
    (tmp_path / "m.prom").write_text(f'vllm:num_requests_running{{{scraped},engine="0"}} 4\n', encoding="utf-8")
    (tmp_path / "events.txt").write_text(f"Events of the last hour:\n{said}\n", encoding="utf-8")
    with tables(tmp_path) as analysis:
        _, rows = analysis.sql("SELECT whose FROM main.relation WHERE of_table = 'oom' AND source = 'events.txt'")
        assert ([whose for (whose,) in rows] == ["foreign"]) is theirs


@pytest.mark.parametrize(
    ("said", "past"),
    [
        ("In October the same unit failed with torch.OutOfMemoryError (Tried to allocate 270.00 MiB).", True),
        ("Im Oktober ist er mit torch.OutOfMemoryError (Tried to allocate 270.00 MiB) ausgefallen.", True),
        ("En octobre la machine est tombée avec torch.OutOfMemoryError (Tried to allocate 270.00 MiB).", True),
        ("Last week it ended with torch.OutOfMemoryError (Tried to allocate 270.00 MiB) as well.", False),  # the log may be of that week
        ("In December the same unit failed with torch.OutOfMemoryError (Tried to allocate 270.00 MiB).", False),
        ("It was set up in October. Today the unit failed with torch.OutOfMemoryError (Tried to allocate 270.00 MiB).", False),
        ("Since this morning the unit fails with torch.OutOfMemoryError (Tried to allocate 270.00 MiB).", False),
        ("The unit failed in generation with torch.OutOfMemoryError (Tried to allocate 270.00 MiB).", False),  # no gennaio
        ("It failed in decode, and in settings of old as well, with torch.OutOfMemoryError (Tried to allocate 270.00 MiB).", False),
        ("It may be that the unit failed with torch.OutOfMemoryError (Tried to allocate 270.00 MiB).", False),
    ],
)  # fmt: skip
def test_a_failure_of_another_month_is_none_of_the_days_that_the_log_tells(
    said: str, past: bool, tmp_path: Path
) -> None:
    (tmp_path / "vllm.log").write_text(FAILED_OTHERWISE, encoding="utf-8")
    (tmp_path / "mail.txt").write_text(f"Hello,\n{said}\nCan you have a look?\n", encoding="utf-8")
    with tables(tmp_path) as analysis:
        _, rows = analysis.sql("SELECT whose FROM main.relation WHERE of_table = 'oom' AND source = 'mail.txt'")
        assert ([whose for (whose,) in rows] == ["foreign"]) is past
