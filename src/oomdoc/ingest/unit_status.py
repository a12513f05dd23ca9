"""What the service manager says of a unit that the kernel ended for want of memory: `systemctl status`, `systemctl show`.

    × llm.service - vLLM                                                   Id=llm.service
         Active: failed (Result: oom-kill) since Thu 2026-09-10 06:41:58   Result=oom-kill
       Main PID: 40117 (code=killed, signal=KILL)                          MainPID=0
         Memory: 48.0G (peak: 48.0G swap: 0B swap peak: 0B)                MemoryMax=51539607552

A unit whose main process ended in whatever way is named (`described`): the line that tells the status does not say whose it is.

`systemctl show` tells the last end of the main process as two numbers: a `process_exit`.

`nomad alloc status` tells of each task of an allocation whether it runs, what it holds of what it may hold, its devices, and its last end:

    Task "server" (driver: docker) is "running"
    Task Resources:
    CPU          Memory            Disk     Addresses
    1890/64000   178 GiB/200 GiB   300 MiB  http: 10.9.0.19:8000
    2026-07-15T02:48:49Z  Terminated  Exit Code: 1, Exit Message: "...", OOM Killed: false

A task is a container. One row of `host_event` for each that was ended for memory: whose it was by the unit's name, or by the program that it runs where that is a server;
the most that it held; the limit that stands in it or in a drop-in of the same text. A unit that held as much as its limit was ended for
that limit (`cgroup-oom-kill`); of another the text does not say for which (`oom-kill`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Rows
from oomdoc.ingest.prompts import typed
from oomdoc.regexes import regex
from oomdoc.units import parse_size, parse_time

TELLING = regex(
    rb"(?m)\(Result: oom-kill\)|^Result=oom-kill\b|^\s*Main PID: \d{1,9} \(code=|^ExecMainCode=[123]\b|^Task \"[\w.-]{1,80}\" .{0,60}is \""
)
"""Whether a text holds anything of this kind: one search for each short text."""

_REACHED = 0.98
"""Of its limit: a group is ended when a page more does not fit, and figures are printed to a tenth of a GiB."""
_HEAD = regex(
    r"\s*[●×○↻✗*x] (?P<unit>[\w@.:\\-]{1,120})\.(?:service|scope|slice)\b|Id=(?P<id>[\w@.:\\-]{1,120})\.(?:service|scope)\s*$"
)
_ENDED = regex(r"\s*Active: failed \(Result: oom-kill\)|Result=oom-kill\s*$")
_PID = regex(r"\s*(?:Main PID|Process): (?P<pid>\d{1,9})\b|(?:ExecMainPID|MainPID)=(?P<pid2>[1-9]\d{0,8})\s*$")
_CODE = regex(r"ExecMainCode=(?P<code>[0-3])\s*$")
_STATUS = regex(r"ExecMainStatus=(?P<status>\d{1,3})\s*$")
_EXITED, _SIGNALLED = 1, (2, 3)
"""`CLD_EXITED`, `CLD_KILLED` and `CLD_DUMPED` of waitid(2), which `systemctl show` prints as numbers."""
_PEAK = regex(r"\s*Memory: .{0,80}?\bpeak: (?P<size>[\d.]{1,12}[KMGT]?)\b|MemoryPeak=(?P<bytes>\d{1,15})\s*$")
_MAX = regex(r"\s*Memory: .{0,80}?\bmax: (?P<size>[\d.]{1,12}[KMGT]?)\b|\s*MemoryMax=(?P<size2>[\d.]{1,15}[KMGT]?)\s*$")
_SERVER = regex(r".*\b(?P<program>vllm|sglang|text-generation-launcher|llama-server|lmdeploy|trtllm-serve)\b", re.I)


_OPTIONS = regex(r"ExecStart=.{0,1500}--(?:max-model-len|tensor-parallel-size|gpu-memory-utilization|max-num-seqs)\b")
"""A unit whose program is a script, and whose arguments are an engine's."""


_TASK = regex(r"Task \"(?P<name>[\w.-]{1,80})\" .{0,60}?is \"(?P<state>\w{3,10})\"")
_TOLD = regex(
    r"Started At += (?P<since>\S{19,30})|Total Restarts += (?P<times>\d{1,6})|[\d/]{3,20}(?: MHz)? +[\d.]{1,8} [KMGT]iB/(?P<limit>[\d.]{1,8} [KMGT]iB)"
    r"|(?P<device>nvidia/gpu/)|(?P<ended>\d{4}-\S{15,26}) +Terminated +Exit Code: (?P<code>\d{1,3})(?P<why>.*)"
)
_FOR_MEMORY = regex(r"OOM Killed(?:: true|\")")


def _task(task: dict[str, Any], line: str) -> None:
    """What a line of `nomad alloc status` says of the task that is named above it; the last end stands first."""
    told = _TOLD.match(line.strip())
    if told is None:
        return
    if told["since"]:
        task["started_t"] = parse_time(told["since"])
    elif told["times"]:
        task["restarts"] = int(told["times"])
    elif told["limit"]:
        task.setdefault("memory_limit_bytes", parse_size(told["limit"], binary=True))
    elif told["device"]:
        task["gpus"] = task.get("gpus", 0) + 1
    elif "exit_code" not in task:
        code = int(told["code"])
        why = "OOMKilled" if _FOR_MEMORY.search(told["why"]) else "Error" if code else "Completed"
        task |= {"exit_code": code, "ended_t": parse_time(told["ended"]), "last_reason": why}


def _bytes(text: str) -> int | None:
    return parse_size(text + ("iB" if text[-1:].isalpha() else " B"), binary=True)


def read(data: bytes) -> Iterator[Batch]:
    """The units that were ended so; the first line has number 1."""
    found: list[tuple[int, dict[str, Any]]] = []
    exits: list[tuple[int, int, dict[str, Any]]] = []
    tasks: list[tuple[int, dict[str, Any]]] = []
    unit: dict[str, Any] = {}
    limit: int | None = None
    task: dict[str, Any] | None = None
    rows = Rows()
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if len(line) > 2000:
            continue
        if named := _TASK.match(line):
            task = {"state": named["state"].replace("dead", "terminated").capitalize(), "name": named["name"]}
            tasks.append((number, task))
        elif task is not None and typed(line) is None:
            _task(task, line)
        else:
            task = None  # another command was typed
        if most := _MAX.match(line):
            size = _bytes(most["size"] or most["size2"])
            unit["limit"] = size
            limit = limit or size
            if size:
                rows.add("note", number, topic="container-limit", value=float(size), text=line.strip()[:300])
        if head := _HEAD.match(line):
            unit = {
                "name": head["unit"] or head["id"],
                "limit": unit.get("limit") if head["id"] else None,
                "line": number,
            }
        elif typed(line) is not None:
            unit = {}
        elif _ENDED.match(line):
            found.append((number, unit))
            unit["text"] = line.strip()
        elif pid := _PID.match(line):
            if "(code=" in line and (begun := unit.pop("line", None)):
                rows.add("described", begun, kind="unit", name=unit["name"])
            unit.setdefault("pid", int(pid["pid"] or pid["pid2"]))
        if code := _CODE.match(line):
            unit["code"] = int(code["code"])
        elif (status := _STATUS.match(line)) and int(status["status"]):
            signalled = unit.get("code") in _SIGNALLED
            if signalled or unit.get("code") == _EXITED:
                exits.append((number, int(status["status"]) * (-1 if signalled else 1), unit))
        if peak := _PEAK.match(line):
            unit["peak"] = _bytes(peak["size"] or peak["bytes"])
        if program := _SERVER.match(line):
            unit.setdefault("program", program["program"].lower())
        elif _OPTIONS.search(line):
            unit.setdefault("program", "vllm")
    for number, one in tasks:
        rows.add("container", number, **one)
    for number, status_code, one in exits:
        rows.add("process_exit", number, name=one.get("program") or one.get("name"), exit_code=status_code)
    for number, one in found:
        most_bytes = one.get("limit") or limit
        peak_bytes = one.get("peak")
        full = bool(most_bytes and peak_bytes and peak_bytes >= _REACHED * most_bytes)
        rows.add(
            "host_event", number, t=parse_time(one["text"]), kind="cgroup-oom-kill" if full else "oom-kill", process=one.get("program") or one.get("name"),
            pid=one.get("pid"), bytes=peak_bytes, limit_bytes=most_bytes, text=one["text"][:300],
        )  # fmt: skip
    yield from rows.take()
