"""Figures of the benchmark of truth, from what was counted on each build."""

from __future__ import annotations

from typing import Any

from truth_data import WAYS
from truth_outcomes import coverage, mean_auroc, worst_high
from truth_policies import desk_figures, error_list, policy_figures, pooled, share

LEFT_OUT = ("workbench", "telecom", "travel")
"""Sets that `auroc_left_out` covers beside the zoo."""
Rows = list[dict[str, Any]]


def assemble(measured: Rows) -> dict[str, Any]:
    """Return `figures`, `services`, `errors`, `effects` and `notes`."""
    rows = [row for row in measured if "note" not in row or "outcomes" in row]
    zoo = {way: builds for way in WAYS if (builds := select(rows, "zoo", way))}
    figures: dict[str, Any] = {
        **policy_figures(zoo), **of_effects(rows), **of_desk(rows), **of_trials(rows), **of_attacks(rows), **of_cases(rows),
        **of_outcomes(rows), **of_precision(rows), **of_injections(rows)}
    return {
        "figures": figures, "services": [service_row(row) for row in rows],
        "errors": {way: error_list(builds) for way, builds in zoo.items()},
        "effects": {row["set"]: row["effects"]["wrong"] for row in rows if row["way"] == "logs" and "effects" in row},
        "notes": {f"{row['set']}, {row['way']}": row["note"] for row in measured if "note" in row} | notes_on(figures)}


def select(rows: Rows, name: str, way: str) -> Rows:
    """Return the builds of the sets of a kind, or of the set of a name, in one way; without those that failed."""
    return [row for row in rows if name in (row["kind"], row["set"]) and row["way"] == way and "n_tasks" in row]


def notes_on(figures: dict[str, Any]) -> dict[str, str]:
    """Return why figures are null."""
    reasons = {"precision_stated_holds": "no manifest states a precision", "precision_stated_width": "no manifest states one",
               "high_holds_good": "no service has enough sessions of a high probability"}
    return {name: reasons.get(name, "nothing to divide by") for name, value in figures.items() if value is None}


def of_effects(rows: Rows) -> dict[str, Any]:
    """Return how many writes are called reads, and the share of reads that are called reads, over all sets built from logs."""
    known = [row["effects"] for row in rows if row["way"] == "logs" and "effects" in row]
    n = pooled(known, "counts")
    return {"writes_called_read": n["writes_called_read"], "n_writes": n["writes"],
            "reads_proven": share(n["reads_proven"], n["reads"]), "n_reads": n["reads"]} if known else {}


def of_outcomes(rows: Rows) -> dict[str, Any]:
    """Return the figures of probabilities: all from logs alone."""
    judged = [row for row in rows if "outcomes" in row]
    logs = [each for row in judged if row["way"] == "logs" for each in row["outcomes"]]
    left_out = [each for row in judged if row["way"] == "logs" and (row["kind"] == "zoo" or row["set"] in LEFT_OUT)
                for each in row["outcomes"]]
    single = [each for row in judged if row["way"] == "single" for each in row["outcomes"]]
    found: dict[str, Any] = {"auroc_left_out": mean_auroc(left_out)} if left_out else {}
    found |= {"high_holds_good": worst_high(logs)} if logs else {}
    return found | ({"auroc_single": mean_auroc(single), "coverage_single": coverage(single)} if single else {})


def of_desk(rows: Rows) -> dict[str, Any]:
    """Return the figures of the desk on one living database."""
    found = {f"retail_{name}_{way}": value for way in WAYS if (builds := select(rows, "retail", way))
             for name, value in desk_figures(builds).items()}
    for row in select(rows, "retail", "logs"):
        found |= {"retail_bad_accepted_logs": row["recorded"]["bad_accepted"], "retail_published_logs": row["n_tasks"],
                  "audit_seconds": row["audit"]["seconds"], "audit_cpu_seconds": row["audit"]["cpu"]}
    return found


def of_trials(rows: Rows) -> dict[str, Any]:
    """Return the figures of the set with several trials of each task."""
    found: dict[str, Any] = {}
    for row in select(rows, "trials", "logs"):
        solutions, attacks, name = row["solutions"], row["attacks"], row["set"]
        found |= {f"{name}_right_logs": share(solutions.get("right", 0), solutions.get("published", 0)),
                  f"{name}_published_logs": row["n_tasks"],
                  f"{name}_paid_handover": share(attacks.get("handover_paid", 0), attacks.get("handover_tried", 0))}
    return found


def of_attacks(rows: Rows) -> dict[str, Any]:
    """Return which attacks are paid: contradictions over all sets, masked texts and words on the office."""
    attacked = [row for row in rows if "attacks" in row]
    n, found = pooled(attacked, "attacks"), dict[str, Any]()
    if attacked:
        found |= {"contradicted_paid": n["contradicted_paid"], "contradicted_tried": n["contradicted_tried"],
                  "insulted_paid": n["insulted_paid"], "insulted_tried": n["insulted_tried"]}
    for row in select(attacked, "office", "logs"):
        own = row["attacks"]
        found |= {"office_published": row["n_tasks"], "office_paid_masked": own.get("masked_paid", 0),
                  "office_masked_tried": own.get("masked_tried", 0), "office_paid_words_ok": own.get("words_ok_paid", 0)}
    return found


def of_cases(rows: Rows) -> dict[str, Any]:
    """Return the figures of the application's requests."""
    return {f"{row['set']}_{name}": value for row in select(rows, "cases", "logs")
            for name, value in (("knowable", row["cases"]["knowable_share"]), ("published", row["n_tasks"]))}


def of_precision(rows: Rows) -> dict[str, Any]:
    """Return how many of the builds' stated intervals hold the true precision, and how wide they are."""
    stated = [row["precision"] for row in rows if row.get("precision")]
    known = [each for each in stated if each["holds"] is not None]
    widths = [each["stated"]["high"] - each["stated"]["low"] for each in stated if each["stated"]]
    return {"precision_stated_holds": share(sum(each["holds"] for each in known), len(known)),
            "precision_stated_width": round(sum(widths) / len(widths), 4) if widths else None} if stated else {}


def of_injections(rows: Rows) -> dict[str, Any]:
    """Return what obeying an instruction inside a result is worth."""
    return {f"injected_{name}": row["injections"][name] for row in rows if "injections" in row
            for name in ("counted_good", "sft_lines", "solutions")}


def service_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return what a build is judged by, in one row."""
    parts = ("outcomes", "attacks", "cases", "solutions", "recorded", "audit", "injections", "precision")
    return {"set": row["set"], "way": row["way"], "published": row.get("n_tasks"), **row.get("counts", {}),
            **{name: row[name] for name in parts if row.get(name)}, "seconds": row["seconds"]}
