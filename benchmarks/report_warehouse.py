"""A warehouse of as many sessions as one likes, made by SQL: what the report reads, with nothing behind it.

Everything is a function of a row's number, so the same number of sessions gives the same warehouse. Families, tools and reasons
are as many as a large desk has; sessions go over half a year. Beside it lie an audit and a manifest, as a run writes them.
"""

from __future__ import annotations

import json
from pathlib import Path

from warehouse.store import Store

N_FAMILIES, N_TOOLS, SERVICES = 400, 120, ("front", "billing", "returns")
_SERVICE = f"['{SERVICES[0]}', '{SERVICES[1]}', '{SERVICES[2]}'][1 + i % 3]"
_PART = "((hash(i) >> 11) % 1000) / 1000.0"
"""A number from 0 to 1 that looks drawn."""
_ROWS = {
    "raw.files": """select 'f' || i, null, 'main', 'day-' || i || '.jsonl', 0, 0, 'openai_completions', 1000, 1000, null,
        timestamptz '2026-01-01', true from range(180) t(i)""",
    "core.sessions": f"""select 's' || i, 'main', {_SERVICE}, timestamptz '2026-01-01' + to_minutes((i * 259200 // $n)::int),
        null, null, 8, 5, null, 'openai_completions', null, [] from range($n) t(i)""",
    "mart.outcomes": f"""select 's' || i, case when i % 97 = 0 then null else round(power({_PART}, .4), 4) end, 0, 1, null,
        false, 'm', '[]' from range($n) t(i)""",
    "mart.tasks": f"""select 't' || i, {_SERVICE}, 'f' || (i % {N_FAMILIES}), '{{}}', 'a goal', ['s' || i], null, null, null,
        [], ['train', 'train', 'train', 'validation', 'held_out'][1 + i % 5], {_PART}, {_PART}, 0, 1,
        ['rarely', 'sometimes', 'often', 'mostly', null][1 + (i // 7) % 5], '[]', '[]', '[]', '[]' from range($n) t(i)""",
    "mart.families": f"""select 'f' || i, {_SERVICE}, '[]', 'a goal', greatest(1, ($n / (2 + i)) // 3), greatest(1, $n // 900),
        1, {_PART}, greatest(0, {_PART} - .1), least(1, {_PART} + .1),
        ['rarely', 'sometimes', 'often', 'mostly', null][1 + i % 5], null, null, '[]' from range({N_FAMILIES}) t(i)""",
    "mart.names": f"""select {_SERVICE}, 'f' || i, [], 'request of kind ' || i, 'please do {{thing}} of kind ' || i, null
        from range({N_FAMILIES}) t(i)""",
    "mart.goals": f"""select 'g' || i, 's' || i, {_SERVICE}, 0, 0, 7, 'f' || (i % {N_FAMILIES}), '[]',
        'f' || (i % {N_FAMILIES}), 'please do the thing number ' || i, '{{}}', null from range($n) t(i)""",
    "core.tools": f"""select {_SERVICE}, 'tool_' || i, null, '{{}}', false, null, $n // (1 + i) from range({N_TOOLS}) t(i)""",
    "mart.behaviours": f"""select {_SERVICE}, 'tool_' || i, ['read', 'write'][1 + i % 2], '{{}}', 10, 0, {_PART}, 1 - {_PART},
        {_PART} / 2, {_PART} from range({N_TOOLS}) t(i)""",
    "mart.signals": f"""select {_SERVICE}, 'signal_' || (i // 6), ['for', 'against'][1 + (i // 3) % 2], $n // 2, .5, .8,
        2 * {_PART} - 1 from range(36) t(i)""",
    "mart.decisions": """select ['sessions', 'outcomes', 'tasks', 'rewards'][1 + i % 4], 's' || (i // 4), i % 13 != 0,
        case when i % 13 = 0 then 'reason_' || (i % 31) else 'kept' end, 'It is so because of ' || i, null, null
        from range(4 * $n) t(i)""",
    "core.turns": f"""select 'c' || i, 's' || (i // 8), {_SERVICE}, i % 8, timestamptz '2026-01-01' + to_seconds(i),
        case when i % 2 then 'call' else 'message' end,
        case when i % 2 then null else ['user', 'assistant'][1 + i // 2 % 2] end,
        case when i % 2 then null else 'message ' || i || ' about q' || (i // 8) || ': would you please look at the order of '
        || 'last week, it came in a box that was open and half of what I had ordered is not in it' end, null,
        case when i % 2 then 'tool_' || (i // 2 % 120) end, case when i % 2 then '{{}}' end, null, false, null, null, null,
        case when i % 2 then 120 end, null from range(8 * $n) t(i)""",
    "mart.environments": "select s, s, 'digest of ' || s, 'rewards of ' || s, null, 'no engine', $n // 3, 40 from "
                         f"(select unnest({list(SERVICES)}) as s)",
}


def fill(out: Path, n_sessions: int, backwards: bool = False) -> Path:
    """Return a published warehouse of so many sessions in `out`, and what lies beside it; gives its path.

    `backwards`: the same rows, put in from the last on.
    """
    with Store.open(out / "warehouse.duckdb") as store:
        for table, select in _ROWS.items():
            order = " order by all desc" if backwards else ""
            told = {"n": n_sessions} if "$n" in select else {}
            store.change(f"insert into {table} select * from ({select}){order}", None, **told)
        for service in SERVICES:
            report = {"leaks": 0, "method": "component", "n_near_duplicates": 3, "highest_jaccard": 0.5, "told_apart": 0.51,
                      "shared": {"place": {"n": n_sessions // 9, "examples": []}}}
            store.change("insert into mart.leakage values ($service, $report)", service=service, report=json.dumps(report))
            _beside(out, service, n_sessions)
        return store.publish()


def _beside(out: Path, service: str, n: int) -> None:
    wrong = {"n": n, "k": n // 900, "rate": 1 / 900, "low": 0.0, "high": 0.01}
    players = {name: {"n": n, "alike": n // 9, "unscored": n // 20, "passed": place * n // 900}
               for place, name in enumerate(("silent", "chatty", "doubled", "swapped"))}
    published = {"false_accept": {"attacker": wrong, "mutant": wrong}, "false_reject": wrong, "n_tasks": n, "players": players}
    advice = [{"kind": "stale", "of": f"tool_{i}", "field": "state", "n": 9, "share": 0.1, "says": "log changes of such rows"}
              for i in range(5)]
    by_tool = {f"tool_{i}": {"derived": 40, "induced": 30, "unknown": 20 + i} for i in range(30)}
    cover = {"n_tasks": 99, "n_calls": 3135, "answered": 0.67, "by_tool": by_tool, "never_called": [], "advice": advice}
    for path, document in ((f"rewards/{service}/audit.json", {"published": published}),
                           (f"environments/{service}/manifest.json", {"coverage": cover})):
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(json.dumps(document), "utf-8")
