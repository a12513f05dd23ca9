"""Servers of language models besides vLLM: how each is started, and which of its options mean what one of vLLM's means.

    python -m sglang.launch_server --context-length 32768      max_model_len = 32768
    trtllm-serve org/m --max_batch_size 64                     max_num_seqs = 64
    llama-server -c 65536 -np 4                                max_model_len = 16384, max_num_seqs = 4

Only what has the same meaning is renamed; every other option keeps its own name. A share of the memory that is *free* after the
weights (TensorRT-LLM, LMDeploy) is another thing than a share of the device, and is not renamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from oomdoc.ingest.launch.names import Setting
from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.regexes import regex

_LEN, _SEQS = "max_model_len", "max_num_seqs"


@dataclass(frozen=True)
class Server:
    """One server: the words that start it (a program, or a program and what stands behind it), and its options.

    `same` maps an option, with underscores, to the engine argument of the same meaning; `!` before it says that the option
    switches off what the argument switches on. `marks` are options that no other program has: two of them show this server
    whatever the program is called. `slots`: the context is shared out evenly among the sequences.
    """

    name: str
    starts: Sequence[str]
    same: Mapping[str, str]
    marks: Sequence[str] = ()
    images: Sequence[str] = ()
    short: Mapping[str, str] = field(default_factory=dict)
    slots: bool = False


SERVERS: tuple[Server, ...] = tuple(Server(**one) for one in read("servers")["server"])
"""By the help texts of the servers' command lines, releases of 2024 to 2026."""

BY_NAME: Mapping[str, Server] = {server.name: server for server in SERVERS}
_STARTS = tuple((tuple(start.split()), server) for server in SERVERS for start in server.starts)
STARTS: tuple[str, ...] = tuple(start for server in SERVERS for start in server.starts if len(start) > 5)
"""What stands in a line that starts such a server."""


def started(words: Sequence[str]) -> tuple[int, Server] | None:
    """The server that a command starts and the index of the first word behind its start; None for another command.

    >>> found = started(["python", "-m", "sglang.launch_server", "--tp", "2"])
    >>> found and (found[0], found[1].name)
    (3, 'sglang')
    """
    for at, word in enumerate(words):
        if word.startswith("-") and word != "-m":
            return None  # behind the first option stand values
        bare = word.rpartition("/")[2].removesuffix(".exe")
        for start, server in _STARTS:
            if bare == start[0] and tuple(words[at + 1 : at + len(start)]) == start[1:]:
                return at + len(start), server
    return None


def marked(options: Iterable[str]) -> Server | None:
    """The server whose own options these are, two of them at least."""
    names = {name.lstrip("-").partition("=")[0].replace("-", "_") for name in options if name.startswith("--")}
    return next((server for server in SERVERS if len(names.intersection(server.marks)) >= 2), None)


def of_image(image: str) -> Server | None:
    """The server in a container's image, by the image's name."""
    name = image.rpartition("@")[0] or image
    return next((server for server in SERVERS if any(part in name for part in server.images)), None)


_ENGINE = regex(
    r"(?i)(?:^|[/_. -])(?:vllm|sglang|text-generation-(?:inference|launcher)|tgi|tensorrt-?llm|trtllm|tritonserver|lmdeploy|llama[-.]?cpp|llama-server|huggingfaceserver|aibrix|djl-serving|lmcache\w*|mooncake\w*|infinistore|dynamo)(?![a-z])"
)
_ENGINE_OPTION = regex(r"--(?:max-model-len|max-num-(?:seqs|batched-tokens)|tensor-parallel-size|gpu-memory-utilization|kv-cache-dtype|enable-prefix-caching)\b")  # fmt: skip
_TRAINER = regex(r"(?i)\b(?:train|trainer|finetun\w*|sft|dpo|grpo|torchrun|deepspeed)\b")


def serves(image: str, words: Iterable[str]) -> bool | None:
    """Whether an image or a command is that of an LLM server; None where neither is there."""
    told = " ".join([image, *words])
    if not told.strip():
        return None
    if not image and _ENGINE_OPTION.search(told):
        return True  # a resource whose image its operator adds
    return bool(_ENGINE.search(told)) and not _TRAINER.search(told)


def renamed(server: Server, flag: str, value: str) -> tuple[str, str]:
    """An option in vLLM's words, where it means the same; else as it is."""
    same = server.same.get(flag, flag)
    if same.startswith("!"):
        return same[1:], "False" if value.lower() in ("true", "1", "") else "True"
    return same, value


def in_our_words(server: Server, settings: Iterable[Setting]) -> list[Setting]:
    """Settings of one start, renamed; a context that all sequences share is that of one sequence."""
    found = [one if one.origin != "command" else one._replace(flag=flag, value=value) for one in settings for flag, value in [renamed(server, one.flag, one.value)]]  # fmt: skip
    if not server.slots:
        return found
    slots = next((int(one.value) for one in found if one.flag == _SEQS and one.value.isdigit()), 1)
    return [one._replace(value=str(int(one.value) // slots)) if one.flag == _LEN and one.value.isdigit() and slots > 1 else one for one in found]  # fmt: skip
