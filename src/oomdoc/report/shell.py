"""What every HTML page shares: assets of this package, the template environment, and the policy that forbids all else.

Pages are made of `assets/*.j2` with escaping on; texts of a bundle pass `words.neutral` (the filter `clean`) as well.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape

from oomdoc.report.words import factor, neutral, percent


def asset(name: str) -> str:
    """A text file of the package's assets."""
    return files("oomdoc.report").joinpath("assets", name).read_text(encoding="utf-8")


def policy(scripts: Sequence[str], style: str) -> str:
    """A Content-Security-Policy that forbids everything but these very texts."""
    allowed = f"script-src {' '.join(map(_hash, scripts))}; " if scripts else ""
    return f"default-src 'none'; {allowed}style-src {_hash(style)}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


@functools.cache
def environment() -> jinja2.Environment:
    """Templates out of the assets, escaping on, undefined names refused."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    made.filters.update(clean=lambda text: neutral(str(text)), percent=percent, factor=factor, prose=prose)
    return made


def prose(text: str) -> Markup:
    """A sentence of a rule or a bundle, harmless, its `code` set off.

    >>> prose("Lower `--max-num-seqs` to <b>11</b>")
    Markup('Lower <code>--max-num-seqs</code> to &lt;b&gt;11&lt;/b&gt;')
    """
    pieces = re.split(r"`([^`]+)`", neutral(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(piece) if place % 2 else escape(piece) for place, piece in enumerate(pieces)
    )


def plain_page(template: str, **told: Any) -> str:
    """A page without scripts: the style of the report, and the policy that goes with it."""
    style = asset("report.css")
    return environment().get_template(template).render(style=Markup(style), policy=policy((), style), **told)
