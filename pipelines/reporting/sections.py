"""Write the sections of the report: stages, families, outcomes, difficulty, fidelity, audits, splits, drift and coverage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipelines.inspection import views
from pipelines.inspection.coverage import unknowns as what_to_log
from pipelines.inspection.views import RowSource, StoreSource
from pipelines.reporting import charts
from pipelines.reporting.charts import BAD, FAIR, GOOD, KINDS, NONE, POOR
from pipelines.reporting.parts import Figure, Row, Section, clean, figure, named, of, percent, table
from pipelines.screen import many
from warehouse.records import SPLITS
from warehouse.vocabulary import FAILED, OUTCOMES, SUCCEEDED, SUCCEEDED_FROM, UNDECIDED

_STAGES = {
    "extract": "files read", "sessions": "sessions put together", "world": "what is known of the world",
    "behaviour": "what tools do", "goals": "goals of sessions", "outcomes": "sessions judged", "tasks": "sessions in a task",
    "rewards": "tasks with a reward", "variants": "new tasks made", "verify": "tasks published",
    "environments": "environments published", "image": "images built", "datasets": "sessions in datasets"}
_OUTCOMES = dict(zip(OUTCOMES, (GOOD, BAD, NONE), strict=True))
_ON = {GOOD: "var(--on-good)", FAIR: "var(--on-fair)", POOR: "var(--on-poor)", BAD: "var(--on-bad)", NONE: "var(--on-none)"}
BANDS = {"mostly": GOOD, "often": FAIR, "sometimes": POOR, "rarely": BAD, "not known": NONE}
"""Bands of success with their colours, from what goes well to what does not."""
SAYS_BANDS = "mostly: above 80 %, often: 50 to 80 %, sometimes: 20 to 50 %, rarely: below 20 %"


def funnel(source: RowSource) -> Section:
    """Return what came into each stage, and what went on."""
    rows, parts, listed = views.stages(source), list[Row](), list[Row]()
    for row in rows:
        name, n = _STAGES.get(row["stage"], row["stage"]), row["kept"] + row["n_rejected"]
        for kind in ("kept", "n_rejected"):
            word = "kept" if kind == "kept" else "rejected"
            parts.append({"name": name, "kind": word, "share": row[kind] / n, "told": f"{row['kept']:,} of {n:,}",
                          "says": f"{name}: {row[kind]:,} of {n:,} {word}"})
        listed.append({"stage": row["stage"], "what": name, "in": n, "kept": row["kept"], "rejected": row["n_rejected"],
                       "why": ", ".join((row["why"] or [])[:8])})
    drawn = figure(
        "funnel-chart", "What went on at each stage", "A bar for each stage, cut into what was kept and what was rejected.",
        lambda width: charts.shares(parts, {"kept": GOOD, "rejected": BAD}, width),
        table("Stages, in order", listed, ("in", "kept", "rejected"))) if rows else None
    total = sum(row["n_rejected"] for row in rows)
    lead = (f"Every row that comes into a stage goes on or has a decision that says why not; {many(total, 'decision')} of the "
            "second kind." if rows else "No stage has run yet.")
    return Section("funnel", "The funnel", lead, (drawn,) if drawn else ())


def rejected(source: RowSource) -> Section:
    """Rejected rows, by reason."""
    reasons = views.listed(source, "reasons")
    if not reasons.rows:
        return Section("rejected", "Rejected rows, and why", "No row was rejected.")
    worst = reasons.rows[0]
    top = [{"name": clean(f"{row['reason'].replace('_', ' ')} · {row['stage']}", 60), "key": row["stage"] + row["reason"],
            "n": row["n"], "told": f"{row['n']:,}",
            "says": clean(f"{row['stage']}, {row['reason']}: {row['n']:,}, for example: {row['example']}", 300)}
           for row in reasons.rows[:16]]
    listed = table("Reasons, the most frequent first", [
        {"stage": row["stage"], "reason": row["reason"], "n": row["n"], "one of them": row["example"]} for row in reasons.rows],
        ("n",), reasons.besides)
    drawn = figure("rejected-chart", "The most frequent reasons", "A bar for each reason with how often it was given.",
                   lambda width: charts.amounts(top, width, POOR), listed)
    return Section(
        "rejected", "Rejected rows, and why",
        f"{many(reasons.n, 'reason')}; the most frequent, “{worst['reason'].replace('_', ' ')}” at the stage {worst['stage']}, "
        f"was given {many(worst['n'], 'time')}.", (drawn,),
        notes=("traceroom show --rejected lists every one of them with file and line.",))


def families(source: RowSource) -> Section:
    """Return what is asked for again and again, as a map."""
    shown, n_services = views.listed(source, "families"), views.totals(source)["n_services"]
    if not shown.rows:
        return Section("families", "What is asked for", "No two sessions ask for the same work.")
    boxes = [_box(row, n_services) for row in shown.rows if row["n_sessions"]]
    n_in_all = sum(row["n_sessions"] for row in source.rows("select n_sessions from mart.families"))
    n_rest = n_in_all - sum(row["n_sessions"] for row in shown.rows)
    if n_rest > 0:
        says = f"{many(shown.besides, 'smaller family', 'smaller families')}, {many(n_rest, 'session')}"
        boxes.append({"name": "all others", "told": f"{n_rest:,}", "n": n_rest, "kind": "not known", "says": says})
    listed = table(
        "Families, the largest first", [{
            "service": row["service"], "family": row["name"], "asks": row["sentence"], "sessions": row["n_sessions"],
            "tasks": row["n_tasks"], "succeeded": row["n_succeeded"], "rate": percent(row["rate"]),
            "90 % interval": f"{percent(row['rate_low'])} to {percent(row['rate_high'])}" if row["rate"] is not None else "–",
            "band": row["difficulty_band"] or "–"} for row in shown.rows],
        ("sessions", "tasks", "succeeded", "rate", "90 % interval"), shown.besides)
    largest = shown.rows[0]
    drawn = figure(
        "families-map", "Families by size and success",
        "A box for each family, as large as the number of its sessions and coloured by how often they succeed.",
        lambda width: charts.family_map(boxes, {band: (fill, _ON[fill]) for band, fill in BANDS.items()}, width), listed)
    return Section(
        "families", "What is asked for",
        f"{many(shown.n, 'family', 'families')} of sessions that ask for the same work; the largest, "
        f"“{clean(largest['name'], 80)}”, has {many(largest['n_sessions'], 'session')}.", (drawn,),
        notes=(f"How often a family succeeds: {SAYS_BANDS}; not known where its interval spans several.",))


def _box(row: Row, n_services: int) -> Row:
    rate = percent(row["rate"])
    says = (
        f"{named(row['service'], row['name'], n_services)}: {many(row['n_sessions'], 'session')}, "
        f"{many(row['n_tasks'], 'task')}, succeeds {rate}" + (f" ({row['difficulty_band']})" if row["difficulty_band"] else ""))
    return {"name": clean(row["name"], 60), "told": f"{row['n_sessions']:,} · {rate}", "n": row["n_sessions"],
            "kind": row["difficulty_band"] or "not known", "says": says}


def outcomes(source: RowSource) -> Section:
    """How sessions ended, over time; what the signals are worth."""
    counts, times = views.outcomes(source), views.times(source)
    n = sum(counts.values())
    drawn = list[Figure]()
    if times.rows:
        drawn.append(_over_time(times))
        drawn.append(_rates(times))
    if worth := _worth(source):
        drawn.append(worth)
    listed = table("How sessions ended", [
        {"outcome": name, "sessions": count, "share": percent(count / n if n else None)} for name, count in counts.items()],
        ("sessions", "share"))
    lead = (f"{of(counts[SUCCEEDED], n)} sessions succeeded, {counts[FAILED]:,} failed, {counts[UNDECIDED]:,} are undecided."
            if n else "There is no session.")
    notes = [f"Succeeded: a probability of at least {percent(SUCCEEDED_FROM)}; failed: a smaller one; undecided: none."]
    if times.n_timeless:
        notes.append(f"{many(times.n_timeless, 'session')} of unknown time {'is' if times.n_timeless == 1 else 'are'} "
                     "not in the figures over time.")
    return Section("outcomes", "Outcomes over time", lead, tuple(drawn), (listed,), tuple(notes))


def _day(at: str, step: str) -> str:
    if step == "hour":
        return at[:13].replace("T", " ") + " h"
    return at[: {"year": 4, "month": 7}.get(step, 10)]


def _over_time(times: views.Times) -> Figure:
    columns: dict[str, Row] = {}
    for row in times.rows:
        day = _day(row["at"], times.step)
        columns.setdefault(day, {times.step: day, **dict.fromkeys(OUTCOMES, 0)})[row["outcome"]] = row["n"]
    parts = [{"at": row["at"], "kind": row["outcome"], "n": row["n"],
              "says": f"{_day(row['at'], times.step)}: {many(row['n'], 'session')} {row['outcome']}"} for row in times.rows]
    return figure(
        "outcomes-chart", f"Sessions by outcome, one column for each {times.step}",
        f"Columns over time, one a {times.step}, cut by how the sessions that began then ended.",
        lambda width: charts.over_time(parts, _OUTCOMES, times.step, width),
        table(f"Sessions by outcome and {times.step}", list(columns.values()), tuple(OUTCOMES)))


def _rates(times: views.Times) -> Figure:
    points = [{"at": row["at"], "mean": row["mean"],
               "says": f"{_day(row['at'], times.step)}: mean {percent(row['mean'])} over {many(row['n'], 'session')}"}
              for row in times.rates]
    return figure(
        "rates-chart", f"Mean probability of success, one point for each {times.step}", "A line over time, from 0 to 100 %.",
        lambda width: charts.rate_over_time(points, times.step, width), table("Mean probability of success", [
            {times.step: _day(row["at"], times.step), "judged": row["n"], "mean": percent(row["mean"])} for row in times.rates],
            ("judged", "mean")))


def _worth(source: RowSource) -> Figure | None:
    signals = views.listed(source, "signals")
    if not signals.rows:
        return None
    n_services = len({row["service"] for row in signals.rows})
    bars = [{"name": named(row["service"], f"{row['signal'].replace('_', ' ')}, {row['side']}", n_services),
             "key": json.dumps([row[name] for name in ("service", "signal", "side")]),
             "n": row["log_odds"], "told": f"{row['log_odds']:+.2f}",
             "says": f"{row['signal']} {row['side']}: {row['log_odds']:+.2f}, {row['n_votes']:,} votes, others agree "
                     f"{percent(row['agreement'])}, {percent(row['coverage'])} of sessions"} for row in signals.rows[:20]]
    return figure(
        "signals-chart", "What each signal adds to the log odds of success",
        "A bar for each side of each signal: above 0 it speaks for success, below 0 against.",
        lambda width: charts.amounts(bars, width, form="+.2~f"),
        table("Signals", [{"service": row["service"], "signal": row["signal"], "side": row["side"], "votes": row["n_votes"],
                           "coverage": percent(row["coverage"]), "agreement": percent(row["agreement"]),
                           "log odds": f"{row['log_odds']:+.2f}"} for row in signals.rows],
              ("votes", "coverage", "agreement", "log odds"), signals.besides))


_TIERS = {"recorded": KINDS[0], "derived": KINDS[1], "induced": KINDS[2], "bound": KINDS[3], "model": KINDS[4], "unknown": BAD}
_ANSWERS = {"exact": GOOD, "not exact": BAD, "not answered": NONE}
_AUDIT = {"stopped": GOOD, "ends like the solution": FAIR, "unscored": NONE, "got through": BAD}
_WRONGLY = {"attacker": "attackers that got a reward", "mutant": "changed solutions that got a reward",
            "session": "failed sessions that got a reward"}


def difficulty(source: RowSource) -> Section:
    """Show difficulty by split."""
    rows = views.difficulty(source)
    if not rows:
        return Section("difficulty", "How hard tasks are", "There is no task.")
    splits = [split for split in SPLITS if any(row["split"] == split for row in rows)]
    counts = {
        band: {
            split: sum(row["n"] for row in rows if (row["difficulty_band"] or "not known") == band and row["split"] == split)
            for split in splits}
        for band in BANDS}
    parts = [{"name": band, "kind": split.replace("_", " "), "n": n, "says": f"{band}: {many(n, 'task')} of {split}"}
             for band, by_split in counts.items() for split, n in by_split.items() if n]
    n, between = sum(row["n"] for row in rows), sum(sum(counts[band].values()) for band in ("sometimes", "often"))
    drawn = figure(
        "difficulty-chart", "Tasks by how often they succeed", "A column for each band, cut by split.",
        lambda width: charts.stacks(
            parts, {split.replace("_", " "): KINDS[place] for place, split in enumerate(splits)}, list(BANDS)),
        table("Tasks by band and split", [
            {"band": band, **{split.replace("_", " "): by_split[split] for split in splits}, "all": sum(by_split.values())}
            for band, by_split in counts.items()], (*(split.replace("_", " ") for split in splits), "all")))
    return Section(
        "difficulty", "How hard tasks are",
        f"{of(between, n)} tasks are known to succeed sometimes or often: these teach most, for both ends are seen.", (drawn,),
        notes=(f"How often a task succeeded in the logs: {SAYS_BANDS}; not known where its interval spans several.",))


def fidelity(source: RowSource) -> Section:
    """Return what was found of each tool, and how exactly it answers."""
    tools = views.listed(source, "fidelity")
    if not tools.rows:
        return Section("fidelity", "Fidelity by tool", "No tool was called.")
    n_services = len({row["service"] for row in tools.rows})
    measured = [row for row in tools.rows if row["fidelity"] is not None or row["abstains"] is not None]
    parts = [{"name": named(row["service"], row["tool"], n_services), "key": f"{row['service']} {row['tool']}", "kind": kind,
              "share": share, "told": f"{percent(row['fidelity'])} exact" if row["fidelity"] is not None else "says nothing",
              "says": f"{percent(share)} of {many(row['n_calls'], 'call')} {kind}: {row['tool']}"}
             for row in measured[:30] for kind, share in _answers(row).items()]
    listed = table("Tools, the most called first", [
        {"service": row["service"], "tool": row["tool"], "effect": row["effect"], "calls": row["n_calls"],
         "borne out": row["n_support"], "against": row["n_against"], "exact": percent(row["fidelity"]),
         "not answered": percent(row["abstains"]), "cassette exact": percent(row["cassette_fidelity"]),
         "cassette not answered": percent(row["cassette_abstains"])} for row in tools.rows],
        ("calls", "borne out", "against", "exact", "not answered", "cassette exact", "cassette not answered"), tools.besides)
    exact = sum(row["fidelity"] is not None and row["fidelity"] >= 0.95 for row in measured)
    lead = (f"Of {many(tools.n, 'tool')}, {len(measured):,} have a program that was measured; of these, {exact:,} are exact in "
            "at least 95 % of the calls that they answer.")
    notes = ("Programs are made from one half of the sessions and answer the calls of the other. Exact: to the letter, of the "
             "calls that they answer. Not answered: left to the record, and to what is known of the world at that instant. "
             "Cassette: the other half's latest answer to exactly the same question.",)
    if not measured:
        return Section("fidelity", "Fidelity by tool", lead, (), (listed,), notes)
    drawn = figure("fidelity-chart", "How programs answer logged calls that they were not made from",
                   "A bar for each tool, cut into exact answers, others, and none.",
                   lambda width: charts.shares(parts, _ANSWERS, width), listed)
    return Section("fidelity", "Fidelity by tool", lead, (drawn,), (), notes)


def _answers(row: Row) -> dict[str, float]:
    """Shares of a tool's calls: answered exactly, answered otherwise, not answered."""
    silent, exact = row["abstains"] or 0.0, row["fidelity"] or 0.0
    return dict(zip(_ANSWERS, ((1 - silent) * exact, (1 - silent) * (1 - exact), silent), strict=True))


def audits(source: RowSource, folder: Path) -> Section:
    """Who tried to earn a reward without doing the task, and with what success."""
    built = [row["environment"] for row in views.listed(source, "environments").rows]
    reports = _documents_of(folder, built, ("rewards", "audit.json"))
    title = "Audits by attacker"
    if not reports:
        return Section("audits", title, "No environment was published, so none was audited." if not built else
                       "The audits do not lie beside the warehouse.")
    players = _players([report for _, report in reports])
    tries, through = sum(row["n"] for row in players), sum(row["passed"] for row in players)
    parts = [{"name": row["player"], "kind": kind, "share": row[key] / row["n"], "told": f"{row['passed']:,} of {row['n']:,}",
              "says": f"{row['player']}: {row[key]:,} of {row['n']:,} {kind}"}
             for row in players for kind, key in zip(_AUDIT, ("stopped", "alike", "unscored", "passed"), strict=True)]
    listed = table("Players of the published tasks", [
        {"player": row["player"], "tries": row["n"], "stopped": row["stopped"], "ends alike": row["alike"],
         "unscored": row["unscored"], "got through": row["passed"]} for row in players],
        ("tries", "stopped", "ends alike", "unscored", "got through"))
    rates = table("Errors of the rewards, with 95 % intervals", _errors(reports), ("tries", "wrong", "rate", "95 % interval"))
    drawn = (figure(
        "audits-chart", "What became of each attempt to cheat", "A bar for each player, cut by what became of its attempts.",
        lambda width: charts.shares(parts, _AUDIT, width), listed),) if players else ()
    return Section(
        "audits", title,
        f"{many(tries, 'attempt')} to earn a reward without doing the task; {through:,} got through on published tasks.",
        drawn, (rates,),
        ("Beside each bar: how many got through. One that ends like the solution is the solution in other words; unscored: the "
         "environment does not know how it would have ended. docs/rewards.md says what each player does.",))


def _players(reports: list[Row]) -> list[Row]:
    """Return the players that should fail, over all environments, those who got through first."""
    sums: dict[str, Row] = {}
    for report in reports:
        for player, counts in report["published"]["players"].items():
            if player in ("solution", "session"):
                continue
            own = sums.setdefault(player, {"player": player.replace("_", " "), **dict.fromkeys(counts, 0)})
            for name, n in counts.items():
                own[name] += n
    rows = [{**row, "stopped": row["n"] - row["alike"] - row["unscored"] - row["passed"]} for row in sums.values() if row["n"]]
    return sorted(rows, key=lambda row: (-row["passed"], -row["n"], row["player"]))


def _errors(reports: list[tuple[str, Row]]) -> list[Row]:
    def line(name: str, what: str, counts: Row) -> Row:
        interval = f"{percent(counts['low'])} to {percent(counts['high'])}" if counts["n"] else "–"
        return {"environment": name, "what": what, "tries": counts["n"], "wrong": counts["k"],
                "rate": percent(counts["rate"]) if counts["n"] else "–", "95 % interval": interval}

    return [row for name, report in reports for row in (
        *(line(name, _WRONGLY.get(kind, kind), counts) for kind, counts in sorted(report["published"]["false_accept"].items())),
        line(name, "right ways that got none", report["published"]["false_reject"]))]


def splits(source: RowSource) -> Section:
    """Show the splits, and what they share."""
    rows, reports = views.splits(source), views.leakage(source)
    if not rows:
        return Section("splits", "Splits and leakage", "There is no task to split.")
    services = list(dict.fromkeys(row["service"] for row in rows))
    totals = {name: sum(row["n_tasks"] for row in rows if row["service"] == name) for name in services}
    parts = [{"name": clean(row["service"], 60), "key": row["service"], "kind": row["split"].replace("_", " "),
              "share": row["n_tasks"] / totals[row["service"]], "told": many(totals[row["service"]], "task"),
              "says": f"{many(row['n_tasks'], 'task')}: {row['split']}, {row['service']}"} for row in rows]
    drawn = figure(
        "splits-chart", "Tasks by split", "A bar for each service, cut by split.", lambda width: charts.shares(
            parts, {split.replace("_", " "): KINDS[place] for place, split in enumerate(SPLITS)}, width),
        table("Tasks and sessions by split", [
            {"service": row["service"], "split": row["split"].replace("_", " "), "tasks": row["n_tasks"],
             "sessions": row["n_sessions"]} for row in rows], ("tasks", "sessions")))
    leaks = sum(row.get("leaks") or 0 for row in reports.rows)
    shared = table("What the splits share", [
        {"service": row["service"], "cut by": row.get("method"), "leaks": row.get("leaks"),
         "near duplicates": row.get("n_near_duplicates"), "most words shared": percent(row.get("highest_jaccard")),
         "AUROC": row.get("told_apart"), "values in several splits": _shared(row.get("shared") or {})}
        for row in reports.rows], ("leaks", "near duplicates", "most words shared", "AUROC"), reports.besides)
    return Section(
        "splits", "Splits and leakage", "No task has a near-duplicate in another split." if not leaks else
        f"{many(leaks, 'leak')} between the splits, listed below.", (drawn,), (shared,) if reports.rows else (),
        ("AUROC: how well words alone distinguish held-out goals from goals in train (.5: not at all).",))


def _shared(places: Row) -> str:
    most = sorted(places.items(), key=lambda item: (-item[1]["n"], item[0]))
    return ", ".join(f"{place} {counts['n']:,}" for place, counts in most[:8]) or "none"


def drift(source: RowSource) -> Section:
    """Return what changed in what the logs are made of, and in the rules of tools."""
    changes = views.listed(source, "drift")
    lead = (f"{many(changes.n, 'change')} in what the logs are made of or in tools' rules: look whether they were meant."
            if changes.n else "Nothing appeared, vanished, was renamed or changed its type, and no rule withholds tasks.")
    listed = table("Changes", [{"kind": row["reason"].replace("_", " "), "what": row["detail"]} for row in changes.rows], (),
                   changes.besides)
    return Section("drift", "Drift", lead, (), (listed,) if changes.rows else ())


def unknowns(source: StoreSource, folder: Path) -> Section:
    """Show what environments can answer, and what to log so that they can answer more."""
    built = [row["environment"] for row in views.listed(source, "environments").rows]
    coverages = [
        (name, document["coverage"])
        for name, document in _documents_of(folder, built, ("environments", "manifest.json"))
        if document.get("coverage")]
    title = "Which log field would turn which unknown into an answer"
    rows = what_to_log(source.store, folder)
    listed = table("What to log, what helps most first", [
        {"service": row["service"], "what to log": f"{row['field']}: {row['log']}",
         "unknown now": f"{row['n']:,} of {row['of']:,} {row['unit']}", "above all of": _above_all(row["tools"])}
        for row in rows[:views.MOST]])
    if not coverages and not rows:
        return Section("unknowns", title, "No published environment states what it can answer.", short="What to log")
    n_asked = sum(cover["n_calls"] for _, cover in coverages)
    n_unknown = sum(counts.get("unknown", 0) for _, cover in coverages for counts in cover["by_tool"].values())
    chart = _tiers(coverages)
    return Section(
        "unknowns", title,
        f"Environments can answer {of(n_asked - n_unknown, n_asked)} calls that other sessions made around their tasks. What "
        "follows would turn most of the others into answers." if n_asked else "There was nothing to ask around the tasks.",
        (chart,) if chart else (), (listed,) if rows else (), short="What to log",
        notes=("First what would make answers of the largest share of what is unknown; traceroom coverage lists the same.",))


def _above_all(tools: list[Row]) -> str:
    """Return the tools that would gain most."""
    counts: dict[str, int] = {}
    for tool in tools:
        counts[tool["tool"]] = counts.get(tool["tool"], 0) + tool["n"]
    text = ", ".join(f"{clean(name, 40)} ({n:,})" for name, n in [*counts.items()][:3])
    return f"{text} and {many(len(counts) - 3, 'other')}" if len(counts) > 3 else text


def _tiers(coverages: list[tuple[str, Any]]) -> Figure | None:
    rows = [(f"{tool} · {name}" if len(coverages) > 1 else tool, counts)
            for name, cover in coverages for tool, counts in cover["by_tool"].items()]
    rows = sorted(rows, key=lambda row: (-row[1].get("unknown", 0), row[0]))[:30]
    parts = [{"name": clean(name), "key": name, "kind": tier, "share": counts[tier] / sum(counts.values()),
              "told": f"{sum(counts.values()) - counts.get('unknown', 0):,} of {sum(counts.values()):,}",
              "says": f"{counts[tier]:,} {tier}: {name}"} for name, counts in rows for tier in _TIERS if counts.get(tier)]
    if not parts:
        return None
    there = {tier: colour for tier, colour in _TIERS.items() if any(part["kind"] == tier for part in parts)}
    return figure(
        "tiers-chart", "How environments answer calls around their tasks",
        "A bar for each tool, cut by the tier of the answer.", lambda width: charts.shares(parts, there, width),
        table("Calls by tool and tier", [
            {"tool": name, **{tier: counts.get(tier, 0) for tier in there}} for name, counts in rows], tuple(there)))


def built(source: RowSource, statement: str) -> Section:
    """List the environments and the files to train on. `statement`: what the published rewards rest on."""
    built, files = views.listed(source, "environments"), views.listed(source, "datasets")
    listed = [table("Environments", [
        {"environment": row["environment"], "service": row["service"], "tasks": row["n_tasks"], "tools": row["n_tools"],
         "content digest": row["content_digest"][:16], "rewards digest": row["rewards_digest"][:16],
         "image": (row["image_id"] or "")[:19] or f"skipped: {row['image_skip_reason']}"} for row in built.rows],
        ("tasks", "tools"), built.besides)] if built.rows else []
    if files.rows:
        listed.append(table("Datasets", [
            {"file": row["path"], "kind": row["kind"], "split": (row["split"] or "all").replace("_", " "),
             "rows": row["n_rows"], "bytes": row["n_bytes"], "sha256": row["sha256"][:16]} for row in files.rows],
            ("rows", "bytes"), files.besides))
    n_tasks = sum(row["n_tasks"] for row in built.rows)
    return Section("built", "What was built", f"{many(built.n, 'environment')} with {many(n_tasks, 'task')}, and "
                   f"{many(files.n, 'dataset file')}. {statement}", (), tuple(listed))


def _documents_of(folder: Path, names: list[str], within: tuple[str, str]) -> list[tuple[str, Row]]:
    """(name, JSON document) of the files `folder/<within 0>/<name>/<within 1>` that exist."""
    paths = [(name, folder / within[0] / name / within[1]) for name in names]
    return [(name, json.loads(path.read_bytes())) for name, path in paths if path.is_file()]
