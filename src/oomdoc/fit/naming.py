"""Which model a name, a config.json or a log means, what `vllm serve` calls it, and a guess where nobody knows it."""

from __future__ import annotations

from dataclasses import replace

from oomdoc.fit.given import Given, Logged, flag_of, parameters_of
from oomdoc.model.worksheet import Input
from oomdoc.physics.architecture import Model
from oomdoc.physics.catalogue import Found, find, nearest, states_positions, with_files, with_positions
from oomdoc.physics.config import read_config
from oomdoc.physics.estimate import estimate
from oomdoc.physics.identify import identify
from oomdoc.physics.interval import Interval, point, printed
from oomdoc.physics.names import format_of, repository, revision_in
from oomdoc.physics.weights import BY_NAME, named_size
from oomdoc.regexes import regex


def model_of(name: str | None, given: Given, logged: Logged, inputs: list[Input]) -> tuple[Model, str | None]:
    """The model and the weights' format that its name tells."""
    if given.model_config is not None:
        model = read_config(given.model_config, name or "")
        if given.weight_bytes:
            model = replace(model, checkpoint_bytes=given.weight_bytes, checkpoint_format=model.quantization)
            inputs.append(
                Input("weight files", point(given.weight_bytes, "config"), "config", "their index or headers")
            )
        elif model.params is None and given.params:
            model = replace(model, params=round(parameters_of(given.params) or 0), basis="given")
        elif model.params is None and name and (size := named_size(name)):
            model = replace(model, params=round(size), basis=BY_NAME)
        inputs.append(Input("architecture", name or "config.json", "config", "read from --model-config"))
        return model, None  # the config says itself how it is quantised
    assert name is not None
    found = find(name)
    if found is None:
        return _guessed(name, given, logged, inputs)
    note = "" if found.how == "name" else f"found by {found.how}: dtype, positions and format may differ"
    if found.model.confirmed != "y":
        note += f"{'; ' if note else ''}entry not fully confirmed ({found.model.source})"
    inputs.append(Input("architecture", found.model.name, "catalogue", note))
    asked = full_name(name, found)
    model = with_positions(replace(found.model, asked=asked), asked)
    if found.format is not None and found.format != model.quantization:
        model = replace(model, quantization=found.format)
    elif found.format is None and model.quantization and _WIDE.search(asked):
        # published in a narrow format, and this is a copy that somebody widened
        model = replace(model, quantization="none", checkpoint_bytes=None)
        note = "the name says 16 bits"
        inputs.append(Input("weights' format", "none", "assumed", note))
    revision = given.revision or str(flag_of(logged, "revision")[0] or "") or revision_in(name)
    model = with_files(model, repository(asked), revision)
    if model.copy_bytes and model.kv_cache_scheme not in (None, "auto"):
        inputs.append(Input("KV cache dtype", model.kv_cache_scheme, "catalogue", "this copy's config asks for it"))
    if model.kv_cache_scheme is None and found.format in _ASK_FOR_FP8.get(model.maker, ()):
        # every config of such a checkpoint that was read (0.14 to 0.33) asks for it
        model = replace(model, kv_cache_scheme="fp8")
        inputs.append(Input("KV cache dtype", "fp8", "assumed", "checkpoints of this maker and format ask for it"))
    return model, found.format


_WIDE = regex(r"(?i)(?<![a-z0-9])(?:bf16|fp16|bfloat16|unquantized)(?![a-z0-9])")
_ASK_FOR_FP8 = {
    "nvidia": ("fp8", "nvfp4"),
    "poolside": ("fp8", "nvfp4", "w4a16", "4bit"),
}  # in the configs or on the cards
_OWN_COPIES = frozenset({"Qwen", "zai-org"})  # they publish quantised copies as NAME-FP8, NAME-AWQ and the like


def full_name(name: str, found: Found) -> str:
    """What `vllm serve` takes: the path or repository that was named, with the owner of the entry where none was."""
    asked = name.strip()
    if asked.startswith(("/", ".", "~")) or "://" in asked or "\\" in asked:
        return asked
    asked = repository(name)
    if "/" in asked:
        return asked
    owner = found.model.name.partition("/")[0]
    own = next(
        (known for known in (found.model.name, *found.names) if known.lower().endswith("/" + asked.lower())), None
    )
    if own:
        return own
    if found.format is not None or found.how == "within":
        own_copies = owner in _OWN_COPIES and asked.lower().startswith(found.model.name.partition("/")[2].lower())
        return f"{owner}/{asked}" if own_copies else asked
    return found.model.name


def _guessed(name: str, given: Given, logged: Logged, inputs: list[Input]) -> tuple[Model, str | None]:
    """A model that the catalogue has not: estimated from its name, never refused."""
    told = format_of(repository(name))
    model = estimate(name, parameters_of(given.params) if given.params else None)
    if told is not None:
        model = replace(model, quantization=told)
    hint = _hint(name, logged)
    inputs.append(Input("architecture", name, "assumed", f"not in the catalogue, estimated from its name. {hint}"))
    return replace(model, asked=name.strip()), told


def _hint(name: str, logged: Logged) -> str:
    near = nearest(name)
    said = f"Did you mean {' or '.join(near)}? " if near else ""
    entry = logged.entries[0] if logged.entries else None
    if entry is not None:
        weights = entry.parts.get("weights_bytes")
        tp = flag_of(logged, "tensor_parallel_size")[0]
        pp = flag_of(logged, "pipeline_parallel_size")[0]
        per_token = entry.kv_bytes_per_token
        like = identify(
            weights=printed(weights) if weights else None,
            kv_per_token=Interval(per_token * 0.998, per_token * 1.002) if per_token else None,
            tp=tp if isinstance(tp, int) and tp > 0 else 1,
            pp=pp if isinstance(pp, int) and pp > 0 else 1,
            most=3,
        )
        # bytes per token alone are shared by toys and giants: both figures are there and both agree, or nothing is offered
        both = [
            each.model.name
            for each in like
            if not each.misfits and each.kv_off is not None and each.weights_off is not None
        ]
        if both:
            said = f"By its figures it could be {' or '.join(both)}. "
    return f"{said}Give its config.json with --model-config"


def states_itself(name: str, given: Given, model: Model) -> bool:
    """Whether the positions are those of the checkpoint that was asked for, not of a relative."""
    return given.model_config is not None or states_positions(model, name)
