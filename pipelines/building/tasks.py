"""The stages `goals`, `names`, `outcomes` and `tasks`: what each session was for, how well it went, and the tasks in it.

Names of families are mined, written by a model where one is configured, and corrected by persons.
"""

from __future__ import annotations

import json
from functools import lru_cache, partial
from itertools import groupby, starmap
from operator import itemgetter

import polars as pl

from env_builder.runtime.stances import claims, declines, takes_back
from env_builder.shell.rooms import winners_split
from extractors.outcomes import judge
from extractors.outcomes.code import CodeOutcomes
from extractors.tasks import find, leakage, mine_goals
from extractors.tasks.model_names import reworded
from extractors.tasks.names import names_of, renamed
from extractors.tasks.requests import reject_goalless
from pipelines.building.decisions import acts_of, all_of, corrections_of_kind, replace_decisions, starts_of
from pipelines.building.sealing import ledger_of, seal, take_over, word_ledger_of
from pipelines.resources import asking
from pipelines.running.cache import memoized
from pipelines.running.code import code_digest
from pipelines.running.stage import Counts
from pipelines.settings import Settings, model_name
from warehouse.records import Decision, Leakage, Memoize, empty, frame, recompute
from warehouse.store import Store


def goals(store: Store, settings: Settings) -> Counts:
    """Mine what each session was for, with the arguments that its words ask for."""
    take_over(store, settings, "raw.word_groups")
    with memoized(store, "goals", code_digest(__name__)) as memoize:
        mined, groups = mine_goals(store.table("core.sessions"), store.table("core.turns"), acts_of(store), starts_of(store),
                                   memoize, word_ledger_of(store))
    seal(store, "raw.word_groups", groups)
    replace_decisions(store, "goals", reject_goalless(store.table("core.sessions"), mined))
    return {"n_goals": store.replace("mart.goals", mined)}


def names(store: Store, settings: Settings) -> Counts:
    """Name the families, and write goals as sentences to read. Raises InputError where half a model is configured."""
    goals, tools = store.table("mart.goals"), store.table("core.tools")
    calls = store.read(
        "select session_id, position, tool, effect from core.turns left join mart.behaviours using (service, tool) "
        "where kind = 'call'") if not goals.is_empty() else None
    with memoized(store, "names", code_digest(__name__)) as memoize:
        named, decisions = names_of(goals, tools, calls, memoize), [empty(Decision)]
    if ask := asking(settings) if settings.configured.goals.ask else None:
        named, written = reworded(goals, tools, named, ask, model_name())
        decisions.append(written)
    named, corrected = renamed(goals, named, corrections_of_kind(store, "family"))
    replace_decisions(store, "names", pl.concat([*decisions, corrected]))
    return {"n_names": store.replace("mart.names", named.families),
            "n_sentences": store.replace("mart.sentences", named.sentences)}


def outcomes(store: Store, settings: Settings) -> Counts:
    """Estimate how well each session went."""
    with memoized(store, "outcomes", code_digest(__name__)) as memoize:
        judged = judge(
            store.table("core.sessions"), with_stances(store.table("core.turns"), memoize), store.table("core.feedback"),
            acts_of(store), starts_of(store), settings.configured.outcomes.reviews, store.table("mart.goals"),
            store.table("core.row_changes"), corrections_of_kind(store, "outcome"), store.table("core.reviews"),
            CodeOutcomes(store.table("mart.code_changes"), store.table("mart.code_verdicts")), memoize)
    rated = judged.outcomes.drop_nulls("probability")["session_id"]
    replace_decisions(store, "outcomes", all_of(rated, judged.decisions, "outcomes", "judged", "Has a probability of success."))
    store.replace("mart.signals", judged.worth)
    store.replace("mart.conditions", judged.conditions)
    return {"n_outcomes": store.replace("mart.outcomes", judged.outcomes),
            "n_abstained": judged.outcomes["probability"].null_count()}


def with_stances(turns: pl.DataFrame, memoize: Memoize = recompute) -> pl.DataFrame:
    """Add what each message commits to, as column `stance`: `declines`, `claims` or `both`; of a user, `takes_back`."""
    spoken = (pl.col("kind") == "message") & pl.col("role").is_in(["assistant", "user"]) & pl.col("content").is_not_null()
    messages = turns.filter(spoken).select("session_id", "turn_id", "role", "content").sort("session_id", "turn_id")
    rows: list[tuple[str, str | None]] = []
    for _, group in groupby(messages.iter_rows(), itemgetter(0)):
        own = list(group)
        texts = [(role, text) for *_, role, text in own]
        stances = memoize(["stances", texts], partial(list, starmap(_stance, texts)))
        rows += [(turn, stance) for (_, turn, *_), stance in zip(own, stances, strict=True)]
    of_turn = pl.DataFrame(rows, schema={"turn_id": pl.String, "stance": pl.String}, orient="row")
    return turns.join(of_turn, on="turn_id", how="left", maintain_order="left")


@lru_cache(maxsize=4096)
def _stance(role: str, text: str) -> str | None:
    if role == "user":
        return "takes_back" if takes_back(text) else None
    return {(True, True): "both", (True, False): "declines", (False, True): "claims", (False, False): None}[
        declines(text), claims(text)]


def _with_sides(store: Store) -> pl.DataFrame:
    """Return the sessions, with the split of the repository's task that the change of each solves, in the column `side`."""
    sessions = store.table("core.sessions")
    solved = store.read("select session_id, winner from mart.code_changes where winner is not null order by session_id")
    sides = solved.select("session_id", pl.col("winner").replace_strict(winners_split(solved["winner"]), return_dtype=pl.String)
                          .alias("side"))
    return sessions.join(sides, on="session_id", how="left", maintain_order="left") if solved.height else sessions


def tasks(store: Store, settings: Settings) -> Counts:
    """Group sessions into tasks, with goal, start and split; and report what the split's sides still share."""
    sessions, turns, effects = _with_sides(store), store.table("core.turns"), acts_of(store)
    gate = settings.configured.gates.min_probability
    take_over(store, settings, "raw.sides")
    ledger = ledger_of(store)
    with memoized(store, "tasks", code_digest(__name__)) as memoize:
        mined = find(sessions, turns, store.table("mart.outcomes"), effects, starts_of(store), gate,
                     store.table("mart.goals"), memoize, ledger)
    seal(store, "raw.sides", mined.sides)
    shared = leakage(mined.tasks, sessions, turns, effects, ledger, mined.sides)
    reports = [{"service": name, "report": json.dumps(report, sort_keys=True)} for name, report in sorted(shared.items())]
    store.replace("mart.leakage", frame(Leakage, reports))
    grouped = mined.tasks["session_ids"].explode()
    replace_decisions(store, "tasks", all_of(grouped, mined.decisions, "tasks", "in_a_task", "Belongs to a task."))
    return {"n_tasks": store.replace("mart.tasks", mined.tasks), "n_families": store.replace("mart.families", mined.families)}
