"""Scripted ways to act, graded by the rewards of published tasks and held against their true verdicts, pooled over services.

`graded` runs the acceptance scorer `verdicts.py` as it is and counts each of its grades. `policy_figures` adds up counts, and
divides once: a service with one task weighs one task. Tasks that the scorer cannot score are in `no_truth`, and in no other
share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from truth_data import DataSet, rows, score, scorer, truths

RIGHT = ("right", "right_other_words", "right_with_error")
WRONG = ("liar", "echo_x", "wrong_item", "lazy", "forbidden", "unverified", "half", "says_everything", "extra_write", "undo",
         "refuses")
KINDS = ("act", "refuse", "tell")
"""What is right to do; of a session with several requests the first of these."""
MOST_EXAMPLES = 6
"""Examples of each kind of error that are printed."""


def graded(folder: Path, out: Path, data: DataSet) -> dict[str, Any]:
    """Return the counts of one build: `counts` by name, `grades` by policy, truth and grade, and the `errors`."""
    module = scorer(folder, "verdicts")
    plain_score, grades, sound, errors = module.score, Counter[str](), set[str](), []

    def score_and_count(tasks: Any, grade: Any) -> Any:
        def counted(task: Any, policy: dict[str, Any]) -> bool | None:
            paid = grade(task, policy)
            kind = "ungraded" if paid is None else "paid" if paid else "unpaid"
            grades[f"{policy['policy']} {'right' if policy['truth'] else 'wrong'} {kind}"] += 1
            if paid is not None and paid != policy["truth"]:
                errors.append([data.path.name, policy["policy"], "paid" if paid else "punished", policy["session_id"],
                               task[1], policy["wrong"]])
            return paid
        figures, examples, own_sound = plain_score(tasks, counted)
        sound.update(own_sound)
        return figures, examples, own_sound

    module.score = score_and_count
    figures = score(module, str(out), str(data.path))["figures"]
    n, good = figures["scored_tasks"], truths(data.path)
    whole = {name: round((figures[f"tasks_{name}"] or 0) * n) for name in ("agree", "sound")}
    return {"grades": dict(grades), "errors": errors, "counts": {
        "published": figures["published"], "no_truth": figures["no_truth"], "scored": n, **whole,
        "solution_right": round((figures["solution_right"] or 0) * n), "merged_wrongly": figures["merged_wrongly"],
        "good": sum(good.values()), "good_sound": sum(good[session] for session in sound),
        "sessions": figures["sessions"], "right_is_refusal": figures["right_is_refusal"], **by_kind(data.path, sound)}}


def by_kind(data: Path, sound: set[str]) -> Counter[str]:
    """Count the good sessions of each kind, and those of them that have a sound task."""
    counts = Counter[str]()
    for row in rows(data / "truth" / "sessions.jsonl"):
        kind = next((kind for kind in KINDS if kind in row.get("outcome", ())), None)
        if row.get("success") and kind is not None:
            counts.update([f"good_{kind}"] + [f"sound_{kind}"] * (row["session_id"] in sound))
    return counts


def policy_figures(measured: dict[str, list[dict[str, Any]]]) -> dict[str, float | None]:
    """Return the `zoo_` figures of what `graded` counted, by way: the ways that were measured, and the worst of them."""
    figures: dict[str, float | None] = {}
    for way, builds in measured.items():
        figures |= {f"zoo_{name}_{way}": value for name, value in of_way(builds).items()}
    for policy in WRONG if measured else ():
        figures[f"zoo_paid_{policy}"] = worst(paid_share(pooled(builds, "grades"), policy) for builds in measured.values())
    return figures


def of_way(builds: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return the figures of one way, over all services together."""
    n, grades = pooled(builds, "counts"), pooled(builds, "grades")
    refusals = _of(grades, ("refuses",), "right")
    return {
        "sound": share(n["sound"], n["scored"]), "agree": share(n["agree"], n["scored"]),
        "solution_right": share(n["solution_right"], n["scored"]), "published": share(n["good_sound"], n["good"]),
        **{f"published_{kind}": share(n[f"sound_{kind}"], n[f"good_{kind}"]) for kind in KINDS},
        "tasks": n["published"], "ungraded": share(_of(grades, None, None, "ungraded"), _of(grades)),
        "no_truth": share(n["no_truth"], n["published"]), "merged_wrongly": n["merged_wrongly"],
        "right_punished": share(_of(grades, RIGHT, "right", "unpaid"), _of(grades, RIGHT, "right")),
        "refusals_punished": share(_of(grades, ("refuses",), "right", "unpaid"), refusals),
        "errors_ungraded": share(_of(grades, RIGHT[2:], "right", "ungraded"), _of(grades, RIGHT[2:], "right"))}


def desk_figures(builds: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return how often rewards get verdicts wrong, of graded ones, and how many they do not grade."""
    grades = pooled(builds, "grades")
    wrong = _of(grades, None, "right", "unpaid") + _of(grades, None, "wrong", "paid")
    n, ungraded = _of(grades), _of(grades, None, None, "ungraded")
    return {"policies_wrong": share(wrong, n - ungraded), "unscored": share(ungraded, n)}


def paid_share(grades: Counter[str], policy: str) -> float | None:
    """Return the share of such wrong policies that are paid."""
    return share(_of(grades, (policy,), "wrong", "paid"), _of(grades, (policy,), "wrong"))


def worst(values: Iterable[float | None]) -> float | None:
    """Return the highest value; None if there is none."""
    return max((value for value in values if value is not None), default=None)


def pooled(builds: Iterable[dict[str, Any]], name: str) -> Counter[str]:
    """Add up counts of that name."""
    return sum((Counter(each[name]) for each in builds), Counter[str]())


def share(part: float, whole: float) -> float | None:
    """Return a share; None of nothing."""
    return round(part / whole, 4) if whole else None


def error_list(builds: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return wrong verdicts by policy: how many by service, and some examples (service, session, task, what is wrong)."""
    found: dict[str, dict[str, Any]] = {}
    for service, policy, verdict, *example in (error for each in builds for error in each["errors"]):
        own = found.setdefault(f"{policy} {verdict}", {"n": 0, "services": Counter[str](), "examples": []})
        own["n"] += 1
        own["services"][service] += 1
        if own["services"][service] <= MOST_EXAMPLES // 3 and len(own["examples"]) < MOST_EXAMPLES:
            own["examples"].append([service, *example])
    return dict(sorted(found.items(), key=lambda item: -item[1]["n"]))


def _of(grades: Counter[str], policies: Iterable[str] | None = None, truth: str | None = None, grade: str | None = None) -> int:
    return sum(n for key, n in grades.items() for policy, true, own in [key.split(" ")]
               if (policies is None or policy in policies) and truth in (None, true) and grade in (None, own))
