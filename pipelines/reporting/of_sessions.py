"""Sections on sessions: how they pass through the stages, what was left, what they ask for, and how they ended."""

from __future__ import annotations

import json

from pipelines.reporting import charts, figures
from pipelines.reporting.charts import BAD, FAIR, GOOD, NONE, POOR
from pipelines.reporting.parts import Figure, Row, Section, clean, figure, many, named, of, percent, table
from warehouse.store import Store

_STAGES = {
    "extract": "files read", "sessions": "sessions put together", "world": "what is known of the world",
    "behaviour": "what tools do", "goals": "goals of sessions", "outcomes": "sessions judged", "tasks": "sessions in a task",
    "rewards": "tasks with a reward", "variants": "new tasks made", "verify": "tasks verified",
    "environments": "environments published", "image": "images built", "datasets": "sessions in datasets"}
_OUTCOMES = dict(zip(figures.CLASSES, (GOOD, FAIR, POOR, BAD, NONE), strict=True))
_ON = {GOOD: "var(--on-good)", FAIR: "var(--on-fair)", POOR: "var(--on-poor)", BAD: "var(--on-bad)", NONE: "var(--on-none)"}
BANDS = {"mostly": GOOD, "often": FAIR, "sometimes": POOR, "rarely": BAD, "not known": NONE}
"""Bands of success with their colours, from what goes well to what does not."""
SAYS_BANDS = "mostly: above 80 %, often: 50 to 80 %, sometimes: 20 to 50 %, rarely: below 20 %"


def funnel(store: Store) -> Section:
    """What came into each stage, and what went on."""
    rows, parts, listed = figures.funnel(store), list[Row](), list[Row]()
    for row in rows:
        name, n = _STAGES.get(row["stage"], row["stage"]), row["kept"] + row["n_left"]
        for kind in ("kept", "n_left"):
            word = "kept" if kind == "kept" else "left"
            parts.append({"name": name, "kind": word, "share": row[kind] / n, "told": f"{row['kept']:,} of {n:,}",
                          "says": f"{name}: {row[kind]:,} of {n:,} {word}"})
        listed.append({"stage": row["stage"], "what": name, "in": n, "kept": row["kept"], "left": row["n_left"],
                       "why": ", ".join((row["why"] or [])[:8])})
    drawn = figure(
        "funnel-chart", "What went on at each stage", "A bar for each stage, cut into what was kept and what was left.",
        lambda width: charts.shares(parts, {"kept": GOOD, "left": BAD}, width),
        table("Stages, in order", listed, ("in", "kept", "left"))) if rows else None
    total = sum(row["n_left"] for row in rows)
    lead = (f"Every row that comes into a stage goes on or has a verdict that says why not; {many(total, 'verdict')} of the "
            "second kind." if rows else "No stage has said anything yet.")
    return Section("funnel", "The funnel", lead, (drawn,) if drawn else ())


def left(store: Store) -> Section:
    """What was left and why."""
    found = figures.left(store)
    if not found.rows:
        return Section("left", "What was left, and why", "Nothing was left.")
    worst = found.rows[0]
    top = [{"name": clean(f"{row['reason'].replace('_', ' ')} · {row['stage']}", 60), "key": row["stage"] + row["reason"],
            "n": row["n"], "told": f"{row['n']:,}",
            "says": clean(f"{row['stage']}, {row['reason']}: {row['n']:,}, for example: {row['example']}", 300)}
           for row in found.rows[:16]]
    listed = table("Reasons, the most frequent first", [
        {"stage": row["stage"], "reason": row["reason"], "n": row["n"], "one of them": row["example"]} for row in found.rows],
        ("n",), found.besides)
    drawn = figure("left-chart", "The most frequent reasons", "A bar for each reason with how often it was given.",
                   lambda width: charts.amounts(top, width, POOR), listed)
    return Section(
        "left", "What was left, and why",
        f"{many(found.n, 'reason')}; the most frequent, “{worst['reason'].replace('_', ' ')}” at the stage {worst['stage']}, "
        f"was given {many(worst['n'], 'time')}.", (drawn,),
        notes=("traceroom show --left lists every one of them with file and line.",))


def families(store: Store) -> Section:
    """What is asked for again and again, as a map."""
    found, n_services = figures.families(store), figures.totals(store)["n_services"]
    if not found.rows:
        return Section("families", "What is asked for", "No two sessions were found to ask for the same kind of thing.")
    boxes = [_box(row, n_services) for row in found.rows if row["n_sessions"]]
    n_rest = figures.family_sessions(store) - sum(row["n_sessions"] for row in found.rows)
    if n_rest > 0:
        says = f"{many(found.besides, 'smaller family', 'smaller families')}, {many(n_rest, 'session')}"
        boxes.append({"name": "all others", "told": f"{n_rest:,}", "n": n_rest, "kind": "not known", "says": says})
    listed = table(
        "Families, the largest first", [{
            "service": row["service"], "family": row["name"], "asks": row["sentence"], "sessions": row["n_sessions"],
            "tasks": row["n_tasks"], "good": row["n_good"], "rate": percent(row["rate"]),
            "90 % interval": f"{percent(row['rate_low'])} to {percent(row['rate_high'])}" if row["rate"] is not None else "–",
            "band": row["band"] or "–"} for row in found.rows],
        ("sessions", "tasks", "good", "rate", "90 % interval"), found.besides)
    largest = found.rows[0]
    drawn = figure(
        "families-map", "Families by size and success",
        "A box for each family, as large as the number of its sessions and coloured by how often they succeed.",
        lambda width: charts.family_map(boxes, {band: (fill, _ON[fill]) for band, fill in BANDS.items()}, width), listed)
    return Section(
        "families", "What is asked for",
        f"{many(found.n, 'family', 'families')} of sessions that ask for the same kinds of things; the largest, "
        f"“{clean(largest['name'], 80)}”, has {many(largest['n_sessions'], 'session')}.", (drawn,),
        notes=(f"How often a family succeeds: {SAYS_BANDS}; not known where its interval spans several.",))


def _box(row: Row, n_services: int) -> Row:
    rate = percent(row["rate"])
    says = (f"{named(row['service'], row['name'], n_services)}: {many(row['n_sessions'], 'session')}, "
            f"{many(row['n_tasks'], 'task')}, succeeds {rate}" + (f" ({row['band']})" if row["band"] else ""))
    return {"name": clean(row["name"], 60), "told": f"{row['n_sessions']:,} · {rate}", "n": row["n_sessions"],
            "kind": row["band"] or "not known", "says": says}


def outcomes(store: Store) -> Section:
    """How sessions ended, over time; what the signals are worth."""
    counts, times = figures.outcomes(store), figures.times(store)
    n = sum(counts.values())
    drawn = list[Figure]()
    if times.rows:
        drawn.append(_over_time(times))
        drawn.append(_rates(times))
    if worth := _worth(store):
        drawn.append(worth)
    listed = table("How sessions ended", [
        {"outcome": name, "sessions": count, "share": percent(count / n if n else None)} for name, count in counts.items()],
        ("sessions", "share"))
    good, bad = counts["worked"] + counts["probably worked"], counts["failed"] + counts["probably failed"]
    lead = (f"{of(good, n)} sessions worked or probably did, {bad:,} failed or probably did, {counts['not judged']:,} nobody "
            "can judge." if n else "There is no session.")
    notes = ["Worked: probability of success from .9; probably: from .5; probably failed: from .1; failed: below."]
    if times.n_timeless:
        notes.append(f"{many(times.n_timeless, 'session')} of unknown time {'is' if times.n_timeless == 1 else 'are'} "
                     "not in the figures over time.")
    return Section("outcomes", "Outcomes over time", lead, tuple(drawn), (listed,), tuple(notes))


def _day(at: str, step: str) -> str:
    if step == "hour":
        return at[:13].replace("T", " ") + " h"
    return at[: {"year": 4, "month": 7}.get(step, 10)]


def _over_time(times: figures.Times) -> Figure:
    columns: dict[str, Row] = {}
    for row in times.rows:
        day = _day(row["at"], times.step)
        columns.setdefault(day, {times.step: day, **dict.fromkeys(figures.CLASSES, 0)})[row["outcome"]] = row["n"]
    parts = [{"at": row["at"], "kind": row["outcome"], "n": row["n"],
              "says": f"{_day(row['at'], times.step)}: {many(row['n'], 'session')} {row['outcome']}"} for row in times.rows]
    return figure(
        "outcomes-chart", f"Sessions by outcome, one column for each {times.step}",
        f"Columns over time, one a {times.step}, cut by how the sessions that began then ended.",
        lambda width: charts.over_time(parts, _OUTCOMES, times.step, width),
        table(f"Sessions by outcome and {times.step}", list(columns.values()), figures.CLASSES))


def _rates(times: figures.Times) -> Figure:
    points = [{"at": row["at"], "mean": row["mean"],
               "says": f"{_day(row['at'], times.step)}: mean {percent(row['mean'])} over {many(row['n'], 'session')}"}
              for row in times.rates]
    return figure(
        "rates-chart", f"Mean probability of success, one point for each {times.step}", "A line over time, from 0 to 100 %.",
        lambda width: charts.rate_over_time(points, times.step, width),
        table("Mean probability of success", [
            {times.step: _day(row["at"], times.step), "judged": row["n"], "mean": percent(row["mean"])} for row in times.rates],
            ("judged", "mean")))


def _worth(store: Store) -> Figure | None:
    found = figures.signals(store)
    if not found.rows:
        return None
    n_services = len({row["service"] for row in found.rows})
    bars = [{"name": named(row["service"], f"{row['signal'].replace('_', ' ')}, {row['side']}", n_services),
             "key": json.dumps([row[name] for name in ("service", "signal", "side")]),
             "n": row["log_odds"], "told": f"{row['log_odds']:+.2f}",
             "says": f"{row['signal']} {row['side']}: {row['log_odds']:+.2f}, {row['n_votes']:,} votes, others agree "
                     f"{percent(row['agreement'])}, {percent(row['coverage'])} of sessions"} for row in found.rows[:20]]
    return figure(
        "signals-chart", "What each signal adds to the log odds of success",
        "A bar for each side of each signal: above 0 it speaks for success, below 0 against.",
        lambda width: charts.amounts(bars, width, form="+.2~f"),
        table("Signals", [{"service": row["service"], "signal": row["signal"], "side": row["side"], "votes": row["n_votes"],
                           "coverage": percent(row["coverage"]), "agreement": percent(row["agreement"]),
                           "log odds": f"{row['log_odds']:+.2f}"} for row in found.rows],
              ("votes", "coverage", "agreement", "log odds"), found.besides))
