"""Lists of a model's files: how large its weights are on the disk, and whether all of them are there.

    $ ls -l /models/chat-32b
    -rw-r--r-- 1 svc svc 4876059352 Mar 11 21:14 model-00002-of-00014.safetensors      `ls -l`, with `-h`, of numbers for owners
    2026-03-11 21:14:03 4876059352 chat-32b/model-00002-of-00014.safetensors           `aws s3 ls`, `gsutil`
    4.6G    ./model-00002-of-00014.safetensors                                         `du`, `find -printf`
    "total_size": 410258112512                                                         a line of the index that somebody looked up

One row of `model_file` for each set of files of one name in one folder (`listing`). Its size is told where the set is whole: a list that
was cut (`head`, `tail`, `grep` of one) or a set that lacks a part has none. A part is `absent` where parts with smaller and with larger
numbers are listed and it is not, or is listed with no bytes in it: an empty file is a copy that broke off. What stands behind a link is
not in the list: the size of a link is that of its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Rows
from oomdoc.ingest.prompts import typed
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex
from oomdoc.units import parse_size

ANCHORS = (b".safetensors", b".gguf", b".bin", b'"total_size"')
_LISTED = regex(rb"(?m)\.(?:safetensors|gguf|bin)[ \t\r]*$|\"total_size\":")
"""Whether a line ends with such a name: an engine's log names them in the middle of its own."""
_CAP_BYTES = 1 << 20
"""What is read of one source: a hub's cache of a hundred models is a list of some 10,000 lines, and no log of a server is one."""
_LINE_CAP = 400
_MOST_PARTS = 1000  # of one set; the largest published have some 200
_SIZE = r"\d{1,15}(?:[.,]\d{1,3})?(?:\s?[KMGT]i?B?)?"
_NAME = (
    r"(?P<path>(?:[^\s'\"]{0,300}/)?)(?P<stem>[\w.+]{1,120}?)(?:-(?P<at>\d{4,6})-of-(?P<of>\d{4,6}))?"
    r"\.(?P<kind>safetensors|gguf|bin)\s*$"
)
_LONG = regex(rf"\s*-[r-][w-]\S{{7,9}}\s+(?:\d{{1,4}}\s+)?\S+\s+\S+\s+(?P<size>{_SIZE})\s+\S.{{0,60}}?\s{_NAME}")
_SHORT = regex(rf"[\s│├└─-]*(?:\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d\S{{0,12}}\s+)?\[?\s*(?P<size>{_SIZE})\]?\s+{_NAME}")
_INDEX = regex(r"\s*\"total_size\":\s*(?P<size>\d{6,15})(?:\.0)?,?\s*$")
_HEADING = regex(r"\s*(?P<path>(?:~|\.{1,2})?/[^\s:]{1,300}):\s*$")
_CUT = regex(r"\|\s*(?:head|tail|more|less|sed)\b|\|\s*grep (?!-?\w*\s?['\"]?\S{0,12}(?:safetensors|gguf|bin)\b)")
_FILES = regex(r"/[^/]*[*?][^/]*$|/[^/]*\.(?:safetensors|gguf|bin)$")
_NO_WEIGHTS = regex(r"(?i)optimizer|scheduler|training_args|rng_state|adapter|tokenizer|lora|mmproj|vocab")
_OF_MODEL = regex(r"(?i)model|consolidated")
"""What a `.bin` of weights is called: everything else may be called so as well."""
_LEAST = 1 << 20
"""Bytes of a set that is a model's: smaller ones are heads, tables of words, tests."""


@dataclass
class Files:
    """The files of one name in one folder; `parts`: bytes by number, of a file without a number under 0."""

    line: int
    of: int
    cut: bool
    parts: dict[int, int] = field(default_factory=dict)

    @property
    def absent(self) -> int | None:
        """Parts that are empty or left out between others; None where a cut list cannot tell."""
        empty = sum(not size for size in self.parts.values())
        if self.cut and not empty:
            return None
        return empty + (0 if self.cut else max(self.parts) - min(self.parts) + 1 - len(self.parts))

    @property
    def total_bytes(self) -> int | None:
        """All bytes of a set that is whole."""
        return sum(self.parts.values()) if not self.absent and len(self.parts) == max(self.of, 1) else None


class WeightFiles:
    """Gathers the sets of one source."""

    def __init__(self) -> None:
        self._rows = Rows()
        self._sets: dict[tuple[str, str, int, str], Files] = {}
        self._folder = ""
        self._cut = False
        self._seen = 0

    def chunk(self, chunk: Chunk, named: bool) -> None:
        """Read a chunk up to `_CAP_BYTES` in which one of `ANCHORS` stands (`named`)."""
        self._seen += len(chunk.data)
        if not named or self._seen > _CAP_BYTES or not _LISTED.search(chunk.data):
            return
        for number, line in chunk.lines(_LINE_CAP):
            self._read(number, line)

    def take(self) -> Iterator[Batch]:
        """The rows."""
        for (folder, _, _, _), found in self._sets.items():
            if sum(found.parts.values()) >= _LEAST:
                self._rows.add(
                    "model_file", found.line, file="listing", folder=folder or None,
                    total_bytes=found.total_bytes, absent=found.absent,
                )  # fmt: skip
        self._sets = {}
        yield from self._rows.take()

    def _read(self, number: int, line: str) -> None:
        command = typed(line)
        if command is not None or (heading := _HEADING.match(line)):
            self._cut = bool(command and _CUT.search(command))
            self._folder = _folder_in(command) if command is not None else heading["path"]  # type: ignore[index]
        elif "total_size" in line:
            if found := _INDEX.match(line):
                self._rows.add("model_file", number, file="weights-index", total_bytes=int(found["size"]))
        elif found := _LONG.match(line) or _SHORT.match(line):
            size = parse_size(found["size"].replace(",", "."), binary=True)
            other = found["kind"] == "bin" and not _OF_MODEL.search(found["stem"])
            if size is None or other or _NO_WEIGHTS.search(found["stem"]):
                return
            at, of = int(found["at"] or 0), int(found["of"] or 0)
            key = (found["path"].removeprefix("./").rstrip("/") or self._folder, found["stem"], of, found["kind"])
            files = self._sets.setdefault(key, Files(number, of, self._cut))
            if at in files.parts:  # listed anew: the later list counts
                files = self._sets[key] = Files(number, of, self._cut)
            if len(files.parts) < _MOST_PARTS:
                files.parts[at] = int(size)


def _folder_in(command: str) -> str:
    """The folder that a command lists.

    >>> _folder_in("kubectl -n a exec web-0 -- ls -l /models/chat-32b/ | grep safetensors"), _folder_in("ls -l"), _folder_in("du -b /m/x/*.bin")
    ('/models/chat-32b', '', '/m/x')
    >>> _folder_in("ls -lh chat-32b")
    'chat-32b'
    """
    words = [word.strip("'\"") for word in command.partition(" | ")[0].split() if not word.startswith("-")]
    paths = [word for word in words if "/" in word] or (words[1:] if words[:1] in (["ls"], ["du"], ["tree"]) else [])
    return _FILES.sub("", paths[-1]).rstrip("/") if paths else ""
