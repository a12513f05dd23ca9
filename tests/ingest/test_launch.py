"""How a server was started: commands, constructors, environments, documents; and logs that only echo a command."""

from __future__ import annotations

import io
import json
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.ingest import launch, make_head, reads_binary, text_log
from oomdoc.ingest.launch import flags_of, flags_of_tokens, image_version, read_document
from oomdoc.intake.scan import chunks


def read(text: str | bytes, size: int = 1 << 20) -> dict[str, list[dict[str, Any]]]:
    data = text if isinstance(text, bytes) else text.encode()
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in launch.read("any", chunks(io.BytesIO(data), size)):
        names, columns = list(batch.columns), list(batch.columns.values())
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        tables.setdefault(batch.table, []).extend(rows)
    return tables


def flags(text: str, origin: str | None = None) -> dict[str, str]:
    rows = read(text).get("engine_flag", [])
    return {row["flag"]: row["value"] for row in rows if origin in (None, row["origin"])}


def is_launch(text: str) -> bool:
    return launch.matches(make_head("any", text.encode()))


COMMANDS: list[tuple[str, dict[str, str]]] = [
    ("vllm serve org/m", {"model": "org/m"}),
    (
        "vllm serve org/m --max-model-len 4096 -tp 8 -pp=2 --gpu-memory-utilization=0.9",
        {
            "model": "org/m",
            "max_model_len": "4096",
            "tensor_parallel_size": "8",
            "pipeline_parallel_size": "2",
            "gpu_memory_utilization": "0.9",
        },
    ),
    (
        "python3 -m vllm.entrypoints.openai.api_server --model org/m \\\n  --swap-space 0 \\\n  --enforce-eager\n",
        {"model": "org/m", "swap_space": "0", "enforce_eager": "True"},
    ),
    ("--kv-cache-memory-bytes 40G --no-enable-prefix-caching", {"kv_cache_memory_bytes": "40G", "enable_prefix_caching": "False"}),
    ("$ vllm serve org/m\n    --max-num-seqs 16\n    -tp4\n", {"model": "org/m", "max_num_seqs": "16", "tensor_parallel_size": "4"}),
    ("vllm serve --trust-remote-code org/m --port 8000", {"trust_remote_code": "True", "model": "org/m", "port": "8000"}),
    (
        'vllm serve org/m --speculative-config \'{"method": "mtp", "num_speculative_tokens": 2}\'',
        {"model": "org/m", "speculative_config": '{"method": "mtp", "num_speculative_tokens": 2}'},
    ),
    ("vllm serve org/m --served-model-name a b --seed -1", {"model": "org/m", "served_model_name": "a b", "seed": "-1"}),
    ("nohup vllm serve org/m --max-num-seqs 4 > server.log 2>&1 &", {"model": "org/m", "max_num_seqs": "4"}),
    ('bash -c "cd /srv && vllm serve org/m --max-model-len 100"', {"model": "org/m", "max_model_len": "100"}),
    ("sh -c 'echo $$ > group/vllm/procs && exec \"$@\"' sh vllm serve org/m -tp 2", {"model": "org/m", "tensor_parallel_size": "2"}),
    ("vllm serve org/m —max-model-len 2048", {"model": "org/m", "max_model_len": "2048"}),
    ("M=org/m\nvllm serve $M --max-num-seqs ${SEQS:-64} --port ${PORT}", {"model": "org/m", "max_num_seqs": "64"}),
    ("trl vllm-serve --model org/m --tensor_parallel_size 2", {"model": "org/m", "tensor_parallel_size": "2"}),
    ("TP=2\nMODEL=org/m\ngpu_memory_utilization=0.98\nROUNDS=9", {"tensor_parallel_size": "2", "model": "org/m", "gpu_memory_utilization": "0.98"}),
    (
        "llm = LLM('org/m', tensor_parallel_size=4,\n          gpu_memory_utilization=1, seed=args.seed, dtype=torch.float16)",
        {"model": "org/m", "tensor_parallel_size": "4", "gpu_memory_utilization": "1", "dtype": "float16"},
    ),
    (
        "args = AsyncEngineArgs(\n    model=\"org/m\",\n    max_model_len=4096,  # tokens\n    enforce_eager=True)",
        {"model": "org/m", "max_model_len": "4096", "enforce_eager": "True"},
    ),
    ("run(engine_kwargs={'gpu_memory_utilization': 0.5, 'x': 1})", {"gpu_memory_utilization": "0.5"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "want"), COMMANDS)
def test_commands(text: str, want: dict[str, str]) -> None:
    assert is_launch(text)
    assert flags(text, "command") == want
    assert dict(flags_of(text)) == want


def test_lines_are_those_of_the_text() -> None:
    rows = read("# how we start\nvllm serve org/m \\\n  --max-model-len 10 \\\n  --max-num-seqs 2\n")["engine_flag"]
    assert [(row["flag"], row["line"]) for row in rows] == [("model", 2), ("max_model_len", 3), ("max_num_seqs", 4)]
    rows = read("a = LLM(\n  'org/m',  # one\n  # two\n  max_model_len=10,\n  max_num_seqs=2)\n")["engine_flag"]
    assert [(row["flag"], row["line"]) for row in rows] == [("model", 2), ("max_model_len", 4), ("max_num_seqs", 5)]


def test_environment_and_secrets() -> None:
    text = "CUDA_VISIBLE_DEVICES=0,1 VLLM_USE_V1=1 HOME=/root VLLM_API_KEY=hush vllm serve org/m --api-key hush\n"
    assert flags(text, "environment") == {"CUDA_VISIBLE_DEVICES": "0,1", "VLLM_USE_V1": "1", "VLLM_API_KEY": "***"}
    assert flags(text, "command") == {"model": "org/m", "api_key": "***"}
    listing = "HOME=/root\nLANG=C\nPYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n# total memory 5 kB\n"
    assert is_launch(listing)
    assert flags(listing) == {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


def test_a_container_is_read_on_both_sides_of_its_image() -> None:
    text = (
        "docker run --gpus all --shm-size 2g -m 32g -e VLLM_USE_V1=0 -v ~/c:/c -p 8000:8000 \\\n"
        "  vllm/vllm-openai:v0.8.5 --model org/m --max-num-seqs 8\n"
    )
    tables = read(text)
    assert flags(text) == {"VLLM_USE_V1": "0", "version": "0.8.5", "model": "org/m", "max_num_seqs": "8"}
    assert [(row["topic"], row["value"]) for row in tables["note"]] == [
        ("shm-size", 2 << 30),
        ("container-limit", 32 << 30),
    ]


def test_a_small_dev_shm_mounted_by_hand() -> None:
    text = "unshare -m sh -c 'mount -t tmpfs -o size=16M tmpfs /dev/shm && exec \"$@\"' sh vllm serve org/m\n"
    assert [(row["topic"], row["value"]) for row in read(text)["note"]] == [("shm-size", 16 << 20)]
    assert flags(text) == {"model": "org/m"}


def test_several_engines_are_kept_apart() -> None:
    text = "vllm serve org/a --port 1\nvllm serve org/b --port 2\n"
    rows = read(text)["engine_flag"]
    assert {(row["value"], row["process"]) for row in rows if row["flag"] == "model"} == {
        ("org/a", "engine 0"),
        ("org/b", "engine 1"),
    }


def test_compose() -> None:
    text = """services:
  engine:
    image: vllm/vllm-openai:v0.9.2
    shm_size: "4gb"
    command: >
      --model org/m
      --tensor-parallel-size 2
    environment:
      - VLLM_USE_V1=1
      - OTHER=2
  web:
    image: nginx
"""
    assert is_launch(text)
    assert flags(text) == {"version": "0.9.2", "model": "org/m", "tensor_parallel_size": "2", "VLLM_USE_V1": "1"}
    assert read(text)["note"][0]["value"] == 4 << 30


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("model: org/m\ntensor-parallel-size: 2\nenforce-eager: true\n", {"model": "org/m", "tensor_parallel_size": "2", "enforce_eager": "True"}),
        ('{"model": "org/m", "gpu_memory_utilization": 0.8, "dtype": "auto"}', {"model": "org/m", "gpu_memory_utilization": "0.8", "dtype": "auto"}),
        ("config:\n  maxModelLen: 4096\n  other: 1\n", {"max_model_len": "4096"}),
        ("stages:\n  - stage_id: 0\n    engine_args:\n      gpu_memory_utilization: 0.3\n      model: org/m\n", {"gpu_memory_utilization": "0.3", "model": "org/m"}),
        ("engine: {max_num_seqs: 4, block_size: 16}  # flow\n", {"max_num_seqs": "4", "block_size": "16"}),
    ],
)  # fmt: skip
def test_files(text: str, want: dict[str, str]) -> None:
    assert is_launch(text)
    assert flags(text, "file") == want


def test_documents_know_their_lines() -> None:
    (document,) = read_document("a: 1\nb:\n  - x: one\n    y: |\n      two\n      three\n  - [4, five]\n")
    assert document == {"a": "1", "b": [{"x": "one", "y": "two\nthree"}, ["4", "five"]]}
    assert document["b"][0]["x"].line == 3 and document["a"].line == 1
    (document,) = read_document("command: >\n  --dtype half\n\n  # a word\n  --max-num-seqs 4\nafter: 1\n")
    assert document["command"] == "--dtype half\n\n# a word\n--max-num-seqs 4" and document["command"].line == 2
    (document,) = read_document("command: |\n  last\n  of all")
    assert document == {"command": "last\nof all"}
    (document,) = read_document("a:\n  b: |\n    one\n  c: 2\n")
    assert document == {"a": {"b": "one", "c": "2"}}


def test_argument_vectors() -> None:
    assert flags_of_tokens(["vllm", "serve", "org/m", "--max-num-seqs", "4"]) == [
        ("model", "org/m"),
        ("max_num_seqs", "4"),
    ]
    assert flags_of_tokens(["--config", "x"]) == []
    assert flags_of_tokens(["--model", "org/m"], sure=True) == [("model", "org/m")]


@pytest.mark.parametrize(
    ("image", "want"),
    [("vllm/vllm-openai:v0.10.1", "0.10.1"), ("registry.example.org/lab/vllm:0.6.3.post1", "0.6.3.post1"),
     ("vllm/vllm-openai:latest", None), ("nginx:1.27", None)],
)  # fmt: skip
def test_versions_of_images(image: str, want: str | None) -> None:
    assert image_version(image) == want


def test_a_log_behind_a_collectors_tag_is_no_launch() -> None:
    tag = "(ServeReplica:llm:LLMServer pid=771, ip=192.0.2.7) "
    lines = [
        "(EngineCore pid=42) INFO 11-20 20:19:52 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
        "model='/models/m', speculative_config=None, tokenizer='/models/m', trust_remote_code=False, dtype=torch.bfloat16, "
        "max_seq_len=4096, tensor_parallel_size=2, quantization=None, enforce_eager=False, device_config=cpu, structured_outputs_config=StructuredOutputsConfig(backend='auto', reasoning_parser='', enable_in_reasoning=False), "
        "enable_prefix_caching=True, enable_chunked_prefill=True, pooler_config=None, compilation_config={'mode': 3}",
        *['INFO:     127.0.0.1:45546 - "POST /v1/completions HTTP/1.1" 200 OK'] * 30,
    ]
    assert not is_launch("".join(f"{tag}{line}\n" for line in lines))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+ vllm serve org/m --max-model-len 9\nINFO 01-05 12:00:00 [api_server.py:1] vLLM API server version 0.9\n",
        'vllm serve org/m\nTraceback (most recent call last):\n  File "a.py", line 1, in b\nValueError: bad\n',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. Try --max-num-seqs 4.\n",
        "We start it with the usual options and it works with --enforce-eager but is too slow for us then.\n",
        "GPU 0: NVIDIA H100\ndriver: 535.1\n",
        "A=1\nB=2\n",
        '{"peft_type": "LORA", "r": 8}',
        "timestamp,pid,rss_bytes\n2026-11-19T04:00:00Z,1,5\n",
        "vllm bench serve --model org/m --num-prompts 100\n",
    ],
)
def test_other_texts_are_no_launch(text: str) -> None:
    assert not is_launch(text)


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("$ vllm serve org/m --enforce-eager -tp 4\nINFO 01-05 12:00:00 [x.py:1] a\n", {"model": "org/m", "enforce_eager": "True", "tensor_parallel_size": "4"}),
        ("+ trtllm-serve org/m --max_batch_size 48\nINFO 01-05 12:00:00 [x.py:1] a\n", {"model": "org/m", "max_num_seqs": "48"}),
        ("(env) me@box:~/w$ python -m vllm.entrypoints.openai.api_server --model org/m \\\n  --max-num-seqs 9\nINFO 01-05 12:00:00 [x.py:1] a\n", {"model": "org/m", "max_num_seqs": "9"}),
    ],
)  # fmt: skip
def test_a_command_that_was_typed_above_its_log(log: str, expected: dict[str, str]) -> None:
    found: dict[str, str] = {}
    for batch in text_log.read("x.log", chunks(io.BytesIO(log.encode()))):
        if batch.table == "engine_flag":
            assert list(batch.columns["line"]) == [1] * batch.rows
            found |= dict(zip(batch.columns["flag"], batch.columns["value"], strict=True))
    assert found == expected


@pytest.mark.parametrize("text", ["usage: vllm serve [--max-model-len N]", "try vllm serve with a lower --max-model-len 9", "INFO 01-05 12:00:00 [x.py:1] $ vllm serve m --seed 1", "$ echo vllm serve "])  # fmt: skip
def test_what_only_speaks_of_a_command(text: str) -> None:
    assert launch.typed(text) == [] or "INFO" in text
    rows = [batch.table for batch in text_log.read("x.log", chunks(io.BytesIO(text.encode())))]
    assert "engine_flag" not in rows


def test_nothing_readable_is_a_problem() -> None:
    assert list(read("vllm bench serve --model org/m\n")) == ["problem"]


@given(st.binary(max_size=500) | st.text(max_size=300).map(str.encode))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    launch.matches(make_head("any", data))
    read(data, 64)


WORDS = st.sampled_from(
    ["vllm", "serve", "--max-model-len", "4096", "-tp", "\\\n", "\n", "'", '"', "LLM(", ")", "{", "}", "[", "]", "model=", ",",
     ":", "- ", "  ", "key: ", "|", "$A", "${A:-b}", "A=b", "docker run", "-e", "image:v1.0", "#", "engine_args:", "org/m", "=0.9"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=60).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_any_words_are_read_without_an_exception(text: str) -> None:
    launch.matches(make_head("any", text.encode()))
    read(text)
    read_document(text)


@given(
    st.dictionaries(st.sampled_from(["max_model_len", "block_size", "max_num_seqs"]), st.integers(0, 10**9), min_size=1)
)
def test_options_keywords_and_files_agree(settings_of: dict[str, int]) -> None:
    want = {name: str(value) for name, value in settings_of.items()}
    options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in settings_of.items())
    keywords = ", ".join(f"{name}={value}" for name, value in settings_of.items())
    assert flags(options) == want
    assert flags(f"EngineArgs({keywords})") == want
    assert flags(json.dumps(settings_of)) == want
    assert flags("".join(f"{name}: {value}\n" for name, value in settings_of.items())) == want


# ---- YAML as people write it


def plain(value: Any) -> Any:
    """A document without the lines of its scalars; texts with single blanks."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return None if value in (None, "") else " ".join(str(value).split())


WORDS = st.sampled_from(
    ["vllm", "--max-model-len", "32768", "a b c", "x: y", "it's", 'say "hi"', "0.95", "true", "/health", "64Gi", "k=v", "# none",
     "a #b", "*star", "&amp", "- dash", "[x", "{y", "line one\nline two", "trail:", "http://:8000/health", "@at", "`b`", "!tag", "|", "> q",
     "  lead", "multi\n\nblank\n  indented", "tab\there", ""]
)  # fmt: skip
KEYS = st.sampled_from(
    ["name", "args", "nvidia.com/gpu", "a-b", "x_y", "spec", "value", "app.kubernetes.io/name", "k8s", "1"]
)
TREES = st.recursive(
    WORDS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=14
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=4), st.sampled_from([40, 1000]))
def test_a_yaml_library_reads_the_same(tree: dict[str, Any], width: int) -> None:
    import yaml

    class Words(yaml.SafeLoader):
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # as here: a scalar is its text

    text = yaml.safe_dump(tree, width=width, default_flow_style=False)
    assert [plain(document) for document in launch.read_document(text)] == [
        plain(document) for document in yaml.load_all(text, Words)
    ]


def test_anchors_aliases_merges_and_tags() -> None:
    text = """\
base: &base
  image: &image acme/engine:v1
  env: {A: "1"}
more: &more
  image: never
  extra: yes
list: &list
- one
- &two two
service:
  <<: *base
  env: !!str other
  args: *list
  copy: *two
many:
  <<: [*base, *more]
"""
    (document,) = launch.read_document(text)
    base = {"image": "acme/engine:v1", "env": {"A": "1"}}
    assert plain(document) == {
        "base": base, "more": {"image": "never", "extra": "yes"}, "list": ["one", "two"],
        "service": {"image": "acme/engine:v1", "env": "other", "args": ["one", "two"], "copy": "two"},
        "many": {**base, "extra": "yes"},
    }  # fmt: skip
    (document,) = launch.read_document("a: 1\nb: *nothing\n")  # no YAML: what stands there is read
    assert plain(document) == {"a": "1", "b": "*nothing"}


def test_aliases_cannot_repeat_without_end() -> None:
    text = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n}\n" + f"- *a{n - 1}\n" * 10 for n in range(1, 12))
    (document,) = launch.read_document(text)

    def size(value: Any) -> int:
        return 1 + sum(map(size, value)) if isinstance(value, list) else 1

    assert sum(map(size, document.values())) < 300_000


def test_services_of_a_compose_file_that_share_a_part() -> None:
    text = """\
x-common: &common
  image: vllm/vllm-openai:v0.10.2
  shm_size: "8gb"
services:
  a:
    <<: *common
    command: ["--model", "acme/a", "--max-num-seqs", "64"]
"""
    tables = rows_of(text)
    assert {(row["flag"], row["value"]) for row in tables["engine_flag"]} == {
        ("version", "0.10.2"), ("model", "acme/a"), ("max_num_seqs", "64")}  # fmt: skip
    assert [(row["topic"], row["value"]) for row in tables["note"]] == [("shm-size", 8 << 30)]


# ---- other places of the command


def rows_of(data: str | bytes) -> dict[str, list[dict[str, Any]]]:
    raw = data.encode() if isinstance(data, str) else data
    assert launch.matches(make_head("any", raw))
    tables: dict[str, list[dict[str, Any]]] = {}
    for batch in launch.read("any", chunks(io.BytesIO(raw))):
        for row in zip(*batch.columns.values(), strict=True):
            told = {name: cell for name, cell in zip(batch.columns, row, strict=True) if cell is not None}
            tables.setdefault(batch.table, []).append(told)
    return tables


UNIT = """\
[Unit]
Description=the engine
[Service]
Environment="CUDA_VISIBLE_DEVICES=0,1"
Environment=PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True VLLM_USE_V1=1
ExecStartPre=-/bin/mkdir -p /run/engine
ExecStart=/opt/engine/bin/vllm serve acme/m-7b \\
  --tensor-parallel-size 2 \\
  --gpu-memory-utilization=0.95
MemoryMax=64G
"""
SUPERVISOR = """\
[program:engine]
command=vllm serve acme/m-7b --max-model-len 4096
environment=CUDA_VISIBLE_DEVICES="0,1",VLLM_USE_V1="1"
autorestart=true
"""
IMAGE = """\
FROM vllm/vllm-openai:v0.11.0
ENV VLLM_USE_V1=1
ENTRYPOINT ["vllm", "serve"]
CMD ["acme/m-7b", "--max-model-len", "4096", "--hf-overrides", "{\\"a\\": 1}"]
"""


def set_where(tables: dict[str, list[dict[str, Any]]]) -> dict[str, tuple[str, int]]:
    return {row["flag"]: (row["value"], row["line"]) for row in tables["engine_flag"]}


def test_a_unit_of_systemd() -> None:
    tables = rows_of(UNIT)
    assert set_where(tables) == {
        "CUDA_VISIBLE_DEVICES": ("0,1", 4), "PYTORCH_CUDA_ALLOC_CONF": ("expandable_segments:True", 5), "VLLM_USE_V1": ("1", 5),
        "model": ("acme/m-7b", 7), "tensor_parallel_size": ("2", 8), "gpu_memory_utilization": ("0.95", 9),
    }  # fmt: skip
    assert [(row["topic"], row["value"], row["line"]) for row in tables["note"]] == [("container-limit", 64 << 30, 10)]


def test_a_program_of_supervisord() -> None:
    assert set_where(rows_of(SUPERVISOR)) == {
        "model": ("acme/m-7b", 2), "max_model_len": ("4096", 2), "CUDA_VISIBLE_DEVICES": ("0,1", 3), "VLLM_USE_V1": ("1", 3)}  # fmt: skip


def test_an_image_file() -> None:
    assert set_where(rows_of(IMAGE)) == {
        "VLLM_USE_V1": ("1", 2), "model": ("acme/m-7b", 4), "max_model_len": ("4096", 4), "hf_overrides": ('{"a": 1}', 4)}  # fmt: skip


def test_words_between_nuls() -> None:
    line = (
        b'/usr/bin/python3\0/usr/local/bin/vllm\0serve\0acme/m-7b\0--max-model-len\x004096\0--hf-overrides\0{"a": 1}\0'
    )
    assert reads_binary(make_head("any", line))
    told = {name: value for name, (value, _) in set_where(rows_of(line)).items()}
    assert told == {"model": "acme/m-7b", "max_model_len": "4096", "hf_overrides": '{"a": 1}'}
    variables = b"PATH=/bin\0VLLM_API_KEY=s3cret\0CUDA_VISIBLE_DEVICES=0,1\0A=b c\0"
    told = {name: value for name, (value, _) in set_where(rows_of(variables)).items()}
    assert told == {"VLLM_API_KEY": "***", "CUDA_VISIBLE_DEVICES": "0,1"}
    for other in (b"a\0b\0c", b"vllm \x01\x02\0\0\0", b"\0\0vllm", b"vllm serve acme/m-7b\n"):
        assert not reads_binary(make_head("any", other))


def test_a_command_whose_options_look_like_words() -> None:
    text = (
        "docker run --gpus all --shm-size 1g -p 8000:8000 vllm/vllm-openai:v0.8.5 --model acme/m --max-model-len 4096\n"
    )
    assert set_where(rows_of(text))["max_model_len"] == ("4096", 1)


@pytest.mark.parametrize(
    "text",
    [
        "docker run with that image never came up at all on this host, with or without --enforce-eager it says\n",
        "[Unit]\nDescription=a web server\n[Service]\nExecStart=/usr/sbin/nginx\n",
        'ENTRYPOINT is not what it was in this image, CMD ["x", neither\n',
    ],
)
def test_near_miss_other_places(text: str) -> None:
    assert not launch.matches(make_head("any", text.encode()))


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([UNIT, SUPERVISOR, IMAGE]), st.integers(0, 200), st.text(alphabet='"[]=\\\0\n -x&*<:', max_size=12)
)
def test_damaged_units_never_raise(text: str, at: int, noise: str) -> None:
    raw = (text[:at] + noise + text[at:]).encode()
    launch.matches(make_head("any", raw))
    for _ in launch.read("any", chunks(io.BytesIO(raw))):
        pass


def test_a_vector_of_words_names_the_module_that_it_runs() -> None:
    text = 'entrypoint: ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "/models/a", "-tp", "2"]\n'
    assert flags(text) == {"model": "/models/a", "tensor_parallel_size": "2"}


def test_a_flow_mapping_inside_another_is_read() -> None:
    text = 'image: vllm/vllm-openai:v0.10.1\nresources: {limits: {nvidia.com/gpu: "1", memory: 220Gi}}\n'
    (document,) = launch.read_document(text)
    assert document["resources"]["limits"] == {"nvidia.com/gpu": "1", "memory": "220Gi"}
    assert launch.read_document("a: " + "{b: " * 5000)  # gives what could be read
    assert launch.read_document("a: " + "[" * 40_000 + "]" * 40_000)  # whole, and deeper than any stack


def test_numbered_commands_and_a_trainers_file_tell_the_engines_settings() -> None:
    numbered = "1: VLLM_USE_V1=0 vllm serve org/m --max-model-len 4096\n2: the same with --max-model-len 128\n"
    assert flags(numbered)["model"] == "org/m" and flags(numbered, "environment") == {"VLLM_USE_V1": "0"}
    trainer = (
        "use_vllm: true\nvllm_gpu_memory_utilization: 0.3   # was 0.25\nvllm_enforce_eager: True\nnum_generations: 2\n"
    )
    assert is_launch(trainer)
    assert flags(trainer) == {"gpu_memory_utilization": "0.3", "enforce_eager": "True"}


OTHER_SERVERS: list[tuple[str, dict[str, str]]] = [
    (
        "python -m sglang.launch_server --model-path org/m --tp 4 --context-length 40960 --max-running-requests 24 --mem-fraction-static 0.83 --disable-radix-cache",
        {"model": "org/m", "tensor_parallel_size": "4", "max_model_len": "40960", "max_num_seqs": "24", "gpu_memory_utilization": "0.83", "enable_prefix_caching": "False"},
    ),
    (
        "trtllm-serve serve org/m --tp_size 2 --max_batch_size 96 --max_num_tokens 6144 --max_seq_len 20480 --kv_cache_free_gpu_memory_fraction 0.85",
        {"tensor_parallel_size": "2", "max_num_seqs": "96", "max_num_batched_tokens": "6144", "max_model_len": "20480", "kv_cache_free_gpu_memory_fraction": "0.85"},
    ),
    (
        "python build.py --model_dir ./m --use_gpt_attention_plugin float16 --paged_kv_cache --max_batch_size 80 --max_input_len 1024",
        {"model": "./m", "max_num_seqs": "80", "max_input_len": "1024"},
    ),
    ("./llama-server -m /x/m.gguf -c 49152 -np 6 -ngl 99 -ub 1024", {"model": "/x/m.gguf", "max_model_len": "8192", "max_num_seqs": "6", "max_num_batched_tokens": "1024"}),
    ("llama-server --model m.gguf --ctx-size 12288 --n-gpu-layers 40", {"max_model_len": "12288"}),
    (
        "CUDA_VISIBLE_DEVICES=1,2 lmdeploy serve api_server ./m --tp 2 --session-len 24000 --max-batch-size 40 --cache-max-entry-count 0.3",
        {"model": "./m", "tensor_parallel_size": "2", "max_model_len": "24000", "max_num_seqs": "40", "cache_max_entry_count": "0.3"},
    ),
    (
        "docker run --gpus all ghcr.io/org/text-generation-inference:2.4 --model-id org/m --num-shard 8 --max-total-tokens 9000 --max-batch-prefill-tokens 5000",
        {"model": "org/m", "tensor_parallel_size": "8", "max_model_len": "9000", "max_num_batched_tokens": "5000"},
    ),
    ("docker run --gpus=all hub/scalellm:1 --max_memory_utilization=0.7 --max_cache_size=9000000000", {"gpu_memory_utilization": "0.7", "max_cache_size": "9000000000"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), OTHER_SERVERS)
def test_options_of_other_servers_have_our_names_where_they_mean_the_same(text: str, expected: dict[str, str]) -> None:
    assert is_launch(text)
    found = flags(text)
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize("text", ["docker run -e A=b hub/webapp:1 --max-batch-size 4 --tp 2", "llama-bench-report --parallel 3", "python train.py --model-path m --tp 4"])  # fmt: skip
def test_options_of_programs_that_serve_nothing_are_left_alone(text: str) -> None:
    assert "tensor_parallel_size" not in flags(text) and "max_num_seqs" not in flags(text)


def test_a_variable_named_for_an_argument_is_that_argument() -> None:
    assert flags("GPU_MEM_UTIL=0.81 MAX_MODEL_LEN=9000 vllm serve org/m")["gpu_memory_utilization"] == "0.81"
