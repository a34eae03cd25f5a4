"""What the tests of attacks share: an undisturbed run, which all that disturb one are compared with."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tests.attacks.runs import Wanted
from tests.conftest import once
from tests.pipelines.conftest import run_once as run_once


@pytest.fixture(scope="session")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Wanted:
    """Return what an undisturbed run gives, made once for all workers; look, do not touch."""
    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "wanted.pickle").write_bytes(pickle.dumps(Wanted(folder / "made")))

    undisturbed = pickle.loads((once(tmp_path_factory, "wanted", make) / "wanted.pickle").read_bytes())
    assert isinstance(undisturbed, Wanted)
    return undisturbed
