"""What a redaction did, for a person: values by kind, what was left out, whether the diagnosis is the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oomdoc.report.words import count, neutral

_SHOWN = 10
_KINDS: Mapping[str, tuple[str, str]] = {
    "prompt": ("prompt or completion", "prompts and completions"),
    "secret": ("key, token or password", "keys, tokens, passwords"),
    "user": ("user name", "user names"),
    "host": ("host name", "host names"),
    "tenant": ("tenant", "tenants"),
    "email": ("mail address", "mail addresses"),
    "ip": ("IP address", "IP addresses"),
    "mac": ("hardware address", "hardware addresses"),
    "word": ("word of yours", "words of yours"),
    "other": ("word that is not known to be safe", "words that are not known to be safe"),
}


def render(
    target: str,
    members: int,
    replaced: Mapping[str, int],
    renamed: int,
    left_out: Sequence[tuple[str, str]],
    differences: Sequence[str] | None,
) -> str:
    """The account as text; `differences` is None where nobody compared, empty where the diagnosis is the same."""
    lines = [f"{neutral(target)}: {count(members, 'member')} written"]
    lines += [
        f"  {replaced[kind]:>9,}  {one if replaced[kind] == 1 else many}"
        for kind, (one, many) in _KINDS.items()
        if replaced.get(kind)
    ]
    if not replaced:
        lines.append("  nothing was found that had to be replaced")
    if renamed:
        lines.append(f"  {count(renamed, 'path')} renamed")
    if left_out:
        lines.append("Left out")
        lines += [f"  {neutral(path)}: {neutral(why)}" for path, why in left_out[:_SHOWN]]
        if len(left_out) > _SHOWN:
            lines.append(f"  and {len(left_out) - _SHOWN} more, all in the manifest")
    if differences is None:
        lines.append("Diagnosis: not compared")
    elif differences:
        lines.append("Diagnosis: NOT the same")
        lines += [f"  {neutral(item)}" for item in differences]
    else:
        lines.append("Diagnosis: the same")
    lines.append(
        "Look through the copy before you send it: a name made of a log's own words passes where no field says what it is."
    )
    return "\n".join(lines) + "\n"
