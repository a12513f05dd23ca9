"""The same evidence in another shape: envelopes, layouts, rotation, compression, order. No shape may change a diagnosis.

A shape is a function from the files of a bundle to the files of another that says the same. `python tests/shapes.py FOLDER`
tries every shape on every case below a folder (a case is a folder with evidence; `case.toml` and `truth.*` are left out)
and prints what differs; `--every N` takes each N-th pair only.

Envelopes put around a line the time that the line itself tells, as a collector does: with a stamp of its own, so that a
year-less record in it gets its year, in UTC.
"""

from __future__ import annotations

import argparse
import bz2
import datetime as dt
import gzip
import io
import json
import lzma
import random
import re
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import zstandard

import oomdoc
from oomdoc.errors import BundleError
from oomdoc.model import Report

Files = Mapping[str, bytes]
Shape = Callable[[Files], Files]


class Told(NamedTuple):
    """What a shape must not change: verdict, first cause, the ids of its evidence; and its probability, nearly."""

    verdict: str
    cause: str
    evidence: tuple[str, ...]
    probability: float

    def same(self, other: Told) -> bool:
        """Whether both say the same."""
        return self[:3] == other[:3] and abs(self.probability - other.probability) <= 0.02


def told(path: Path) -> Told:
    """The diagnosis of a bundle, cut down to what is compared."""
    try:
        with oomdoc.analyze(path) as analysis:
            report = analysis.report
    except BundleError as refused:
        return Told("refused", str(refused), (), 0.0)
    return told_of(report)


def told_of(report: Report) -> Told:
    """A report, cut down to what is compared."""
    if not report.diagnoses:
        return Told(report.verdict, "", (), 0.0)
    first = report.diagnoses[0]
    return Told(
        report.verdict,
        first.cause,
        tuple(sorted(piece.id for piece in (*first.evidence, *first.against))),
        first.probability,
    )


def files_of(folder: Path) -> dict[str, bytes]:
    """The evidence of a case: every file but its label."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "case.toml" and not path.name.startswith("truth.")
    }


def laid_out(root: Path, files: Files) -> Path:
    """Write files below `root/bundle`, in the order given."""
    for name, data in files.items():
        target = root / "bundle" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return root / "bundle"


def free(files: Files, path: str) -> str:
    """The path, or with a number where it is taken."""
    number, wanted = 2, path
    while path in files:
        path, number = f"{wanted}.{number}", number + 1
    return path


# ---- which files are logs, and what time their lines tell

_ENGINE = re.compile(rb"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d |vllm|Traceback|\"levelname\"")
_WRAPPED = re.compile(rb"\A(?:\{\"log\"|\d{4}-\d\d-\d\dT\S+ |\[pod/|[\w.-]+ +\| |> )")
_STAMP = re.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d) ")
_ISO = re.compile(r"(20\d\d)-?(\d\d)-?(\d\d)[T ]?(\d\d):?(\d\d):?(\d\d)")


def is_log(name: str, data: bytes) -> bool:
    """Whether a file is the output of a server that may be put into an envelope: text, and in none yet."""
    head = data[:65536]
    known = name.endswith((".log", ".jsonl", ".out", ".err")) or "log" in name.rsplit("/", 1)[-1]
    return (
        known
        and bool(_ENGINE.search(head))
        and not _WRAPPED.match(head)
        and b"\0" not in head
        and not head.startswith(b"\x1f\x8b")
    )


def year_of(files: Files) -> int:
    """The year that the bundle tells, else that of the cases."""
    for name, data in files.items():
        found = re.search(r"(20\d\d)(?:-\d\d-\d\d|\d{4}T)", name) or re.search(
            r"\b(20[23]\d)[-/]\d\d[-/]\d\d[T ]", data[:200_000].decode("utf-8", "replace")
        )
        if found:
            return int(found[1])
    return 2026


def stamped(data: bytes, year: int) -> Iterator[tuple[float, str]]:
    """Lines with the moment a collector would have seen them: that of the last record, a thousandth later for each line."""
    text = data.decode("utf-8", "surrogateescape")
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    first = next(
        (stamp for line in lines if (stamp := _moment(line, year)) is not None),
        dt.datetime(year, 5, 4, 3, 2, 1, tzinfo=dt.UTC).timestamp(),
    )
    now, small = first, 0.0
    for line in lines:
        stamp = _moment(line, year)
        if stamp is not None and stamp >= now:
            now, small = stamp, 0.0
        small = min(small + 0.0001, 0.9)
        yield now + small, line


def _moment(line: str, year: int) -> float | None:
    found = _STAMP.search(line)
    try:
        if found:
            return dt.datetime(year, *map(int, found.groups()), tzinfo=dt.UTC).timestamp()  # type: ignore[misc,arg-type]
        iso = _ISO.search(line) if '"asctime"' in line else None
        return dt.datetime(*map(int, iso.groups()), tzinfo=dt.UTC).timestamp() if iso else None  # type: ignore[misc,arg-type]
    except ValueError:
        return None


def iso(t: float, digits: int = 9, zone: str = "Z") -> str:
    """`2026-05-04T03:02:01.123456789Z`."""
    moment = dt.datetime.fromtimestamp(round(t, 6), dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond:06d}000"[:digits] + zone


# ---- envelopes: (time, line) -> text

Lines = list[tuple[float, str]]
Envelope = Callable[[Lines], str]


def each(wrap: Callable[[float, str], str]) -> Envelope:
    """An envelope around every line by itself."""
    return lambda lines: "".join(wrap(t, line) + "\n" for t, line in lines)


def _docker(t: float, line: str) -> str:
    return json.dumps({"log": line + "\n", "stream": "stderr", "time": iso(t)}, ensure_ascii=False)


def _docker_pieces(lines: Lines, size: int = 700) -> str:
    """Docker cuts a line at 16 KiB; here earlier, so that lines of a normal length are cut too."""
    out = []
    for t, line in lines:
        pieces = [line[at : at + size] for at in range(0, len(line), size)] or [""]
        pieces[-1] += "\n"
        out += [json.dumps({"log": piece, "stream": "stdout", "time": iso(t)}, ensure_ascii=False) for piece in pieces]
    return "".join(line + "\n" for line in out)


def _cri_pieces(lines: Lines, size: int = 90) -> str:
    """Partial lines of one stream, with a line of the other between them."""
    out = []
    for number, (t, line) in enumerate(lines):
        pieces = [line[at : at + size] for at in range(0, len(line), size)] or [""]
        for place, piece in enumerate(pieces):
            last = place == len(pieces) - 1
            out.append(f"{iso(t)} stdout {'F' if last else 'P'} {piece}")
            if place == 0 and not last and number % 7 == 0:
                out.append(f"{iso(t)} stderr F warning: slow disk")
    return "".join(line + "\n" for line in out)


def _syslog(t: float, line: str) -> str:
    return dt.datetime.fromtimestamp(t, dt.UTC).strftime("%b %e %H:%M:%S") + f" node-7 vllm[4711]: {line}"


def _journal_export(lines: Lines) -> str:
    return "".join(
        f"__CURSOR=s=1;i={n}\n__REALTIME_TIMESTAMP={int(t * 1e6)}\n__MONOTONIC_TIMESTAMP={n}\n_HOSTNAME=node-7\nPRIORITY=6\n"
        f"SYSLOG_IDENTIFIER=vllm\nMESSAGE={line}\n_PID=4711\n\n"
        for n, (t, line) in enumerate(lines)
    )


def _journal_json(t: float, line: str) -> str:
    message: object = line
    if "\x1b" in line or "\r" in line:  # what is no printable text stands there as numbers
        message = list(line.encode("utf-8", "surrogateescape"))
    return json.dumps(
        {
            "__REALTIME_TIMESTAMP": str(int(t * 1e6)),
            "_PID": "4711",
            "_HOSTNAME": "node-7",
            "PRIORITY": "6",
            "MESSAGE": message,
        }
    )


def _ns(t: float) -> str:
    return str(int(t * 1e6) * 1000)


def _loki_jsonl(lines: Lines) -> str:
    """`logcli query -o jsonl`: newest first."""
    rows = [json.dumps({"labels": {"pod": "vllm-0"}, "line": line, "timestamp": iso(t)}) for t, line in lines]
    return "".join(row + "\n" for row in reversed(rows))


def _loki_api(lines: Lines) -> str:
    """The answer of `query_range`: one document, newest first."""
    values = [[_ns(t + n * 1e-6), line] for n, (t, line) in enumerate(lines)]
    return json.dumps(
        {
            "status": "success",
            "data": {
                "resultType": "streams",
                "result": [{"stream": {"pod": "vllm-0"}, "values": values[::-1]}],
                "stats": {},
            },
        }
    )


def _grafana(lines: Lines) -> str:
    """Grafana's download as JSON: newest first."""
    return json.dumps(
        [
            {"line": line, "timestamp": _ns(t + n * 1e-6), "date": iso(t, 3), "fields": {"pod": "vllm-0"}}
            for n, (t, line) in enumerate(lines)
        ][::-1],
        indent=2,
    )


def _cloudwatch(lines: Lines) -> str:
    """`aws logs filter-log-events`: one document."""
    events = [
        {
            "logStreamName": "vllm/1",
            "timestamp": int(t * 1000),
            "message": line,
            "ingestionTime": int(t * 1000) + 900,
            "eventId": str(n),
        }
        for n, (t, line) in enumerate(lines)
    ]
    return json.dumps({"events": events, "searchedLogStreams": []}, indent=4)


def _insights(lines: Lines) -> str:
    """CSV of CloudWatch Insights: newest first."""
    rows = [
        f'{dt.datetime.fromtimestamp(t, dt.UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{int(t % 1 * 1000):03d}"},"'
        + line.replace('"', '""')
        + '"'
        for t, line in lines
    ]
    return "@timestamp,@message\n" + "".join(row + "\n" for row in reversed(rows))


ENVELOPES: dict[str, Envelope] = {
    "docker-json": each(_docker),
    "docker-json-split": _docker_pieces,
    "cri": each(lambda t, line: f"{iso(t)} stdout F {line}"),
    "cri-partial": _cri_pieces,
    "kubectl-timestamps": each(lambda t, line: f"{iso(t)} {line}"),
    "kubectl-prefix": each(lambda t, line: f"[pod/vllm-0/server] {line}"),
    "kubectl-prefix-timestamps": each(lambda t, line: f"[pod/vllm-0/server] {iso(t)} {line}"),
    "compose": each(lambda t, line: f"server-1  | {line}"),
    "compose-timestamps": each(lambda t, line: f"server-1  | {iso(t)} {line}"),
    "journal-short": each(_syslog),
    "journal-short-iso": each(lambda t, line: f"{iso(t, 9)[:19]}+0000 node-7 vllm[4711]: {line}"),
    "journal-short-precise": each(lambda t, line: dt.datetime.fromtimestamp(t, dt.UTC).strftime("%b %d %H:%M:%S.%f") + f" node-7 vllm[4711]: {line}"),
    "journal-export": _journal_export,
    "journal-json": each(_journal_json),
    "rfc5424": each(lambda t, line: f"<14>1 {iso(t, 6)} node-7 vllm 4711 - - {line}"),
    "rfc5424-data": each(lambda t, line: f'<14>1 {iso(t, 6)} node-7 vllm 4711 ID47 [origin ip="192.0.2.4"] {line}'),
    "rfc3164-pri": each(lambda t, line: "<14>" + _syslog(t, line)),
    "rsyslog-iso": each(lambda t, line: f"{iso(t, 6, '+00:00')} node-7 vllm[4711]: {line}"),
    "loki-jsonl": _loki_jsonl,
    "loki-api": _loki_api,
    "loki-raw": each(lambda t, line: f'{iso(t, 6)} {{pod="vllm-0", namespace="llm"}} {line}'),
    "grafana-json": _grafana,
    "cloudwatch-export": each(lambda t, line: f"{iso(t, 3)} {line}"),
    "cloudwatch-json": _cloudwatch,
    "cloudwatch-insights": _insights,
    "fluent-bit": each(lambda t, line: json.dumps({"date": round(t, 6), "log": line, "kubernetes": {"pod_name": "vllm-0", "container_name": "server"}})),
    "fluentd-file": each(lambda t, line: f"{iso(t, 9, '+00:00')[:19]}+00:00\tkube.var.log\t" + json.dumps({"log": line + "\n", "stream": "stderr"})),
    "github-actions": each(lambda t, line: f"{iso(t, 7)} {line}"),
    "gitlab-runner": each(lambda t, line: f"{iso(t, 6)} 01O {line}"),
    "srun-label": each(lambda t, line: f"0: {line}"),
    "ray-prefix": each(lambda t, line: f"(ServeReplica:llm:LLMServer pid=771, ip=192.0.2.7) {line}"),
    "ray-colour": each(lambda t, line: f"\x1b[36m(EngineWorker pid=771)\x1b[0m {line}"),
    "gcp-json": each(lambda t, line: json.dumps({"insertId": "a", "textPayload": line, "timestamp": iso(t), "resource": {"type": "k8s_container"}})),
    "markdown-quote": each(lambda t, line: f"> {line}"),
    "crlf": lambda lines: "".join(line.rstrip("\r") + "\r\n" for _, line in lines),
    "ts-tool": each(lambda t, line: dt.datetime.fromtimestamp(t, dt.UTC).strftime("%b %d %H:%M:%S ") + line),
}  # fmt: skip


def enveloped(name: str) -> Shape:
    """The shape that puts every log of a bundle into an envelope."""

    def shape(files: Files) -> Files:
        year = year_of(files)
        return {
            path: ENVELOPES[name](list(stamped(data, year))).encode("utf-8", "surrogateescape")
            if is_log(path, data)
            else data
            for path, data in files.items()
        }

    return shape


# ---- files: names, order, rotation, compression, archives


def _rotated(share: float) -> Shape:
    def shape(files: Files) -> Files:
        out: dict[str, bytes] = {}
        for path, data in files.items():
            lines = data.splitlines(keepends=True)
            cut = int(len(lines) * share)
            if is_log(path, data) and len(lines) >= 12:  # a shorter excerpt would be cut within its only message
                out[path + ".1"], out[path] = b"".join(lines[:cut]), b"".join(lines[cut:])
            else:
                out[path] = data
        return out

    return shape


def _packed(suffix: str, pack: Callable[[bytes], bytes]) -> Shape:
    return lambda files: {path + suffix: pack(data) for path, data in files.items()}


def tar(files: Files, prefix: str = "bundle/", mode: str = "w") -> bytes:
    """A tar of files, all by one clock."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(prefix + name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return raw.getvalue()


def zipped(files: Files) -> bytes:
    """A zip of files."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return raw.getvalue()


def _zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


FILES: dict[str, Shape] = {
    "reversed-in-tar": lambda files: {"bundle.tar": tar(dict(reversed(list(files.items()))))},
    "shuffled-in-tar": lambda files: {"bundle.tar": tar(dict(random.Random(5).sample(list(files.items()), len(files))))},
    "renamed": lambda files: {f"dump/{place:02d}-{path.rsplit('/', 1)[-1]}": data for place, (path, data) in enumerate(files.items())},
    "rotated-40": _rotated(0.4),
    "gz-members": _packed(".gz", lambda data: gzip.compress(data, mtime=0)),
    "xz-members": _packed(".xz", lzma.compress),
    "zst-members": _packed(".zst", _zst),
    "bz2-members": _packed(".bz2", bz2.compress),
    "tar-in-zip": lambda files: {"bundle.zip": zipped({"node.tar": tar(files)})},
    "tar-gz-in-tar-xz": lambda files: {"bundle.tar.xz": lzma.compress(tar({"inner.tar.gz": gzip.compress(tar(files), mtime=0)}))},
    "tar-zst": lambda files: {"bundle.tar.zst": _zst(tar(files))},
}  # fmt: skip

SHAPES: dict[str, Shape] = {**{name: enveloped(name) for name in ENVELOPES}, **FILES}


# ---- by hand, over any folder of cases


def main(argv: list[str]) -> int:
    """Try shapes on cases; the exit status is 1 where one differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--shape", action="append", help="these shapes (default: all)")
    parser.add_argument("--every", type=int, default=1, help="each N-th pair of case and shape")
    chosen = parser.parse_args(argv)
    folders = sorted(path for path in chosen.cases.iterdir() if path.is_dir() and chosen.only in path.name)
    import layouts  # which builds on this module

    every = {**SHAPES, **layouts.LAYOUTS}
    wanted = chosen.shape or list(every)
    tried = differ = place = 0
    by_shape: dict[str, int] = {}
    began = time.monotonic()
    for folder in folders:
        files = files_of(folder)
        if not files:
            continue
        before: Told | None = None
        for name in wanted:
            place += 1
            if place % chosen.every:
                continue
            shaped = every[name](files)
            if shaped == files and list(shaped) == list(files):
                continue
            with tempfile.TemporaryDirectory() as scratch:
                if before is None:
                    before = told(laid_out(Path(scratch) / "plain", files))
                after = told(laid_out(Path(scratch) / "shaped", shaped))
            tried += 1
            if not after.same(before):
                differ += 1
                by_shape[name] = by_shape.get(name, 0) + 1
                gone, new = set(before.evidence) - set(after.evidence), set(after.evidence) - set(before.evidence)
                print(
                    f"{folder.name} {name}: {before.cause} {before.probability:.3f} -> {after.cause} {after.probability:.3f}, -{sorted(gone)} +{sorted(new)}",
                    flush=True,
                )
    print(f"{tried} pairs, {differ} differ, {time.monotonic() - began:.0f} s; {by_shape}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
