"""Settings of a command line: the engine's options, assignments before it, what `docker run` adds, an echo of it in a log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from oomdoc.ingest.launch.calls import calls_in
from oomdoc.ingest.launch.names import (
    COMMON_FLAGS,
    ENGINE_FLAGS,
    LISTS,
    RENAMED,
    SHORT_OPTIONS,
    SWITCH_PREFIX,
    SWITCHES,
    TRUTH,
    VARIABLE_FLAGS,
    Setting,
    image_version,
    is_environment,
    shown,
)
from oomdoc.ingest.launch.servers import STARTS, Server, in_our_words, marked, of_image, started
from oomdoc.ingest.launch.shell import (
    ASSIGNMENT,
    END,
    NUMBER,
    OPERATORS,
    REDIRECT,
    Word,
    prepared,
    shell_words,
    with_values,
)
from oomdoc.ingest.vocabulary.words import named, word_set
from oomdoc.regexes import regex


def flags_of(text: str) -> list[tuple[str, str]]:
    """Engine settings of a command line, option list or constructor, in order; no environment.

    >>> flags_of("vllm serve org/model --max-model-len=4096 -tp 8 --no-enable-prefix-caching --enforce-eager")
    [('model', 'org/model'), ('max_model_len', '4096'), ('tensor_parallel_size', '8'), \
('enable_prefix_caching', 'False'), ('enforce_eager', 'True')]
    >>> flags_of("LLM(model='m', gpu_memory_utilization=1,\\n    dtype=torch.float16)")
    [('model', 'm'), ('gpu_memory_utilization', '1'), ('dtype', 'float16')]
    """
    return [(found.flag, found.value) for found in settings_of(text) if found.origin == "command"]


def flags_of_tokens(tokens: Sequence[str], sure: bool = False) -> list[tuple[str, str]]:
    """Engine settings of an argument vector (a container's command and args); `sure` says it is the engine's own."""
    words = [Word(token, 1) for token in tokens]
    if sure and words and words[0].text.startswith("-"):
        found = list(_options(words, {}, 0, every=True))
    else:
        found = [one for one in _segment(words, {}) if one.origin == "command"]
    return [(one.flag, one.value) for one in found]


_LONG = regex(r"--?(?P<name>[A-Za-z][\w.-]*)(?:=(?P<value>.*))?", re.S)
_ATTACHED = regex(r"-(?P<name>tp|pp|dp|O)[=.]?(?P<value>\d+)")
_SETTERS = frozenset(("export", "env", "set", "ENV", "declare", "local", "readonly"))
_SUBCOMMANDS = frozenset(("serve", "chat", "complete", "run-batch", "launch", "bench", "omni"))
_CONTAINERS = frozenset(("docker", "podman", "nerdctl", "docker.exe", "finch"))
_CONTAINER_VALUES = named("container_values")
COMMAND_WORDS = word_set(
    """
    vllm python python3 docker podman nerdctl uv uvx ray torchrun accelerate sh bash zsh env exec sudo nohup srun sbatch
    numactl taskset time timeout unshare systemd-run cmd entrypoint run command args lmdeploy trl prlimit nice kubectl
    mpirun pytest apptainer singularity helm conda poetry screen tmux setsid start_server
    """
) | {start.partition(" ")[0] for start in STARTS}


def segments(text: str) -> Iterator[list[Word]]:
    """Simple commands: split at operators, and at line ends unless the next line goes on with an option."""
    words: list[Word] = []
    ended = False
    for word in shell_words(text):
        if word is END:
            ended = True
            continue
        operator = not word.quoted and (word.text in OPERATORS or word.text.endswith(";"))
        # people paste commands without backslashes: a line that begins with an option may go on
        if words and ended and not (word.text.startswith("-") and _starts_something(words)):
            yield words
            words = []
        ended = False
        if operator:
            rest = word.text.rstrip(";")
            if rest and word.text not in OPERATORS:
                words.append(Word(rest, word.line))
            if words:
                yield words
            words = []
        else:
            words.append(word)
    if words:
        yield words


def _starts_something(words: Sequence[Word]) -> bool:
    """Whether these words are options, or start an engine, another server or a container."""
    return (words[0].text.startswith("-") or _engine_at(words) is not None or _other_at(words) is not None or _container_at(words) is not None)  # fmt: skip


def _other_at(words: Sequence[Word]) -> tuple[int, Server] | None:
    """The server other than vLLM that these words start, and where its options begin."""
    return started([word.text for word in words])


def settings_of(text: str) -> list[Setting]:
    """Everything set in a text that is a command, a script or a constructor."""
    found: list[Setting] = []
    values: dict[str, str] = {}
    text = prepared(text)
    code, rest = calls_in(text)
    found += code
    engine = 1 if code else 0
    for words in segments(rest):
        here = list(_segment(words, values, engine))
        found += here
        engine += _starts_something(words) and any(one.origin == "command" for one in here)
    return sorted(found, key=lambda one: one.line)


def _segment(words: Sequence[Word], values: dict[str, str], engine: int = 0) -> Iterator[Setting]:
    """Settings of one simple command; assignments are remembered in `values`."""
    at = 0
    while at < len(words):
        assigned = ASSIGNMENT.fullmatch(words[at].text)
        if not assigned and words[at].text not in _SETTERS and not (at and words[at].text == "-x"):
            break
        if assigned:
            value = with_values(assigned["value"], values)
            if value is not None:
                values[assigned["name"]] = value
                yield from _variable(words[at].line, assigned["name"], value, engine)
        at += 1
    rest = words[at:]
    if not rest:
        return
    other, container = _other_at(rest), _container_at(rest)
    begin = _engine_at(rest) if other is None else None
    script = _script(rest)
    if container is not None:
        yield from _container(rest[container:], values, engine)
    elif begin is not None:
        yield from _options(rest[begin:], values, engine, every=True, positional=True)
    elif other is not None:
        yield from _of_server(other[1], rest[other[0] :], values, engine, positional=True)
    elif (server := marked(word.text for word in rest)) is not None:
        yield from _of_server(server, rest, values, engine, positional=False)
    elif script is not None:
        yield from _handed_over(script, engine)
    else:
        bare = rest[0].text.startswith("-")
        options = list(_options(rest if bare else rest[1:], values, engine, every=bare))
        if any(one.flag in ENGINE_FLAGS for one in options):
            yield from options


SCRIPT = regex(r"\bvllm (?:serve|bench)\s|\bvllm\.entrypoints\.|\bapi_server(?:\.py)?\s+-|\s--(?:gpu-memory|max-model)")


def _script(words: Sequence[Word]) -> Word | None:
    """A command that is handed over in quotes: bash -c "vllm serve ..."."""
    return next((word for word in words if word.quoted and SCRIPT.search(word.text)), None)


def _handed_over(script: Word, engine: int) -> Iterator[Setting]:
    for one in settings_of(script.text):
        yield one._replace(line=script.line + one.line - 1, engine=engine)


def _container_at(words: Sequence[Word]) -> int | None:
    """Index of the word after `docker run`; None where no container is started."""
    for index, word in enumerate(words[:-1]):
        if word.text in _CONTAINERS:
            run = next(
                (i for i, later in enumerate(words[index + 1 : index + 4]) if later.text in ("run", "create")), None
            )
            return None if run is None else index + 2 + run
    return None


def _engine_at(words: Sequence[Word]) -> int | None:
    """Index of the first word after the one that starts the engine; None where this command starts none."""
    for index, word in enumerate(words):
        name = word.text.rpartition("/")[2]
        if name.startswith("vllm.entrypoints") or name in ("api_server.py", "api_server", "llm_engine.py"):
            return index + 1
        if name in ("vllm", "vllm.exe") and index + 1 < len(words) and words[index + 1].text in _SUBCOMMANDS:
            sub = words[index + 1].text
            if sub != "bench":
                return index + 2
            kind = words[index + 2].text if index + 2 < len(words) else ""
            return index + 3 if kind in ("latency", "throughput", "startup") else None
        if name in ("vllm-serve", "serve") and index and words[index - 1].text.rpartition("/")[2] in ("trl", "vllm"):
            return index + 1
    return None


_LETTER = regex(r"-[A-Za-z]")
_MODEL_OPTIONS = word_set(
    "--model --model-tag --model-path --model_path --model-id --model_id --model_dir --checkpoint_dir -m"
)


def _options(
    words: Sequence[Word],
    values: dict[str, str],
    engine: int,
    every: bool,
    positional: bool = False,
    short: Mapping[str, str] = SHORT_OPTIONS,
) -> Iterator[Setting]:
    """Options of a command: `every` one or only the engine's; a free word is the model where one may stand."""
    at = 0
    model = not positional or any(word.text.partition("=")[0] in _MODEL_OPTIONS for word in words)
    while at < len(words):
        word = words[at]
        at += 1
        if REDIRECT.fullmatch(word.text) and not word.quoted:
            continue
        if not every and _LETTER.fullmatch(word.text):
            continue  # every program has an -O and a -q of its own
        attached = _ATTACHED.fullmatch(word.text)
        option = _LONG.fullmatch(word.text) if not attached else None
        if attached:
            yield Setting(word.line, SHORT_OPTIONS[attached["name"]], attached["value"], "command", engine)
            continue
        if option is None or (word.quoted and " " in word.text):
            if not model and word.text and not word.text.startswith("-"):
                model = True
                value = with_values(word.text, values)
                if value:
                    yield Setting(word.line, "model", value, "command", engine)
            continue
        flag, value = _named(option["name"], word.text.startswith("--"), short), option["value"]
        if value is None and at < len(words) and _takes(flag, words[at]):
            value = words[at].text
            at += 1
            while flag in LISTS and at < len(words) and not words[at].text.startswith("-"):
                value += " " + words[at].text
                at += 1
        if flag is None:
            continue
        if flag.startswith("no_") and value is None and (flag[3:] in ENGINE_FLAGS or flag.startswith("no_enable_")):
            flag, value = flag[3:], "False"
        resolved = with_values(value if value is not None else "True", values)
        if resolved is not None and (every or flag in ENGINE_FLAGS or flag in COMMON_FLAGS):
            yield Setting(word.line, flag, shown(flag, resolved), "command", engine)


def _of_server(
    server: Server, words: Sequence[Word], values: dict[str, str], engine: int, positional: bool
) -> list[Setting]:
    """Options of another server, in vLLM's names where they mean the same."""
    return in_our_words(server, _options(words, values, engine, True, positional, server.short))


def _named(name: str, long: bool, short: Mapping[str, str] = SHORT_OPTIONS) -> str | None:
    if not long:
        return short.get(name, SHORT_OPTIONS.get(name))
    head, dot, tail = name.partition(".")
    flag = head.replace("-", "_").lower() + dot + tail
    return RENAMED.get(flag, flag)


def _takes(flag: str | None, word: Word) -> bool:
    """Whether the word after an option is its value."""
    if word.text.startswith("-") and not NUMBER.fullmatch(word.text) and not word.quoted:
        return False
    if not word.quoted and REDIRECT.fullmatch(word.text):
        return False
    if flag is not None and (flag in SWITCHES or flag.startswith(SWITCH_PREFIX)):
        return bool(TRUTH.fullmatch(word.text))
    return True


def _variable(line: int, name: str, value: str, engine: int) -> Iterator[Setting]:
    """A variable: the environment's, or one of a script that is named for an engine argument."""
    if is_environment(name) and name not in VARIABLE_FLAGS:
        yield Setting(line, name, shown(name, value), "environment", engine)
        return
    flag = RENAMED.get(name.lower(), name.lower())
    if flag in ENGINE_FLAGS:
        yield Setting(line, flag, shown(flag, value), "command", engine)
    elif name in VARIABLE_FLAGS and (value.replace(".", "", 1).isdigit() or VARIABLE_FLAGS[name] == "model"):
        yield Setting(line, VARIABLE_FLAGS[name], value, "command", engine)


def _container(words: Sequence[Word], values: dict[str, str], engine: int) -> Iterator[Setting]:
    """What follows `docker run`: environment and limits before the image, the engine's options after it."""
    at = 0
    entry: list[Word] = []
    while at < len(words):
        word = words[at]
        option, equals, value = word.text.partition("=")
        if not word.text.startswith("-"):
            break
        at += 1
        if not equals and option in _CONTAINER_VALUES and at < len(words):
            value = words[at].text
            at += 1
        if option in ("-e", "--env"):
            assigned = ASSIGNMENT.fullmatch(value)
            known = with_values(assigned["value"], values) if assigned else None
            if assigned and known is not None and is_environment(assigned["name"]):
                yield Setting(word.line, assigned["name"], shown(assigned["name"], known), "environment", engine)
        elif option == "--gpus" and (named := _DEVICES.search(value)):
            yield Setting(word.line, "CUDA_VISIBLE_DEVICES", named["ids"], "environment", engine)
        elif option == "--entrypoint" and value:
            entry = [Word(part, word.line) for part in value.split()]
        elif option in _BOUNDS and value:
            yield Setting(word.line, _BOUNDS[option], value, "bound", engine)
    if at >= len(words):
        return
    image, rest = words[at], [*entry, *words[at + 1 :]]
    version = image_version(image.text)
    if version:
        yield Setting(image.line, "version", version, "command", engine)
    begin, script = _engine_at(rest), _script(rest)
    if script is not None:
        yield from _handed_over(script, engine)
    elif begin is None and (server := of_image(image.text)) is not None:
        inner = _other_at(rest)
        yield from _of_server(server, rest[inner[0] :] if inner else rest, values, engine, positional=inner is not None)
    elif begin is not None or "vllm" in image.text or (rest and rest[0].text.startswith("-")):
        yield from _options(rest[begin or 0 :], values, engine, every=True, positional=True)


_DEVICES = regex(r"\bdevice=(?P<ids>\d{1,2}(?:,\d{1,2})*)\b")
"""`--gpus '"device=0,1"'`: by number; a count or `all` names none."""
_BOUNDS = {"--shm-size": "shm-size", "--memory": "container-limit", "-m": "container-limit"}
ECHO_ANCHORS = ("vllm serve ", "vllm.entrypoints.", "docker run ", "podman run ", *STARTS)
"""What stands in a line that starts an engine."""
_SHELL = regex(
    r"\s*(?:(?:\([\w.-]{1,40}\) ?)?(?:\S[\w.@:~/ -]{0,80}(?=[#$%❯>])|(?=[$%❯]))[#$%❯>][ \t]+|\+{1,4} )(?=\S)"
)
_MESSAGE = regex(r"\s*\[?\d\d?:\d\d(?::\d\d)?\]?\s+<?[@\w.-]{1,30}>?:?\s+(?=(?:vllm serve|python3? -m vllm)\s)")
"""The hour and the name before a message of a chat that is a command, and words behind a comma."""
_WORDS_BEHIND = regex(r"[,;]\s")
_SET_FOR = regex(r"(?=(?:[A-Z][A-Z0-9_]{2,40}=\S{1,120} ){1,8}(?:vllm serve|python3? -m vllm)\s)")
"""Before a command that begins its line with what it sets for itself: prose does not."""
_LAUNCHED = regex(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[ T][\d:.,]{5,16}Z?\]?[ -]{1,3})?(?:[\w.]{1,40} - (?:INFO|DEBUG) - |\[?(?:INFO|DEBUG)\]?[ :]{1,3})?(?i:cmd|command(?: line)?|running(?: command)?|executing|launch(?:ing|ed)?(?: with)?|starting(?: server)?(?: with)?|exec)\s?[:=]\s+(?=vllm serve |(?:\S*/)?python3? -m vllm)"
)
"""Before the command that a program reports to have started: `pipeline - INFO - cmd: vllm serve ...`."""


def launched(text: str) -> list[tuple[str, str]]:
    """Engine settings of a command that a program logs as it starts the engine; [] for other lines.

    >>> launched("2026-02-09 07:31:40,118 - runner - INFO - cmd: vllm serve org/m --max-num-seqs 8"), launched("the command vllm serve org/m fails")
    ([('model', 'org/m'), ('max_num_seqs', '8')], [])
    """
    before = _LAUNCHED.match(text)
    return _of_engine(text[before.end() :]) if before else []


def typed(text: str) -> list[tuple[str, str]]:
    """Engine settings of a command behind a shell's prompt, echoed by `set -x`, told in a chat or begun with what it sets for itself, as a log or a session shows it; [] for other lines.

    >>> typed("root@gpu-1:~# vllm serve org/m --max-num-seqs 8"), typed("please run: vllm serve org/m --max-num-seqs 8")
    ([('model', 'org/m'), ('max_num_seqs', '8')], [])
    >>> typed("[19:07] ana   vllm serve org/m --max-num-seqs 8, nothing else"), typed("[19:07] ana   I tried vllm serve org/m")
    ([('model', 'org/m'), ('max_num_seqs', '8')], [])
    >>> typed("CUDA_VISIBLE_DEVICES=3 vllm serve org/m --port 8000"), typed("with CUDA_VISIBLE_DEVICES=3 vllm serve org/m dies")
    ([('model', 'org/m'), ('port', '8000'), ('CUDA_VISIBLE_DEVICES', '3')], [])
    """
    message = _MESSAGE.match(text)
    prompt = message or _SHELL.match(text) or _SET_FOR.match(text)
    if not prompt:
        return []
    command = text[prompt.end() :]
    return _of_engine(_WORDS_BEHIND.split(command, maxsplit=1)[0] if message else command)


def _of_engine(command: str) -> list[tuple[str, str]]:
    found = settings_of(command)
    told = [(one.flag, one.value) for one in found if one.origin == "command"]
    # on which devices a server is put is of use beside the server only
    return told + [(one.flag, one.value) for one in found if told and one.flag == "CUDA_VISIBLE_DEVICES"]
