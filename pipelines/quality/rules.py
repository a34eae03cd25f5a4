"""What must hold of the warehouse: nothing vanishes, keys resolve, positions have no gaps, no gate was passed by.

Each rule is one query that gives the rows which break it; a warning is one too, but breaks nothing. They see the tables, not
the logs."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from warehouse.records import PART_OPENS
from warehouse.store import Store


class Rule(NamedTuple):
    """Something that holds of the warehouse."""

    name: str
    table: str
    """Table whose asset it stands on."""
    description: str
    offenders: str
    """A query that gives what breaks it."""


def _resolves(table: str, column: str, other: str, key: str) -> Rule:
    return Rule(
        f"{column}_of_{table.split('.')[1]}_resolves", table, f"Every {column} of {table} is one of {other}.",
        f"select distinct {column} from {table} where {column} is not null and {column} not in (select {key} from {other})")


RULES: tuple[Rule, ...] = (
    Rule(
        "no_record_vanishes", "raw.records", "Every record that a piece of a file holds is one row.",
        "select file_id, any_value(path) as path, any_value(n_records) as n_records, count(record_id) as kept "
        "from raw.files f left join raw.records using (file_id) group by file_id having n_records != kept"),
    Rule(
        "record_ids_are_unique", "raw.records", "Every record that is kept has an id of its own.",
        "select record_id from raw.records where reject_reason is null group by record_id having count(*) > 1"),
    Rule(
        "event_ids_are_unique", "core.events", "Every event has an id of its own.",
        "select event_id from core.events group by event_id having count(*) > 1"),
    Rule(
        "no_session_vanishes", "core.sessions", "Every session that was logged (not only rated) is one, or has a decision.",
        "select distinct session_id from core.events where kind in ('message', 'call', 'result', 'request') "
        "and session_id is not null and session_id not in (select session_id from core.sessions) "
        "and session_id not in (select value from core.events where kind = 'link') "
        "and session_id not in (select subject from mart.decisions where stage in ('extract', 'sessions') and not kept)"),
    Rule(
        "no_turn_vanishes", "core.turns", "Every session has as many messages and calls among its turns as it counts.",
        "select session_id, n_messages, n_calls, messages, calls from core.sessions left join (select session_id, "
        "count(*) filter (kind = 'message') as messages, count(*) filter (kind = 'call') as calls from core.turns group by "
        "session_id) using (session_id) where n_messages != coalesce(messages, 0) or n_calls != coalesce(calls, 0)"),
    Rule(
        "no_session_goes_without_goal", "mart.goals", "Every session asks for something, or has a decision that says why not.",
        "select session_id from core.sessions where session_id not in (select session_id from mart.goals) "
        "and session_id not in (select subject from mart.decisions where stage = 'goals' and not kept)"),
    Rule(
        "no_session_goes_unjudged", "mart.outcomes", "Every session has an outcome, if only that it abstained.",
        "select session_id from core.sessions where session_id not in (select session_id from mart.outcomes) "
        "and session_id not in (select subject from mart.decisions where stage = 'outcomes' and not kept)"),
    Rule(
        "no_session_goes_without_task", "mart.tasks", "Every session belongs to a task, or has a decision that says why not.",
        "select session_id from core.sessions where session_id not in (select unnest(session_ids) from mart.tasks) "
        "and session_id not in (select subject from mart.decisions where stage = 'tasks' and not kept)"),
    Rule(
        "no_family_goes_without_name", "mart.names", "Every family of goals has a name.",
        "select distinct family from mart.goals where family not in (select family from mart.names) "
        "or kind not in (select family from mart.names)"),
    Rule(
        "no_task_goes_without_rubric", "mart.rubrics", "Every task has a rubric, or a decision that says why not.",
        "select task_id from mart.tasks where task_id not in (select task_id from mart.rubrics) "
        "and task_id not in (select subject from mart.decisions where stage = 'rewards' and not kept)"),
    Rule(
        "good_sessions_are_judged", "mart.tasks", "Every session that counts as succeeded has a probability of success.",
        "select task_id, s as session_id from (select task_id, unnest(succeeded_session_ids) as s from mart.tasks) "
        "left join mart.outcomes on session_id = s where probability is null"),
    Rule(
        "no_failure_goes_untried", "mart.variants", "Every task without a known success is solved, or has a decision.",
        "select task_id from mart.tasks where len(succeeded_session_ids) = 0 "
        "and task_id not in (select task_id from mart.variants) "
        "and task_id not in (select subject from mart.decisions where stage = 'variants' and not kept)"),
    Rule(
        "no_correction_goes_unheard", "mart.variants", "Every correction is followed, or has a decision that says why not.",
        "select correction_id, kind, subject from core.corrections where (not stands or (kind != 'outcome' and "
        "value != 'null')) and correction_id not in (select subject from mart.decisions)"),
    Rule(
        "only_verified_tasks_are_published", "mart.environments", "An environment holds the published tasks, and no other.",
        "select environment, n_tasks, coalesce(n_verified, 0) as n_verified from mart.environments left join ("
        "select service, count(*) as n_verified from (select task_id, service from mart.tasks union "
        "select task_id, service from mart.variants) join mart.decisions on subject = task_id "
        "where stage = 'verify' and kept group by service) using (service) where n_tasks != coalesce(n_verified, 0)"),
    Rule(
        "no_task_goes_untried", "mart.environments", "Every task with a rubric is tried, or has a decision that says why not.",
        "select task_id from mart.rubrics where task_id not in (select subject from mart.decisions "
        "where stage = 'verify' or (stage in ('rewards', 'variants', 'environments') and not kept))"),
    Rule(
        "sealed_tasks_keep_their_side", "mart.tasks", "A task is on the side that its sessions were sealed with.",
        "select task_id from (select task_id, split, unnest(session_ids) as session_id from mart.tasks) as t "
        "join raw.sides as s using (session_id) where s.split != t.split"),
    _resolves("core.events", "record_id", "raw.records", "record_id"),
    _resolves("core.events", "file_id", "raw.files", "file_id"),
    _resolves("raw.sides", "session_id", "raw.epochs", "session_id"),
    _resolves("core.turns", "session_id", "core.sessions", "session_id"),
    _resolves("core.turns", "turn_id", "core.events", "event_id"),
    _resolves("mart.goals", "session_id", "core.sessions", "session_id"),
    Rule(
        "tool_of_behaviours_resolves", "mart.behaviours", "Every tool of mart.behaviours is one of core.tools, or part of one.",
        f"select distinct tool from mart.behaviours where split_part(tool, '{PART_OPENS}', 1) not in "
        "(select tool from core.tools)"),
    _resolves("mart.sentences", "goal_id", "mart.goals", "goal_id"),
    _resolves("mart.outcomes", "session_id", "core.sessions", "session_id"),
    _resolves("mart.tasks", "family", "mart.families", "family"),
    _resolves("mart.rubrics", "task_id", "mart.tasks", "task_id"),
    _resolves("mart.variants", "derived_from", "mart.tasks", "task_id"),
    _resolves("mart.facts", "event_id", "core.events", "event_id"),
    _resolves("mart.recorded", "event_id", "core.events", "event_id"),
    Rule(
        "session_ids_resolve", "mart.tasks", "Every session that a task names is one.",
        "select task_id, s as session_id from ("
        "select task_id, unnest(session_ids || succeeded_session_ids) as s from mart.tasks) "
        "where s not in (select session_id from core.sessions)"),
    Rule(
        "positions_have_no_gaps", "core.turns", "The turns of a session are numbered from 0 without a gap.",
        "select session_id from core.turns group by session_id having min(position) != 0 or max(position) != count(*) - 1"))
WARNINGS: tuple[Rule, ...] = (
    Rule(
        "logs_did_not_change", "core.turns", "What the logs are made of (tools, arguments, fields, columns) is what it was.",
        "select detail from mart.decisions where stage = 'drift' order by detail"),)
"""What people should check where it does not hold; it blocks nothing."""


def offenders(store: Store, rule: Rule) -> pl.DataFrame:
    """Return the rows that break the rule."""
    return store.read(rule.offenders)


def broken(store: Store) -> list[str]:
    """Names of the rules that do not hold, sorted."""
    return sorted(rule.name for rule in RULES if offenders(store, rule).height)
