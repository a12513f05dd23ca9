"""Whose requests made the difference, and what users lost of it; None where the bundle holds no requests and nothing was lost."""

from __future__ import annotations

from typing import Any

from oomdoc.story.seen import Seen
from oomdoc.units import count, percent, show_seconds

_BY_TRAFFIC = frozenset(
    {"kv-demand-exceeds-pool", "prefill-activation-spike", "prefix-cache-thrash", "autoscaling-blind"}
)
_HEAVY = 1.5  # tokens to requests: from here on a tenant is said to weigh more than it sends


def pool_tokens(seen: Seen) -> int | None:
    """Tokens that the pool of the failing start stores."""
    return next((entry.kv_pool_tokens for entry in seen.books if entry.kv_pool_tokens), None)


def who(seen: Seen) -> str | None:
    """The tenant or the requests that made the difference, where traffic is what the cause is about."""
    traffic = seen.traffic
    if not traffic or seen.cause not in _BY_TRAFFIC:
        return None
    said = []
    tenants = [each for each in traffic.get("tenants") or () if each.get("token_share") and each.get("share")]
    if len(tenants) > 1:
        top = max(tenants, key=lambda each: each["token_share"])
        if top["token_share"] >= _HEAVY * top["share"]:
            said.append(
                f"`{top['name']}` sends {percent(top['share'])} of the requests and {percent(top['token_share'])} of the tokens"
                + (f" (half of its prompts above {count(top['input_p50'])} tokens)" if top.get("input_p50") else "")
            )
    longer = traffic.get("long_context") or {}
    before, during = longer.get("share_before"), longer.get("share_during")
    if before is not None and during is not None and during > before + 0.03 and longer.get("from_tokens"):
        said.append(
            f"prompts from {count(longer['from_tokens'])} tokens on were {percent(during)} of the requests, {percent(before)} before"
        )
    if not said and seen.cause != "autoscaling-blind" and (heaviest := traffic.get("heaviest")):
        top = heaviest[0]
        if top.get("input_tokens") is not None:
            made = f" and {count(top['output_tokens'])} generated ones" if top.get("output_tokens") else ""
            took = f", {show_seconds(top['latency_s'])} long" if top.get("latency_s") else ""
            said.append(
                f"the request that weighed most had {count(top['input_tokens'])} prompt tokens{made}{took} ({top['ref']})"
            )
    return "; ".join(said) or None


def cost(seen: Seen) -> str | None:
    """What users lost: requests, time without service, waiting; None where nothing is known of it."""
    incident, traffic, said = seen.incident, seen.traffic, []
    if seen.report.verdict == "healthy":
        return None
    impact = incident.impact if incident else None
    if impact and impact.requests_lost:
        lost = impact.requests_lost
        of = (
            f"{count(lost)} of {count(traffic['requests'], 'request')}"
            if traffic.get("requests")
            else count(lost, "request")
        )
        said.append(f"{of} failed with it")
    elif traffic.get("failed"):
        said.append(f"{count(traffic['failed'])} of {count(traffic['requests'], 'request')} failed")
    elif seen.facts.lost:
        number, ref = seen.facts.lost
        said.append(f"{'requests' if number is None else count(number, 'request')} lost ({ref})")
    if impact and impact.down_s is not None:
        said.append(f"{show_seconds(impact.down_s)} without service")
    elif impact and impact.restarts == 0 and incident and incident.kind != "pressure" and _ended(seen):
        said.append("no later start is in the bundle: it may still be down")
    if seen.cause == "kv-demand-exceeds-pool":
        said += _waited(seen.report.diagnoses[0].actions, traffic)
    return "; ".join(said) or None


def _ended(seen: Seen) -> bool:
    return bool(seen.engine and seen.engine.outcome in ("refused", "died"))


def _waited(actions: Any, traffic: Any) -> list[str]:
    """How long first tokens took, as recorded."""
    row = (traffic.get("percentiles") or {}).get("ttft_s") or {}
    if row.get("p50") is not None and row.get("p95") is not None:
        return [
            f"first tokens took {show_seconds(row['p50'])} at the median and {show_seconds(row['p95'])} at the 95th percentile"
        ]
    row = (traffic.get("percentiles") or {}).get("latency_s") or {}
    if row.get("p50") is not None and row.get("p95") is not None:
        return [
            f"answers took {show_seconds(row['p50'])} at the median and {show_seconds(row['p95'])} at the 95th percentile"
        ]
    return []
