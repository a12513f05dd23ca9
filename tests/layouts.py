"""The layouts in which tools hand evidence over, made of the files of a sample: same evidence, other folders and wrappings.

A layout is a function from files to files, like the shapes of `shapes.py`; log files go where the tool puts a container's
output, all others beside it. The text that a tool adds itself is in our own words.
"""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Mapping

import shapes
from shapes import Files, Shape

POD = "vllm-0"


def logs_of(files: Files) -> list[str]:
    """The paths of a server's output, the older one (`.1`, `-previous`) first."""
    found = [path for path, data in files.items() if shapes.is_log(path, data)]
    return sorted(found, key=lambda path: ("previous" not in path and not path.endswith((".1", ".1.gz", ".2")), path))


def _rest(files: Files, prefix: str) -> dict[str, bytes]:
    logs = logs_of(files)
    return {prefix + path: data for path, data in files.items() if path not in logs}


def _cri(data: bytes, year: int) -> bytes:
    return shapes.ENVELOPES["cri"](list(shapes.stamped(data, year))).encode("utf-8", "surrogateescape")


def support_bundle(files: Files) -> Files:
    """troubleshoot.sh: pods, their logs and events under `cluster-resources`, packed."""
    root = "support-bundle-2026-05-22T19_10_00/"
    out: dict[str, bytes] = {
        root
        + "version.yaml": b"apiVersion: troubleshoot.sh/v1beta2\nkind: SupportBundle\nspec:\n  versionNumber: v0.120.0\n",
        root + "analysis.json": b"[]\n",
        root + "cluster-resources/nodes.json": json.dumps({"kind": "NodeList", "items": []}).encode(),
        root + "cluster-resources/pods/llm.json": json.dumps({"kind": "PodList", "items": []}).encode(),
        root + "cluster-info/cluster_version.json": json.dumps({"info": {"gitVersion": "v1.33.1"}}).encode(),
    }
    for path in logs_of(files):
        name = "server-previous.log" if "previous" in path or path.endswith(".1") else "server.log"
        out[shapes.free(out, f"{root}cluster-resources/pods/logs/llm/{POD}/{name}")] = files[path]
    out.update(_rest(files, root + "host-collectors/run-host/"))
    return {"support-bundle.tar.gz": gzip.compress(shapes.tar(out, prefix=""), mtime=0)}


def cluster_info_folder(files: Files) -> Files:
    """`kubectl cluster-info dump --output-directory`."""
    out = {
        "dump/nodes.json": json.dumps({"kind": "NodeList", "items": []}, indent=4).encode(),
        "dump/llm/pods.json": json.dumps({"kind": "PodList", "items": []}, indent=4).encode(),
        "dump/llm/events.json": json.dumps({"kind": "EventList", "items": []}, indent=4).encode(),
    }
    for place, path in enumerate(logs_of(files)):
        out[f"dump/llm/vllm-{place}/logs.txt"] = files[path]
    return {**out, **_rest(files, "notes/")}


def cluster_info_stream(files: Files) -> Files:
    """The same without a folder: JSON documents and logs in one stream."""
    parts = [json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": []}, indent=4).encode() + b"\n"]
    parts.append(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": []}, indent=4).encode() + b"\n")
    for place, path in enumerate(logs_of(files)):
        name = f"container server of pod llm/vllm-{place}".encode()
        parts += [b"==== START logs for " + name + b" ====\n", files[path], b"==== END logs for " + name + b" ====\n"]
    return {"cluster-info.txt": b"".join(parts), **_rest(files, "notes/")}


def must_gather(files: Files) -> Files:
    """OpenShift: an image-named folder, a folder per container."""
    root = "must-gather.local.17/registry-example-org-must-gather-sha256-0aa1/"
    out = {
        "must-gather.local.17/must-gather.logs": b"[must-gather      ] OUT gathering\n",
        "must-gather.local.17/timestamp": b"2026-05-22 19:10:00.1 +0000 UTC m=+1.2\n",
        root + "version": b"gather/4.17\n",
        root
        + f"namespaces/llm/pods/{POD}/{POD}.yaml": f"---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {POD}\n".encode(),
    }
    for path in logs_of(files):
        name = "previous.log" if "previous" in path or path.endswith(".1") else "current.log"
        place = f"{root}namespaces/llm/pods/{POD}/server/server/logs/{name}"
        out[shapes.free(out, place)] = shapes.ENVELOPES["kubectl-timestamps"](
            list(shapes.stamped(files[path], shapes.year_of(files)))
        ).encode("utf-8", "surrogateescape")
    out.update(_rest(files, root + "host_service_logs/"))
    return {"must-gather.tar.gz": gzip.compress(shapes.tar(out, prefix=""), mtime=0)}


def gpu_operator_gather(files: Files) -> Files:
    """NVIDIA GPU Operator: flat files, container tags before each line."""
    out = {
        "gpu_nodes.descr": b"Name:               node-7\nRoles:              worker\n",
        "gpu_operand_pods.status": b"NAME READY STATUS RESTARTS AGE\n",
    }
    for place, path in enumerate(logs_of(files)):
        lines = list(shapes.stamped(files[path], shapes.year_of(files)))
        out[f"gpu_operand_pod_vllm-{place}.log"] = "".join(f"[pod/vllm-{place}/server] {line}\n" for _, line in lines).encode("utf-8", "surrogateescape")  # fmt: skip
    return {**out, **_rest(files, "other/")}


def bug_report(files: Files) -> Files:
    """`nvidia-bug-report.log.gz`: the output of commands under rules and headings, in one file; the logs lie beside it."""
    rule = b"_" * 44
    parts = [rule, b"", b"Start of NVIDIA bug report log file.  Please include this file, along", b"with a detailed description of your problem.", b""]  # fmt: skip
    rest = dict(_rest(files, "").items())
    taken = [path for path in rest if "smi" in path or "dmesg" in path]
    for path in taken:
        parts += [rule, b"", b"*** " + path.encode(), rest[path].rstrip(b"\n"), b""]
    parts += [rule, b"", b"End of NVIDIA bug report log file.", b""]
    out = {path: data for path, data in files.items() if path not in taken}
    return {"nvidia-bug-report.log.gz": gzip.compress(b"\n".join(parts), mtime=0), **out}


def sos_report(files: Files) -> Files:
    """sos: the node's files; container logs as the runtime wrote them, rotated."""
    root = "sosreport-node-7-2026-05-22-abcdefg/"
    out = {
        root + "version.txt": b"sosreport: 4.8.0\n",
        root + "sos_logs/sos.log": b"2026-05-22 19:10:00,100 INFO: [plugin:kernel] collected\n",
    }
    for place, path in enumerate(logs_of(files)):
        name = f"var/log/pods/llm_{POD}_0aa1-22/server/{place}.log"
        out[root + name] = _cri(files[path], shapes.year_of(files))
    out.update(_rest(files, root + "sos_commands/other/"))
    return {"sosreport.tar.xz": lzma.compress(shapes.tar(out, prefix=""))}


def ray_session(files: Files) -> Files:
    """Ray: `session_*/logs`, a worker's output in two files of its own."""
    root = "session_2026-05-22_19-10-00_1_1/logs/"
    out = {
        root + "gcs_server.out": b"[2026-05-22 19:10:00,100 I 1 1] (gcs_server) started\n",
        root + "raylet.out": b"[2026-05-22 19:10:00,100 I 2 2] (raylet) main.cc:1: started\n",
    }
    for place, path in enumerate(logs_of(files)):
        out[root + f"worker-0a0b-01000000-{77 + place}.out"] = files[path]
    return {**out, **_rest(files, "beside/")}


def docker_folder(files: Files) -> Files:
    """`/var/lib/docker/containers`: JSON a line, the older half rotated away."""
    out: dict[str, bytes] = {}
    for place, path in enumerate(logs_of(files)):
        ident = f"{place:x}" * 8
        wrapped = shapes.ENVELOPES["docker-json"](list(shapes.stamped(files[path], shapes.year_of(files))))
        lines = wrapped.encode("utf-8", "surrogateescape").splitlines(keepends=True)
        cut = len(lines) // 3
        base = f"var/lib/docker/containers/{ident}/{ident}-json.log"
        out[base + ".1"], out[base] = b"".join(lines[:cut]), b"".join(lines[cut:])
    return {**{path: data for path, data in out.items() if data}, **_rest(files, "root/")}


def containerd_folder(files: Files) -> Files:
    """`/var/log/pods`: CRI lines, a numbered file per restart, the older half packed with its date."""
    out: dict[str, bytes] = {}
    for place, path in enumerate(logs_of(files)):
        lines = _cri(files[path], shapes.year_of(files)).splitlines(keepends=True)
        cut = len(lines) // 3
        base = f"var/log/pods/llm_{POD}_0aa1-22/server/{place}.log"
        if cut:
            out[base + ".20260522-190000.gz"] = gzip.compress(b"".join(lines[:cut]), mtime=0)
        out[base] = b"".join(lines[cut:])
    return {**out, **_rest(files, "root/")}


def slurm(files: Files) -> Files:
    """Slurm: output of a job step with its task number, and the batch script's own lines."""
    out: dict[str, bytes] = {}
    for place, path in enumerate(logs_of(files)):
        lines = files[path].decode("utf-8", "surrogateescape").split("\n")[:-1]
        body = "".join(f"0: {line}\n" for line in lines)
        out[f"slurm-{4711 + place}.out"] = ("job on node-7 begins\n" + body).encode("utf-8", "surrogateescape")
    return {**out, **_rest(files, "beside/")}


def cloudwatch_export(files: Files) -> Files:
    """CloudWatch to S3: a folder per stream, numbered pieces, each packed."""
    out: dict[str, bytes] = {"aws-logs-write-test": b"Permission Check Successful"}
    for place, path in enumerate(logs_of(files)):
        lines = list(shapes.stamped(files[path], shapes.year_of(files)))
        wrapped = shapes.ENVELOPES["cloudwatch-export"](lines).encode("utf-8", "surrogateescape")
        out[f"0a-task/vllm-server-{place}/000000.gz"] = gzip.compress(wrapped, mtime=0)
    return {**out, **_rest(files, "beside/")}


def _at(shape: str, name: str) -> Shape:
    """Every log in an envelope, under a name that its tool gives."""

    def layout(files: Files) -> Files:
        wrapped = shapes.SHAPES[shape](files)
        logs = logs_of(files)
        return {name.format(logs.index(path)) if path in logs else path: data for path, data in wrapped.items()}

    return layout


LAYOUTS: Mapping[str, Shape] = {
    "troubleshoot": support_bundle,
    "cluster-info-folder": cluster_info_folder,
    "cluster-info-stream": cluster_info_stream,
    "must-gather": must_gather,
    "gpu-operator-must-gather": gpu_operator_gather,
    "nvidia-bug-report": bug_report,
    "sos": sos_report,
    "ray-session": ray_session,
    "plain-folder": lambda files: {f"logs/{path}": data for path, data in files.items()},
    "journald": _at("journal-export", "journal-{}.export"),
    "docker-folder": docker_folder,
    "containerd-folder": containerd_folder,
    "loki": _at("loki-api", "query-{}.json"),
    "cloudwatch": cloudwatch_export,
    "slurm": slurm,
}
