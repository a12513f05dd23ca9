"""What is there: folders, globs and object stores become candidates, one per bundle, without a byte being read.

An archive is a bundle. Every other file belongs to a log tree, and log trees are cut into bundles by folder, host or pod.
Nothing is followed: no links, no devices, as in `bundle`.
"""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from oomdoc.errors import BundleError, UsageError
from oomdoc.sweep.faults import patiently, sentence
from oomdoc.sweep.places import Access, Seen, filesystem, is_uri, listing

GROUPINGS = ("folder", "host", "pod")
_ARCHIVE = re.compile(r"\.(?:tar|tgz|tbz2?|txz|tzst|zip|tar\.(?:gz|bz2|xz|zst))$", re.I)
_NO_EVIDENCE = re.compile(
    r"\.(?:py|pyi|pyc|ipynb|js|mjs|ts|tsx|jsx|css|scss|go|rs|c|h|cc|cpp|hpp|java|kt|rb|php|swift|cu|cuh|j2|sql|toml|lock|svg|png|jpe?g|gif|ico|woff2?|pdf|so|o|a|whl)$"
    r"|(?:^|[/.])(?:README|LICEN[CS]E|NOTICE|CHANGELOG|CONTRIBUTING|Makefile|Dockerfile)(?:\.\w+)?$", re.I)  # fmt: skip
"""Files that hold no evidence by themselves: program text, pictures, what describes a folder. In a bundle they stay its members."""
_UNFINISHED = re.compile(r"(?:^|/)(?:\.[^/]*|[^/]*\.(?:part|partial|tmp|crdownload|filepart|swp))$", re.I)
_SUFFIXES = re.compile(
    r"(?:\.(?:tar|tgz|tbz2?|txz|tzst|zip|gz|bz2|xz|zst|log|txt|out|err|json|jsonl|csv|prom|ya?ml|toml|\d+))+$", re.I
)
"""What the names of archives and logs end with: no part of a host's name, though `a1.tar.gz` has the dots of one."""
_HOST_NAMED = re.compile(r"(?:^|/)(?:(?:host|hostname|node|instance)=|(?:hosts|nodes|machines)/)([^/#]+)", re.I)
_HOST_LIKE = re.compile(
    r"(?:ip(?:-\d{1,3}){4}|(?:[a-z0-9]+-)*?[a-z0-9]*?(?:node|gpu|host|srv|server|worker|dgx|hgx)-?\d{1,6}"
    r"|[a-z][a-z0-9-]*\d(?:\.[a-z][a-z0-9-]*){2,})(?=$|[._]|-\d)", re.I)  # fmt: skip
_PODS = (
    re.compile(r"(?:^|/)pods/[^/_]+_([^/_]+)_[0-9a-f-]{8,}(?:/|$)"),  # the kubelet's /var/log/pods
    re.compile(r"(?:^|/)namespaces/[^/]+/pods/([^/]+)/"),  # must-gather and support bundles
    re.compile(r"(?:^|/)containers/([^/_]+)_[^/_]+_[^/]*\.log"),  # the kubelet's /var/log/containers
    re.compile(r"(?:^|/)pod=([^/]+)(?:/|$)"),
    re.compile(r"(?:^|/)pods/([^/]+?)(?:\.log(?:\.\d+)?(?:\.gz)?)?(?:/|$)"),
    # a file named after its pod: a deployment's hash and suffix, or a stateful set's number
    re.compile(
        r"(?:^|/)([a-z0-9][a-z0-9.-]*?-(?:[0-9a-f]{8,10}-[a-z0-9]{5}|\d{1,4}))(?:[._][^/]*)?\.log(?:\.\d+)?(?:\.gz)?$"
    ),
)


@dataclass(frozen=True)
class Candidate:
    """A bundle that is there. `base` is what the names of its files inside the bundle leave away; `files` in order.

    `signature` hashes names, sizes and times; `settled` says that its newest file had been left alone for two seconds when
    it was listed, so that an equal signature later proves equal content.
    """

    key: str
    name: str
    base: str
    files: tuple[Seen, ...]
    host: str | None
    pod: str | None
    settled: bool

    @property
    def bytes(self) -> int:
        """Sum of its files, as stored."""
        return sum(file.bytes for file in self.files)

    @property
    def alone(self) -> bool:
        """Whether it is one archive."""
        return len(self.files) == 1 and self.files[0].address == self.key

    @property
    def signature(self) -> str:
        """32 hex digits over its files as listed."""
        return signature(self.files)


def signature(files: Iterable[Seen]) -> str:
    """32 hex digits over names, sizes and times of files."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(
            f"{file.address}\0{file.bytes}\0{file.modified_ns}\0{file.changed_ns}\n".encode("utf-8", "surrogateescape")
        )
    return digest.hexdigest()[:32]


SETTLED_AFTER_NS = 2_000_000_000  # coarser than the clock of any file system or object store in use


def find(
    paths: Sequence[str], group_by: str, access: Access, now_ns: int, spare: Sequence[str] = ()
) -> tuple[list[Candidate], list[str]]:
    """Every bundle below the paths, in order of address, each once; and what could not be listed, as sentences.

    `spare` are addresses that are no input: the store itself, if it lies inside. BundleError where nothing is found.
    """
    if group_by not in GROUPINGS:
        raise UsageError(f"--group-by {group_by} is unknown", f"Choose {', '.join(GROUPINGS)}")
    found: dict[str, Candidate] = {}
    faults: list[str] = []
    for path in paths:
        try:
            base, files = _objects(path, access) if is_uri(path) else _files(path, faults)
        except BundleError as problem:
            faults.append(str(problem))
            continue
        kept = [file for file in files if not _UNFINISHED.search(file.address) and not _inside(file.address, spare)]
        if not kept:
            faults.append(f"{path} holds no files")
        for candidate in _grouped(base, kept, group_by, now_ns):
            found.setdefault(candidate.key, candidate)
    if not found:
        raise BundleError(
            "no bundle was found" + (f" ({'; '.join(faults[:3])})" if faults else ""), "Check the paths and permissions"
        )
    return [found[key] for key in sorted(found)], faults


def _inside(address: str, folders: Sequence[str]) -> bool:
    return any(address == folder or address.startswith(folder.rstrip("/") + "/") for folder in folders)


def _files(path: str, faults: list[str]) -> tuple[str, list[Seen]]:
    """The base of a path or glob, and the regular files below."""
    if any(sign in path for sign in "*?[") and not os.path.lexists(path):
        fixed = re.split(r"[*?[]", path, maxsplit=1)[0]
        base = os.path.abspath(os.path.dirname(fixed) or ".")  # noqa: PTH100, PTH120 - text, links not resolved
        named = sorted(glob.glob(path, recursive=True))  # noqa: PTH207
        files = {file.address: file for name in named for file in _walk(os.path.abspath(name), faults)}  # noqa: PTH100
        return base, [files[name] for name in sorted(files)]
    whole = os.path.abspath(path)  # noqa: PTH100
    if not os.path.lexists(whole):
        raise BundleError(f"{path} does not exist", "Check the path")
    if not Path(whole).is_dir():
        return str(Path(whole).parent), list(_walk(whole, faults))
    return whole, list(_walk(whole, faults))


def _walk(path: str, faults: list[str]) -> Iterator[Seen]:
    try:
        status = os.stat(path, follow_symlinks=False)  # noqa: PTH116
        if stat.S_ISREG(status.st_mode):
            yield Seen(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if not stat.S_ISDIR(status.st_mode):
            return
        with os.scandir(path) as entries:
            names = sorted(entry.path for entry in entries)
    except OSError as problem:
        faults.append(f"{path} cannot be listed: {sentence(problem)}")
        return
    for name in names:
        yield from _walk(name, faults)


def look(address: str) -> Seen:
    """A local file as a listing would show it now; OSError where it is gone."""
    status = os.stat(address, follow_symlinks=False)  # noqa: PTH116
    return Seen(address, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _objects(uri: str, access: Access) -> tuple[str, list[Seen]]:
    """The base of a URI, perhaps with a pattern, and the objects below, addresses as URIs."""
    from pyarrow import fs

    scheme = uri.split("://", 1)[0]
    fixed = re.split(r"[*?[]", uri, maxsplit=1)[0]
    pattern = None if fixed == uri else uri
    root = uri.rstrip("/") if pattern is None else fixed.rpartition("/")[0]
    files, base = filesystem(root, access)
    try:
        only = patiently(lambda: files.get_file_info(base))
        if only.type == fs.FileType.File:
            return root.rpartition("/")[0], [Seen(root, int(only.size), int(only.mtime_ns or 0))]
        found = [
            file._replace(address=f"{scheme}://{base}/{file.address}")
            for file in patiently(lambda: list(listing(files, base)))
        ]
    except OSError as problem:
        raise BundleError(f"{uri} cannot be listed: {sentence(problem)}", "Check address and credentials") from None
    if pattern is not None:
        found = [file for file in found if _matches(file.address, pattern)]
    return root, found


def _matches(address: str, pattern: str) -> bool:
    """Whether the address, or a folder it lies in, matches."""
    parts = address.split("/")
    wanted = pattern.rstrip("/").count("/") + 1
    if "**" in pattern:
        return fnmatch.fnmatchcase(address, pattern)
    return len(parts) >= wanted and fnmatch.fnmatchcase("/".join(parts[:wanted]), pattern.rstrip("/"))


def _grouped(base: str, files: Sequence[Seen], group_by: str, now_ns: int) -> Iterator[Candidate]:
    """Archives one by one, the rest by group."""
    trees: dict[tuple[str, str], list[Seen]] = {}
    loose: list[Seen] = []
    for file in files:
        if _ARCHIVE.search(file.address):
            yield _candidate(
                file.address, file.address.rpartition("/")[0], [file], _relative(file.address, base), now_ns
            )
        else:
            loose.append(file)
    holding = {
        _relative(file.address, base).rpartition("/")[0] for file in loose if not _NO_EVIDENCE.search(file.address)
    }
    whole = _whole(
        [_relative(file.address, base) for file in loose if not _NO_EVIDENCE.search(file.address)],
        [_relative(file.address, base) for file in files if _ARCHIVE.search(file.address)],
    )
    for file in loose:
        trees.setdefault(_group(_relative(file.address, base), group_by, holding, whole), []).append(file)
    for (folder, label), members in trees.items():
        if all(_NO_EVIDENCE.search(member.address) for member in members):
            continue  # a folder of programs, or the wrapper of other bundles
        within = f"{base.rstrip('/')}/{folder}" if folder else base
        key = f"{within}#{label}" if label else within
        yield _candidate(key, within, members, _relative(members[0].address, base), now_ns)


_PART = re.compile(
    r"(?:nodes?|hosts?|pods?|pod-logs?|logs?|containers?|metrics|kube(?:rnetes)?|k8s|cluster|cluster-resources|kernel|gpus?|nvidia|dmesg|journal|config|configs|model|profile|traces?|requests|benchmarks?|collected|extra|misc)",
    re.I,
)
"""Folders that are named for what is in them, as collectors name parts of one bundle."""


def _whole(paths: Sequence[str], archives: Sequence[str]) -> set[str]:
    """Folders that are one bundle with all below: each folder in them is named for what is in it, and no two have a file alike.

    Folders named otherwise (hosts, dates, cases) are bundles of their own, and so are folders with a file of the same name. A folder
    with a single folder and no file of its own is a wrapper, and one with an archive below has bundles in it.
    """
    below: dict[str, dict[str, set[str]]] = {}
    for path in paths:
        parts = path.split("/")
        for depth in range(len(parts)):
            child = parts[depth] if depth + 1 < len(parts) else ""  # "": a file of its own
            below.setdefault("/".join(parts[:depth]), {}).setdefault(child, set()).add(
                "/".join(parts[depth + bool(child) :])
            )
    found = set()
    for folder, held in below.items():
        named = [name for name in held if name]
        alike = sum(map(len, held.values())) > len(set().union(*held.values()))
        packed = any(path.startswith(f"{folder}/") or not folder for path in archives)
        if named and len(held) > 1 and not alike and not packed and all(_PART.fullmatch(name) for name in named):
            found.add(folder)
    # a folder whose parts are cut further is not whole
    return {
        folder
        for folder in found
        if not any(
            inner != folder and (not folder or inner.startswith(f"{folder}/")) and _cut(held)
            for inner, held in below.items()
        )
    }


def _cut(held: Mapping[str, set[str]]) -> bool:
    """Whether folders beside each other have a file of the same name, as those of several hosts or cases have."""
    named = [files for name, files in held.items() if name]
    return sum(map(len, named)) > len(set().union(*named))


def _relative(address: str, base: str) -> str:
    return address[len(base.rstrip("/")) + 1 :]


def _group(relative: str, group_by: str, holding: set[str], whole: set[str]) -> tuple[str, str]:
    """(folder below the base, label) of the bundle that a file of a log tree belongs to.

    By folder it is the first one on the way down that has files itself or is `whole`, with all below it: folders of folders (hosts,
    dates) are taken apart, what lies deeper in a bundle stays in it. Files in the base itself are a bundle of their own, unless the
    base is whole.
    """
    if group_by == "pod" and (pod := pod_of(relative)):
        return "", f"pod={pod}"
    if group_by == "host" and (host := host_of(relative)):
        return "", f"host={host}"
    folders = relative.split("/")[:-1]
    if "" in whole:
        return "", ""
    ways = ["/".join(folders[:depth]) for depth in range(1, len(folders) + 1)]
    return next((way for way in ways if way in holding or way in whole), ""), ""


def _candidate(key: str, base: str, files: Sequence[Seen], relative: str, now_ns: int) -> Candidate:
    newest = max(file.modified_ns for file in files)
    label = key.rpartition("#")[2] if "#" in key else ""
    named = dict([label.split("=", 1)]) if label.startswith(("pod=", "host=")) else {}
    return Candidate(
        key=key,
        name=named.get("pod") or named.get("host") or PurePosixPath(key).name or key,
        base=base,
        files=tuple(sorted(files)),
        host=named.get("host") or host_of(relative),
        pod=named.get("pod") or pod_of(relative),
        settled=now_ns - newest > SETTLED_AFTER_NS,
    )


def host_of(path: str) -> str | None:
    """The host that a path names; None where it names none.

    >>> host_of("2026-11-20/gpu-node-17-1120.tar.gz"), host_of("nodes/h3.example.com/dmesg"), host_of("gpu-shared/vllm.log")
    ('gpu-node-17', 'h3.example.com', None)
    """
    named = _HOST_NAMED.search(path)
    if named:
        return _ARCHIVE.sub("", named[1]) or None
    for part in path.split("/"):
        like = _HOST_LIKE.match(_SUFFIXES.sub("", part))
        if like:
            return like[0]
    return None


def pod_of(path: str) -> str | None:
    """The pod that a path names; None where it names none.

    >>> pod_of("pods/serving_chat-0_0b1f22aa-77/vllm/0.log"), pod_of("node1/chat-6d5f7c9b4-x2x7p.log"), pod_of("a/vllm.log")
    ('chat-0', 'chat-6d5f7c9b4-x2x7p', None)
    """
    for pattern in _PODS:
        found = pattern.search(path)
        if found:
            return found[1]
    return None
