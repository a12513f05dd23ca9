"""oomdoc says why an LLM server ran out of memory.

The library door: `oomdoc.analyze("bundle.tar.gz")` gives an `Analysis`: `analysis.report` is the report, `analysis.to_dict()` the JSON
of the contract, `analysis.sql("...")` answers from the evidence tables, `analysis.table("engine_stat")` gives a polars frame. `Options` and `Limits` say how a
bundle is read and how much of it. Nothing heavy is imported before it is used, so that `oomdoc --version` costs no more than starting Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oomdoc.diagnose import Analysis as Analysis
    from oomdoc.diagnose import Options as Options
    from oomdoc.diagnose import analyze as analyze
    from oomdoc.errors import OomdocError as OomdocError
    from oomdoc.intake.bundle import Limits as Limits

__version__ = "0.2.0"

__all__ = ["Analysis", "Limits", "OomdocError", "Options", "__version__", "analyze"]


def __getattr__(name: str) -> Any:
    """Import the public names on first use (PEP 562)."""
    if name in ("analyze", "Analysis", "Options"):
        from oomdoc import diagnose

        return getattr(diagnose, name)
    if name == "Limits":
        from oomdoc.intake.bundle import Limits

        return Limits
    if name == "OomdocError":
        from oomdoc.errors import OomdocError

        return OomdocError
    raise AttributeError(f"module 'oomdoc' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The door: what `dir(oomdoc)` and a Tab show, before anything is imported."""
    return sorted(__all__)
