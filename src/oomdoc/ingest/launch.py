"""How the server was started: shell commands, Python constructors, environments, compose, stage and config files.

    CUDA_VISIBLE_DEVICES=0,1 vllm serve org/model -tp 2 \\          engine_args:
      --gpu-memory-utilization 0.95 --no-enable-prefix-caching        gpu_memory_utilization: 0.3
    llm = LLM(model="org/model", tensor_parallel_size=2)

Each setting becomes a row of `engine_flag` in the engine's own name with underscores; the value is text as it was typed
(`40G` stays `40G`; a switch alone is `True`, `--no-x` is `x` = `False`). Origins: `command` for options and keyword
arguments, `environment` for variables, `file` for keys of a document. Container options that bound memory become
`note` rows of topic `shm-size` and `container-limit`, value in bytes. Unresolved shell variables are left out.

`flags_of`, `flags_of_tokens`, `read_document` and `image_version` serve other ingestors. Nothing here runs anything.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from oomdoc.ingest.base import HEAD_BYTES, Head, Pattern, Rows, regex
from oomdoc.ingest.record import HEAD
from oomdoc.scan import Chunk
from oomdoc.tables import Batch
from oomdoc.units import KIB, parse_size

KIND = "launch"
TABLES: tuple[str, ...] = ("engine_flag", "note", "problem")

CAP_BYTES = 1 << 20  # nobody starts a server with more
_VALUE_CAP = 2000

SHORT_OPTIONS: dict[str, str] = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "dpl": "data_parallel_size_local",
    "dpn": "data_parallel_rank",
    "dpr": "data_parallel_start_rank",
    "dpa": "data_parallel_address",
    "dpp": "data_parallel_rpc_port",
    "dpb": "data_parallel_backend",
    "dcp": "decode_context_parallel_size",
    "pcp": "prefill_context_parallel_size",
    "ep": "enable_expert_parallel",
    "asc": "api_server_count",
    "spec-draft-tp": "speculative_draft_tensor_parallel_size",
    "cc": "compilation_config",
    "q": "quantization",
    "O": "compilation_config",
}
"""vLLM's short options (`engine/arg_utils.py`, `entrypoints/cli` of 0.2 to 0.33)."""

_RENAMED = {
    "model_tag": "model",
    "model_path": "model",
    "model_name_or_path": "model",
    "model_url": "model",
    "tensor_parallel": "tensor_parallel_size",
    "pipeline_parallel": "pipeline_parallel_size",
    "max_seq_len": "max_model_len",
    "gpu_memory_utilisation": "gpu_memory_utilization",
}

ENGINE_FLAGS: frozenset[str] = frozenset(
    """
    tensor_parallel_size pipeline_parallel_size data_parallel_size data_parallel_size_local enable_expert_parallel
    decode_context_parallel_size prefill_context_parallel_size distributed_executor_backend worker_use_ray
    gpu_memory_utilization kv_cache_memory_bytes kv_cache_memory swap_space cpu_offload_gb kv_cache_dtype block_size
    num_gpu_blocks_override num_cpu_blocks_override max_model_len max_num_seqs max_num_batched_tokens
    max_num_partial_prefills long_prefill_token_threshold max_logprobs max_paddings num_scheduler_steps
    num_lookahead_slots scheduler_delay_factor preemption_mode enable_prefix_caching enable_chunked_prefill
    disable_sliding_window prefix_caching_hash_algo kv_transfer_config kv_offloading_size kv_offloading_backend
    enforce_eager max_seq_len_to_capture max_context_len_to_capture compilation_config cudagraph_capture_sizes
    cuda_graph_sizes disable_custom_all_reduce quantization quantization_param_path load_format
    calculate_kv_scales enable_lora max_loras max_lora_rank max_cpu_loras lora_extra_vocab_size lora_dtype lora_modules
    fully_sharded_loras enable_prompt_adapter max_prompt_adapters speculative_model speculative_config
    num_speculative_tokens speculative_max_model_len speculative_draft_tensor_parallel_size ngram_prompt_lookup_max
    use_v2_block_manager limit_mm_per_prompt mm_processor_kwargs mm_processor_cache_gb mm_encoder_tp_mode
    disable_mm_preprocessor_cache skip_mm_profiling guided_decoding_backend structured_outputs_config enable_sleep_mode
    trust_remote_code disable_log_stats disable_log_requests enable_log_requests max_parallel_loading_workers
    rope_scaling hf_overrides served_model_name model_impl tokenizer_mode scheduling_policy async_scheduling
    api_server_count kv_cache_metrics max_num_queued_reqs optimization_level performance_mode enable_dbo
    all2all_backend enable_eplb attention_backend attention_config kernel_config override_pooler_config
    enable_auto_tool_choice tool_call_parser reasoning_parser additional_config disable_hybrid_kv_cache_manager
    """.split()  # noqa: SIM905 (a hundred quoted words would not be easier to read)
)
"""Engine arguments that no other program uses for something else: one of them marks a text as vLLM's."""

_COMMON_FLAGS = frozenset(
    ("model", "dtype", "seed", "tokenizer", "revision", "device", "task", "runner", "download_dir", "max_tokens")
)
"""Engine arguments whose names are everybody's: believed only beside one of `ENGINE_FLAGS`."""

_SWITCHES = frozenset(
    """
    enforce_eager trust_remote_code worker_use_ray fully_sharded_loras async_scheduling omni calculate_kv_scales
    skip_tokenizer_init skip_mm_profiling kv_cache_metrics headless language_model_only
    """.split()  # noqa: SIM905
)
_LISTS = frozenset(
    ("served_model_name", "lora_modules", "cudagraph_capture_sizes", "cuda_graph_sizes", "ignore_patterns")
)
_SWITCH_PREFIX = ("enable_", "disable_", "use_", "no_", "return_")
_TRUTH = regex(r"(?:true|false|yes|no|on|off|0|1)", re.I)

ENVIRONMENT = regex(
    r"(?:VLLM|CUDA|PYTORCH|TORCH|NCCL|RAY|NVIDIA|HIP|ROCR|HSA|ASCEND|LMCACHE|MALLOC|FLASHINFER|SGLANG|GPU|TPU|OMNI)_[A-Z0-9_]+"
    r"|OMP_NUM_THREADS|LD_PRELOAD|RAYON_NUM_THREADS"
)
"""Variables that bear on memory or devices; others are left alone."""
_SECRET = regex(r"api_?key|token$|secret|passw|credential", re.I)

_VARIABLE_FLAGS = {
    "TP": "tensor_parallel_size",
    "TP_SIZE": "tensor_parallel_size",
    "PP": "pipeline_parallel_size",
    "DP": "data_parallel_size",
    "MODEL": "model",
    "MODEL_NAME": "model",
    "MODEL_ID": "model",
    "GPU_MEM_UTIL": "gpu_memory_utilization",
    "GPU_UTIL": "gpu_memory_utilization",
    "MAX_LEN": "max_model_len",
}
_VERSION = regex(r"vllm[\w./-]*:v?(\d+\.\d+(?:\.\d+)?[\w.+-]*)")


class Setting(NamedTuple):
    """One setting found in a text; `line` counts from 1, `engine` numbers the command it belongs to, from 0."""

    line: int
    flag: str
    value: str
    origin: str
    engine: int = 0


# ---- shared helpers: options and images


def flags_of(text: str) -> list[tuple[str, str]]:
    """Engine settings of a command line, option list or constructor, in order; no environment.

    >>> flags_of("vllm serve org/model --max-model-len=4096 -tp 8 --no-enable-prefix-caching --enforce-eager")
    [('model', 'org/model'), ('max_model_len', '4096'), ('tensor_parallel_size', '8'), \
('enable_prefix_caching', 'False'), ('enforce_eager', 'True')]
    >>> flags_of("LLM(model='m', gpu_memory_utilization=1,\\n    dtype=torch.float16)")
    [('model', 'm'), ('gpu_memory_utilization', '1'), ('dtype', 'float16')]
    """
    return [(found.flag, found.value) for found in _settings(text) if found.origin == "command"]


def flags_of_tokens(tokens: Sequence[str], sure: bool = False) -> list[tuple[str, str]]:
    """Engine settings of an argument vector (a container's command and args); `sure` says it is the engine's own."""
    words = [_Word(token, 1) for token in tokens]
    if sure and words and words[0].text.startswith("-"):
        found = list(_options(words, {}, 0, every=True))
    else:
        found = [one for one in _segment(words, {}) if one.origin == "command"]
    return [(one.flag, one.value) for one in found]


def image_version(image: str) -> str | None:
    """The engine's version in a container image's tag; None where the tag names none.

    >>> image_version("vllm/vllm-openai:v0.9.1"), image_version("vllm/vllm-openai:latest")
    ('0.9.1', None)
    """
    found = _VERSION.search(image)
    return found[1] if found else None


def is_environment(name: str) -> bool:
    """Whether a variable's name is one that bears on memory, devices or the engine."""
    return bool(ENVIRONMENT.fullmatch(name))


def shown(flag: str, value: str) -> str:
    """A value fit to be shown: secrets masked, length bounded."""
    return "***" if _SECRET.search(flag) else value[:_VALUE_CAP]


# ---- shell


class _Word(NamedTuple):
    text: str
    line: int
    quoted: bool = False


_PIECE = regex(
    r"(?P<joined>\\[ \t]*\r?\n)|(?P<end>\r?\n)|(?P<space>[ \t\r\f\v]+)|(?P<escaped>\\.)"
    r"|\"(?P<double>(?:\\.|[^\"\\])*)\"|'(?P<single>[^']*)'|(?P<plain>[^\s\"'\\]+)|(?P<odd>[\s\S])"
)
_END = _Word("\n", 0)
_OPERATORS = frozenset(("|", "||", "&&", ";", "&", "then", "do"))
_LONG = regex(r"--?(?P<name>[A-Za-z][\w.-]*)(?:=(?P<value>.*))?", re.S)
_ATTACHED = regex(r"-(?P<name>tp|pp|dp|O)[=.]?(?P<value>\d+)")
_ASSIGN = regex(r"(?:\$env:)?(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.S)
_NUMBER = regex(r"-\d+(?:\.\d+)?")
_SETTERS = frozenset(("export", "env", "set", "ENV", "declare", "local", "readonly"))
_REDIRECT = regex(r"\d?(?:>>?|<)(?:&\d)?.*")
_REFERENCE = regex(r"\$(?:\{(?P<braced>\w+)(?::?[-=](?P<default>[^}]*))?\}|(?P<bare>\w+))")
_SUBCOMMANDS = frozenset(("serve", "chat", "complete", "run-batch", "launch", "bench", "omni"))
_CONTAINERS = frozenset(("docker", "podman", "nerdctl", "docker.exe", "finch"))
_CONTAINER_VALUES = frozenset(
    """
    -v --volume -p --publish -e --env --name --gpus --shm-size --memory -m --memory-swap --network --net --ipc --runtime
    --restart --ulimit --device --entrypoint --env-file --cpus --hostname -h --user -u -w --workdir --label -l --mount
    --cap-add --security-opt --pull --platform --cpuset-cpus --cpuset-mems --add-host --group-add --log-opt --log-driver
    --tmpfs --pid --health-cmd
    """.split()  # noqa: SIM905
)
_COMMAND_WORDS = frozenset(
    """
    vllm python python3 docker podman nerdctl uv uvx ray torchrun accelerate sh bash zsh env exec sudo nohup srun sbatch
    numactl taskset time timeout unshare systemd-run cmd entrypoint run command args lmdeploy trl prlimit nice kubectl
    mpirun pytest apptainer singularity helm conda poetry screen tmux setsid start_server
    """.split()  # noqa: SIM905
)


def _words(text: str) -> Iterator[_Word]:
    """Shell words with their lines; a line's end is a word of its own. Unbalanced quotes are letters."""
    line, piece, begun, quoted, first = 1, "", 0, False, True
    at = 0
    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None:  # cannot happen: the last alternative takes any character
            break
        at = match.end()
        kind = match.lastgroup
        if kind in ("space", "joined", "end"):
            if begun:
                yield _Word(piece, begun, quoted)
                piece, begun, quoted, first = "", 0, False, False
            if kind == "end":
                yield _END
                first = True
        elif kind == "plain" and not begun and match["plain"].startswith("#"):
            at = _line_end(text, match.start())  # a comment, the whole line after it
            first = first or not begun
        else:
            begun = begun or line
            quoted = quoted or kind in ("double", "single")
            inner = match[str(kind)]
            piece += (
                inner[1:] if kind == "escaped" else re.sub(r"\\([\"\\$`])", r"\1", inner) if kind == "double" else inner
            )
        line += match[0].count("\n")
    if begun:
        yield _Word(piece, begun, quoted)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _segments(text: str) -> Iterator[list[_Word]]:
    """Simple commands: split at operators, and at line ends unless the next line goes on with an option."""
    words: list[_Word] = []
    ended = False
    for word in _words(text):
        if word is _END:
            ended = True
            continue
        operator = not word.quoted and (word.text in _OPERATORS or word.text.endswith(";"))
        if words and ended and not (word.text.startswith("-") and _is_option_list(words)):
            yield words
            words = []
        ended = False
        if operator:
            rest = word.text.rstrip(";")
            if rest and word.text not in _OPERATORS:
                words.append(_Word(rest, word.line))
            if words:
                yield words
            words = []
        else:
            words.append(word)
    if words:
        yield words


def _is_option_list(words: list[_Word]) -> bool:
    """Whether a line that begins with an option may go on these words: people paste commands without backslashes."""
    return words[0].text.startswith("-") or _engine_at(words) is not None or _container_at(words) is not None


def _settings(text: str) -> list[Setting]:
    """Everything set in a text that is a command, a script or a constructor."""
    found: list[Setting] = []
    values: dict[str, str] = {}
    text = _prepared(text)
    code, rest = _calls(text)
    found += code
    engine = 1 if code else 0
    for words in _segments(rest):
        here = list(_segment(words, values, engine))
        found += here
        started = words[0].text.startswith("-") or _engine_at(words) is not None or _container_at(words) is not None
        engine += started and any(one.origin == "command" for one in here)
    return sorted(found, key=lambda one: one.line)


_PROMPT = regex(r"(?m)^[ \t]*(?:[\w.@:~/-]*[$%❯][ \t]+|PS [^>\n]*> |> )(?=\S)")
_DASHES = regex(r"(?<=\s)[–—](?=[a-z])|(?<=\s)[–—]{2}(?=[a-z])")


_UNIT_START = regex(r"(?m)^[ \t]*ExecStart(?:Pre|Post)?[ \t]*=[ \t]*[-@:+!]*(?=[^\s{])")
_UNIT_VARIABLES = regex(r"(?m)^[ \t]*Environment[ \t]*=[ \t]*(?=\S)")
_PROGRAM = regex(r"(?m)^[ \t]*\[(?:program|eventlistener|group):[^\]\n]+\]")
_PROGRAM_START = regex(r"(?m)^[ \t]*command[ \t]*=[ \t]*(?=\S)")
_PROGRAM_VARIABLES = regex(r"(?m)^[ \t]*environment[ \t]*=[ \t]*(?P<all>\S.*)$")
_VECTOR = regex(r"(?m)^[ \t]*(?P<what>ENTRYPOINT|CMD)[ \t]+(?P<words>\[.*\])[ \t\r]*(?P<next>\n(?=[ \t]*CMD[ \t]+\[))?")


def _prepared(text: str) -> str:
    """Prompts off, typographic dashes back to `--`; units, supervisors and image files as the shell would have them.

    No line moves: settings are told with the line in which they stand.
    """
    text = _DASHES.sub("--", _PROMPT.sub("", text))
    if "ExecStart" in text:
        text = _UNIT_VARIABLES.sub("export ", _UNIT_START.sub("", text))
    if _PROGRAM.search(text):
        text = _PROGRAM_START.sub("", text)
        text = _PROGRAM_VARIABLES.sub(
            lambda match: "export " + re.sub(r"(?<=[\"'\w]),(?=\w+=)", " ", match["all"]), text
        )
    return _VECTOR.sub(_vector_line, text)


def _vector_line(match: re.Match[str]) -> str:
    """`ENTRYPOINT ["vllm", "serve"]` as words; a `CMD` below goes on with them."""
    try:
        words = json.loads(match["words"])
    except (ValueError, RecursionError):
        return match[0]
    if not all(isinstance(word, str) for word in words):
        return match[0]
    joined = " ".join(shlex.quote(word) for word in words)
    return joined + (" \\\n" if match["what"] == "ENTRYPOINT" and match["next"] else match["next"] or "")


_NUL_WORDS = re.compile(rb"[\t\x20-\x7e\x80-\xff]+(?:\0[\t\n\x20-\x7e\x80-\xff]*)+\n?")
_NUL_MARKS = re.compile(rb"\bvllm\b|\b(?:VLLM|CUDA|PYTORCH)_[A-Z_]+=")


def is_nul_separated(head: Head) -> bool:
    """Whether this is a command line or an environment as `/proc/PID` shows them: words with NUL between, an engine's."""
    data = head.data
    return (
        b"\0" in data[:4096] and len(data) < HEAD_BYTES and bool(_NUL_MARKS.search(data) and _NUL_WORDS.fullmatch(data))
    )


def _text_of(data: bytes) -> str:
    """The text of a source; words between NULs quoted as in a shell, so that what one word was stays one."""
    if b"\0" in data and _NUL_WORDS.fullmatch(data):
        words = data.decode("utf-8", "replace").rstrip("\n\0").split("\0")
        if all(_ASSIGN.fullmatch(word) for word in words):
            return "export " + " ".join(shlex.quote(word) for word in words)
        return " ".join(shlex.quote(word) for word in words)
    return data.decode("utf-8", "replace").replace("\x00", " ")


def _resolved(value: str, values: dict[str, str]) -> str | None:
    """A value with shell variables put in; None where one is unknown."""
    if "$" not in value:
        return value
    unknown = False

    def put(match: re.Match[str]) -> str:
        nonlocal unknown
        name = match["braced"] or match["bare"]
        found = values.get(name, match["default"])
        unknown = unknown or found is None
        return found or ""

    result = _REFERENCE.sub(put, value)
    return None if unknown or not result else result


def _segment(words: Sequence[_Word], values: dict[str, str], engine: int = 0) -> Iterator[Setting]:
    """Settings of one simple command; assignments are remembered in `values`."""
    at = 0
    while at < len(words):
        assigned = _ASSIGN.fullmatch(words[at].text)
        if not assigned and words[at].text not in _SETTERS and not (at and words[at].text == "-x"):
            break
        if assigned:
            value = _resolved(assigned["value"], values)
            if value is not None:
                values[assigned["name"]] = value
                yield from _variable(words[at].line, assigned["name"], value, engine)
        at += 1
    rest = words[at:]
    if not rest:
        return
    begin, container = _engine_at(rest), _container_at(rest)
    script = next((word for word in rest if word.quoted and _SCRIPT.search(word.text)), None)
    if container is not None:
        yield from _container(rest[container:], values, engine)
    elif begin is not None:
        yield from _options(rest[begin:], values, engine, every=True, positional=True)
    elif script is not None:  # handed over in quotes: bash -c "vllm serve ..."
        for one in _settings(script.text):
            yield one._replace(line=script.line + one.line - 1, engine=engine)
    elif rest[0].text.startswith("-"):
        options = list(_options(rest, values, engine, every=True))
        if any(one.flag in ENGINE_FLAGS for one in options):
            yield from options
    else:
        options = list(_options(rest[1:], values, engine, every=False))
        if any(one.flag in ENGINE_FLAGS for one in options):
            yield from options


_SCRIPT = regex(
    r"\bvllm (?:serve|bench)\s|\bvllm\.entrypoints\.|\bapi_server(?:\.py)?\s+-|\s--(?:gpu-memory|max-model)"
)


def _container_at(words: Sequence[_Word]) -> int | None:
    """Index of the word after `docker run`; None where no container is started."""
    for index, word in enumerate(words[:-1]):
        if word.text in _CONTAINERS:
            run = next(
                (i for i, later in enumerate(words[index + 1 : index + 4]) if later.text in ("run", "create")), None
            )
            return None if run is None else index + 2 + run
    return None


def _engine_at(words: Sequence[_Word]) -> int | None:
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


def _options(
    words: Sequence[_Word], values: dict[str, str], engine: int, every: bool, positional: bool = False
) -> Iterator[Setting]:
    """Options of a command: `every` one or only the engine's; a free word is the model where one may stand."""
    at = 0
    model = not positional or any(
        word.text.startswith(("--model=", "--model-tag")) or word.text == "--model" for word in words
    )
    while at < len(words):
        word = words[at]
        at += 1
        if _REDIRECT.fullmatch(word.text) and not word.quoted:
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
                value = _resolved(word.text, values)
                if value:
                    yield Setting(word.line, "model", value, "command", engine)
            continue
        flag, value = _named(option["name"], word.text.startswith("--")), option["value"]
        if value is None and at < len(words) and _takes(flag, words[at]):
            value = words[at].text
            at += 1
            while flag in _LISTS and at < len(words) and not words[at].text.startswith("-"):
                value += " " + words[at].text
                at += 1
        if flag is None:
            continue
        if flag.startswith("no_") and value is None and (flag[3:] in ENGINE_FLAGS or flag.startswith("no_enable_")):
            flag, value = flag[3:], "False"
        resolved = _resolved(value if value is not None else "True", values)
        if resolved is not None and (every or flag in ENGINE_FLAGS or flag in _COMMON_FLAGS):
            yield Setting(word.line, flag, shown(flag, resolved), "command", engine)


def _named(name: str, long: bool) -> str | None:
    if not long:
        return SHORT_OPTIONS.get(name)
    head, dot, tail = name.partition(".")
    flag = head.replace("-", "_").lower() + dot + tail
    return _RENAMED.get(flag, flag)


def _takes(flag: str | None, word: _Word) -> bool:
    """Whether the word after an option is its value."""
    if word.text.startswith("-") and not _NUMBER.fullmatch(word.text) and not word.quoted:
        return False
    if not word.quoted and _REDIRECT.fullmatch(word.text):
        return False
    if flag is not None and (flag in _SWITCHES or flag.startswith(_SWITCH_PREFIX)):
        return bool(_TRUTH.fullmatch(word.text))
    return True


def _variable(line: int, name: str, value: str, engine: int) -> Iterator[Setting]:
    """A variable: the environment's, or one of a script that is named for an engine argument."""
    if is_environment(name):
        yield Setting(line, name, shown(name, value), "environment", engine)
        return
    flag = _RENAMED.get(name.lower(), name.lower())
    if flag in ENGINE_FLAGS:
        yield Setting(line, flag, shown(flag, value), "command", engine)
    elif name in _VARIABLE_FLAGS and (value.replace(".", "", 1).isdigit() or _VARIABLE_FLAGS[name] == "model"):
        yield Setting(line, _VARIABLE_FLAGS[name], value, "command", engine)


def _container(words: Sequence[_Word], values: dict[str, str], engine: int) -> Iterator[Setting]:
    """What follows `docker run`: environment and limits before the image, the engine's options after it."""
    at = 0
    entry: list[_Word] = []
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
            assigned = _ASSIGN.fullmatch(value)
            known = _resolved(assigned["value"], values) if assigned else None
            if assigned and known is not None and is_environment(assigned["name"]):
                yield Setting(word.line, assigned["name"], shown(assigned["name"], known), "environment", engine)
        elif option == "--entrypoint" and value:
            entry = [_Word(part, word.line) for part in value.split()]
        elif option in _BOUNDS and value:
            yield Setting(word.line, _BOUNDS[option], value, "bound", engine)
    if at >= len(words):
        return
    image, rest = words[at], [*entry, *words[at + 1 :]]
    version = image_version(image.text)
    if version:
        yield Setting(image.line, "version", version, "command", engine)
    begin = _engine_at(rest)
    script = next((word for word in rest if word.quoted and _SCRIPT.search(word.text)), None)
    if script is not None:
        for one in _settings(script.text):
            yield one._replace(line=script.line + one.line - 1, engine=engine)
    elif begin is not None or "vllm" in image.text or (rest and rest[0].text.startswith("-")):
        yield from _options(rest[begin or 0 :], values, engine, every=True, positional=True)


_BOUNDS = {"--shm-size": "shm-size", "--memory": "container-limit", "-m": "container-limit"}


def _echoed(row: dict[str, Any], match: re.Match[str]) -> dict[str, Any] | None:
    """An option in a line that starts the engine: `set -x`, a shell prompt, `ps` output."""
    begin = max(
        match.string.find("vllm serve ", 0, match.start()), match.string.find("vllm.entrypoints.", 0, match.start())
    )
    flag = _named(match["flag"].lstrip("-"), match["flag"].startswith("--"))
    if begin < 0 or flag is None or re.search(r"usage:|\berror:", match.string[max(0, begin - 80) : begin]):
        return None
    value = match["value"]
    switch = flag in _SWITCHES or flag.startswith(_SWITCH_PREFIX)
    if flag.startswith("no_"):
        flag, value = flag[3:], "False"
    elif switch and not (value and _TRUTH.fullmatch(value)):
        value = "True"
    if value is None or (flag not in ENGINE_FLAGS and flag not in _COMMON_FLAGS):
        return None
    return {"flag": flag, "value": shown(flag, value.strip("\"'")), "origin": "command"}


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "command-echo",
        "shell",
        ("vllm serve ", "vllm.entrypoints."),
        regex(
            r"(?<=\s)(?P<flag>--[a-z][\w.-]*|-(?:tp|pp|dp)(?=[= ]))"
            r"(?:[= ](?P<value>\"[^\"]*\"|'[^']*'|-\d+|(?!-)[^\s\"']+))?"
        ),
        "engine_flag",
        (
            ("+ vllm serve org/model --max-model-len 4096", {"flag": "max_model_len", "value": "4096"}),
            ("$ python3 -m vllm.entrypoints.openai.api_server -tp 2", {"flag": "tensor_parallel_size", "value": "2"}),
        ),
        convert=_echoed,
        repeat=True,
    ),
)
"""An engine's command echoed inside a log. Not for texts that `read` takes, which would tell the same twice."""


# ---- Python

_CALL = regex(r"(?P<name>[A-Za-z_][\w.]*)[ \t]*\(")
_ENGINE_CALL = regex(r"(?:^|\.|_)(?:\w*LLM|\w*EngineArgs|VLLM\w*|vllm|Vllm\w*)$")
_ASSIGNED = regex(
    r"(?m)^[ \t]*(?:export )?(?:[A-Za-z_]\w*\.)*(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*"
    r"(?P<value>[^\n#]{1,200}?)[ \t]*(?:#.*)?$"
)
_OS_ENVIRON = regex(r"os\.environ\[[\"'](?P<name>\w+)[\"']\]\s*=\s*[\"']?(?P<value>[^\"'\n]*)")
_ITEM = regex(r"[\"'](?P<name>\w+)[\"']\s*:\s*(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^,\n}]{1,200})")
_CALL_CAP = 20_000
_CALL_BUDGET = 400_000  # letters looked at for closing brackets in all, so that a wall of brackets costs no time


def _calls(text: str) -> tuple[list[Setting], str]:
    """Settings of constructors and dictionaries in Python, and the text with those calls blanked."""
    found: list[Setting] = []
    rest, last, budget = [], 0, _CALL_BUDGET
    named = {
        match["name"]: _literal(match["value"])
        for match in _ASSIGNED.finditer(text)
        if match["value"][:1] in "\"'" or match["value"].replace(".", "", 1).isdigit()
    }
    for match in _CALL.finditer(text):
        if match.start() < last or budget <= 0:
            continue
        inner = _balanced(text, match.end())
        budget -= _CALL_CAP if inner is None else len(inner)
        if inner is None:
            continue
        sure = bool(_ENGINE_CALL.search(match["name"]))
        settings = list(_keywords(inner, text.count("\n", 0, match.end()) + 1, named, sure))
        if not settings or not (sure or any(one.flag in ENGINE_FLAGS for one in settings)):
            continue
        found += settings
        end = match.end() + len(inner)
        rest.append(text[last : match.start()])
        rest.append("\n" * text.count("\n", match.start(), end))
        last = end
    rest.append(text[last:])
    for match in _OS_ENVIRON.finditer(text):
        if is_environment(match["name"]):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Setting(line, match["name"], shown(match["name"], match["value"]), "environment"))
    blanked = "".join(rest)
    for match in _ASSIGNED.finditer(blanked):  # engine_args.gpu_memory_utilization = 0.9, with spaces unlike a shell
        if match["name"] in ENGINE_FLAGS and " =" in match[0]:
            line = blanked.count("\n", 0, match.start("name")) + 1
            value = _python_value(match["value"], named)
            if value is not None:
                found.append(Setting(line, match["name"], value, "command"))
    return found, blanked


def _balanced(text: str, at: int) -> str | None:
    """Text up to the bracket that closes the one before `at`; None where it is not closed within reach."""
    depth, quote = 1, ""
    for index in range(at, min(len(text), at + _CALL_CAP)):
        letter = text[index]
        if quote:
            if letter == quote and text[index - 1] != "\\":
                quote = ""
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth == 0:
                return text[at:index]
    return None


def _pieces(inner: str) -> Iterator[tuple[int, str]]:
    """Arguments of a call with their offsets, split at commas outside brackets and quotes."""
    depth, quote, start = 0, "", 0
    for index, letter in enumerate(inner):
        if quote:
            quote = "" if letter == quote and inner[index - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            yield start, inner[start:index]
            start = index + 1
    yield start, inner[start:]


_KEYWORD = regex(r"\s*(?P<name>[A-Za-z_]\w*)\s*=(?!=)\s*(?P<value>.*)", re.S)


def _keywords(inner: str, line: int, named: dict[str, str], sure: bool) -> Iterator[Setting]:
    for index, (offset, piece) in enumerate(_pieces(inner)):
        piece = re.sub(r"#[^\n'\"]*(?=\n|$)", "", piece)
        here = line + inner.count("\n", 0, offset) + piece[: len(piece) - len(piece.lstrip())].count("\n")
        match = _KEYWORD.fullmatch(piece)
        if match is None:
            value = _python_value(piece.strip(), named)
            if sure and index == 0 and value and re.fullmatch(r"[\w./-]+", value) and piece.strip()[:1] in "\"'":
                yield Setting(here, "model", value, "command")
            for item in _ITEM.finditer(piece) if "{" in piece else ():
                if item["name"] in ENGINE_FLAGS:
                    yield Setting(here, item["name"], _literal(item["value"].strip()), "command")
            continue
        flag = _RENAMED.get(match["name"], match["name"])
        if flag not in ENGINE_FLAGS and "{" in match["value"]:
            for item in _ITEM.finditer(match["value"]):
                if item["name"] in ENGINE_FLAGS:
                    yield Setting(here, item["name"], _literal(item["value"].strip()), "command")
            continue
        value = _python_value(match["value"].strip(), named)
        if value is not None and (sure or flag in ENGINE_FLAGS or flag in _COMMON_FLAGS):
            yield Setting(here, flag, shown(flag, value), "command")


def _python_value(printed: str, named: dict[str, str]) -> str | None:
    """Text of a Python value: strings unquoted, `torch.float16` as its last word, None for an unknown name."""
    if re.fullmatch(r"[A-Za-z_]\w*", printed) and printed not in ("True", "False", "None"):
        return named.get(printed)
    if re.fullmatch(r"torch\.\w+", printed):
        return printed.partition(".")[2]
    if re.match(r"[A-Za-z_][\w.]*\s*[(\[]|[A-Za-z_]\w*\.\w", printed) or not printed:
        return None
    return _literal(printed)


def _literal(printed: str) -> str:
    if len(printed) > 1 and printed[0] in "\"'" and printed[-1] == printed[0]:
        try:
            return str(ast.literal_eval(printed))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return printed[1:-1]
    return printed


# ---- documents: YAML and JSON


class Text(str):
    """A scalar of a document that knows its line."""

    line: int = 0


class Mapping(dict[str, Any]):
    """A mapping of a document that knows the line it begins in."""

    line: int = 0


_KEY = regex(r"(?P<key>\"[^\"]*\"|'[^']*'|[^\s#:\[\]{}\"'-][^:#\n]*?|-[\w.-]+)\s*:(?:\s+(?P<value>.*))?$", re.S)
_DEPTH = 60


class _Line(NamedTuple):
    indent: int
    text: str
    number: int


class _Lines(list[_Line]):
    """Lines of one document, and the values that its anchors name; `left` bounds what aliases may repeat."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: dict[str, Any] = {}
        self.left = 100_000

    def alias(self, printed: str, line: int) -> Any:
        """The value that `*name` stands for; the text itself where there is none, or where aliases repeat too much."""
        value = self.anchors.get(printed[1:].partition(" ")[0])
        if value is not None:
            self.left -= _size(value)
        return value if value is not None and self.left > 0 else _scalar(printed, line)


def _size(value: Any) -> int:
    """Values in a value, itself among them."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, inner))


_ANCHOR = regex(r"(?:![\w!:/.,-]*\s+)?&(?P<name>[^\s\[\]{},]+)(?:\s+(?P<rest>.*))?$", re.S)
_ALIAS = regex(r"\*[^\s\[\]{},*]+(?:\s+#.*)?")
_TAG = regex(r"!(?:![a-z]+|[A-Za-z][\w:/.-]*)?(?:\s+|$)")


def read_document(text: str) -> list[Any]:
    """Documents of a JSON or YAML text as mappings, lists and scalars (`Text`, which knows its line).

    The YAML is what tools print and people write for servers: block and flow mappings and lists, block scalars,
    comments, anchors with their aliases and merges. Tags are passed over. Text that is neither gives what could be read; never raises.
    """
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped[:1] in ("{", "["):
        try:
            return [_from_json(json.loads(stripped), 0)]
        except (ValueError, RecursionError):
            pass
    documents: list[Any] = []
    lines = _Lines()
    for number, raw in enumerate([*text.split("\n"), "---"], 1):
        if raw.startswith("---") and not raw[3:].strip("- \r"):
            if lines:
                documents.append(_block(lines, 0, 0)[0])
            lines = _Lines()
            continue
        body = raw.strip()
        if body and not body.startswith("#") and body != "...":
            lines.append(_Line(len(raw) - len(raw.lstrip(" \t")), raw.strip(" \t\r"), number))
    return documents


def _from_json(value: Any, depth: int) -> Any:
    if isinstance(value, dict) and depth < _DEPTH:
        return Mapping({str(key): _from_json(item, depth + 1) for key, item in value.items()})
    if isinstance(value, list) and depth < _DEPTH:
        return [_from_json(item, depth + 1) for item in value]
    return Text(value) if isinstance(value, str) else value


_ESCAPED = regex(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([ \"/\\0abefnrtv]))")
_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _ESCAPES.get(match[3], match[3])


def _scalar(printed: str, line: int) -> Text:
    value = printed.strip()
    if len(value) > 1 and value[0] in "\"'" and value.endswith(value[0]):
        quote, value = value[0], value[1:-1]
        value = _ESCAPED.sub(_unescaped, value) if quote == '"' else value.replace("''", "'")
    elif value[:1] not in ('"', "'"):
        value = re.sub(r"\s+#.*", "", value)
    text = Text(value)
    text.line = line
    return text


def _block(lines: _Lines, at: int, depth: int) -> tuple[Any, int]:
    """The value that begins at `lines[at]`, and the index after it."""
    indent, text, _ = lines[at]
    if depth > _DEPTH:
        return _scalar(text, lines[at].number), at + 1
    if text == "-" or text.startswith("- "):
        items: list[Any] = []
        while (
            at < len(lines)
            and lines[at].indent == indent
            and (lines[at].text == "-" or lines[at].text.startswith("- "))
        ):
            rest = lines[at].text[1:].lstrip()
            anchor = _ANCHOR.match(rest)
            if anchor:
                rest = anchor["rest"] or ""
            if not rest:
                at += 1
                if at < len(lines) and lines[at].indent > indent:
                    value, at = _block(lines, at, depth + 1)
                    items.append(value)
            elif rest.startswith("- ") or _KEY.match(rest):
                lines[at] = _Line(indent + len(lines[at].text) - len(rest), rest, lines[at].number)
                value, at = _block(lines, at, depth + 1)
                items.append(value)
            else:
                value, at = _value(rest, lines, at, indent, depth)
                items.append(value)
            if anchor and items:
                lines.anchors[anchor["name"]] = items[-1]
        return items, at
    if _KEY.match(text):
        mapping, merged = Mapping(), Mapping()
        mapping.line = lines[at].number
        while at < len(lines) and lines[at].indent == indent and (match := _KEY.match(lines[at].text)):
            value, at = _value(match["value"] or "", lines, at, indent, depth)
            key = str(_scalar(match["key"], 0))
            if key == "<<":
                for other in reversed(value if isinstance(value, list) else [value]):
                    named = lines.alias(other, 0) if isinstance(other, str) and other[:1] == "*" else other
                    merged.update(named if isinstance(named, dict) else {})
            else:
                mapping[key] = value
        for key, value in merged.items():
            mapping.setdefault(key, value)
        if (
            at < len(lines)
            and lines[at].indent >= indent
            and not _KEY.match(lines[at].text)
            and not lines[at].text.startswith("- ")
        ):
            at += 1  # prose between keys: passed over
            if at < len(lines) and lines[at].indent == indent and _KEY.match(lines[at].text):
                more, at = _block(lines, at, depth + 1)
                mapping.update(more)
        return mapping, at
    return _scalar(text, lines[at].number), at + 1


def _value(printed: str, lines: _Lines, at: int, indent: int, depth: int) -> tuple[Any, int]:
    """The value after a key or dash: on the line itself, in a block below it, or spread over lines."""
    number = lines[at].number
    if anchor := _ANCHOR.match(printed):
        value, at = _value(anchor["rest"] or "", lines, at, indent, depth)
        lines.anchors[anchor["name"]] = value
        return value, at
    if tag := _TAG.match(printed):
        printed = printed[tag.end() :]
    at += 1
    if _ALIAS.fullmatch(printed):
        return lines.alias(printed, number), at
    if printed[:1] in ("|", ">") and re.fullmatch(r"[|>][+-]?\d?\s*(?:#.*)?", printed):
        begin = at
        while at < len(lines) and lines[at].indent > indent:
            at += 1
        text = Text("\n".join(line.text for line in lines[begin:at]))
        text.line = number + 1
        return text, at
    if not printed or printed.startswith("#"):
        deeper = at < len(lines) and (
            lines[at].indent > indent or (lines[at].indent == indent and lines[at].text.startswith("- "))
        )
        if deeper and not lines[at].text.startswith("- ") and lines[at].indent <= indent:
            return None, at
        return _block(lines, at, depth + 1) if deeper else (None, at)
    if printed[0] in "[{":
        while not _closed(printed) and at < len(lines) and len(printed) < _CALL_CAP:
            printed += " " + lines[at].text
            at += 1
        return _flow(printed, number), at
    value = printed
    while at < len(lines) and lines[at].indent > indent and not _KEY.match(lines[at].text):
        value += " " + lines[at].text  # a plain scalar goes on in deeper lines
        at += 1
    return _scalar(value, number), at


def _closed(printed: str) -> bool:
    return printed.count("[") + printed.count("{") <= printed.count("]") + printed.count("}")


def _flow(printed: str, line: int, depth: int = 0) -> Any:
    """A flow list or mapping; those inside it to the same depth as blocks."""

    def inner_value(part: str) -> Any:
        part = part.strip()
        return _flow(part, line, depth + 1) if part[:1] in ("[", "{") and depth < _DEPTH else _scalar(part, line)

    try:
        value = _from_json(json.loads(printed), 0)
    except (ValueError, RecursionError):
        inner = re.sub(r"\s+#[^\]}]*$", "", printed).strip()[1:-1]
        parts = [piece for _, piece in _pieces(inner) if piece.strip()]
        if printed[0] == "[":
            return [inner_value(part) for part in parts]
        value = Mapping()
        for part in parts:
            key, colon, rest = part.partition(":")
            if colon:
                value[str(_scalar(key, 0))] = inner_value(rest)
    if isinstance(value, Mapping):
        value.line = line
    return value


_VECTOR_KEYS = frozenset(("args", "command", "cmd", "entrypoint", "extraargs", "extra_args", "vllm_args", "arguments"))
_SIZE_KEYS = {"shm_size": "shm-size", "shmsize": "shm-size", "mem_limit": "container-limit"}


def document_settings(
    value: Any, line: int = 0, engine: int = 0, inside: bool = False, depth: int = 0
) -> Iterator[Setting]:
    """Settings in a document: engine arguments as keys, argument vectors, environments, images, limits."""
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        words = [item for item in value if isinstance(item, str)]
        if any(word.startswith("--") for word in words) or (inside and words):
            first = next((getattr(word, "line", 0) for word in words), 0) or line
            yield from (Setting(first, flag, text, "command", engine) for flag, text in _vector(words))
        for word in words:
            assigned = _ASSIGN.fullmatch(word)
            if assigned and is_environment(assigned["name"]):
                here = getattr(word, "line", 0) or line
                yield Setting(here, assigned["name"], shown(assigned["name"], assigned["value"]), "environment", engine)
        stages = sum(isinstance(item, dict) and "stage_id" in item for item in value)
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                number = engine + index if stages > 1 else engine
                yield from document_settings(item, line, number, depth=depth + 1)
        return
    if not isinstance(value, dict):
        return
    line = getattr(value, "line", 0) or line
    name = value.get("name")
    if isinstance(name, str) and "value" in value and is_environment(name):
        yield Setting(line, name, shown(name, _printed(value["value"])), "environment", engine)
    sure = inside or any(_snake(str(key)) in ENGINE_FLAGS for key in value)
    for key, item in value.items():
        here = getattr(item, "line", 0) or line
        flag = _snake(str(key))
        flag = _RENAMED.get(flag, flag)
        if is_environment(str(key)) and not isinstance(item, (dict, list)):
            yield Setting(here, str(key), shown(str(key), _printed(item)), "environment", engine)
        elif flag in ENGINE_FLAGS or (sure and flag in _COMMON_FLAGS):
            if item is not None:
                yield Setting(here, flag, shown(flag, _printed(item)), "file", engine)
        elif flag.lower() in _SIZE_KEYS and isinstance(item, (str, int)):
            yield Setting(here, _SIZE_KEYS[flag.lower()], str(item), "bound", engine)
        elif flag == "limits" and isinstance(item, dict) and isinstance(item.get("memory"), str):
            yield Setting(
                getattr(item["memory"], "line", 0) or here, "container-limit", item["memory"], "bound", engine
            )
        elif flag == "image" and isinstance(item, str) and (version := image_version(item)):
            yield Setting(here, "version", version, "file", engine)
        elif flag.lower() in _VECTOR_KEYS:
            if isinstance(item, str) and ("--" in item or "vllm" in item):
                yield from (one._replace(line=max(1, here) + one.line - 1, engine=engine) for one in _settings(item))
            else:
                yield from document_settings(item, here, engine, inside=isinstance(item, list), depth=depth + 1)
        elif flag == "services" and isinstance(item, dict):
            for index, service in enumerate(item.values()):
                yield from document_settings(service, here, engine + index, depth=depth + 1)
        elif isinstance(item, (dict, list)):
            nested = "engine" in flag or "vllm" in flag
            yield from document_settings(item, here, engine, nested and isinstance(item, dict), depth + 1)


def _snake(key: str) -> str:
    """A key in the engine's spelling: `maxModelLen` and `max-model-len` are `max_model_len`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower() if not key.isupper() else key


def _vector(words: Sequence[str]) -> list[tuple[str, str]]:
    """Flags of an argument vector; one that does not begin with the engine's name is the image's own argument list."""
    scripts = [word for word in words if " " in word and _SCRIPT.search(word)]
    return flags_of(scripts[0]) if scripts else flags_of_tokens(words)


def _printed(value: Any) -> str:
    if isinstance(value, str):
        return {"true": "True", "false": "False", "null": "None", "~": "None"}.get(value, str(value))
    if isinstance(value, (dict, list)):
        return json.dumps(value, default=str)
    return str(value)


# ---- the ingestor

_LOG_LINE = regex(
    r"\s*(?:Traceback \(most recent|File \"[^\"]+\", line \d|(?:\w+\.)*\w*(?:Error|Exception|Warning)\b: |"
    r"INFO: +\S|\[\s*\d+\.\d{3,}\]|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s|\w{3} +\d+ \d\d:\d\d:\d\d |\([\w.:-]+(?: rank=\d+)? pid=\d+)"
)
_COMMENT = regex(r"\s*(?:#|//|<!--|rem )", re.I)
_KEY_VALUE = regex(r"\s*(?:export |set |ENV |- |declare -x )?[A-Za-z_][\w.]*[ \t]*=[ \t]*\S*")
_YAML_LINE = regex(r"\s*(?:- )*(?:[\"']?[A-Za-z_][\w./-]*[\"']?:(?:\s|$)|- \S)")
_OPTION_LINE = regex(r"\s*(?:- )?[\"']?--?[A-Za-z]")
_CODE_LINE = regex(
    r"\s*(?:import |from \S+ import |def |if |else|fi\b|for |done|class |return|with |[)\]}]|@|[\w.]+\(|[\w., ]{1,200} = )"
)
_PROSE = regex(r"\s*(?:[-*] )?[A-Za-z][a-z']*(?: [a-z0-9'%,.-]+){4,}")


def is_log(lines: Iterable[str]) -> bool:
    """Whether these lines are a log or hold part of one: nobody shall take it for a command or a note."""
    told = heads = 0
    for line in lines:
        told += bool(line.strip())
        match = HEAD.match(line)
        heads += bool((match and (match["mon"] or match["src"])) or _LOG_LINE.match(line))
    return heads > max(0, told // 10)


def matches(head: Head) -> bool:
    """A small text that is a command, an option list, a constructor, an environment or a server's config file."""
    nul = is_nul_separated(head)
    if len(head.data) >= HEAD_BYTES or (b"\x00" in head.data and not nul) or is_log(head.lines):
        return False
    text = _text_of(head.data)
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or not re.search(r"[=:-]|vllm", text):
        return False
    found, document = _everything(text)
    if not found:
        return False
    if document:
        return any(one.origin != "environment" or one.flag.startswith(("VLLM_", "CUDA_", "PYTORCH_")) for one in found)
    prose = sum(bool(_PROSE.match(line)) and not _is_shape(line) and not _is_command(line) for line in lines)
    if prose * 2 > len(lines):
        return False
    if any(one.origin in ("command", "bound") for one in found):
        return _begins_a_command(text) or (prose == 0 and all(map(_is_shape, lines)))
    return sum(bool(_KEY_VALUE.match(line) or _COMMENT.match(line)) for line in lines) >= 0.7 * len(lines) or (
        _begins_a_command(text)
    )


def _is_shape(line: str) -> bool:
    shapes = (_COMMENT, _KEY_VALUE, _YAML_LINE, _OPTION_LINE, _CODE_LINE)
    return any(shape.match(line) for shape in shapes) or line.rstrip().endswith("\\")


def _is_command(line: str) -> bool:
    """Whether a line that reads like a sentence is a command: a known program, and two options at least."""
    words = line.split()
    name = words[0].rpartition("/")[2].lower()
    return (name in _COMMAND_WORDS or name.startswith("python")) and sum(word.startswith("-") for word in words) > 1


def _begins_a_command(text: str) -> bool:
    """Whether some line begins as a command or constructor: a known program, an option, an assignment before one."""
    text = _prepared(text)
    if _calls(text)[0]:
        return True
    for words in _segments(text):
        for word in words:
            if _ASSIGN.fullmatch(word.text) or word.text in ("export", "set", "ENV", "exec", "\\"):
                continue
            name = word.text.rpartition("/")[2].strip('[]",').lower()
            if (
                name in _COMMAND_WORDS
                or name.startswith("python")
                or word.text.startswith("--")
                or name.endswith((".sh", ".py"))
            ):
                return True
            break
    return False


def _everything(text: str) -> tuple[list[Setting], bool]:
    """All settings of a text, and whether it was read as a document."""
    lines = [line for line in text.split("\n") if line.strip() and not _COMMENT.match(line)]
    keyed = sum(bool(_YAML_LINE.match(line)) for line in lines)
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") or keyed * 10 >= 8 * len(lines) > 0:
        found = [one for document in read_document(text) for one in document_settings(document)]
        if found:
            return [one._replace(line=one.line or _where(text, one)) for one in found], True
    if lines and keyed * 2 > len(lines):
        text = re.sub(r"(?m)^(\s*)- (?=[\"']?-)", r"\1", text)
    return _settings(text), False


def _where(text: str, one: Setting) -> int:
    """The line of a setting in JSON, whose parser tells none: the first place of its name."""
    at = max(text.find(one.flag), text.find(one.flag.replace("_", "-")))
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


_ASKED = regex(r"\bprompt_logprobs\"?\s*[=:]\s*[1-9]\d*|\becho\"?\s*[=:]\s*[Tt]rue\b")  # in a script that also asks
_TMPFS = regex(r"mount\s[^\n;&|']{0,80}?\bsize=(?P<size>[\d.]+[kKmMgG]?)[^\n;&|']{0,80}?/dev/shm")
_UNIT_LIMIT = regex(r"\bMemoryMax=(?P<size>[\d.]+[KMGT]?)")


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of `engine_flag` in the order of the text, and `note` rows for the limits it sets."""
    rows = Rows()
    parts, held = [], 0
    for chunk in chunks:  # all of them are drawn, since others listen
        if held < CAP_BYTES:
            parts.append(chunk.data)
            held += len(chunk.data)
    text = _text_of(b"".join(parts)[:CAP_BYTES])
    if held > CAP_BYTES:
        rows.problem(1, "a launch text of more than 1 MiB: only its beginning was read", text)
    found, _ = _everything(text)
    flags = [one for one in found if one.origin != "bound"]
    several = len({one.engine for one in flags if one.origin != "environment"}) > 1
    seen: set[tuple[str, str, str, int]] = set()
    for one in flags:
        key = (one.flag, one.value, one.origin, one.engine)
        if key not in seen:
            seen.add(key)
            process = f"engine {one.engine}" if several else None
            rows.add(
                "engine_flag", max(1, one.line), flag=one.flag, value=one.value, origin=one.origin, process=process
            )
    _bounds(rows, text, [one for one in found if one.origin == "bound"])
    asked = _ASKED.search(text)
    if asked:
        line = text.count("\n", 0, asked.start()) + 1
        rows.add("note", line, topic="prompt-logprobs", text=asked[0][:300])
    if not rows.count and text.strip():
        rows.problem(1, "a launch command or config without one readable setting", text.strip())
    yield from rows.take()


def _bounds(rows: Rows, text: str, bounds: list[Setting]) -> None:
    """Limits that a command sets: shared memory, container memory."""
    for one in dict.fromkeys(one._replace(engine=0) for one in bounds):  # services may share a part of a document
        size = _binary(one.value)
        if size:
            rows.add("note", max(1, one.line), topic=one.flag, value=size, text=f"{one.flag} {one.value}"[:300])
    for topic, shape in (("shm-size", _TMPFS), ("container-limit", _UNIT_LIMIT)):
        for match in shape.finditer(text):
            size = _binary(match["size"])
            if size:
                line = text.count("\n", 0, match.start()) + 1
                rows.add("note", line, topic=topic, value=size, text=match[0][:300])


def _binary(printed: str) -> int | None:
    """Bytes of a container size: `64m`, `2g`, `10.24gb` are binary, a plain number is bytes."""
    size = parse_size(printed, binary=True)
    return size if size and size >= KIB else None
