"""The benchmark of services that nobody developed on, and its leave-one-service-out figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

from generality_thresholds import assemble, set_threshold


def printed(script: str, *arguments: str) -> dict[str, Any]:
    """Return the figures that a benchmark prints on its last line."""
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks" / script), *arguments], capture_output=True, text=True,
                          timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


@pytest.mark.slow
def test_small_services_are_played_beside_cassette_and_ceiling(data: Path) -> None:
    result = printed("generality.py", str(data / "bfcl"), "--only", "MessageAPI", "TicketAPI")
    figures, services = result["figures"], {row["set"]: row for row in result["services"]}
    assert services.keys() == {"MessageAPI", "TicketAPI"} and all(row["writes"]["n"] for row in services.values())
    assert figures["wrong_bfcl"] == 0 and figures["exact_bfcl"] >= 0.6
    assert figures["of_ceiling_bfcl"] >= figures["exact_bfcl"] and 0 < figures["write_calls_explained"] <= 1


def test_a_threshold_is_chosen_on_the_other_services() -> None:
    def row(name: str, value: float | None, exact: int, wrong: int) -> dict[str, Any]:
        return {"set": name, "threshold": None if value is None else "SURE", "value": value, "n": 100, "exact": exact,
                "wrong": wrong}

    rows = [row("a", None, 50, 0), row("b", None, 50, 0), row("a", 0.7, 60, 0), row("b", 0.7, 60, 5)]
    assert assemble(rows) == {"exact": 0.5, "wrong": 0.0, "exact_SURE": 0.55, "wrong_SURE": 0.025, "own_SURE": 0.5}


def test_a_constant_gets_another_value_wherever_it_is_read() -> None:
    from env_builder.runtime import world
    from env_builder.world import beginnings
    own = world.SURE
    try:
        set_threshold("env_builder.runtime.world.SURE", 0.123)
        assert world.SURE == beginnings.SURE == 0.123
    finally:
        set_threshold("env_builder.runtime.world.SURE", own)
    assert world.SURE == beginnings.SURE == own
