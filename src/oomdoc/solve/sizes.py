"""Numbers that a rule cannot compute: the value with which the failed phase fits, and what loading takes of the host."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

from oomdoc.fit.sheet import formats
from oomdoc.model import Action
from oomdoc.physics.budget import round_utilization_down
from oomdoc.physics.interval import Interval
from oomdoc.solve.predict import at_failure, at_start, follows
from oomdoc.solve.situation import Situation
from oomdoc.units import GIB, MIB, count, show_bytes

ROOM_BYTES = 512 * MIB  # beside what was missing: steps of the same kind differ by that much
_FEWEST_TOKENS = 256  # of a step: below that a server spends its time on starting steps
_STEP_TOKENS = 256
_SPARE = 0.1  # share of what was free that a smaller step leaves: other tensors of it are not in the message
PROCESS_BYTES = 3 * GIB  # libraries, buffers and the host's side of a CUDA context, as resident in the bundles read
CPU_PROCESS_BYTES = (
    GIB  # the same without CUDA: 0.5 to 1.1 GB resident in servers of the CPU backend, the worker under load most
)
SHARD_BYTES = 5 * GIB  # a file of a checkpoint: what a loader holds at once beside the weights; hubs split at 5 GB


def solved_number(action: Action, now: Situation) -> Iterator[Action]:
    """The same flag with the number that fits, where the rule's does not by the books of the failure; nothing where none does."""
    headroom = action.predicted.get("headroom_bytes")
    if headroom is None or headroom.high >= 0 or len(action.changes) != 1:
        return
    ((name, value),) = action.changes.items()
    asked, free, total = (now.failure.get(key) for key in ("requested_bytes", "free_bytes", "total_bytes"))
    if not asked or free is None:
        return
    peak = asked * (1 + follows(now))
    found: float | None = None
    if name == "max_num_batched_tokens" and (tokens := tokens_of(now)):
        found = (1 - _SPARE) * free / peak * tokens // _STEP_TOKENS * _STEP_TOKENS
        found = int(found) if found >= _FEWEST_TOKENS and found < value else None
    elif name == "gpu_memory_utilization" and total and (share := now.engine.get(name)):
        found = round_utilization_down(share - (peak - free + ROOM_BYTES) / total)
        found = found if 0.3 < found < value else None
    if found is None:
        return
    changes = {name: found}
    books, start = at_failure(changes, now), at_start(changes, now)
    left = books.values.get("headroom_bytes")
    if left is None or left.high < 0 or start.values.get("starts") is False:
        return
    why = f"the largest number with which the whole peak of that phase, {show_bytes(peak)}, fits into what was free"
    if name == "max_num_batched_tokens":
        step, wide = peak / tokens_of(now), 2 * int(found)
        why = f"with {int(found):,} tokens a step the whole peak of that phase is {show_bytes(step * found)}, with {tokens_of(now):,} it was {show_bytes(peak)}; {show_bytes(free)} were free"
        why += (
            f", less than the {show_bytes(step * wide)} of {wide:,} tokens"
            if wide < tokens_of(now) and step * wide > free
            else ""
        )
    shown = f"{found:g}" if isinstance(found, float) else str(found)
    was = f"from {action.was[name]} " if name in action.was else ""
    yield dataclasses.replace(
        action,
        id=f"{action.id}-that-fits",
        do=f"Lower `--{name.replace('_', '-')}` {was}to {shown}",
        why=why,
        cost=action.cost
        if name == "max_num_batched_tokens"
        else f"{show_bytes((now.engine[name] - found) * (total or 0))} less KV pool per GPU",
        changes=changes,
        predicted={**start.values, **books.values},
        proof=books.proof,
    )


def tokens_of(now: Situation) -> int:
    """Tokens of the step that failed: the limit of a step, else what was scheduled; 0 where neither is known."""
    return int(now.engine.get("max_num_batched_tokens") or now.failure.get("scheduled_tokens") or 0)


_BITS = {"fp8": "8-bit (FP8)", "awq": "4-bit (AWQ)"}


def formats_that_fit(actions: Sequence[Action], now: Situation) -> list[Action]:
    """`quantise` by what the start-up arithmetic says of each format; as it is where model or device are not known."""
    known = [] if now.question is None else [each for each in formats(now.question) if each.weights_bytes is not None]
    fit = [each for each in known if each.starts is True]
    if not fit:
        return [*actions]
    first = fit[0]
    others = [each for each in known if each.starts is False]
    says = [
        f"{_BITS[first.flags['quantization']]} weights take {_span(first.weights_bytes)} per GPU"
        + (f" and leave room for {_tokens(first.tokens)} of KV cache" if first.tokens is not None else "")
    ]
    says += [
        f"{_BITS[each.flags['quantization']]} ones would take {_span(each.weights_bytes)}, which is too much"
        for each in others
    ]
    return [
        dataclasses.replace(
            action,
            do=f"Serve {'an' if first.flags['quantization'] == 'fp8' else 'a'} {_BITS[first.flags['quantization']]} checkpoint of the model, or a smaller model",
            why=f"{action.why}; {'; '.join(says)}",
        )
        if action.id == "quantise"
        else action
        for action in actions
    ]


def _span(size: Interval | None) -> str:
    if size is None:
        return "an unknown amount"
    low, high = show_bytes(size.lo), show_bytes(size.hi)
    return low if low == high else f"{low} to {high}"


def _tokens(size: Interval) -> str:
    low, high = count(size.lo), count(size.hi, "token")
    return high if count(size.hi) == low else f"{low} to {high}"


def _twice(action: Action, room: float) -> Action:
    """`raise-the-limit` of a load that was cut short and whose weights stand nowhere: how much was still to come, nobody knows."""
    need = math.ceil(2 * room / GIB) * GIB
    return dataclasses.replace(
        action,
        do=f"Raise the container's memory limit to {show_bytes(need)} or more, or lower what the server keeps on the host",
        why=f"{action.why}; it had not come up, and nothing tells what the weights take that were still to come: the host holds them, the "
        "loader's copy of a file of them, the KV pool and about a GiB for each process",
        values={**action.values, "need": need, "limit": room},
    )


def host_need(actions: Sequence[Action], now: Situation) -> list[Action]:
    """`raise-the-limit` by what loading takes of the host, where the server was ended before it came up."""
    row = (now.store.rows_of("SELECT coalesce(kill_limit_bytes, memory_limit_bytes) AS room FROM host") or [{}])[0]
    room, engine = row.get("room"), now.engine
    if engine.get("served") or not room or not any(action.id == "raise-the-limit" for action in actions):
        return [*actions]
    ranks = int(engine.get("world_size") or 1)
    offload, swap = engine.get("cpu_offload_gib") or 0, engine.get("swap_space_gib") or 0
    terms: list[tuple[str, float]] = []
    if offload:
        terms.append((f"--cpu-offload-gb {offload:g} x {ranks} ranks", offload * ranks * GIB))
    if swap:
        terms.append((f"--swap-space {swap:g} x {ranks} ranks", swap * ranks * GIB))
    if not now.on_gpu:
        weights = (
            engine.get("weights_bytes")
            or max((entry.parts.get("weights_bytes") or 0 for entry in now.entries), default=0)
            or (engine.get("checkpoint_bytes") or 0) / ranks
        )  # the CPU backend does not print what it loaded
        pool = engine.get("kv_cache_memory_bytes") or engine.get("kv_available_bytes") or 0
        if not weights:
            return [_twice(action, room) if action.id == "raise-the-limit" else action for action in actions]
        terms += [("weights", weights * ranks), ("the loader's copy of them", min(weights, SHARD_BYTES) * ranks)]
        terms += [("KV pool", pool * ranks)] if pool else []
        terms.append(
            (f"{ranks + 2} processes", CPU_PROCESS_BYTES * (ranks + 2))
        )  # front end and scheduler beside the workers
    else:
        terms.append((f"a file of the checkpoint in {ranks} loaders", SHARD_BYTES * ranks))
        terms.append((f"{ranks + 1} processes", PROCESS_BYTES * (ranks + 1)))
    need = math.ceil(sum(size for _, size in terms) / GIB) * GIB
    if need <= room:
        return [*actions]  # it ought to have fitted: what was resident says more than this sum
    sum_of = " + ".join(f"{show_bytes(size)} ({words})" for words, size in terms)
    told = []
    for action in actions:
        if action.id != "raise-the-limit":
            told.append(action)
            continue
        told.append(
            dataclasses.replace(
                action,
                do=f"Raise the container's memory limit to {show_bytes(need)}, or lower what the server keeps on the host",
                why=f"loading takes {sum_of} = {show_bytes(need)} of the host, the limit is {show_bytes(room)}",
                values={**action.values, "need": need, "limit": room},
            )
        )
        spare = room - (need - offload * ranks * GIB)
        less = math.floor(spare / ranks / GIB) if spare > 0 else 0
        if offload and less < offload:
            told.append(
                Action(
                    "smaller-offload",
                    f"Lower `--cpu-offload-gb` from {offload:g} to {less}",
                    f"each of {ranks} ranks keeps that many GiB of weights on the host; "
                    f"{show_bytes(room)} have room for {less} beside the rest",
                    f"{show_bytes((offload - less) * GIB)} more weights on each GPU",
                    {"cpu_offload_gb": less},
                    "the start passes `Loading weights took`",
                    {"cpu_offload_gb": offload},
                )
            )
    return told
