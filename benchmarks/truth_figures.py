"""Figures of the benchmark of truth, from what was counted on each build."""

from __future__ import annotations

from typing import Any

from truth_data import WAYS
from truth_outcomes import coverage, mean_auroc, worst_high
from truth_policies import desk_figures, error_list, policy_figures, pooled, share

LEFT_OUT = ("workbench", "telecom", "travel")
"""Sets that `auroc_left_out` covers beside the zoo."""


def assemble(measured: list[dict[str, Any]]) -> dict[str, Any]:
    """Return `figures`, `services`, `errors`, `effects` and `notes`."""
    rows = [row for row in measured if "note" not in row]
    notes = {f"{row['set']}, {row['way']}": row["note"] for row in measured if "note" in row}
    zoo = {way: builds for way in WAYS if (builds := select(rows, "zoo", way))}
    figures: dict[str, Any] = {**policy_figures(zoo), **of_effects(rows), **of_outcomes(rows), **of_desk(rows)}
    return {
        "figures": figures, "services": [service_row(row) for row in rows],
        "errors": {way: error_list(builds) for way, builds in zoo.items()},
        "effects": {row["set"]: row["effects"]["wrong"] for row in rows if row["way"] == "logs" and "effects" in row},
        "notes": notes}


def select(rows: list[dict[str, Any]], kind: str, way: str) -> list[dict[str, Any]]:
    """Return the builds of the sets of a kind, or of the set of a name, in one way."""
    return [row for row in rows if kind in (row["kind"], row["set"]) and row["way"] == way]


def of_effects(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many writes are called reads, and the share of reads that are called reads, over all sets built from logs."""
    known = [row["effects"] for row in rows if row["way"] == "logs" and "effects" in row]
    n = pooled(known, "counts")
    return {"writes_called_read": n["writes_called_read"], "n_writes": n["writes"],
            "reads_proven": share(n["reads_proven"], n["reads"]), "n_reads": n["reads"]} if known else {}


def of_outcomes(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of probabilities: all from logs alone."""
    judged = [row for row in rows if "outcomes" in row]
    logs = [each for row in judged if row["way"] == "logs" for each in row["outcomes"]]
    left_out = [each for row in judged if row["way"] == "logs" and (row["kind"] == "zoo" or row["set"] in LEFT_OUT)
                for each in row["outcomes"]]
    single = [each for row in judged if row["way"] == "single" for each in row["outcomes"]]
    found = {"auroc_left_out": mean_auroc(left_out), "high_holds_good": worst_high(logs)} if logs else {}
    return found | ({"auroc_single": mean_auroc(single), "coverage_single": coverage(single)} if single else {})


def of_desk(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of the desk on one living database."""
    found = {f"retail_{name}_{way}": value for way in WAYS if (builds := select(rows, "retail", way))
             for name, value in desk_figures(builds).items()}
    logs = select(rows, "retail", "logs")
    return found | ({"retail_published_logs": sum(row["n_tasks"] for row in logs)} if logs else {})


def service_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return what a build is judged by, in one row."""
    counts = row.get("counts", {})
    return {"set": row["set"], "way": row["way"], "published": row.get("n_tasks"), **counts,
            "outcomes": row.get("outcomes"), "seconds": row["seconds"]}
