"""Tools, services, sessions and files whose names are paths: everything that a run writes lies in OUT, under plain names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.attacks.hostile_run import GROUP, MARK, hostile_run
from tests.attacks.logs import files_below
from tests.attacks.report import Report

PLAIN = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.=+-]*")
WATCHED = (Path("/tmp/list_orders" + MARK), Path("/tmp/planted"), Path("planted"))


def attack(folder: Path, share: float) -> Report:
    """Look at every name below OUT, and beside it."""
    out = hostile_run()
    beside = {path.name for path in out.parent.iterdir()} - {"logs", "out"}
    problems = [f"{name} lies beside OUT" for name in beside] + [f"{path} was written" for path in WATCHED if path.exists()]
    paths = [Path(path) for path in files_below(out)]
    for path in paths:
        problems += [f"{part!r} in {path}" for part in path.relative_to(out).parts if not PLAIN.fullmatch(part) or part == ".."]
        problems += [f"{path} is a link"] if path.is_symlink() else []
    return Report(len(paths), tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_a_run_writes_in_its_folder_under_plain_names(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
