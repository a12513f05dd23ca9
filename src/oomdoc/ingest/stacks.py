"""Stacks of a running process, as `py-spy dump` and Python's faulthandler print them: in what each main thread waits.

    Process 91801: VLLM::Worker_PP1                         Timeout (0:00:30)!
    Thread 91801 (active): "MainThread"                     Thread 0x00007f2a (most recent call first):
        recv (torch/distributed/distributed_c10d.py:2410)     File "/x/threading.py", line 324 in wait

People take stacks of a server that does nothing more, so a main thread that waits for others, for a device or for a lock is a row of
`log_error` of the kind `hang`; one that waits for work, as idle workers do, is none. Which wait it is, the innermost calls say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import TEXT_CAP, Rows
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

ANCHORS = (b"most recent call first", b"MainThread")  # the second in quotes or brackets
_PROCESS = regex(r"\s*Process (?P<pid>\d{1,9}): (?P<name>\S.{0,120})")
_THREAD = regex(r"\s*(?:Current t|T)hread (?P<id>0x[0-9a-f]{1,16}|\d{1,9})\b(?P<rest>.*)")
_SPIED = regex(r"\s+(?P<call>[\w<>.: ~]{1,120}) \((?P<place>[\w./<>+-]{1,300}(?::\d{1,9})?)\)\s*$")
_FAULT = regex(r"\s+File \"(?P<place>[^\"\n]{1,300})\", line (?P<line>\d{1,9}) in (?P<call>[\w<>.]{1,120})\s*$")
_LINE_CAP = 600
_DEPTH = 8
"""Innermost calls that tell the wait: above them stand the engine's own loops, which are in every stack."""

_FOR_WORK = regex(
    r"\b(?:worker_busy_loop|_process_input_queue|process_input_sockets|run_forever|serve_forever|_run_once|select|epoll_wait|kqueue)\b"
)
_WAITS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("for an answer of a worker", regex(r"\b(?:get_response|collective_rpc|_wait_for_response|wait_for_response|ray\.get|get_objects)\b")),
    ("for the other ranks, in a collective", regex(r"(?i)\b(?:all_?reduce|all_?gather\w*|all_?to_?all\w*|reduce_scatter\w*|broadcast\w*|barrier|recv|irecv|send|isend|recv_\w+|send_\w+|nccl\w+|hccl\w+|rccl\w+|ProcessGroup\w*)\b.*(?:distributed|nccl|hccl|parallel_state|c10d|communicat|pynccl)")),
    ("for the device", regex(r"(?i)\b(?:\w*synchronize\w*|_local_scalar_dense|cu(?:da)?(?:Stream|Event|Ctx|Device)\w*|hip(?:Stream|Event|Device)\w*|aclrtSynchronize\w*|item|to_cpu)\b")),
    ("for a lock", regex(r"(?i)\b(?:acquire|__enter__|futex\w*|lock\w*|semaphore\w*|wait_for_tstate_lock|pthread_\w*(?:lock|wait)\w*)\b.*(?:threading|lock|futex|sem|mutex)|\bacquire\b")),
)  # fmt: skip


class Stacks:
    """Gathers the main threads of the dumps in one source."""

    def __init__(self) -> None:
        self._rows = Rows()
        self._process: tuple[str, int] | None = None
        self._line = 0
        self._calls: list[str] | None = None

    def chunk(self, chunk: Chunk, named: bool = True) -> None:
        """Read a chunk; `named`: whether one of `ANCHORS` is in it, else it is read only where a stack goes on."""
        if self._calls is None and not named:
            return
        for number, line in chunk.lines(_LINE_CAP):
            self._read(number, line)

    def take(self) -> Iterator[Batch]:
        """The rows."""
        self._close()
        yield from self._rows.take()

    def _read(self, number: int, line: str) -> None:
        if process := _PROCESS.match(line):
            self._close()
            self._process = process["name"].strip(), int(process["pid"])
        elif thread := _THREAD.match(line):
            self._close()
            rest = thread["rest"]
            # faulthandler prints the main thread last and names none; py-spy names it
            if "MainThread" in rest or ("most recent call first" in rest and "[" not in rest):
                self._line, self._calls = number, []
        elif self._calls is not None:
            call = _SPIED.match(line) or _FAULT.match(line)
            if call is None:
                self._close()
            elif len(self._calls) < _DEPTH:
                self._calls.append(f"{call['call'].strip()} ({call['place']})")

    def _close(self) -> None:
        calls, self._calls = self._calls, None
        if not calls:
            return
        wait, told = next(((name, call) for name, words in _WAITS for call in calls if words.search(call)), ("", ""))
        if not wait or (wait == "for a lock" and any(_FOR_WORK.search(call) for call in calls)):
            return
        name, pid = self._process or (None, None)
        text = f"{name or 'the main thread'} waits {wait}: {told}"
        self._rows.add("log_error", self._line, kind="hang", text=text[:TEXT_CAP], process=name, pid=pid)
