"""A model's folder on disk: its config.json and the bytes of its weight files, by index or headers; no weight is read.

A safetensors file begins with 8 bytes of length and a JSON header; an index names the total. Both are plain enough that
a library would only add its own dependencies.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oomdoc.errors import UsageError
from oomdoc.physics.config import config_of_file

_MOST_HEADER_BYTES = 100_000_000  # as the format's own reader has it
_MOST_FILES = 2000


@dataclass(frozen=True)
class Files:
    """What a folder or a config.json says: the parsed config, and bytes of the weights where files are beside it."""

    config: dict[str, Any]
    weight_bytes: int | None


def read_model_files(path: Path) -> Files:
    """The config of a folder, of a config.json or of an index beside one. UsageError where there is none."""
    folder = path if path.is_dir() else path.parent
    named = (
        path if path.is_file() and not path.name.endswith((".index.json", ".safetensors")) else folder / "config.json"
    )
    if not path.exists() or not named.is_file():
        raise UsageError(f"{path} holds no config.json", "Give the model's folder or its config.json")
    beside = path.is_dir() or path.name != named.name or named.name == "config.json"
    return Files(config_of_file(named), weight_bytes(folder) if beside else None)


def weight_bytes(folder: Path) -> int | None:
    """Bytes of the tensors of a folder's checkpoint: the index's total, else the files' headers; None without either."""
    for index in sorted(folder.glob("*.safetensors.index.json"))[:1]:
        try:
            total = json.loads(index.read_text(encoding="utf-8"))["metadata"]["total_size"]
        except (OSError, ValueError, KeyError, TypeError):
            break
        if isinstance(total, (int, float)) and total > 0:
            return int(total)
    sizes = [_header_bytes(file) for file in sorted(folder.glob("model*.safetensors"))[:_MOST_FILES]]
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


def _header_bytes(file: Path) -> int | None:
    """Bytes of all tensors that a safetensors header lists; None where it is no such file."""
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if not 0 < length <= _MOST_HEADER_BYTES:
                return None
            header = json.loads(stream.read(length))
        ends = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
        return sum(int(end) - int(start) for start, end in ends)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return None
