"""What is asked: flags of a person over figures of a report over facts of the catalogue, each with its origin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from oomdoc.errors import BundleError, UsageError
from oomdoc.fit.given import Given, Logged, check, flag_of, parse_sizes, parse_tokens
from oomdoc.fit.naming import model_of, states_itself
from oomdoc.model import LedgerEntry, Report
from oomdoc.model.worksheet import Input
from oomdoc.physics.adapters import read_adapters
from oomdoc.physics.architecture import Model
from oomdoc.physics.catalogue import find
from oomdoc.physics.defaults import (
    ANY_RELEASE,
    releases_meant,
    releases_serving,
    rule_releases,
    show_release,
    version_number,
)
from oomdoc.physics.expect import Known, stage_layouts
from oomdoc.physics.gpus import find_gpu
from oomdoc.physics.interval import Interval, point, printed
from oomdoc.physics.planning import one_rank_prints, poorest_rank
from oomdoc.physics.setup import FLAGS, Setup, fill, flag_value, runner_stated, setup_of
from oomdoc.physics.speculation import read_speculation, stated_speculation, with_draft
from oomdoc.physics.weights import BY_NAME, format_is_the_checkpoints, known_format, parts_of
from oomdoc.units import GIB, parse_size

__all__ = ["Given", "Logged", "Measured", "Question", "Size", "ask", "parse_sizes", "parse_tokens"]

_SIZE_ORDER = ("p50", "p90", "p95", "p99", "max")


@dataclass(frozen=True)
class Measured:
    """Figures that hold for one setup on one device: what a server that ran has logged."""

    setup: Setup
    total_bytes: Interval
    known: Known


@dataclass(frozen=True)
class Size:
    """A request: tokens in, tokens out."""

    name: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Question:
    """Everything a worksheet needs. `stated` are the flags that a person or a log names: they are not replaced lightly.

    `positions` are those that the engine allows (None: not known, or lifted by a flag), `positions_sure` whether it is
    this very checkpoint that states them. `pool_by_hand` is the flag that sizes the pool, where one does.
    """

    name: str
    model: Model
    setup: Setup
    total_bytes: Interval
    device: str
    measured: Measured | None
    sizes: tuple[Size, ...]
    inputs: tuple[Input, ...]
    stated: frozenset[str]
    doubts: tuple[str, ...] = ()
    positions: int | None = None
    positions_sure: bool = False
    pool_by_hand: str = ""

    @property
    def limit(self) -> int | None:
        """The longest context there is talk of: what the model states, or more where that is not sure to hold."""
        stated = self.positions or 0
        return (stated if self.positions_sure else max(stated, self.setup.max_model_len or 0)) or None


def ask(given: Given, report: Report | Logged | None = None) -> Question:
    """The question that flags and, where there is one, a report (or what of it matters) make together; flags win.

    UsageError where the model or the device is not known, BundleError where the report has no engine to speak of.
    """
    check(given)
    logged = report if isinstance(report, Logged) else _logged(report) if report else Logged()
    name = given.model or logged.model
    if name is None and given.model_config is None:
        if isinstance(report, Report):
            raise BundleError(
                f"no log in {report.bundle.name} names its model", "Add --model NAME or --model-config config.json"
            )
        raise UsageError("nothing says which model", "Give --model NAME, --model-config config.json, or --from BUNDLE")
    inputs: list[Input] = []
    doubts: list[str] = []
    model, told = model_of(name, given, logged, inputs)
    name = model.asked or name or model.name or "MODEL"
    total, device, count = _device(given, logged, inputs)
    setup, stated = _setup(given, logged, model, told, inputs, count)
    measured = _measured(given, logged, setup, total, inputs)
    by_hand = ""
    if measured is None or given.kv_cache_memory_bytes or given.num_gpu_blocks_override:
        measured, by_hand = _by_hand(given, logged, model, setup, total, inputs, measured)
    doubts += [*_doubts(model, setup, measured, told), *_not_counted(logged)]
    sizes = _sizes(given, logged, inputs)
    lifted = _lifted(given, logged)
    return Question(
        name, model, setup, total, device, measured, sizes, tuple(inputs), stated, tuple(doubts),
        positions=None if lifted else model.max_position_embeddings,
        positions_sure=not lifted and model.max_position_embeddings is not None and states_itself(name, given, model),
        pool_by_hand=by_hand,
    )  # fmt: skip


def _lifted(given: Given, logged: Logged) -> bool:
    """A flag that changes the model's positions is set: scaled rope, or a number put over the config's."""
    stated = [given.hf_overrides, *(flag_of(logged, flag)[0] for flag in ("hf_overrides", "rope_scaling"))]
    return any(re.search(r"rope|max_position|yarn|model_max_length", str(text or "")) for text in stated)


# ---- a report


def _logged(report: Report) -> Logged:
    """The engine start that the report's ledger speaks of, else the last one."""
    if not report.engines:
        raise BundleError(
            f"{report.bundle.name} holds no start of an engine", "Add the server's log from its first line"
        )
    named = next((entry.engine for entry in report.ledger if entry.engine), None)
    engine = next((each for each in report.engines if each.id == named), report.engines[-1])
    entries = tuple(entry for entry in report.ledger if entry.engine in (engine.id, None))
    return Logged(engine.model, engine, entries, report.traffic.get("percentiles"))


# ---- model, device, setup, figures


def _device(given: Given, logged: Logged, inputs: list[Input]) -> tuple[Interval, str, int]:
    """(total, name, how many were named)."""
    if given.gpu is not None:
        gpu = find_gpu(given.gpu)
        note = gpu.name
        if re.search(r"\d\s*GB\b", given.gpu) and not gpu.name:
            note = f"{given.gpu} is {gpu.total_bytes.lo / GIB:.1f} GiB; for a card sold by that figure give its name"
        inputs.append(Input("device total", gpu.total_bytes, "given" if not gpu.name else "catalogue", note))
        return gpu.total_bytes, gpu.name or re.sub(r"^\s*\d+\s*[x×*]\s*", "", given.gpu), gpu.count
    totals = [entry.total_bytes for entry in logged.entries if entry.total_bytes]
    if totals:
        total = printed(min(totals))
        inputs.append(Input("device total", total, "logged", ""))
        return total, "", 1
    raise UsageError("nothing says which device", "Give --gpu NAME or SIZE, such as H100 or 80GiB")


_SWITCHES = ("enable_prefix_caching", "disable_hybrid_kv_cache_manager", "language_model_only")
_FEATURE_FLAGS = (
    "speculative_config",
    "speculative_model",
    "num_speculative_tokens",
    "enable_lora",
    "max_loras",
    "max_lora_rank",
)
_PLAIN_FLAGS = tuple(name for name in FLAGS if name not in ("quantization", *_SWITCHES))


def _setup(
    given: Given, logged: Logged, model: Model, told: str | None, inputs: list[Input], count: int = 1
) -> tuple[Setup, frozenset[str]]:
    values: dict[str, Any] = {}
    stated: set[str] = set()
    version = given.engine_version or (logged.engine.version if logged.engine else None)
    if version is None and given.available_kv is not None:
        version = ANY_RELEASE  # the figure is of a server that has run, whichever its release
    meant = releases_serving(releases_meant(version), model.family) if version else ()
    if meant:
        values["version"], values["releases"] = meant[-1], meant
    elif version and (number := version_number(version)) is not None:
        values["version"] = number
    if version and "version" in values:
        origin = (
            "given" if given.engine_version not in (None, ANY_RELEASE) else "logged" if logged.engine else "assumed"
        )
        span = f"the rules of {show_release(meant[0])} to {show_release(meant[-1])}" if len(meant) > 1 else ""
        inputs.append(Input("engine version", version, origin, span))
    generation = logged.engine.generation if logged.engine and not given.engine_version else None
    if generation in ("V0", "V1"):
        values["generation"] = generation
    for name in _PLAIN_FLAGS:
        value, origin, place = getattr(given, name), "given", ""
        if value is None:
            value, origin, place = flag_of(logged, name)
            value = flag_value(name, value)
        if value is None:
            continue
        values[name] = value
        inputs.append(Input(name, value, origin, place))
        if origin != "default":
            stated.add(name)
    for name in _SWITCHES:
        switch = getattr(given, name)
        if switch is None:
            switch = flag_value(name, flag_of(logged, name)[0])
        elif switch is not None:
            inputs.append(Input(name, switch, "given", ""))
            stated.add(name)
        if switch is not None:
            values[name] = switch
    if count > 1 and "tensor_parallel_size" not in values:
        stages = int(values.get("pipeline_parallel_size", 1))
        values["tensor_parallel_size"] = max(1, count // stages)
        stated.add("tensor_parallel_size")
        inputs.append(
            Input("tensor_parallel_size", values["tensor_parallel_size"], "given", f"{count} devices were named")
        )
    features = {name: flag_of(logged, name)[0] for name in _FEATURE_FLAGS}
    drafts = given.speculative_config or stated_speculation(features)
    speculation = read_speculation(drafts)
    if given.speculative_config and not speculation.tokens:
        raise UsageError(
            f"--speculative-config '{given.speculative_config}' names no method and no tokens",
            'Write it like {"method": "mtp", "num_speculative_tokens": 2}',
        )
    if speculation.tokens:
        draft = find(speculation.model) if speculation.model else None
        values["speculation"] = with_draft(speculation, draft.model if draft else None)
        inputs.append(
            Input(
                "speculation",
                f"{speculation.method}, {speculation.tokens} tokens",
                "given" if given.speculative_config else "logged",
                "",
            )
        )
    adapters = read_adapters(features)
    if adapters.slots:
        values["adapters"] = adapters
        inputs.append(Input("adapters", f"{adapters.slots} x rank {adapters.rank}", "logged", "LoRA slots"))
    runner = runner_stated({name: flag_of(logged, name)[0] for name in ("model_runner", "VLLM_USE_V2_MODEL_RUNNER")})
    if runner:
        values["model_runner"] = runner
        inputs.append(Input("model runner", runner, "logged", ""))
    method = flag_value("quantization", flag_of(logged, "quantization")[0])
    if given.quantization is not None and format_is_the_checkpoints(given.quantization, told):
        stated.add("quantization")
        own = f"the checkpoint's own format: {model.quantization or 'none that is known'}"
        inputs.append(Input("quantization", given.quantization, "given", own))
    elif given.quantization is not None:
        values["quantization"] = given.quantization
        stated.add("quantization")
        inputs.append(Input("quantization", given.quantization, "given", ""))
    elif isinstance(method, str) and told is None and method != known_format(model.quantization):
        values["quantization"] = method
        inputs.append(Input("quantization", method, "logged", flag_of(logged, "quantization")[2]))
    elif model.quantization:
        origin = "config" if model.confirmed == "config" else "catalogue"
        inputs.append(Input("quantization", model.quantization, origin, "by the model's name" if told else ""))
    return Setup(**values), frozenset(stated)


def _measured(given: Given, logged: Logged, setup: Setup, total: Interval, inputs: list[Input]) -> Measured | None:
    """Logged figures with the setup under which they were logged: the flags of the log, not those put over them."""
    if given.available_kv is not None:
        size = parse_size(given.available_kv, unit="GiB")
        if size is None:
            raise UsageError(
                f"--available-kv '{given.available_kv}' is no size", "Write what the log says, such as 31.99GiB"
            )
        available = printed(size, "given")
        note = "the log's line, printed with two digits"
        ranks = setup.tensor_parallel_size * setup.pipeline_parallel_size
        if ranks > 1 and one_rank_prints(setup.version):
            available = poorest_rank(available)
            note = f"the line of one rank in {ranks}; the poorest decides, which may have less"
        inputs.append(Input("available for KV", available, "given", note))
        return Measured(setup, total, Known(available_bytes=available))
    if not logged.entries or not logged.engine:
        return None
    parts: dict[str, list[int]] = {}
    for entry in logged.entries:
        for name, value in entry.parts.items():
            known_from = entry.intervals[name].origin if name in entry.intervals else "logged"
            if (
                name in ("weights_bytes", "activation_bytes", "non_torch_bytes", "cuda_graph_bytes")
                and known_from not in _MEASURED
            ):
                continue  # computed there as it would be here
            if known_from == "planning figure" or (entry.moment == "plan" and name == "cuda_graph_bytes"):
                continue
            if value is not None and name not in _of_the_failure(entry):
                parts.setdefault(name, []).append(value)
    refs = ", ".join(list(dict.fromkeys(logged.entries[0].refs))[:3])
    pools = [value for value in parts.get("kv_pool_bytes", []) if value > 0]
    most = {name: max(values) for name, values in parts.items()}
    known = Known(
        weights_bytes=_of(most.get("weights_bytes")),
        activation_bytes=_of(most.get("activation_bytes")),
        non_torch_bytes=_of(most.get("non_torch_bytes")),
        graph_bytes=_of(most.get("cuda_graph_bytes")),
        available_bytes=_of(min(pools)) if pools else None,
        other_processes_bytes=_of(most.get("other_processes_bytes")),
    )
    for title, figure in (("weights", known.weights_bytes), ("activations", known.activation_bytes),
                          ("outside torch", known.non_torch_bytes), ("CUDA graphs", known.graph_bytes),
                          ("available for KV", known.available_bytes)):  # fmt: skip
        if figure is not None:
            inputs.append(Input(title, figure, "logged", refs))
    ran = _ran(logged, setup)
    totals = [entry.total_bytes for entry in logged.entries if entry.total_bytes]
    return Measured(ran, printed(min(totals)) if totals else total, known)


_MEASURED = ("logged", "given")


def _by_hand(
    given: Given,
    logged: Logged,
    model: Model,
    setup: Setup,
    total: Interval,
    inputs: list[Input],
    measured: Measured | None,
) -> tuple[Measured | None, str]:
    """A pool whose size a flag sets: its bytes as available memory, and the flag; utilization does not size it then."""
    wanted = given.kv_cache_memory_bytes or (flag_of(logged, "kv_cache_memory_bytes")[0] if measured is None else None)
    origin = "given" if given.kv_cache_memory_bytes or given.num_gpu_blocks_override else "logged"
    size: float | None = None
    flag = ""
    if wanted:
        size = parse_size(str(wanted), unit="B")
        if size is None or size <= 0:
            raise UsageError(f"--kv-cache-memory-bytes '{wanted}' is no size", "Write it like 20GiB or 21474836480")
        flag = "kv_cache_memory_bytes"
    blocks = given.num_gpu_blocks_override or (
        flag_value("max_num_seqs", flag_of(logged, "num_gpu_blocks_override")[0]) if measured is None else None
    )
    if isinstance(blocks, int) and not flag:
        found = stage_layouts(model, setup, fill(model, setup, total))
        if found:
            size, flag = blocks * max(layout.block_bytes for layout in found), "num_gpu_blocks_override"
    if size is None:
        return measured, ""
    pool = point(size, origin)
    inputs.append(Input("available for KV", pool, origin, f"set by {flag}; utilization does not size it"))
    known = measured.known if measured else Known()
    return Measured(setup, total, replace(known, available_bytes=pool)), flag


def _of_the_failure(entry: LedgerEntry) -> frozenset[str]:
    """Parts that only tell of the moment of a failure: no figures of the plan."""
    if entry.moment != "failure":
        return frozenset()
    parts = {"activation_bytes"}
    if entry.parts.get("kv_pool_bytes") is None and entry.parts.get("activation_bytes") is None:
        parts.add("weights_bytes")  # what had been loaded when loading failed
    return frozenset(parts)


def _ran(logged: Logged, setup: Setup) -> Setup:
    """The setup that ran: the log's own flags; where its release is not told, the one that is asked about."""
    assert logged.engine is not None
    flags = {name: flag.value for name, flag in logged.engine.flags.items()}
    ran = setup_of(flags, logged.engine.version, logged.engine.generation)
    meant = releases_meant(logged.engine.version) if logged.engine.version else ()
    return replace(
        ran,
        version=ran.version if ran.version is not None else setup.version,
        releases=meant if meant and not set(meant) >= set(setup.releases) else setup.releases,
        generation=ran.generation or setup.generation,
        # the format that the model's name tells is not repeated by a setup
        quantization=ran.quantization if ran.quantization == setup.quantization else None,
    )


def _of(value: int | None) -> Interval | None:
    return None if value is None else printed(value)


def _sizes(given: Given, logged: Logged, inputs: list[Input]) -> tuple[Size, ...]:
    taken = parse_sizes("--input-tokens", given.input_tokens)
    made = parse_sizes("--output-tokens", given.output_tokens)
    if taken or made:
        for name, tokens in (("input tokens", given.input_tokens), ("output tokens", given.output_tokens)):
            if tokens is not None:
                inputs.append(Input(name, tokens, "given", ""))
        names = _order_names([*taken, *made])
        if "request" in names and len(names) > 1:  # one number for all percentiles of the other side
            names = [name for name in names if name != "request"]
        return tuple(
            Size(name, taken.get(name, taken.get("request", 0)), made.get(name, made.get("request", 0)))
            for name in names
        )
    context = (logged.percentiles or {}).get("context_tokens") or {}
    # percentiles of input and output do not add up: the context is what a request holds at its end
    return tuple(Size(name, int(context[name]), 0) for name in _SIZE_ORDER if context.get(name))


def _order_names(names: Sequence[str]) -> list[str]:
    unique = list(dict.fromkeys(names))
    return sorted(unique, key=lambda name: (_SIZE_ORDER.index(name) if name in _SIZE_ORDER else -1, unique.index(name)))


# What a log may set that no figure here counts, and what it means for the answer.
_NOT_COUNTED = (
    (
        "data_parallel_size",
        "data parallelism: each replica has its own pool, and experts may be spread over all replicas",
    ),
    (
        "enable_lora",
        "LoRA: its slots are counted for plain decoders; those of experts only where the log's figures are",
    ),
    ("kv_cache_memory_bytes", "the pool is sized by kv_cache_memory_bytes: utilization does not move it"),
    ("num_gpu_blocks_override", "the pool is set to num_gpu_blocks_override blocks: utilization does not move it"),
    ("cpu_offload_gb", "weights on the host: the GPU holds less of them than is counted where nothing is logged"),
)


def _not_counted(logged: Logged) -> list[str]:
    found = []
    for flag, says in _NOT_COUNTED:
        value = flag_of(logged, flag)[0]
        one_replica = flag == "data_parallel_size" and value == 1
        if value not in (None, False, 0, "", "False", "None") and not one_replica:
            found.append(f"the log sets {flag}; {says}")
    return found


def _doubts(model: Model, setup: Setup, measured: Measured | None, told: str | None) -> list[str]:
    found = []
    if setup.version is None:
        found.append(
            "the engine's version is not known: the newest release that was read is assumed (--engine-version)"
        )
    elif len(setup.releases) > 1 and setup.releases[-1] == rule_releases()[-1]:
        found.append(
            "the engine's version is not known: the figures hold the rules of every release from "
            f"{show_release(setup.releases[0])} to {show_release(setup.releases[-1])} (--engine-version)"
        )
    quantised = known_format(setup.quantization or model.quantization)
    by_maker = quantised == "nvfp4" or (quantised == "fp8" and told == "fp8")
    if setup.kv_cache_dtype == "auto" and by_maker and model.confirmed != "config":
        found.append(
            "a quantised checkpoint may ask for an 8-bit KV cache by itself, which would double the pool "
            "(--model-config config.json tells)"
        )
    if model.confirmed in ("n", "partial"):
        found.append(f"the catalogue's entry for {model.name} is not confirmed: {model.source}")
    if model.notes:
        found.append(f"{model.name}: {model.notes}")
    if (
        parts_of(model) is None
        and not model.checkpoint_bytes
        and (measured is None or measured.known.weights_bytes is None)
    ):
        found.append("the model's parameters cannot be counted: weights are not known")
    elif model.basis == BY_NAME:
        found.append("the parameters are taken from the model's name")
    return found
