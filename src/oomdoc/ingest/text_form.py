"""What a text is by its form: a document, a page or catalogue of documentation (`pages`), a chat, source code, a configuration.
In those a message is a quotation.

    ## The server does not start            [2026-04-02 10:11] anna: seen this?        raise ValueError(
    If you see a line like this:            <pre>ValueError: No available ...</pre>        "No available memory for ..."

A runbook quotes failures of every kind "as an example", a patch holds a message as text of a statement. People also paste their
own log into a report: records with a running time, many of them. Such a log inside a document or a chat stays evidence
(`own_log`); so does whatever somebody writes of one failure of their own, which has none of the forms below.

Every form is decided by the head of the text (at most 400 lines); a text in doubt has no form and is read as before.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence

from oomdoc.ingest import pages
from oomdoc.ingest.base import Head
from oomdoc.ingest.record import BRACKETED, HEAD
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

DOCUMENT = "document"
CHAT = "chat"
SOURCE_CODE = "source-code"

LOG_RECORDS = 8
"""Records with a time from which a pasted piece is somebody's own log: a manual's example has 1 to 6 lines, the shortest
start of an engine some 20."""
LOG_MOMENTS = 3
"""Different times that such a piece must tell: an example repeats one."""
LOG_GAP_LINES = 60
"""Lines without a time that may stand between two records: a traceback of three chained exceptions has 40 to 60."""
DOCUMENT_SIGNS = 3
"""Signs of a document (`_signs`) from which a text is one: headings and one phrase such as "for example" also stand in a report
of one's own, which is why two do not suffice."""


# ---- records of a log

_TIMED = regex(
    r".{0,60}?(?:\d\d:\d\d:\d\d|\[ *\d{1,9}\.\d{6}\])"
)  # kernel uptime, and everything with seconds; chats mostly tell minutes
_LOG_LINE = regex(
    r"\s*(?:Traceback \(most recent|File \"[^\"]+\", line \d|(?:\w+\.)*\w*(?:Error|Exception|Warning|Interrupt)\b: |"
    r"INFO: +\S|\[\s*\d+\.\d{3,}\]|\[rank\d+\]|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\w{3} +\d+ \d\d:\d\d:\d\d |"
    r"\((?:\w+\) |[\w.:-]+(?: rank=\d+)? pid=\d+)|(?:[A-Z][\w ]{1,40}: {1,3})?\d+%\||[IWEF]\d{4} \d\d:\d\d:\d\d|"
    r"\[?\d\d(?:\d\d)?/(?:\d\d|[A-Z][a-z]{2})/\d\d(?:\d\d)?[ :]\d\d:\d\d:\d\d|[\d.:a-f]{7,39} \S+ \S+ \[\d\d/\w{3}/\d{4}:|"
    r"\d+:[MSCX] \d\d \w{3} \d{4} \d\d:\d\d:\d\d|" + BRACKETED + r"|"
    r"<\d{1,3}>(?:1 (?:\d{4}-|- )|\d{4}-|[A-Z][a-z]{2} +\d{1,2} )|"  # syslog as it goes over the wire, both standards
    r"(?:#\d+ 0x|raise |self\.|return |CUDA error|NCCL |Loading )|\*\*\* \w+ received)"
)


def is_log_line(line: str) -> bool:
    """Whether a line is a record of a log or belongs to a traceback."""
    match = HEAD.match(line)
    return bool((match and (match["mon"] or match["src"])) or _LOG_LINE.match(line))


def own_log(chunk: Chunk) -> tuple[Chunk, Chunk]:
    """A chunk of a document as (logs that somebody pasted into it, everything else); lines keep their numbers.

    A piece is what a fence, or else other prose, sets apart.
    """
    lines = chunk.data.split(b"\n")
    kept = [False] * len(lines)
    for begin, end in _pieces(lines):
        moments = [found[0] for line in lines[begin:end] if (found := _CLOCK.search(line[:80]))]
        if len(moments) >= LOG_RECORDS and len(set(moments)) >= LOG_MOMENTS:
            kept[begin:end] = [True] * (end - begin)
    if not any(kept):
        return chunk._replace(data=b""), chunk
    return (
        chunk._replace(data=b"\n".join(line if keep else b"" for line, keep in zip(lines, kept, strict=True))),
        chunk._replace(data=b"\n".join(b"" if keep else line for line, keep in zip(lines, kept, strict=True))),
    )


_FENCE = regex(rb"\s{0,8}(?:```|~~~|</?(?:pre|details|code)\b|\{(?:code|noformat)[:}])")
_CLOCK = regex(rb"\d\d:\d\d:\d\d|\[ *\d{1,9}\.\d{6}\]")


def _pieces(lines: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Bounds of fenced pieces, and outside of fences of runs of records that no long prose parts."""
    begin: int | None = None
    outside: list[int] = []
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            if begin is None:
                begin = number + 1
            else:
                yield begin, number
                begin = None
        elif begin is None and not _CHAT_LINE.match(line[:200].decode("utf-8", "replace")) and _CLOCK.search(line[:80]):
            outside.append(number)
    if begin is not None:  # a fence that is never closed: a cut text
        yield begin, len(lines)
    while outside:
        gaps = (n for n, (a, b) in enumerate(itertools.pairwise(outside)) if b - a > LOG_GAP_LINES)
        last = next(gaps, len(outside) - 1)
        yield outside[0], outside[last] + 1
        outside = outside[last + 1 :]


# ---- forms


@functools.lru_cache(maxsize=2)  # of one source it is asked three times in a row
def form_of(head: Head) -> str | None:
    """The form of a text; None for a log, for a table, for a person's own words, and in doubt."""
    if b"\x00" in head.data:
        return None
    text = head.data.decode("utf-8", "replace")
    if pages.is_catalogue(head.data):
        return DOCUMENT
    if _JSON.match(text):
        return _json_form(text)
    if len(TOML_ENTRY.findall(text)) > 1:
        return None  # entries of TOML, whose comments are no headings
    lines, told = head.raw, head.told
    text = "\n".join(lines)
    if not told:
        return None
    if _is_patch(lines):
        return SOURCE_CODE
    if _is_chat(told):
        return CHAT
    if _PAGE.search(text[:2000]) or pages.is_manual(lines) or pages.lists_messages(told):
        return DOCUMENT
    if 2 * sum(is_log_line(line) or bool(_TIMED.match(line)) for line in told) > len(told):
        # a log may stand under a document's headings; whatever it is called, `own_log` gives it back
        return DOCUMENT if _signs(lines, headings_needed=1) >= DOCUMENT_SIGNS else None
    if _is_source(told):
        return SOURCE_CODE
    return DOCUMENT if _is_thread(text) or _signs(lines) >= DOCUMENT_SIGNS else None


TOML_ENTRY = regex(r"(?m)^\[\[(?P<name>[\w-]{1,80})\]\][ \t]*(?:#.*)?$")
_JSON = regex(r"\s*(?:\{|\[\s*[\[{\"])")
_NOTEBOOK = regex(r"\"nbformat\"\s*:")
_SAYS = regex(r"\"(?:text|content|body)\"\s*:\s*\"")
_SPEAKER = regex(r"\"(?:user|user_name|username|author|sender|from|login|real_name)\"\s*:")
_LEVEL_KEY = regex(r"\"(?:level|levelname|severity|severity_text|logger|stream|log)\"\s*:")
_WHEN = regex(r"\"(?:ts|date|timestamp|created_at|time|sent_at)\"\s*:")


def _json_form(text: str) -> str | None:
    if _NOTEBOOK.search(text) and '"cells"' in text:
        return SOURCE_CODE
    if pages.is_marked_up(text):
        return DOCUMENT
    if _LEVEL_KEY.search(text):  # a log that is kept as JSON
        return None
    # two messages at least, each with who and when: one such object alone may be a request
    counts = [sum(1 for _ in shape.finditer(text)) for shape in (_SAYS, _SPEAKER, _WHEN)]
    return CHAT if min(counts) >= 2 else None


_HUNK = regex(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_FILES = regex(r"(?:diff --git |--- \S|Index: |\+\+\+ \S)")


def _is_patch(lines: Sequence[str]) -> bool:
    return any(_HUNK.match(line) for line in lines) and any(_FILES.match(line) for line in lines)


_NAME = r"[^\W\d][\w .'-]{0,30}"
_CHAT_LINE = regex(
    rf"\[?\d{{4}}-\d\d-\d\d[ T]\d\d:\d\d\]? <?{_NAME}>?: "  # exports of messengers: the minute, then who
    rf"|\[?\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{2,4}},? \d{{1,2}}:\d\d(?::\d\d)?(?: ?[APap]\.?[Mm]\.?)?\]?(?: -)? {_NAME}: "
    rf"|\[?\d\d:\d\d(?::\d\d)?\]? <[@+ ]?[\w|`^-]{{1,30}}> "  # IRC
    rf"|{_NAME}(?: APP)? {{1,3}}(?:— ?)?(?:\[?\d{{1,2}}:\d\d(?: ?[AP]M)?\]?|(?:Today|Yesterday|\d\d/\d\d/\d{{4}})(?: at)? \d{{1,2}}:\d\d(?: [AP]M)?)$"
)
_WHO = regex(r"<[@+ ]?([\w|`^-]{1,30})>|\b([^\W\d][\w.'-]*)(?:: | {1,3}(?:— ?)?\[?(?:\d{1,2}:\d\d|Today|Yesterday))")
_PART = regex(
    r"(?i)(?:vllm|server|engine|worker|pods?|node|host|gpu|cuda|kernel|kube\w*|docker|systemd|api|proxy|gateway|nginx|alert\w*|client|"
    r"users?|memory|rss|model|status|note|notes|event|error|result|step|deploy\w*|restart\w*|start|stop|crash|oom)\d*"
)
_LEVEL = regex(r".{0,40}\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL|TRACE|NOTICE|LOG|[IWE])\b[^:]{0,40}: ")


def _is_chat(told: Sequence[str]) -> bool:
    """Three messages of two people at least, and a quarter of the lines begin one (long messages have more lines)."""
    begun = [line for line in told if _CHAT_LINE.match(line)]
    if len(begun) < 3 or 4 * len(begun) < len(told):
        return False
    who = {name for line in begun if (found := _WHO.search(line)) for name in found.groups() if name}
    # "[2026-05-22 10:12] pod: restarted" is a timeline: its speakers are parts of a machine
    return len(who) >= 2 and not any(map(_PART.fullmatch, who)) and not any(map(_LEVEL.match, begun))


_DEFINES = regex(
    r"(?:async )?def \w+\(|class \w+.*[:{]$|\s+(?:async )?def \w+\(self|from [\w.]+ import |import [\w.\"{(]|"  # Python, JS
    r"#include [<\"]|#define \w|(?:static |inline |extern |const )*(?:int|void|char|bool|size_t|struct \w+) \**\w+\(|"  # C
    r"package [\w.]+;?$|func |type \w+ (?:struct|interface)|(?:pub )?(?:fn|struct|impl|enum|mod|use) \w|"  # Go, Rust, Java
    r"(?:public|private|protected) |(?:export |async )*(?:function|const|let|class) \w|"
    r"(?:resource|variable|module|provider|output|locals|terraform) ?(?:\"|\{)|msgid \"|msgstr \"|#!/|@\w+(?:\(|$)"
)
_CODE = regex(
    r"\s*(?://|/?\*|#|\"{3}|'{3}|(?:if|for|while|return|raise|try|except|else|elif|elsif|with|pass|break|continue|import|from|yield|"
    r"assert|case|switch|defer|let|const|var|throw|catch|then|fi|done|do|esac|echo|exit|local|export)\b|"
    r"[\w.\[\]\"'() ,*&-]{1,80}? ?(?:[:+|-]|:=)?= ?\S|\s{7,}\S|\"|@\w)|.*[{}();:,\[\]\\]$"
)
_LINT = regex(r"\S+\.\w{1,5}:\d+(?::\d+)?: ")
_COMMIT = regex(r"commit [0-9a-f]{40}\b")


def _is_source(told: Sequence[str]) -> bool:
    """Two definitions at least, and half of the lines shaped like statements (the rest is docstrings and comments); output of
    linters, a history of commits. Code in a report of one's own comes with what it printed: a record that is not indented.
    """
    if 2 * sum(bool(_LINT.match(line)) for line in told) > len(told) or sum(map(bool, map(_COMMIT.match, told))) >= 2:
        return True
    if any(line[0] not in " \t" and _PRINTED.match(line) for line in told):
        return False
    if told[0].startswith("#!/"):
        return 10 * sum(bool(_CODE.match(line) or _COMMAND.match(line)) for line in told) >= 9 * len(told)
    defined = sum(bool(_DEFINES.match(line)) for line in told)
    return defined >= 2 and 2 * sum(bool(_DEFINES.match(line) or _CODE.match(line)) for line in told) >= len(told)


_TESTS = regex(r"import (?:pytest|unittest)\b|from unittest|@pytest\.|def test_\w+\(")


def is_test(head: Head) -> bool:
    """Whether source code is tests of a program."""
    return sum(bool(_TESTS.match(line)) for line in head.told) >= 2


_PRINTED = regex(
    r"Traceback \(most recent|(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b: |(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[: ]|"
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\([\w.:-]+ pid=\d+\)|\[\s*\d+\.\d{3,}\]"
)
_COMMAND = regex(r"\s*[\w./$-]+(?: \S+)*$")
_PAGE = regex(r"(?i)<!doctype html|<html[ >]|\\documentclass|=+ test session starts =+")
_COMMENTED = regex(
    r"(?im)^(?:#+ )?[*_@]{0,3}[\w-]{1,39}[*_]{0,3} (?:commented|opened this issue|replied|wrote)\b|^On .{4,60} wrote:$"
)
_MAIL = regex(r"(?im)^(?:From|To|Cc|Subject|Date|Message-ID|List-Id|In-Reply-To|References): \S")
_REPLY = regex(r"(?m)^> ")


def _is_thread(text: str) -> bool:
    """An issue with its comments, or a mail that answers another: two comments, or mail headers and quoted lines."""
    comments = len(set(_COMMENTED.findall(text)))
    if comments >= 2:
        return True
    headers = {found[0].partition(":")[0].lower() for found in _MAIL.finditer(text[:4000])}
    return len(headers) >= 3 and len(_REPLY.findall(text)) >= 2


# ---- documents

_TITLES = regex(
    r"(?i)\b(?:run-?book|playbook|troubleshooting|faq|frequently asked|post-?mortem|lessons|how to (?!reproduce)|user guide|manual\b|"
    r"tutorial|change ?log|release notes|getting started|quick ?start|known issues|what we did|escalation|glossary)"
    r"|^\W{0,8}(?:guide|documentation|reference|options|install(?:ation|ing)?|usage|contributing)\W*$"  # not "memory usage"
)
_GENERIC = regex(
    r"(?i)\b(?:if (?:you|the (?:engine|server|pod|node|message|error|log)|this)|when(?:ever)? (?:you|the (?:engine|server|usage|pod))|"
    r"you (?:may|might|can|could|should|will|must)|for example|for instance|as an example|e\.g\.|(?:this|these) (?:option|flag|setting|message|error)s?\b"
    r"|(?:a|the following) (?:line|error|message) (?:like|such as)|looks? like this)"
)
_ORDER = regex(
    r"(?:[-*+] |\d{1,2}[.)] )?(?:Set|Raise|Lower|Check|Try|Use|Run|Mount|Give|Split|See|Add|Make sure|Increase|Decrease|Reduce|Restart|"
    r"Verify|Ask|Do not|Don't|Ensure|Consider|Review|Open|Collect|Attach|Escalate|Call|Look|Note that|Refer)\b"
)
_OWN = regex(
    r"\b(?:I|we|We) (?:get|got|see|saw|run|ran|use|used|am|are|have|had|tried|try|start\w*|notice\w*|observe\w*|hit|think)\b"
    r"|\b(?:my|our|My|Our) (?:server|pod|set-?up|machine|gpus?|model|deployment|logs?|instance|node|cards?|config\w*|team|users)\b"
)
_REPORT = regex(
    r"(?i)(?:#{1,6} |\*\*)\W{0,4}(?:your (?:current )?environment|(?:describe the )?bug\b|(?:how |steps )?to reproduce|reproduc|expected (?:behaviou?r|result)|"
    r"actual (?:behaviou?r|result)|before submitting|environment\b|logs?\b|stack ?trace|error (?:logs?|messages?)|screenshots|additional context)"
)
_YOU = regex(r"(?i)\byou(?:r|'(?:re|ve|ll))?\b")
_RST = regex(r"(?m)^\.\. [\w-]+::|::$")
_UNDERLINE = regex(r"([=\-~^\"'*+#])\1{3,}$")
_MARKDOWN = regex(r"#{1,6} \S")
_LINK = regex(r"\]\(https?://|<https?://|^\|(?:\s*:?-{3,}:?\s*\|)+$")
_SENTENCE = regex(r"\s*(?:[-*+>] |\d{1,2}[.)] )?[A-Z*`_\"'][\w'`*_]*(?:[ ,]+[\w'`*_\"().:/-]+){3,}")


def _signs(lines: Sequence[str], headings_needed: int = 0) -> int:
    """How many signs speak for a document about failures rather than the report of one.

    Two headings (1), a heading as manuals, runbooks and post-mortems have them (2, several 3), two lines that give orders (1), an address to
    whoever reads it: "if you see", "for example" (1, three times 2), "you" five times and seldom "I" (1, ten times 2), markup of a manual (1; that of reStructuredText 3). What people
    write of themselves ("we run", "my server") takes away one each, two at most, and a
    heading of a tracker's form ("Describe the bug", "Logs") two, four at most. Without prose in a quarter of the lines outside
    of fences a text is none: a script's comments are no headings.
    """
    bare = list(_unfenced(lines))
    told = [line for line in bare if line.strip() and not is_log_line(line)]
    headings = list(_headings(bare))
    text = "\n".join(told)
    own = len(_OWN.findall(text))
    reported = sum(bool(_REPORT.match(line)) for line in bare)
    taken = min(2, own) + 2 * min(2, reported)
    paged = pages.signs(lines, headings, text) if len(headings) >= headings_needed else 0
    if paged - taken >= DOCUMENT_SIGNS:  # reference pages are lists and tables: they need no sentences
        return paged - taken
    prose = [line for line in told if _SENTENCE.match(line) and not _MARKDOWN.match(line)]
    if 4 * len(prose) < len(told) - len(headings) or len(headings) < headings_needed:
        return 0
    signs = int(len(headings) >= 2)
    titled = sum(bool(_TITLES.search(heading)) for heading in headings)
    signs += 2 * (titled >= 1) + (titled >= 2)
    signs += int(sum(bool(_ORDER.match(line.strip())) for line in prose) >= 2)
    generic = len(_GENERIC.findall(text))
    signs += (generic >= 1) + (generic >= 3)
    you = len(_YOU.findall(text))
    signs += (you >= 5 and you > 2 * own) + (you >= 10 and you > 2 * own)
    signs += any(_LINK.search(line) for line in told)
    if _RST.search(text) and any(_UNDERLINE.match(line) for line in lines):
        signs += 3
    return signs + paged - taken


def _unfenced(lines: Sequence[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        if line.lstrip()[:3] in ("```", "~~~"):
            inside = not inside
        elif not inside:
            yield line


def _headings(lines: Sequence[str]) -> Iterator[str]:
    """Markdown's and underlined headings, each with a blank line on one side at least."""
    for before, line, after in zip(("", *lines), lines, (*lines[1:], ""), strict=False):
        marked = _MARKDOWN.match(line) and not (before.strip() and after.strip())
        underlined = len(after.strip()) >= len(line.strip()) > 2 and _UNDERLINE.match(after.strip())
        if marked or underlined:
            yield line


# ---- configurations

_TABLE_OF_TOML = regex(rb"(?m)^\[{1,2}[\w.\" -]{1,80}\]{1,2}[ \t]*(?:#.*)?$")
_LEAST_TOML = 1000  # bytes: readings of a few devices are shorter
_KINDS_OF_TABLE = 3
_TOML_BYTES = 60 << 10  # a longer head is cut, and is no TOML then


def _is_toml(head: Head) -> bool:
    """TOML with tables of several kinds: who reads it is asked before; what is left of it is settings of another program."""
    if not _LEAST_TOML < len(head.data) <= _TOML_BYTES or b" = " not in head.data:
        return False
    if len(set(_TABLE_OF_TOML.findall(head.data))) < _KINDS_OF_TABLE:
        return False
    import tomllib

    try:
        return bool(tomllib.loads(head.data.decode("utf-8")))
    except (ValueError, RecursionError):
        return False


_KEYED = regex(r"\s*(?:- )*[\w\"'./$(){}-]{1,80}:(?: .*)?$|\s*- \S|\s*#|---$|\.\.\.$")
_STATEMENT = regex(r"[^;{}]*[;{}][\s;{}]*(?:#.*)?$|\s*#")
_NESTED = regex(r" {2,}(?:- )?[\w\"'./-]{1,80}:")


def is_configuration(head: Head) -> bool:
    """YAML with levels: nine of ten lines are keys or items, three of them lie inside others. Comments in it are no reports.

    Or statements in braces, as web servers have them: nine of ten lines end in `;` or open or close a block.
    """
    lines = head.told
    if _is_toml(head):
        return True
    if any(line.rstrip().endswith("{") for line in lines) and sum(line.rstrip().endswith(";") for line in lines) >= 3:
        return 10 * sum(bool(_STATEMENT.match(line)) for line in lines) >= 9 * len(lines)
    return (
        sum(bool(_NESTED.match(line)) for line in lines) >= 3
        and 10 * sum(bool(_KEYED.match(line)) for line in lines) >= 9 * len(lines)
        and not any(is_log_line(line) for line in lines)
    )
