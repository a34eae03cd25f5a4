"""Sections on what was built: how hard tasks are, what tools do, who tried to cheat, what sides share, what would help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipelines.reporting import charts, figures
from pipelines.reporting.charts import BAD, FAIR, GOOD, KINDS, NONE
from pipelines.reporting.of_sessions import BANDS, SAYS_BANDS
from pipelines.reporting.parts import Figure, Row, Section, clean, figure, many, named, of, percent, table
from pipelines.unknowns import unknowns as what_to_log
from warehouse.records import SIDES
from warehouse.store import Store

_TIERS = {"recorded": KINDS[0], "derived": KINDS[1], "induced": KINDS[2], "bound": KINDS[3], "model": KINDS[4], "unknown": BAD}
_ANSWERS = {"exact": GOOD, "not exact": BAD, "not answered": NONE}
_AUDIT = {"stopped": GOOD, "ends like the solution": FAIR, "unscored": NONE, "got through": BAD}
_WRONGLY = {"attacker": "attackers that got a reward", "mutant": "changed solutions that got a reward",
            "session": "failed sessions that got a reward"}


def difficulty(store: Store) -> Section:
    """Bands of difficulty, by side of the split."""
    rows = figures.bands(store)
    if not rows:
        return Section("difficulty", "How hard tasks are", "There is no task.")
    sides = [side for side in SIDES if any(row["split"] == side for row in rows)]
    counts = {band: {side: sum(row["n"] for row in rows if (row["band"] or "not known") == band and row["split"] == side)
                     for side in sides} for band in BANDS}
    parts = [{"name": band, "kind": side.replace("_", " "), "n": n, "says": f"{band}: {many(n, 'task')} of {side}"}
             for band, by_side in counts.items() for side, n in by_side.items() if n]
    n, between = sum(row["n"] for row in rows), sum(sum(counts[band].values()) for band in ("sometimes", "often"))
    drawn = figure(
        "difficulty-chart", "Tasks by how often they succeed", "A column for each band, cut by the side of the split.",
        lambda width: charts.stacks(
            parts, {side.replace("_", " "): KINDS[place] for place, side in enumerate(sides)}, list(BANDS), width),
        table("Tasks by band and side", [
            {"band": band, **{side.replace("_", " "): by_side[side] for side in sides}, "all": sum(by_side.values())}
            for band, by_side in counts.items()], (*(side.replace("_", " ") for side in sides), "all")))
    return Section(
        "difficulty", "How hard tasks are",
        f"{of(between, n)} tasks are known to succeed sometimes or often: these teach most, for both ends are seen.", (drawn,),
        notes=(f"How often a task succeeded in the logs: {SAYS_BANDS}; not known where its interval spans several.",))


def fidelity(store: Store) -> Section:
    """What was found of each tool, and how exactly it answers."""
    found = figures.fidelity(store)
    if not found.rows:
        return Section("fidelity", "Fidelity by tool", "No tool was called.")
    n_services = len({row["service"] for row in found.rows})
    measured = [row for row in found.rows if row["fidelity"] is not None or row["abstains"] is not None]
    parts = [{"name": named(row["service"], row["tool"], n_services), "key": f"{row['service']} {row['tool']}", "kind": kind,
              "share": share,
              "told": f"{percent(row['fidelity'])} exact" if row["fidelity"] is not None else "says nothing",
              "says": f"{percent(share)} of {many(row['n_calls'], 'call')} {kind}: {row['tool']}"}
             for row in measured[:30] for kind, share in _answers(row).items()]
    listed = table("Tools, the most called first", [
        {"service": row["service"], "tool": row["tool"], "effect": row["effect"], "calls": row["n_calls"],
         "borne out": row["n_support"], "against": row["n_against"], "exact": percent(row["fidelity"]),
         "not answered": percent(row["abstains"])} for row in found.rows],
        ("calls", "borne out", "against", "exact", "not answered"), found.besides)
    exact = sum(row["fidelity"] is not None and row["fidelity"] >= 0.95 for row in measured)
    lead = (f"Of {many(found.n, 'tool')}, {len(measured):,} have a program that was measured; of these, {exact:,} are exact in "
            "at least 95 % of the calls that they answer.")
    notes = ("Programs are made from one half of the sessions and answer the calls of the other. Exact: to the letter, of the "
             "calls that they answer. Not answered: left to the record, and to what is known of the world at that instant.",)
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


def audits(store: Store, folder: Path) -> Section:
    """Who tried to earn a reward without doing the task, and with what success."""
    rooms = [row["environment"] for row in figures.environments(store).rows]
    reports = figures.beside(folder, rooms, ("rewards", "audit.json"))
    title = "Audits by attacker"
    if not reports:
        return Section("audits", title, "No environment was published, so none was audited." if not rooms else
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
         "room does not know how it would have ended. docs/rewards.md says what each player does.",))


def _players(reports: list[Row]) -> list[Row]:
    """The players that should fail, over all environments, those who got through first."""
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
    def line(name: str, what: str, told: Row) -> Row:
        interval = f"{percent(told['low'])} to {percent(told['high'])}" if told["n"] else "–"
        return {"environment": name, "what": what, "tries": told["n"], "wrong": told["k"],
                "rate": percent(told["rate"]) if told["n"] else "–", "95 % interval": interval}

    return [row for name, report in reports for row in (
        *(line(name, _WRONGLY.get(kind, kind), told) for kind, told in sorted(report["published"]["false_accept"].items())),
        line(name, "right ways that got none", report["published"]["false_reject"]))]


def splits(store: Store) -> Section:
    """The sides of the split, and what they share."""
    rows, found = figures.splits(store), figures.leakage(store)
    if not rows:
        return Section("splits", "Splits and leakage", "There is no task to split.")
    services = list(dict.fromkeys(row["service"] for row in rows))
    totals = {name: sum(row["n_tasks"] for row in rows if row["service"] == name) for name in services}
    parts = [{"name": clean(row["service"], 60), "key": row["service"], "kind": row["split"].replace("_", " "),
              "share": row["n_tasks"] / totals[row["service"]], "told": many(totals[row["service"]], "task"),
              "says": f"{many(row['n_tasks'], 'task')}: {row['split']}, {row['service']}"} for row in rows]
    drawn = figure(
        "splits-chart", "Tasks by side of the split", "A bar for each service, cut by side.",
        lambda width: charts.shares(
            parts, {side.replace("_", " "): KINDS[place] for place, side in enumerate(SIDES)}, width),
        table("Tasks and sessions by side", [
            {"service": row["service"], "side": row["split"].replace("_", " "), "tasks": row["n_tasks"],
             "sessions": row["n_sessions"]} for row in rows], ("tasks", "sessions")))
    leaks = sum(row.get("leaks") or 0 for row in found.rows)
    told = table("What the sides share", [
        {"service": row["service"], "cut by": row.get("method"), "leaks": row.get("leaks"),
         "near duplicates": row.get("n_near_duplicates"), "most words shared": percent(row.get("highest_jaccard")),
         "told apart": row.get("told_apart"), "values on several sides": _shared(row.get("shared") or {})}
        for row in found.rows], ("leaks", "near duplicates", "most words shared", "told apart"), found.besides)
    return Section(
        "splits", "Splits and leakage",
        "No task has a twin on another side of the split." if not leaks else
        f"{many(leaks, 'leak')} between the sides of the split: see which below.", (drawn,), (told,) if found.rows else (),
        ("Told apart: how well words alone tell a held-out goal from one in train (AUROC; .5: they do not).",))


def _shared(places: Row) -> str:
    most = sorted(places.items(), key=lambda item: (-item[1]["n"], item[0]))
    return ", ".join(f"{place} {told['n']:,}" for place, told in most[:8]) or "none"


def drift(store: Store) -> Section:
    """What changed in what the logs are made of."""
    found = figures.drift(store)
    lead = (f"{many(found.n, 'change')} in what the logs are made of: look whether they were meant." if found.n else
            "Nothing appeared, vanished, was renamed or changed its type.")
    listed = table("Changes", [{"kind": row["reason"].replace("_", " "), "what": row["detail"]} for row in found.rows], (),
                   found.besides)
    return Section("drift", "Drift", lead, (), (listed,) if found.rows else ())


def unknowns(store: Store, folder: Path) -> Section:
    """What the rooms can answer, and what to log so that they can answer more."""
    rooms = [row["environment"] for row in figures.environments(store).rows]
    told = [(name, document["coverage"]) for name, document in figures.beside(folder, rooms, ("environments", "manifest.json"))
            if document.get("coverage")]
    title = "Which log field would turn which unknown into an answer"
    rows = what_to_log(store, folder)
    listed = table("What to log, what helps most first", [
        {"service": row["service"], "what to log": f"{row['field']}: {row['log']}",
         "unknown now": f"{row['n']:,} of {row['of']:,} {row['unit']}", "above all of": _above_all(row["tools"])}
        for row in rows[:figures.MOST]])
    if not told and not rows:
        return Section("unknowns", title, "No published room says what it can answer.", short="What to log")
    n_asked = sum(cover["n_calls"] for _, cover in told)
    n_unknown = sum(counts.get("unknown", 0) for _, cover in told for counts in cover["by_tool"].values())
    chart = _tiers(told)
    return Section(
        "unknowns", title,
        f"Rooms can answer {of(n_asked - n_unknown, n_asked)} calls that other sessions made around their tasks. What follows "
        "would turn most of the others into answers." if n_asked else "There was nothing to ask around the tasks.",
        (chart,) if chart else (), (listed,) if rows else (), short="What to log",
        notes=("First what would make answers of the largest share of what is unknown; traceroom unknowns says the same.",))


def _above_all(tools: list[Row]) -> str:
    """The tools that would gain most."""
    counts: dict[str, int] = {}
    for tool in tools:
        counts[tool["tool"]] = counts.get(tool["tool"], 0) + tool["n"]
    told = ", ".join(f"{clean(name, 40)} ({n:,})" for name, n in [*counts.items()][:3])
    return f"{told} and {many(len(counts) - 3, 'other')}" if len(counts) > 3 else told


def _tiers(told: list[tuple[str, Any]]) -> Figure | None:
    rows = [(f"{tool} · {name}" if len(told) > 1 else tool, counts)
            for name, cover in told for tool, counts in cover["by_tool"].items()]
    rows = sorted(rows, key=lambda row: (-row[1].get("unknown", 0), row[0]))[:30]
    parts = [{"name": clean(name), "key": name, "kind": tier, "share": counts[tier] / sum(counts.values()),
              "told": f"{sum(counts.values()) - counts.get('unknown', 0):,} of {sum(counts.values()):,}",
              "says": f"{counts[tier]:,} {tier}: {name}"} for name, counts in rows for tier in _TIERS if counts.get(tier)]
    if not parts:
        return None
    there = {tier: colour for tier, colour in _TIERS.items() if any(part["kind"] == tier for part in parts)}
    return figure(
        "tiers-chart", "How rooms answer calls around their tasks",
        "A bar for each tool, cut by how the room knows the answer.",
        lambda width: charts.shares(parts, there, width),
        table("Calls by tool and tier", [
            {"tool": name, **{tier: counts.get(tier, 0) for tier in there}} for name, counts in rows], tuple(there)))


def built(store: Store) -> Section:
    """The rooms and the files to train on."""
    rooms, files = figures.environments(store), figures.datasets(store)
    listed = [table("Environments", [
        {"environment": row["environment"], "service": row["service"], "tasks": row["n_tasks"], "tools": row["n_tools"],
         "content digest": row["content_digest"][:16], "rewards digest": row["rewards_digest"][:16],
         "image": (row["image_id"] or "")[:19] or f"left: {row['image_left']}"} for row in rooms.rows],
        ("tasks", "tools"), rooms.besides)] if rooms.rows else []
    if files.rows:
        listed.append(table("Datasets", [
            {"file": row["path"], "kind": row["kind"], "side": (row["split"] or "all").replace("_", " "), "rows": row["n_rows"],
             "bytes": row["n_bytes"], "sha256": row["sha256"][:16]} for row in files.rows], ("rows", "bytes"), files.besides))
    n_tasks = sum(row["n_tasks"] for row in rooms.rows)
    return Section("built", "What was built", f"{many(rooms.n, 'environment')} with {many(n_tasks, 'task')}, and "
                   f"{many(files.n, 'dataset file')}.", (), tuple(listed))


