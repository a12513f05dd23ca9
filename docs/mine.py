"""The engine's own words, mined: each message that a release can log or raise and that bears on memory or on a server's end.

    python docs/mine.py CHECKOUT              a git checkout of the engine with its release tags (`v0.9.2`), or a folder of
                                              unpacked releases, each called after its version
    python docs/mine.py --again               no release is walked: what is open in the catalogue is judged anew

Only syntax trees are read, nothing of the engine is imported or run. `packaging/engine-messages.tsv` is written again: first and last
release of those walked that have the message, its level, the file, what of ours covers it, and the first words of it, with `<>`
for what is filled in. What no pattern covers is known by a reason (`packaging/engine-known.toml`, `known:ID`) or open; docs/engine-atlas.md
lists both.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

KNOWN = Path(__file__).parents[1] / "packaging" / "engine-known.toml"
LISTED = Path(__file__).parents[1] / "packaging" / "engine-messages.tsv"
HEADER = "first\tlast\tlevel\tfile\tcovered by\tmessage"
LEVELS = ("debug", "info", "warning", "error", "exception", "critical")
SHOWN = 90
"""Characters of a message that are kept: enough to find it by."""
LEAST_WORDS = 3
_TAG = re.compile(r"v?(\d+(?:\.\d+){1,3}(?:\.?post\d+)?)$")
_BEARS = re.compile(
    r"(?i)\bmemory\b|\boom\b|kv[ _-]?cache (?:size|usage|memory)|cache blocks?\b|no (?:available|free) |preempt|graph (?:memory|captur|pool)|captur\w* .{0,20}graph|"
    r"<>? ?GiB?\b|gpu_memory_utilization|max_model_len|\bsleep|wake ?up|offload\w* .*(?:<>|GiB)|/dev/shm|shared memory|\bdied\b|\bdead\b|killed|\bhang|"
    r"unhealthy|engine core|timed? ?out|shut ?down|out of|weights (?:took|loaded)"
)
"""Words of memory, of capacity, and of a server's end."""
_OF_USE = re.compile(
    r"(?i)not (?:yet )?supported|unsupported|does not support|must (?:be|have|not)|invalid|expected|is required|requires|should be|unknown|mismatch|only supports?|"
    r"not implemented|deprecated|conflict|incompatible|cannot be (?:used|set|combined|specified)|mutually|only applicable"
)
"""Words of an error in how the engine was called, which is no matter of memory."""
_FAILS = re.compile(
    r"(?i)out of memory|oom|no (?:available|free)|exceed|insufficient|not enough|fail|died|dead|killed|timed? ?out|crash|abort|unhealthy|too (?:large|small)|cannot|unable"
)
_ASIDE = re.compile(
    r"(?:^|/)(?:tests?|benchmarks?|examples?|third_party|models|tool_parsers|reasoning|vllm_flash_attn|weight_transfer|elastic_ep|quantization|kernels|lora|compilation|"
    r"transformers_utils|multimodal|profiler|structured_output|kv_connector/v1/(?!offloading|lmcache)|device_communicators/(?!shm)|entrypoints/(?!openai/api_server|llm|cli|launcher))"
)
"""Folders whose messages are of one model, of parsers, or of the developers."""


@dataclass
class Message:
    """A message of the engine: what stands in it, `<>` where a value is filled in."""

    text: str
    level: str
    file: str
    first: str = ""
    last: str = ""

    @property
    def fails(self) -> bool:
        """Whether it announces that something went wrong; all else every healthy server may say."""
        return self.level in ("raise", "error", "exception", "critical") or bool(_FAILS.search(self.text))


def releases(checkout: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Version and sources of each release, the oldest first."""
    if (checkout / ".git").exists() or (checkout / "objects").is_dir():
        tags = _git(checkout, "tag", "--list").decode().split()
        found = {match[1]: tag for tag in tags if (match := _TAG.fullmatch(tag))}
        for version in sorted(found, key=order):
            yield version, dict(_packed(_git(checkout, "archive", "--format=tar", found[version], "vllm")))
        return
    folders = {match[1]: path for path in checkout.iterdir() if path.is_dir() and (match := _TAG.fullmatch(path.name))}
    for version in sorted(folders, key=order):
        base = folders[version]
        yield version, {str(path.relative_to(base)): path.read_text("utf-8", "replace") for path in sorted(base.glob("vllm/**/*.py"))}  # fmt: skip


def _packed(data: bytes) -> Iterator[tuple[str, str]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for one in archive:
            held = archive.extractfile(one) if one.isfile() and one.name.endswith(".py") else None
            if held is not None:
                yield one.name, held.read().decode("utf-8", "replace")


def _git(checkout: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(checkout), *words], check=True, capture_output=True).stdout


def order(version: str) -> tuple[int, ...]:
    """What versions are sorted by: `0.9.2` before `0.10.0`, `0.6.3.post1` behind `0.6.3`."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def messages(sources: Mapping[str, str]) -> Iterator[Message]:
    """Everything that some sources can log or raise; what is no Python of this interpreter is passed over."""
    for path, source in sources.items():
        if _ASIDE.search(path):
            continue
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            level, said = _said(node)
            text = " ".join(_template(said).split()) if said is not None else ""
            if len(re.findall(r"[A-Za-z]{2,}", text)) >= LEAST_WORDS:
                yield Message(text, level, path)


def _said(node: ast.AST) -> tuple[str, ast.expr | None]:
    """The level of a call of a logger or of a `raise`, and what it says; ("", None) for another node."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
        return "raise", node.exc.args[0]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        level = node.func.attr.removesuffix("_once").replace("warn", "warning").replace("warninging", "warning")
        base = node.func.value
        name = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
        if level in LEVELS and name.lower().endswith("logger"):
            return level, node.args[0]
    return "", None


_FILLED = re.compile(r"%(?:\(\w+\))?[-+#0 ]?\d*(?:\.\d+)?[sdfrgxi]|\{[^{}]*\}")


def _template(said: ast.expr) -> str:
    """A message with `<>` for what is filled in; "" where it is no text that stands in the source."""
    if isinstance(said, ast.Constant):
        return _FILLED.sub("<>", said.value) if isinstance(said.value, str) else ""
    if isinstance(said, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "<>" for part in said.values)
    if isinstance(said, ast.BinOp) and isinstance(said.op, (ast.Add, ast.Mod)):
        left = _template(said.left)
        return left if isinstance(said.op, ast.Mod) else left + (_template(said.right) or "<>")
    if isinstance(said, ast.Call) and isinstance(said.func, ast.Attribute) and said.func.attr == "format":
        return _template(said.func.value)
    return ""


def catalogue(walked: Iterator[tuple[str, dict[str, str]]]) -> tuple[list[Message], list[str]]:
    """The messages that bear on memory or on a server's end, each with its first and last release; and the releases."""
    known: dict[tuple[str, str], Message] = {}
    versions: list[str] = []
    for version, sources in walked:
        versions.append(version)
        for one in messages(sources):
            if (
                not _BEARS.search(one.text)
                or (one.level == "raise" and _OF_USE.search(one.text))
                or (one.level == "debug" and not one.fails)
            ):
                continue
            entry = known.setdefault((one.text, one.level), one)
            entry.first = entry.first or version
            entry.last, entry.file = version, one.file
    return sorted(known.values(), key=lambda one: (order(one.first), one.file, one.text)), versions


def covered(text: str) -> str:
    """Which pattern of ours reads a message; "" for none. Its anchor has to stand in a whole stretch of the message, or its expression to match."""
    from oomdoc.ingest import text_log

    apart = text.split("<>")
    near = [one for one in text_log.PATTERNS if one.dialect == "vllm" and any(anchor in part for anchor in one.anchors for part in apart)]  # fmt: skip
    shown = [text.replace("<>", filling) for filling in ("7", "7.50", "7.50 GiB", "7.50GiB", "a")]
    for pattern in near:
        if any(next(pattern.rows(line), None) for line in shown) or any(len(anchor) >= 12 for anchor in pattern.anchors if any(anchor in part for part in apart)):  # fmt: skip
            return pattern.name
    return ""


KINDS = ("exception", "request", "harmless", "follows")
"""Why a message needs no reader of its own."""


@cache
def known() -> tuple[tuple[str, str, str, tuple[re.Pattern[str], ...]], ...]:
    """Id, kind, sentence and expressions of what is known by a reason; ValueError for an entry that says nothing."""
    found = []
    for one in tomllib.loads(KNOWN.read_text(encoding="utf-8"))["known"]:
        if one["kind"] not in KINDS or len(one["says"].split()) < 8 or not one["messages"]:
            raise ValueError(f"{KNOWN.name}: {one['id']} needs a kind, a sentence and messages")
        found.append((one["id"], one["kind"], one["says"], tuple(map(re.compile, one["messages"]))))
    return tuple(found)


def reason(text: str) -> str:
    """`known:ID` of the first entry that knows a message; "" where none does."""
    return next((f"known:{name}" for name, _, _, shapes in known() if any(shape.search(text) for shape in shapes)), "")


def judged(listed: str) -> str:
    """A catalogue whose open messages are judged anew, and those that a reason of old was given for."""
    lines = listed.splitlines()
    for at, line in enumerate(lines[2:], 2):
        cells = line.split("\t")
        if not cells[4] or cells[4].startswith("known:"):
            lines[at] = "\t".join((*cells[:4], covered(cells[5]) or reason(cells[5]), cells[5]))
    return "\n".join(lines) + "\n"


def table(found: list[Message], versions: list[str]) -> str:
    """The catalogue as it is kept: the releases that were walked, then a line for each message."""
    lines = ["# walked: " + " ".join(versions), HEADER]
    for one in found:
        by = covered(one.text) or (reason(one.text) if one.fails else "benign")
        shown = one.text if len(one.text) <= SHOWN else one.text[: SHOWN - 2].rstrip() + " …"
        lines.append("\t".join((one.first, one.last, one.level, one.file.removeprefix("vllm/"), by, shown)))
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    """Write the catalogue of a checkout."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, nargs="?")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("-o", "--output", type=Path, default=LISTED)
    chosen = parser.parse_args(argv)
    if chosen.again:
        chosen.output.write_text(judged(LISTED.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    if chosen.checkout is None:
        parser.error("a checkout, or --again")
    found, versions = catalogue(releases(chosen.checkout))
    if not versions:
        print(f"{chosen.checkout} has neither tags of releases nor folders called after them", file=sys.stderr)
        return 2
    chosen.output.write_text(table(found, versions), encoding="utf-8")
    print(f"{len(found)} messages of {len(versions)} releases, {versions[0]} to {versions[-1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
