"""`nvidia-smi -q`, as text and as XML: sections by indent or by tag, a device after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oomdoc.ingest.nvidia_smi import cells as reads
from oomdoc.ingest.nvidia_smi.findings import MIG, Findings
from oomdoc.intake.cells import date
from oomdoc.regexes import regex

_PAIR = regex(r"(\s*)((?:[^:\s][^:]*?)?)\s*:\s(.*)")
_XML = regex(r"\s*<(/?)(\w+)(?: id=\"([^\"]*)\")?>(?:([^<]*)</\w+>)?\s*")
_XML_NAMES = {"pid": "process id", "process name": "name", "used memory": "used gpu memory"}


@dataclass
class Open:
    """Where a `-q` listing stands: open sections by indent, and what the device, slice and process at hand have shown."""

    sections: list[tuple[int, str]] = field(default_factory=list)
    gpu: int | None = None
    name: str | None = None
    bus_id: str | None = None
    device: dict[str, Any] = field(default_factory=dict)
    slice: dict[str, Any] = field(default_factory=dict)
    process: dict[str, Any] = field(default_factory=dict)


class Query:
    """The listing of one source. `open` is where it stands, None outside of one."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self.open: Open | None = None

    def add(self, line: int, text: str) -> None:
        """A line of the text form."""
        query = self.open
        assert query is not None
        pair = _PAIR.fullmatch(text + " " if text.endswith(":") else text)
        indent = len(text) - len(text.lstrip())
        name = (pair[2] if pair else text).strip().lower()
        if not pair and text.startswith("GPU "):
            self._new_device(text[4:].strip())
            return
        while query.sections and query.sections[-1][0] >= indent:
            query.sections.pop()
        if pair:
            self._value(line, name, pair[3].strip())
        else:
            self._section(name)
            query.sections.append((indent, name))

    def xml(self, line: int, text: str) -> None:
        """A line of the XML form."""
        match = _XML.fullmatch(text)
        if not match:
            return
        if match[2] == "nvidia_smi_log" and not match[1]:
            self.finish()
            self.open = Open()
        query = self.open
        if query is None:
            return
        name = match[2].replace("_", " ")
        if match[4] is not None:
            self._value(line, _XML_NAMES.get(name, name), match[4].strip())
        elif match[1]:
            if query.sections:
                query.sections.pop()
        elif name == "gpu" and match[3]:
            self._new_device(match[3])
        else:
            self._section(name)
            query.sections.append((0, name))

    def _new_device(self, identity: str) -> None:
        self.finish()
        self.open = Open(gpu=self._found.index(identity), bus_id=identity)

    def _section(self, name: str) -> None:
        """A section begins; that of a slice or process ends the one before."""
        assert self.open is not None
        if name in ("mig device", "processes", "process info"):
            self._finish_slice()
            self._finish_process()

    def _value(self, line: int, name: str, value: str) -> None:
        query = self.open
        assert query is not None
        if name == "timestamp":
            self._found.dated(date(value))
            return
        section = query.sections[-1][1] if query.sections else ""
        sliced = any(entry == "mig device" for _, entry in query.sections)
        try:
            if section == "fb memory usage" and name in ("total", "used"):
                target = query.slice if sliced else query.device
                target[name], target["line"] = reads.memory(value), line
            elif section == "utilization" and name in ("gpu", "gpu util", "memory", "memory util") and not sliced:
                query.device["memory_util" if name.startswith("memory") else "gpu_util"] = reads.share(value)
                query.device.setdefault("line", line)
            elif name in ("gpu instance id", "compute instance id") and sliced and not query.process:
                query.slice["key"], query.slice["line"] = f"{query.slice.get('key', '')}/{value[:20]}", line
            elif name == "product name":
                query.name = None if reads.null(value) else value
            elif name == "process id":
                self._finish_process()
                query.process = {"line": line, "pid": reads.whole(value)}
            elif query.process and name in ("type", "name", "used gpu memory"):
                known: Any = value or None
                if name == "used gpu memory":
                    known = reads.memory(value) if reads.MEMORY.fullmatch(value) else None
                query.process[name] = known
        except reads.UnreadableError:
            self._found.rows.problem(line, f"no value of {name}: {value[:60]}", value)

    def _finish_slice(self) -> None:
        query = self.open
        if query and query.slice:
            slice_, query.slice = query.slice, {}
            key = slice_.get("key") or str(slice_["line"])
            self._found.device(slice_["line"], query.gpu, query.name, slice_.get("total"), MIG, key, slice_.get("used"))

    def _finish_process(self) -> None:
        query = self.open
        if query and query.process:
            process, query.process = query.process, {}
            told = (process.get(name) for name in ("pid", "type", "name", "used gpu memory"))
            self._found.process(process["line"], self._found.t, query.gpu, *told)

    def finish(self) -> None:
        """A device of a `-q` listing is complete."""
        query = self.open
        if query is None:
            return
        self._finish_slice()
        self._finish_process()
        device, query.device = query.device, {}
        if device:
            self._found.device(device["line"], query.gpu, query.name, device.get("total"), bus_id=query.bus_id)
            told = (device.get(name) for name in ("used", "total", "gpu_util", "memory_util"))
            self._found.samples.append((device["line"], self._found.t, query.gpu, *told))
