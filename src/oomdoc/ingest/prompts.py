"""What somebody typed at a prompt: the one place that knows how shells ask, for all who read a session."""

from __future__ import annotations

from oomdoc.regexes import regex

_BEGINS = (
    r"(?=[a-z./]|[A-Z_][A-Z_0-9]{0,40}=)"  # a program, a path, or a variable before them; no amount of money or share
)
_PROMPT = regex(
    r"\s*(?:\([\w.-]{1,40}\)\s?)?(?:\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d?:\d\d(?::\d\d)?\]?\s(?=\S{0,80}[$#%❯]\s))?(?:"
    rf"(?:\[?[\w.-]{{1,60}}@[\w.-]{{1,60}}[: ][^\s$#]{{0,80}}\]?|[\w.@:~/-]{{0,60}})[$❯]\s+{_BEGINS}"
    rf"|\[?[\w.-]{{1,60}}@[\w.-]{{1,60}}[: ][^\s$#%]{{0,80}}\]?\s?[#%]\s+{_BEGINS}"
    r"|[#>+]\s+(?=(?:sudo )?(?:kubectl|oc|docker|podman|nerdctl|crictl|cat|df|free|ps|kill|nvidia-smi|rocm-smi|dmesg|curl|grep|journalctl|sysctl|ls)\s)"
    r"|PS [A-Z]:[^>\n]{0,80}>\s*(?=\S))"
)


def typed(line: str) -> str | None:
    """The command that somebody typed at a prompt; None for another line.

    >>> typed("ops@node-3:~$ cat /proc/meminfo"), typed("[19:20] $ free -g"), typed("me@mac ~ % ls -l")
    ('cat /proc/meminfo', 'free -g', 'ls -l')
    >>> typed("costs 5 $ a day"), typed("97% of the pool"), typed("GPU% power"), typed("US$ Price")
    (None, None, None, None)
    """
    found = _PROMPT.match(line[:400])
    return line[found.end() :].strip() if found else None
