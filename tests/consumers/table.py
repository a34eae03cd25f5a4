"""Runs every consumer and writes the table of docs/consumers.md anew: `just consumers`; `just consumers NAME…` runs some."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "consumers.md"
BEGIN, END = "<!-- made by `just consumers` -->", "<!-- end -->"
COLUMNS = ("consumer", "version", "what ran", "seconds", "decision")
Row = dict[str, str]


def rows() -> list[Row]:
    """Return the rows of the table as the page has them."""
    text = PAGE.read_text("utf-8")
    lines = text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip().splitlines()[2:]
    return [dict(zip(COLUMNS, (cell.strip() for cell in line.strip("|").split("|")), strict=True)) for line in lines]


def write(found: list[Row]) -> None:
    """Put rows into the table; those of consumers that are not among them stay."""
    text = PAGE.read_text("utf-8")
    table = {row["consumer"]: row for row in [*rows(), *found]}
    head = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    lines = [f"| {' | '.join(table[name][column] for column in COLUMNS)} |" for name in sorted(table)]
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    PAGE.write_text(text[:begin] + "\n" + "\n".join([*head, *lines]) + "\n" + text[end:], "utf-8")


def run(wanted: Sequence[str] = ()) -> tuple[int, list[dict[str, Any]]]:
    """Run the tests of the consumers named (all where none is); return pytest's exit code and what each noted."""
    with tempfile.TemporaryDirectory() as notes:
        settings = {**os.environ, "TRACEROOM_CONSUMERS": "all", "TRACEROOM_CONSUMERS_NOTES": notes}
        chosen = ["-k", " or ".join(wanted)] if wanted else []
        command = [sys.executable, "-m", "pytest", "-rs", "--all", "tests/consumers/test_consumers.py", *chosen]
        code = subprocess.run(command, cwd=ROOT, env=settings, stdout=sys.stderr, check=False).returncode
        return code, [json.loads(path.read_text("utf-8")) for path in sorted(Path(notes).iterdir())]


def main() -> int:
    """Run consumers and write down what they noted."""
    code, noted = run(sys.argv[1:])
    write([
        {"consumer": row["consumer"], "version": row["version"] or "", "what ran": row["ran"].replace("|", "/"),
         "seconds": str(row["seconds"] or ""), "decision": row["decision"]} for row in noted])
    return code


if __name__ == "__main__":
    sys.exit(main())
