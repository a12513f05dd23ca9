"""Who runs the work: processes of this machine, or Ray. Both run `work.run` on the same tasks and give the same outcomes.

A worker is a process of its own with a limit on memory and on time. What kills it costs that one bundle: it is tried once
more, told as an error, and the others go on. Messages are JSON, since an outcome was made out of a stranger's bundle.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from oomdoc.errors import UsageError
from oomdoc.units import MIB, show_bytes, show_seconds

ENGINES = ("embedded", "ray")
_BUNDLES_PER_WORKER = 500  # then a fresh process: what libraries hold on to is given back
_TRIES = 2  # of a bundle whose worker died: the machine may have been short of memory, not the bundle
_POLL_S = 0.5


@dataclass(frozen=True)
class Limits:
    """What one worker may take for one bundle."""

    seconds: float = 600.0
    memory_bytes: int = 1024 * MIB


Task = Mapping[str, Any]
Outcome = dict[str, Any]


def embedded(tasks: Iterator[Task], limits: Limits, jobs: int, scratch: Path) -> Iterator[Outcome]:
    """Outcomes in the order in which they are done, from `jobs` processes of this machine."""
    workers = [Worker(limits, scratch / f"w{number}") for number in range(jobs)]
    waiting = tasks
    again: list[Task] = []
    try:
        idle, busy = list(workers), []
        while True:
            while idle:
                task = again.pop() if again else next(waiting, None)
                if task is None:
                    break
                worker = idle.pop()
                worker.start(task)
                busy.append(worker)
            if not busy:
                return
            for worker in wait_for(busy):
                busy.remove(worker)
                idle.append(worker)
                task, outcome = worker.result()
                tried = int(task.get("tried", 0)) + 1
                if outcome["status"] == "crashed" and tried < _TRIES:
                    again.append({**task, "tried": tried})
                else:
                    yield outcome
    finally:
        for worker in workers:
            worker.stop()


def wait_for(busy: list[Worker]) -> list[Worker]:
    """The workers that are done, dead, or out of time; waits until there is one."""
    while True:
        left_s = min(worker.left_s() for worker in busy)
        ready = wait([worker.channel for worker in busy], max(0.0, min(_POLL_S, left_s)))
        done = [worker for worker in busy if worker.channel in ready or worker.left_s() < 0]
        if done:
            return done


class Worker:
    """A process that does one task at a time, and is replaced when it dies or takes too long."""

    def __init__(self, limits: Limits, scratch: Path) -> None:
        self._limits = limits
        self._scratch = scratch
        self._process: Any = None
        self._task: Task = {}
        self._done = 0
        self._deadline = 0.0
        self.channel: Connection

    def start(self, task: Task) -> None:
        """Hand over a task."""
        if self._process is None:
            self._open()
        self._task = task
        self._deadline = time.monotonic() + self._limits.seconds
        with suppress(OSError):  # it died while it was idle: `result` tells
            self.channel.send_bytes(json.dumps(task).encode())

    def left_s(self) -> float:
        """What its task has left of its time; negative where it has had it."""
        return self._deadline - time.monotonic()

    def result(self) -> tuple[Task, Outcome]:
        """The task and what came of it; the process is replaced where it died or was too slow."""
        key = self._task["bundle"]
        if not self.channel.poll():
            self.stop()
            return self._task, {
                "bundle": key,
                "status": "timeout",
                "why": f"it took longer than {show_seconds(self._limits.seconds)}",
            }
        try:
            outcome: Outcome = json.loads(self.channel.recv_bytes())
        except (EOFError, OSError):
            self._process.join(5)
            code = self._process.exitcode
            self.stop()
            return self._task, {"bundle": key, "status": "crashed", "why": f"the worker died ({_death(code)})"}
        self._done += 1
        if outcome["status"] == "memory":
            outcome["why"] = f"it needs more than {show_bytes(self._limits.memory_bytes)} of memory"
        if outcome["status"] == "memory" or self._done >= _BUNDLES_PER_WORKER:
            self.stop()
        return self._task, outcome

    def stop(self) -> None:
        """End the process and remove what it left."""
        if self._process is not None:
            self.channel.close()
            self._process.kill()
            self._process.join()
            self._process.close()
            self._process = None
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _open(self) -> None:
        self._scratch.mkdir(parents=True, exist_ok=True)
        here, there = _context().Pipe()
        process = _context().Process(
            target=_serve,
            args=(there, self._limits.memory_bytes, str(self._scratch), dict(os.environ)),
            name="oomdoc-worker",
            daemon=False,
        )
        process.start()
        self._process = process
        there.close()
        self.channel = here
        self._done = 0


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"{signal.Signals(-code).name}{', perhaps short of memory' if -code == signal.SIGKILL else ''}"
    return f"exit status {code}"


def _context() -> Any:
    """A way to start processes that never copies one with threads: a server of its own where there is one."""
    # the server listens in the folder for temporary files, on a socket whose path has 107 bytes at most (unix(7))
    room = 107 - len(os.fsencode(tempfile.gettempdir())) - len("/pymp-12345678/listener-12345678")
    if "forkserver" not in multiprocessing.get_all_start_methods() or room < 0:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["oomdoc.sweep.work"])
    return context


def _serve(channel: Connection, memory_bytes: int, scratch: str, environment: Mapping[str, str]) -> None:
    """The life of a worker: tasks in, outcomes out, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the sweep, which ends its workers
    os.environ.update(environment)  # the server of processes has that of its own start: credentials may be newer
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    tempfile.tempdir = scratch
    _limit_memory(memory_bytes)
    from oomdoc.sweep import work

    while True:
        try:
            task = channel.recv_bytes()
            channel.send_bytes(work.run(task))
        except (EOFError, OSError):
            return


def _limit_memory(memory_bytes: int) -> None:
    """Bound what this process may hold, where the system can: data, not address space, of which libraries reserve much."""
    if not sys.platform.startswith("linux"):
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


# ---- Ray


def on_ray(tasks: Iterator[Task], limits: Limits, jobs: int | None, scratch: Path) -> Iterator[Outcome]:
    """The same on Ray: the cluster of RAY_ADDRESS, else one of this machine that starts and ends with the sweep.

    Ray places the tasks and repeats those whose node was lost; never more than twice its cores are on their way, so that
    neither the tasks nor the outcomes of a large fleet pile up. Each task runs in a `Worker`, as without Ray.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise UsageError("--engine ray needs Ray, which is not installed", "pip install 'oomdoc[ray]'") from None
    mine = not ray.is_initialized()
    if mine:
        address = os.environ.get("RAY_ADDRESS")
        own: dict[str, Any] = {} if address else {"num_cpus": jobs, "include_dashboard": False}
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    try:
        cluster: Any = ray
        remote = ray.remote(num_cpus=1, max_retries=3)(_on_node)
        most = max(2, 2 * int(jobs or cluster.cluster_resources().get("CPU", 1)))
        flying: dict[Any, str] = {}
        task = next(tasks, None)
        while task is not None or flying:
            while task is not None and len(flying) < most:
                flying[remote.remote(json.dumps(task), limits, str(scratch))] = task["bundle"]
                task = next(tasks, None)
            done, _ = ray.wait(list(flying), num_returns=1)
            for ready in done:
                bundle = flying.pop(ready)
                try:
                    yield json.loads(ray.get(ready))
                except ray.exceptions.RayError as problem:
                    why = f"Ray lost it: {type(problem).__name__}"
                    yield {"bundle": bundle, "status": "crashed", "why": why}
    finally:
        if mine:
            ray.shutdown()


_ON_THIS_NODE: dict[Limits, Worker] = {}


def _on_node(text: str, limits: Limits, scratch: str) -> str:
    """One task in a worker of this Ray process, kept for the next task."""
    task = json.loads(text)
    here = scratch if Path(scratch).is_dir() else None  # on the sweep's own machine, where it is removed in the end
    if limits not in _ON_THIS_NODE:
        _ON_THIS_NODE[limits] = Worker(limits, Path(tempfile.mkdtemp(prefix="oomdoc-ray-", dir=here)))
    worker = _ON_THIS_NODE[limits]
    outcome: Outcome = {}
    for _ in range(_TRIES):
        worker.start(task)
        wait_for([worker])
        _, outcome = worker.result()
        if outcome["status"] != "crashed":
            break
    return json.dumps(outcome)
