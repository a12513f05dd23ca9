"""The texts that `oomdoc collect` prints: a shell collector for a host, a support-bundle spec for a cluster.

Both are files of this package, so that a shell's and a cluster's own checkers can read them. Nothing is run here.
"""

from __future__ import annotations

import re
from pathlib import Path

from oomdoc.errors import UsageError

_HERE = Path(__file__).parent
# RFC 1123 label: what Kubernetes takes as a namespace
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
# equality selectors of labels, joined by commas
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9_./-]{0,250}[A-Za-z0-9])?"
_SELECTOR = re.compile(rf"{_LABEL}(=|==|!=){_LABEL}(,{_LABEL}(=|==|!=){_LABEL})*")


def shell() -> str:
    """The collector for a host: a POSIX shell script."""
    return (_HERE / "collector.sh").read_text(encoding="utf-8")


def kubernetes(namespace: str, selector: str) -> str:
    """The support-bundle spec and its redactors as YAML; UsageError for what a cluster would refuse."""
    if not _NAMESPACE.fullmatch(namespace):
        raise UsageError(
            f"--namespace {namespace} is no name of a namespace", "Use lower case letters, digits and hyphens"
        )
    if not _SELECTOR.fullmatch(selector):
        raise UsageError(
            f"--selector {selector} is no selector of labels", "Write it like app=vllm, or app=vllm,tier=chat"
        )
    text = (_HERE / "support-bundle.yaml").read_text(encoding="utf-8")
    return text.replace("@NAMESPACE@", namespace).replace("@SELECTOR@", selector)
