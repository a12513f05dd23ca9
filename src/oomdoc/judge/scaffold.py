"""A new rule to begin from."""

from __future__ import annotations

import re
from pathlib import Path

from oomdoc.errors import OomdocError, RuleError
from oomdoc.judge.rules import CATEGORIES

_NEW = '''# One cause. docs/adding-a-rule.md tells the whole story; `oomdoc tables` lists what can be asked.
id      = "{cause}"
title   = "{title}"
prior   = 0.02  # share of bundles with this cause, before anything is known
summary = "What is true when this is the cause, in one or two sentences."

[[evidence]]
id      = "said-so"
says    = "the log says so: {{text}}"  # columns of the query may stand in braces
unless  = "no log line says so"
# `holds` is TRUE, FALSE or NULL (the bundle cannot tell); ref is path:line
sql     = """
SELECT CASE WHEN f.failed THEN e.ref IS NOT NULL END AS holds, e.text, e.ref
FROM failure f LEFT JOIN (
  SELECT text[:120] AS text, source || ':' || line AS ref FROM seen.log_error
  WHERE text ILIKE '%the words to look for%' ORDER BY source, line LIMIT 1) e ON true"""
p_cause = 0.90  # how often it holds with this cause
p_other = 0.01  # and with others

[[action]]
id     = "mend-it"
do     = "What to do now"
why    = "because of {{ref}}"
cost   = "what it costs"
verify = "how to see that it helped"
sql    = """
SELECT true AS holds, source || ':' || line AS ref FROM seen.log_error
WHERE text ILIKE '%the words to look for%' ORDER BY source, line LIMIT 1"""

[[test]]
name               = "the words are in the log"
given.source       = [{{ source = "vllm.log", kind = "vllm-log" }}]
given.log_error    = [{{ source = "vllm.log", line = 7, level = "ERROR", kind = "error", text = "the words to look for" }}]
expect.holds       = ["said-so"]
expect.probability = [0.5, 1.0]
expect.action      = {{ id = "mend-it" }}

[[test]]
name               = "another error"
given.source       = [{{ source = "vllm.log", kind = "vllm-log" }}]
given.log_error    = [{{ source = "vllm.log", line = 7, level = "ERROR", kind = "error", text = "something else" }}]
expect.fails       = ["said-so"]
expect.probability = [0.0, 0.05]
'''


def new_rule(cause: str, category: str, folder: Path) -> Path:
    """Write a rule to begin from into `folder`/`category`; RuleError for a bad name or a file that is there already."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", cause):
        raise RuleError(f"{cause!r} is no id of a cause", "Use small letters and hyphens: disk-full")
    if category not in CATEGORIES:
        raise RuleError(f"{category!r} is no category", f"Use one of {', '.join(CATEGORIES)}")
    path = folder / category / f"{cause}.toml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("x", encoding="utf-8")
    except FileExistsError:
        raise RuleError(f"{path} exists already", "Choose another id, or edit that file") from None
    except OSError as problem:
        raise RuleError(f"{path} cannot be written ({problem.strerror})", "Choose a folder you may write to") from None
    try:
        with file:
            file.write(_NEW.format(cause=cause, title=cause.replace("-", " ").capitalize()))
    except OSError as problem:
        path.unlink(missing_ok=True)
        raise OomdocError(
            f"{path} cannot be written ({problem.strerror})", "Make room, or choose another place"
        ) from None
    return path
