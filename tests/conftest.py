"""What holds for every test: the helpers beside this file can be imported, and hypothesis tries the same examples each time.

A run on a change must not fail for what the change did not touch: new examples are for `make fuzz`, which sets OOMDOC_FUZZ.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

import grids
import replays
from oomdoc.replay import scheduler

# how long an example takes on a busy machine says nothing of the program
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("new", deadline=None)
settings.load_profile("new" if "OOMDOC_FUZZ" in os.environ else "same")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long is begun first: no worker (xdist) is left with half a minute when the others are done."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """What is collected stays until the end: to look through thousands of tests again and again for what nobody refers to takes long."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def reports_are_shared(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Workers of one run (xdist) have a folder in common: what one has analysed the others read."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tmp_path_factory.getbasetemp().parent / "reports"
        folder.mkdir(exist_ok=True)
        grids.SHARED.append(folder)


@pytest.fixture(scope="session", autouse=True)
def replays_are_done_once() -> Iterator[None]:
    """The same traffic through the same engine (`replays`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "_Run", replays.Once)
        yield


@pytest.fixture(scope="module", autouse=True)
def replays_are_done_anew(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where what they take is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replays, "ANEW", [grids.WHOLE or getattr(request.module, "REPLAYS_ANEW", False)])
        yield
