"""From utilization to bytes for KV and back, by release.

`available = T x U - W - A - N` and the terms that a release takes off besides (`defaults.budget_rule`). T is the device
as cudaMemGetInfo tells it, U `gpu_memory_utilization`, W weights, A peak of activations, N outside torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from oomdoc.physics.defaults import BudgetRule, budget_rule
from oomdoc.physics.interval import Interval, hull, point, total


@dataclass(frozen=True)
class Budget:
    """What one rank may plan with, in bytes, and what is left for KV; `available_bytes` may be negative.

    `graphs_bytes` are captured behind the plan's back where `rule.also` does not name them: then
    `outside_bytes` = total x (1 - utilization) has to hold them. `spread_bytes` is how far from its middle what is left may well
    be: the parts do not know of each other, so their half widths add up as squares do, not end to end.
    """

    rule: BudgetRule
    total_bytes: Interval
    utilization: float
    requested_bytes: Interval
    weights_bytes: Interval
    activation_bytes: Interval
    non_torch_bytes: Interval
    graph_bytes: Interval
    other_processes_bytes: Interval
    available_bytes: Interval
    spread_bytes: float = 0.0

    @property
    def outside_bytes(self) -> Interval:
        """What the engine leaves of the device by its own plan."""
        return self.total_bytes - self.requested_bytes

    @property
    def graphs_planned(self) -> bool:
        """The graphs' estimate is taken off before the pool is made."""
        return "graphs" in self.rule.also


def plan_budget(
    total_bytes: Interval,
    utilization: float,
    *,
    weights_bytes: Interval,
    activation_bytes: Interval,
    non_torch_bytes: Interval,
    graph_bytes: Interval,
    version: int,
    generation: str = "",
    other_processes_bytes: Interval | None = None,
    slack_bytes: Interval | None = None,
    graphs_estimated: bool = True,
) -> Budget:
    """The budget of one rank in a release. Others on the device count only where the release's rule counts them.

    `graphs_estimated` False: this server takes no estimate of its graphs, whatever the release does elsewhere (the second
    model runner of 0.26.0 returns 0 for it).
    """
    rule = budget_rule(version, generation)
    if not graphs_estimated:
        rule = replace(rule, also=tuple(name for name in rule.also if name != "graphs"))
    others = other_processes_bytes or point(0)
    requested = total_bytes * utilization
    parts = [weights_bytes, activation_bytes, *([non_torch_bytes] if rule.non_torch else [])]
    parts += [{"others": others, "graphs": graph_bytes, "slack": slack_bytes or point(0)}[name] for name in rule.also]
    return Budget(
        rule,
        total_bytes,
        utilization,
        requested,
        weights_bytes,
        activation_bytes,
        non_torch_bytes,
        graph_bytes,
        others,
        # the device cannot give more than it has, whatever the plan says
        requested - total(parts),
        math.hypot(*((each.hi - each.lo) / 2 for each in (requested, *parts))),
    )


_SIZES = tuple(item.name for item in fields(Budget) if item.type == "Interval")


def over_releases(budgets: Sequence[Budget]) -> Budget:
    """One budget whose figures hold those of several releases; rule and utilization are the last one's."""
    sizes: dict[str, Any] = {name: hull([getattr(each, name) for each in budgets]) for name in _SIZES}
    return replace(budgets[-1], **sizes)


def utilization_for(
    needed_bytes: float, available_bytes: Interval, total_bytes: Interval, utilization: float
) -> Interval:
    """The utilization with which `needed_bytes` are left for KV: U + (needed - available) / T.

    May be above 1, which means that it cannot be had; whether the device has it free at start is another question.
    """
    return (needed_bytes - available_bytes) / total_bytes + utilization


def round_utilization_up(value: float) -> float:
    """To the two digits that people write, upwards: what is needed stays fulfilled.

    >>> round_utilization_up(0.9412), round_utilization_up(0.9)
    (0.95, 0.9)
    """
    return math.ceil(round(value * 100, 6)) / 100


def round_utilization_down(value: float) -> float:
    """To two digits, downwards: headroom stays kept.

    >>> round_utilization_down(0.9378)
    0.93
    """
    return math.floor(round(value * 100, 6)) / 100
