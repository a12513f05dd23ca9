"""What commands were answered that print a bare value: the question says what the value is.

    $ kubectl get pod engine-0 -o jsonpath='{.status.containerStatuses[0].lastState}'
    {"terminated":{"exitCode":137,"reason":"OOMKilled"}}
    $ docker inspect -f '{{.State.OOMKilled}} {{.State.ExitCode}}' engine
    true 137
    $ docker inspect --format '{{.Name}} exit={{.State.ExitCode}} oom={{.State.OOMKilled}}' 4f1e90b2c7aa
    /engine exit=137 oom=true
    $ cat /sys/fs/cgroup/memory.max
    34359738368
    $ kubectl get pod engine-0 -o json | jq '.status.containerStatuses[0].restartCount, .spec.nodeName'
    6
    "node-3"
    $ kubectl get pods -o custom-columns=POD:.metadata.name,RC:.status.containerStatuses[*].restartCount
    POD        RC
    engine-0   6,0
    $ nvidia-smi --query-gpu=memory.used,memory.total --format=csv,noheader
    71012 MiB, 81559 MiB
    $ du -sh /models/chat-70b
    132G    /models/chat-70b
    $ kubectl describe node spark-2 | grep memory
      memory:  125483220Ki

Answers about one object are put together to that object, as far as it was asked about, and read as such.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from oomdoc.evidence.tables import Batch
from oomdoc.ingest import group_counters, nvidia_smi
from oomdoc.ingest.base import Head, Rows
from oomdoc.ingest.host_events.machine import booted
from oomdoc.ingest.kubernetes_objects import Objects
from oomdoc.ingest.prompts import typed
from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import parse_size

_KINDS = {word: kind for kind, words in read("names")["resources"].items() for word in words.split()}
_DOCKER = frozenset(("docker", "podman", "nerdctl"))
_STEP = regex(
    r"\.?(?P<name>[A-Za-z_][\w-]*)|\[(?P<index>\d{1,4}|\*)\]|\[\?\(@\.(?P<key>\w+)\s*==\s*\"?'?(?P<value>[\w./-]+)'?\"?\)\]|\['(?P<quoted>[^']{1,80})'\]"
)
_JSONPATH = regex(r"\{\s*[$@]?(?P<path>\.[^{}]*)\}")
_ACTION = regex(r"\{\{-?\s*(?:json\s+)?(?P<path>\.[\w.]+)\s*-?\}\}|\{\{[^{}]*\}\}")
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*(?: [+-]\d{4}(?: \w{1,5})?)?"
_SHAPES = (
    (regex(r"\.(?:OOMKilled|OomKilled|Running|Dead|Paused|Restarting)$"), r"true|false"),
    (regex(r"\.(?:ExitCode|Pid|RestartCount|Memory|MemorySwap|ShmSize)$"), r"-?\d{1,18}"),
    (regex(r"\.(?:StartedAt|FinishedAt|Created)$"), _STAMP),
    (regex(r"\.(?:Name|Id|ID|Image|ImageName|Status)$"), r"\S+"),
)
"""What stands where a Go template names a part of a container; other parts are any text."""
_ACTIONS = 24
_ID = regex(r"[0-9a-f]{12,64}")
_PATH = regex(r"(?:\.[A-Za-z_][\w-]*|\[\d{1,4}\])+")
_MEMORY = regex(r"\s*memory:?\s+(?P<size>\d{1,15}(?:\.\d{1,3})?(?:[KMGT]i?)?)\s*$")
_SUM = regex(r"\s*(?P<size>\d{1,9}(?:\.\d{1,3})? ?[KMGT](?:i?B)?)(?:\s+(?:total|\S*/\S*))?\s*$")
_WEIGHTS = regex(r"(?i)/.*(?:models?|weights|checkpoints?|gguf|safetensors|snapshots|hub)\b|\.(?:gguf|safetensors)\b")
_VALUE_OPTIONS = frozenset(("-n", "--namespace", "-o", "--output", "-l", "--selector", "-c", "--container", "--context", "--field-selector", "--sort-by"))  # fmt: skip
_VALUE_LINES = 40  # a longer output is no value


class _Placed(dict[str, Any]):
    """A mapping that knows the line in which it was printed."""

    line = 0


class Answers:
    """The answers in a shell session; `read_lines` are the lines that `read` has understood."""

    def __init__(self, lines: Sequence[str], known: set[int]) -> None:
        self.read_lines: set[int] = set()
        self._rows = Rows()
        self._objects: dict[tuple[str, str], _Placed] = {}
        self._files: dict[int, str] = {}
        """Counter files of a memory group that were shown, by line: the path in that of the command."""
        self._queries: list[dict[int, str]] = []
        """Queries of the devices without a header, by line: the header in that of the command."""
        self._lines = lines
        at = 0
        while at < len(lines):
            command = typed(lines[at])
            at += 1
            if command is None:
                continue
            begin = at
            while command.endswith("\\") and at < len(lines):  # the command goes on in the next line
                command = command[:-1] + lines[at].strip()
                at, begin = at + 1, at + 1
            while at < len(lines) and typed(lines[at]) is None:
                at += 1
            output = [(number, line) for number, line in enumerate(lines[begin:at], begin + 1) if line.strip()]
            read = [number in known for number, _ in output]
            # lines of it may have been taken for something else, but rows of a query of which all are read
            told = any(read) and ((all(read) and "--query-gpu" in command) or not _inspects(command))
            if output and len(output) <= _VALUE_LINES and not told:
                self._answer(command, begin, output)

    def read(self) -> Iterator[Batch]:
        """The objects that were asked about, as far as they were."""
        reader = Objects(self._rows, "\n".join(self._lines))
        for found in self._objects.values():
            if found.line:  # something of it was understood
                reader.take(found)
        yield from self._rows.take()
        for query in self._queries:
            told = "\n".join(query.get(number, "") for number in range(1, max(query) + 1)).encode()
            yield from nvidia_smi.read("", [Chunk(told, 1, True)])
        data = "\n".join(self._files.get(number, "") for number in range(1, len(self._lines) + 1)).encode()
        if self._files and group_counters.matches(Head("", data)):
            self.read_lines |= self._files.keys()
            yield from group_counters.read("", [Chunk(data, 1, True)])

    def _answer(self, command: str, line: int, output: Sequence[tuple[int, str]]) -> None:
        try:
            words = shlex.split(command.partition(" | ")[0])
        except ValueError:
            return
        words = [word for word in words if word not in ("sudo", "watch")]
        if not words:
            return
        program = words[0].rpartition("/")[2]
        if program in ("kubectl", "oc", "k") and "describe" in words[:4] and "Node" in map(_KINDS.get, words):
            self._node(output)
        elif program in ("du", "ls", "stat", "find"):
            self._files_sum(words, output)
        elif program in ("kubectl", "oc", "k") and "get" in words[:4]:
            self._kubectl(words, output, command.partition(" | ")[2])
        elif program in _DOCKER and "inspect" in words[:3]:
            self._docker(words, output)
        elif program == "nvidia-smi":
            self._devices(words, line, output)
        elif words == ["uptime", "-s"] and (t := booted(output[0][1].strip())) is not None:
            self._rows.add("note", output[0][0], topic="boot-time", value=float(t), text=output[0][1].strip())
            self.read_lines.add(output[0][0])
        elif len(words) > 1 and words[-2] == "cat" and words[-1].rpartition("/")[2].startswith("memory."):
            self._files |= {line: words[-1], **dict(output)}

    def _kubectl(self, words: Sequence[str], output: Sequence[tuple[int, str]], behind: str) -> None:
        asked, cut = _after(words, ("-o", "--output"), "jsonpath="), _cut(behind)
        if asked is None:
            asked = "json" if cut and _after(words, ("-o", "--output"), "") == "json" else None
        columns = _after(words, ("-o", "--output"), "custom-columns=")
        if asked is None and columns is None:
            return
        plain = _plain_words(words[words.index("get") + 1 :])
        resource, _, name = (plain[0] if plain else "").partition("/")
        name = name or (plain[1] if len(plain) > 1 and plain[1] != asked else "")
        kind = _KINDS.get(resource.lower())
        if kind is None:
            return
        if asked is None:
            self._columns(kind, columns or "", output)
            return
        target = self._object(kind, "" if set(name) <= {".", "…"} else name)
        target.setdefault("kind", kind)
        if name and not set(name) <= {".", "…"}:
            _mapping_of(target, "metadata")["name"] = name
        if asked == "json":
            self._put_values(target, cut, output)
        else:
            self._put(target, [match["path"] for match in _JSONPATH.finditer(asked)], output)

    def _columns(self, kind: str, asked: str, output: Sequence[tuple[int, str]]) -> None:
        """A table whose columns were asked for by paths: each row is an object. Several values in a cell are of its containers, in
        their order; where some have none, of those that restarted, if there are as many."""
        paths = [column.partition(":")[2] for column in asked.split(",")]
        starts = [word.start() for word in re.finditer(r"\S+", output[0][1])]
        for number, line in output[1:] if len(starts) == len(paths) else ():
            if any(line[begin - 1 : begin].strip() for begin in starts[1:]):
                break  # a word stands across two columns: no row of the table any more
            cells = (line[begin:end].strip() for begin, end in zip(starts, (*starts[1:], None), strict=True))
            told = {path: cell.split(",") for path, cell in zip(paths, cells, strict=True) if cell not in ("", "<none>")}  # fmt: skip
            width = max((len(values) for path, values in told.items() if "[*]" in path), default=0)
            again = [at for path, values in told.items() if path.endswith("restartCount") for at, value in enumerate(values) if value != "0"]  # fmt: skip
            target = self._object(kind, ",".join(told.get(".metadata.name", [str(number)])))
            target.setdefault("kind", kind)
            for path, values in told.items():
                some = again if "containerStatuses" in path and len(values) == len(again) else ()
                places = range(width) if len(values) == width else some
                several = [(path.replace("[*]", f"[{at}]"), _plain(value)) for at, value in zip(places, values, strict=False)]  # fmt: skip
                self._fill(target, several if "[*]" in path else [(path, _plain(",".join(values)))], [(number, line)])

    def _node(self, output: Sequence[tuple[int, str]]) -> None:
        """What is left of a description of a node: its memory; the smaller of two is what pods may have of it."""
        sizes = [(size, number, line) for number, line in output if (found := _MEMORY.match(line)) and (size := parse_size(found["size"]))]  # fmt: skip
        if sizes:
            size, number, line = max(sizes)
            self._rows.add("note", number, topic="host-size", value=float(size), text=line.strip())
            self.read_lines.add(number)

    def _files_sum(self, words: Sequence[str], output: Sequence[tuple[int, str]]) -> None:
        """The size of a folder of weights, as `du -sh` or a sum over `ls -l` gives it."""
        found = _SUM.match(output[0][1])
        size = parse_size(found["size"], binary=True) if found else None
        if size and len(output) == 1 and any(_WEIGHTS.search(word) for word in words[1:]):
            self._rows.add("engine_figure", output[0][0], name="checkpoint_bytes", value=float(size))
            self.read_lines.add(output[0][0])

    def _devices(self, words: Sequence[str], line: int, output: Sequence[tuple[int, str]]) -> None:
        """A query without header: its columns are those that were asked for, its rows the devices in their order."""
        asked = _after(words, ("--query-gpu",), "")
        form = (_after(words, ("--format",), "") or "").split(",")
        if asked is None or "csv" not in form or "noheader" not in form:
            return
        names = asked.split(",")
        if any(text.count(",") != len(names) - 1 for _, text in output):
            return
        plain = "nounits" in form
        header = ", ".join(f"{name} [MiB]" if plain and name.startswith("memory.") else name for name in names)
        which = (_after(words, ("-i", "--id"), "") or ",".join(str(at) for at in range(len(output)))).split(",")
        placed = {"index", "gpu_index", "uuid", "gpu_uuid", "timestamp"}.isdisjoint(names)
        if placed and len(which) == len(output) and all(each.isdigit() for each in which):
            self._queries.append(
                {line: f"index, {header}"}
                | {number: f"{at}, {text.strip()}" for at, (number, text) in zip(which, output, strict=True)}
            )
        else:
            self._queries.append({line: header, **dict(output)})
        self.read_lines |= {number for number, _ in output}

    def _docker(self, words: Sequence[str], output: Sequence[tuple[int, str]]) -> None:
        """What `docker inspect` printed by a template of the person's own: each of its parts stands where the template names it."""
        asked = _after(words, ("-f", "--format"), "")
        form = _by_template(asked or "")
        if asked is None or form is None:
            return
        names = [word for before, word in itertools.pairwise(words) if not word.startswith("-") and word != asked and before not in ("--type", *_DOCKER)]  # fmt: skip
        names = [name for name in names if name != "inspect"]
        lines = [(number, line.strip()) for number, line in output]
        whole = form.shape.fullmatch("\n".join(line for _, line in lines)) if len(names) <= 1 else None
        if whole:
            self._inspected(names[0] if names else "", form, whole, lines)
        else:  # several containers, a line each; docker names those it did not find on lines of their own
            found = [(number, match) for number, line in lines if (match := form.shape.fullmatch(line))]
            for at, (number, match) in enumerate(found):
                name = names[at] if len(found) == len(names) else "" if len(names) > 1 else names[0] if names else ""
                self._inspected(name, form, match, [(number, match[0])])

    def _inspected(self, asked: str, form: _Template, match: re.Match[str], output: Sequence[tuple[int, str]]) -> None:
        values = [(path, match[at]) for path, at in form.paths if match[at] not in ("", "<no value>", "<nil>")]
        told = next((value.lstrip("/") for path, value in values if path == ".Name"), "")
        name = told or ("" if _ID.fullmatch(asked) else asked)
        target = self._object("docker", name or asked)
        for part in ("State", "HostConfig", "Config"):
            _mapping_of(target, part)
        if _ID.fullmatch(asked):
            target.setdefault("Id", asked)
        self._fill(target, [(path, _plain(value)) for path, value in values], output)
        target["Name"] = name or target.get("Name")

    def _object(self, kind: str, name: str) -> _Placed:
        """The object of this name; without a name the one that was asked about before, where there is one only."""
        same = [key for key in self._objects if key[0] == kind]
        key = same[0] if not name and len(same) == 1 else (kind, name)
        if name and (kind, "") in self._objects:
            self._objects[key] = self._objects.pop((kind, ""))
        return self._objects.setdefault(key, _Placed())

    def _put(self, target: _Placed, paths: Sequence[str], output: Sequence[tuple[int, str]]) -> None:
        text = "\n".join(line for _, line in output).strip()
        values = [text] if len(paths) == 1 else text.split()
        if not paths or len(values) != len(paths):
            return
        self._fill(target, zip(paths, map(_plain, values), strict=True), output)

    def _fill(self, target: _Placed, values: Iterable[tuple[str, Any]], output: Sequence[tuple[int, str]]) -> None:
        """Put each value where its path leads; what was understood so is read."""
        for path, value in values:
            if _set(target, path, value, output[0][0]):
                target.line = target.line or output[0][0]
                self.read_lines |= {number for number, _ in output}

    def _put_values(self, target: _Placed, paths: Sequence[str], output: Sequence[tuple[int, str]]) -> None:
        """JSON values one after the other, one for each path, over as many lines as they take."""
        text, values, at = "\n".join(line for _, line in output).strip(), [], 0
        decoder = json.JSONDecoder(object_hook=_Placed)
        try:
            while at < len(text):
                value, at = decoder.raw_decode(text, at)
                values.append(value)
                at += len(text[at:]) - len(text[at:].lstrip())
        except (ValueError, RecursionError):
            return
        if len(values) == len(paths):
            self._fill(target, zip(paths, values, strict=True), output)


def _inspects(command: str) -> bool:
    """Whether a container is inspected by a template, or devices are asked for by columns: the answer is read as that, whatever else its words look like."""
    return ("inspect" in command and "{{" in command) or "--query-gpu" in command


@dataclass(frozen=True)
class _Template:
    """A Go template as a pattern of what it prints, and which group of it is which part of the object."""

    shape: re.Pattern[str]
    paths: tuple[tuple[str, int], ...]


def _by_template(template: str) -> _Template | None:
    """How to read what a template printed; None where it names nothing.

    >>> form = _by_template("{{.State.Status}} exit={{.State.ExitCode}} oom={{.State.OOMKilled}}")
    >>> form.paths, form.shape.fullmatch("exited exit=137 oom=true").groups()
    ((('.State.Status', 1), ('.State.ExitCode', 2), ('.State.OOMKilled', 3)), ('exited', '137', 'true'))
    """
    template = template.strip()
    actions = list(_ACTION.finditer(template[:600]))
    if not actions or len(actions) > _ACTIONS or any(action["path"] is None for action in actions):
        return None  # conditions and loops print what nobody can tell from here
    shape, at = "", 0
    for action, following in zip(actions, (*actions[1:], None), strict=True):
        behind = template[action.end() : following.start() if following else len(template)]
        kind = next((kind for ends, kind in _SHAPES if ends.search(action["path"])), None)
        if kind is None:  # any text, up to what the template prints behind it
            if following and not behind:
                return None
            ends = rf"[^\s{re.escape(behind[:1])}]*" if following or behind else r"[^\n]*"
            kind = r"[\s\S]*" if len(actions) == 1 else ends
        shape += rf"{_literally(template[at : action.start()])}({kind}|<no value>|<nil>)"
        at = action.end()
    paths = tuple((action["path"], number) for number, action in enumerate(actions, 1))
    return _Template(re.compile(shape + _literally(template[at:])), paths)


def _literally(text: str) -> str:
    """Text of a template that is printed as it stands; between words any blanks, and `\\t` as a blank."""
    parts = re.split(r"(?:\s|\\[tn])+", text)
    return r"\s+".join(re.escape(part) for part in parts)


def _cut(behind: str) -> list[str]:
    """The paths that `jq` takes out of an object, in order; none for another program or a filter that computes.

    >>> _cut("jq -c '.status.phase, .spec.containers[0].resources'"), _cut("jq '.items | length'"), _cut("less")
    (['.status.phase', '.spec.containers[0].resources'], [], [])
    """
    try:
        words = shlex.split(behind)
    except ValueError:
        return []
    plain = [word for word in words[1:] if not word.startswith("-")]
    if not words or words[0].rpartition("/")[2] != "jq" or len(plain) != 1:
        return []
    paths = [path.strip() for path in plain[0].split(",")]
    return paths if all(_PATH.fullmatch(path) for path in paths) else []


def _plain_words(words: Sequence[str]) -> list[str]:
    """The words that are neither options nor their values.

    >>> _plain_words(["pod", "-n", "models", "engine-0", "-o", "json"])
    ['pod', 'engine-0']
    """
    return [word for before, word in zip(("", *words), words, strict=False) if not word.startswith("-") and before not in _VALUE_OPTIONS]  # fmt: skip


def _after(words: Sequence[str], options: Sequence[str], start: str) -> str | None:
    """The value of an option, without what it has to begin with; None where it is not given so."""
    for at, word in enumerate(words):
        for option in options:
            value = words[at + 1] if word == option and at + 1 < len(words) else None
            if word.startswith((f"{option}=", option)) and word != option:
                value = word.removeprefix(option).removeprefix("=")
            if value is not None and value.startswith(start):
                return value.removeprefix(start)
    return None


def _plain(text: str) -> Any:
    """A printed value: JSON where it is, words as they are."""
    try:
        return json.loads(text, object_hook=_Placed)
    except (ValueError, RecursionError):
        return text


def _mapping_of(value: dict[str, Any], name: str) -> dict[str, Any]:
    inner = value.setdefault(name, _Placed())
    return inner if isinstance(inner, dict) else _Placed()


def _set(target: dict[str, Any], path: str, value: Any, line: int) -> bool:
    """Put a value where a path of JSONPath or of a Go template leads; False for a path that is not simple."""
    steps = list(_STEP.finditer(path))
    if not steps or "".join(step[0] for step in steps) != path.strip():
        return False
    here: Any = target
    for at, step in enumerate(steps):
        last = at == len(steps) - 1
        name = step["name"] or step["quoted"]
        if name:
            following = None if last else steps[at + 1]
            made: Any = [] if following is not None and not (following["name"] or following["quoted"]) else _Placed()
            if not isinstance(here, dict):
                return False
            if last:
                here[name] = value
            else:
                here = here.setdefault(name, made)
            continue
        if not isinstance(here, list) or last:
            return False
        entry = _entry(here, step)
        entry.line = entry.line or line
        here = entry
    return True


def _entry(items: list[Any], step: re.Match[str]) -> _Placed:
    """The member of a list that a step means."""
    if step["key"]:
        for item in items:
            if isinstance(item, dict) and item.get(step["key"]) == step["value"]:
                return item if isinstance(item, _Placed) else _Placed(item)
        items.append(_Placed({step["key"]: step["value"]}))
        return items[-1]  # type: ignore[no-any-return]
    index = 0 if step["index"] == "*" else int(step["index"])
    while len(items) <= index and len(items) < 64:
        items.append(_Placed())
    found = items[min(index, len(items) - 1)]
    return found if isinstance(found, _Placed) else _Placed(found if isinstance(found, dict) else {})
