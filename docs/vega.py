"""Writes src/oomdoc/report/assets/vega.js again out of the wheel of vl-convert-python: `make vega`.

The wheel (33 MB, it carries a JavaScript engine) is needed here only; the bundle of Vega, Vega-Lite and Vega-Embed that it
makes is the same bytes every time, and `tests/report/test_report_html.py` holds its hash.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

WHEEL = "vl-convert-python==1.9.0.post1"
VEGA_LITE = "6.4"
TARGET = Path(__file__).resolve().parents[1] / "src/oomdoc/report/assets/vega.js"
HEAD = "/* Vega 6.2.0, Vega-Lite 6.4, Vega-Embed 7.0.2 and what they stand on: see vega.LICENSE.txt. Made by docs/vega.py. */\n"


def main() -> None:
    """Make the bundle, and print its hash."""
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    if "</script" in bundle.lower() or "<!--" in bundle:
        raise SystemExit("the bundle would end its own script element")
    text = HEAD + "(() => {\n" + bundle.strip() + "\n})();\n"  # its top level is full of one-letter names
    TARGET.write_text(text, encoding="utf-8")
    print(hashlib.sha256(text.encode()).hexdigest())


if __name__ == "__main__":
    main()
