"""Texts of logs that a spreadsheet takes for formulas: no cell of an exported list begins as one, and all rows come back."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from pipelines.browser.exports import LISTS
from pipelines.inspection.list_files import as_csv
from tests.attacks.hostile_run import GROUP, MARK, hostile_run
from tests.attacks.pages import on
from tests.attacks.report import Report

BEGINS = (*"=+-@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
FORMULAS = [f"{space}{begin}{rest}" for begin in BEGINS for rest in ("1+1", "SUM(A1)", "cmd|'/C calc'!A0")
            for space in ("", " ", "\t", "\r", "\n", "\u00a0", "\ufeff", "\u200b", "\"", "'", "\x00")]


OF_ENVIRONMENTS = ("/tools", "/audit")
"""Lists whose address names an environment."""


def is_formula(cell: str) -> bool:
    """Return whether a spreadsheet would calculate a cell, or would do so after the blanks that it drops."""
    return cell.lstrip(" \t\r\n\u00a0\ufeff\u200b\x00\u3000").startswith(BEGINS) or cell.startswith(("\t", "\r", "\n"))


def attack(folder: Path, share: float) -> Report:
    """Write every formula as every kind of cell, and read the lists of a hostile run."""
    written = "".join(as_csv([{"id": n, "text": formula, "list": [formula], formula: 1} for n, formula in enumerate(FORMULAS)]))
    rows = list(csv.reader(io.StringIO(written)))
    problems = [f"{cell[:40]!r}" for row in rows for cell in row if is_formula(cell)]
    problems += [] if len(rows) == len(FORMULAS) + 1 else [f"{len(rows) - 1} of {len(FORMULAS)} rows"]
    server = on(hostile_run())
    environment = min(each.name for each in (hostile_run() / "environments").iterdir())
    for path in LISTS:
        query = f"?id={environment}" if path in OF_ENVIRONMENTS else ""
        status, headers, text = server.ask(f"{path}.csv{query}")
        assert status == 200 and "attachment" in headers["content-disposition"], (path, status)
        _, _, document = server.ask(f"{path}.json{query}")
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        problems += [f"{path}: {cell[:60]!r}" for cell in cells if is_formula(cell)]
        n_rows = len(list(csv.reader(io.StringIO(text)))) - 1
        problems += [f"{path}: {n_rows} of {len(json.loads(document))} rows"] if n_rows != max(0,
            len(json.loads(document))) and (
            json.loads(document)) else []
        problems += [f"{path}: JSON is a page"] if path == "/sessions" and MARK not in document else []
    server.stop()
    return Report(len(FORMULAS) + len(LISTS), tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_no_cell_of_a_list_is_a_formula(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
