"""One setup judged: what it gives, with the measured figures that still hold for it and the difference of those that do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from oomdoc.fit.question import Measured, Question
from oomdoc.physics.architecture import Model
from oomdoc.physics.defaults import budget_rule
from oomdoc.physics.expect import Expected, Known, expected, in_flight_tokens, request_need, runner_by, stage_layouts
from oomdoc.physics.interval import Interval, hull, point
from oomdoc.physics.planning import activation_bytes, graph_bytes, graphs_estimated, grows_with_length
from oomdoc.physics.pool import longest_request
from oomdoc.physics.setup import Filled, Setup, fill, one_by_one
from oomdoc.physics.weights import weights_bytes

MOST_TOKENS = 1 << 24
_WHOLE_PROMPTS = 32_768  # engine_defaults.toml, chunked_above
_CHUNKED_SINCE = 5_004


def judge(question: Question, setup: Setup) -> Expected:
    """What this setup gives on the device of the question."""
    known = _known(question, setup)
    return expected(question.model, setup, question.total_bytes, device=question.device, known=known)


def filled(question: Question, setup: Setup) -> Filled:
    """The setup with the defaults of its release."""
    return fill(question.model, setup, question.total_bytes, question.device)


def _known(question: Question, setup: Setup) -> Known:
    measured = question.measured
    if measured is None:
        return Known()
    before = fill(question.model, measured.setup, measured.total_bytes, question.device)
    after = filled(question, setup)
    ran, known = measured.setup, measured.known
    same_ranks = (
        ran.tensor_parallel_size == setup.tensor_parallel_size
        and ran.pipeline_parallel_size == setup.pipeline_parallel_size
    )
    same_weights = same_ranks and ran.quantization == setup.quantization and ran.dtype == setup.dtype
    same_step = (
        same_ranks
        and ran.dtype == setup.dtype
        and before.max_num_batched_tokens == after.max_num_batched_tokens
        and before.max_num_seqs == after.max_num_seqs
        and (before.max_model_len == after.max_model_len or not grows_with_length(question.model))
    )
    same_graphs = same_ranks and ran.enforce_eager == setup.enforce_eager and before.max_num_seqs == after.max_num_seqs
    available = None
    if question.pool_by_hand:
        available = _set_by_hand(question, measured, setup, before, after)
    elif known.available_bytes is not None and same_ranks:
        available = _moved(question, measured, setup, before, after, same_weights, same_step, same_graphs)
    return replace(
        known,
        weights_bytes=known.weights_bytes if same_weights else None,
        activation_bytes=known.activation_bytes if same_step else None,
        non_torch_bytes=known.non_torch_bytes if same_ranks else None,
        graph_bytes=known.graph_bytes if same_graphs else None,
        available_bytes=available,
    )


def _set_by_hand(
    question: Question, measured: Measured, setup: Setup, before: Filled, after: Filled
) -> Interval | None:
    """A pool that a flag sizes stays what the flag says: so many bytes per GPU, or so many blocks of whatever size."""
    available = measured.known.available_bytes
    if available is None or question.pool_by_hand != "num_gpu_blocks_override":
        return available
    old = stage_layouts(question.model, measured.setup, before)
    new = stage_layouts(question.model, setup, after)
    if not old or not new:
        return None
    return available * (max(each.block_bytes for each in new) / max(each.block_bytes for each in old))


def _moved(
    question: Question, measured: Measured, setup: Setup, before: Filled, after: Filled,
    same_weights: bool, same_step: bool, same_graphs: bool,
) -> Interval | None:  # fmt: skip
    """available' = available + U' x T' - U x T - dW - dA - dC, where only what changes is estimated."""
    model, ran = question.model, measured.setup
    available = measured.known.available_bytes
    assert available is not None
    if after.gpu_memory_utilization != before.gpu_memory_utilization or question.total_bytes != measured.total_bytes:
        if question.total_bytes == measured.total_bytes:
            more = question.total_bytes * (after.gpu_memory_utilization - before.gpu_memory_utilization)
        else:
            more = (
                question.total_bytes * after.gpu_memory_utilization
                - measured.total_bytes * before.gpu_memory_utilization
            )
        available = available + more
    if not same_weights:
        sizes = [
            weights_bytes(
                model,
                quantization=each.quantization,
                dtype=each.dtype,
                tp=each.tensor_parallel_size,
                pp=each.pipeline_parallel_size,
            )
            for each in (ran, setup)
        ]
        if sizes[0] is None or sizes[1] is None:
            return None
        # both are wrong in the same direction, so their difference is better known than either
        available = available - point(sizes[1].middle - sizes[0].middle, "computed")
    if not same_step:
        tp = setup.tensor_parallel_size
        old, new = (
            activation_bytes(
                model,
                batched_tokens=each.max_num_batched_tokens,
                max_num_seqs=each.max_num_seqs,
                tp=tp,
                dtype=setup.dtype,
                version=each.version,
                encoder=not setup.language_model_only,
                runner=runner_by(model, setup, each.version),
                max_model_len=each.max_model_len,
            )
            for each in (before, after)
        )
        available = available - _difference(new, old)
    planned = "graphs" in budget_rule(after.version, after.generation).also
    if not same_graphs and planned and graphs_estimated(runner_by(model, setup, after.version), after.version):
        old, new = (
            graph_bytes(
                enforce_eager=each.enforce_eager,
                max_num_seqs=made.max_num_seqs,
                draft_tokens=each.speculation.tokens,
                estimated=True,
            )
            for each, made in ((ran, before), (setup, after))
        )
        available = available - _difference(new, old)
    return available


def _difference(new: Interval, old: Interval) -> Interval:
    """How much more `new` is than `old`, where both are wrong in the same direction: end against end."""
    ends = (new.lo - old.lo, new.hi - old.hi)
    return Interval(min(ends), max(ends), new.origin)


def longest(question: Question, setup: Setup) -> Interval | None:
    """The largest max_model_len that starts: for sure, and at best. None where the model's cache cannot be computed.

    The model's own limit is not applied: this is what memory allows. Where a step has to hold the whole prompt (V0
    without chunked prefill), or sets room aside for the longest one, each length is judged by itself.
    """
    each = [_longest(question, one) for one in one_by_one(setup)]
    known = [one for one in each if one is not None]
    return hull(known) if known else None


def _longest(question: Question, setup: Setup) -> Interval | None:
    result = judge(question, setup)
    if result.pool is None:
        return None
    if grows_with_length(question.model):
        sure = _whole_prompt(question, setup, MOST_TOKENS, lambda one: one.starts is True)
        might = _whole_prompt(question, setup, MOST_TOKENS, lambda one: one.starts is not False)
        return Interval(sure, max(sure, might), result.pool.blocks.origin)
    # a step is no larger than max_num_seqs x max_model_len: a short length must not make the step short for a long one
    found = _pool_end(question.model, judge(question, replace(setup, max_model_len=MOST_TOKENS)), setup)
    if setup.max_num_batched_tokens is not None or result.filled.generation != "V0":
        return found
    if found.lo > _WHOLE_PROMPTS:
        return found
    most = _WHOLE_PROMPTS if result.filled.version >= _CHUNKED_SINCE else MOST_TOKENS
    sure = _whole_prompt(question, setup, most, lambda one: one.starts is True)
    best = (
        found.hi
        if found.hi > _WHOLE_PROMPTS
        else _whole_prompt(question, setup, most, lambda one: one.starts is not False)
    )
    return Interval(sure, max(sure, best), found.origin)


def _pool_end(model: Model, result: Expected, setup: Setup) -> Interval:
    """Tokens of the longest request that the pool of this result holds; 0 where an earlier check may refuse."""
    pool = result.pool
    assert pool is not None
    refused = result.starts is not True and result.refusal not in (None, "length")
    ends = []
    for count, nothing in ((pool.blocks.lo, refused), (pool.blocks.hi, refused and result.starts is False)):
        lengths = [
            longest_request(
                layout,
                int(count),
                batched_tokens=in_flight_tokens(model, setup, result.filled),
                prefix_caching=result.filled.enable_prefix_caching,
                every_state=result.filled.states == "all",
                draft_tokens=setup.speculation.tokens,
                most=MOST_TOKENS,
            )
            for layout in pool.layouts
        ]
        ends.append(0 if nothing else min(lengths) * setup.decode_context_parallel_size)
    return Interval(ends[0], max(ends), pool.blocks.origin)


def _whole_prompt(question: Question, setup: Setup, most: int, fits: Callable[[Expected], bool]) -> int:
    """The largest length up to `most` for which `fits` holds, where one step takes the whole prompt; else 0."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(judge(question, replace(setup, max_model_len=middle))):
            low = middle
        else:
            high = middle - 1
    return low


def at_once(question: Question, setup: Setup, tokens: int) -> Interval | None:
    """Requests of so many tokens that the pool holds at once; None where the pool cannot be computed."""
    each = [_at_once(question, one, tokens) for one in one_by_one(setup)]
    known = [one for one in each if one is not None]
    return hull(known) if known else None


def _at_once(question: Question, setup: Setup, tokens: int) -> Interval | None:
    result = judge(question, setup)
    if result.pool is None:
        return None
    need = max(
        request_need(layout, question.model, setup, result.filled, max(1, tokens)) for layout in result.pool.layouts
    )
    return (result.pool.blocks / need).floor()
