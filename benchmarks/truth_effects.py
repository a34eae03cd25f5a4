"""Effects of tools held against the truth, by the acceptance scorer `effects.py` as it is.

A tool that no environment has counts as neither called read nor called write, and a read that is not called read is not proven.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from truth_data import DataSet, rows


def compared(folder: Path, out: Path, data: DataSet) -> dict[str, Any] | None:
    """Return `counts` and the tools that are `wrong`; None for a set whose truth does not know effects."""
    truth = {row["tool"]: row["effect"] for row in rows(data.path / "truth" / "tools.jsonl")}
    if not truth:
        return None
    done = subprocess.run([sys.executable, str(folder / "effects.py"), str(out), str(data.path)], capture_output=True,
                          text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    reads = {tool for tool, effect in truth.items() if effect == "read"}
    not_proven = Counter(induced for tool, _, induced, _ in report["wrong"] if tool in reads)
    counts = {"reads": len(reads), "reads_proven": len(reads) - not_proven.total(), "reads_absent": not_proven["absent"],
              "writes": len(truth) - len(reads), "writes_called_read": report["figures"].get("write_called_read", 0)}
    return {"counts": counts, "wrong": report["wrong"]}
