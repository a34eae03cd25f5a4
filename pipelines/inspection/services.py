"""How the sessions of each service begin, what says so, and which worlds they are of: rows and sentences for people."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from pipelines.settings import Settings
from warehouse.store import Store

_BEGINS = {"reset": "each session anew", "shared": "all sessions share one state", None: "undecided"}
_EVIDENCE = {
    "configuration": "the configuration says so",
    "writes": "what one session's writes left for others",
    "first_answers": "first answers of sessions over time", None: "nothing"}
_BEGINNING = (
    "Sessions of {service}: {begins}; {evidence} (reads after another session's write: {reset} for reset, {shared} for "
    "shared); starts_from in the configuration file decides it")
_UNDECIDED = (
    "{service}: the logs do not show whether every session starts from the same state or all share one (reads after another "
    "session's write: {reset} for reset, {shared} for shared); set starts_from in the configuration file. Until then the "
    "environment replays a session's answer in other sessions only if equal calls got equal answers")
_WORLDS = (
    "{service}: its sessions are of {n} worlds that contradict each other ({sizes} sessions, {none} of no world that could be "
    "told; {alike} of {questions} questions agree on the world of their session). {apart}")
_APART = "The {attribute} of a session tells them apart in {right} of {n} sessions"
_NOT_APART = (
    "Nothing in the log tells them apart: rooms of other sessions answer unknown until an answer tells their world. To "
    "separate them, give each a service of its own (service of a source, or fields.service, in the configuration file)")
Row = dict[str, Any]


def service_rows(settings: Settings) -> list[Row]:
    """Return {"service", "starts_from", "decided_by", "for_reset", "for_shared", "n_sessions", "worlds", "evidence"} of each
    service; `worlds`: as in `mart.services`, with how many sessions are of none; `evidence`: a sentence where a decision of
    the user's is open, else None."""
    with Store.published(settings.warehouse) as store:
        return _rows(store)


def beginnings_in(events: pl.DataFrame) -> list[str]:
    """Return a sentence for each service that events of one file (frame of `Event`) show in several sessions with calls."""
    from env_builder.world import find_beginning
    from extractors.sessions import assemble

    made, sentences = assemble(events), []
    for service in made.sessions["service"].unique().sort():
        own = made.sessions.filter((pl.col("service") == service) & (pl.col("n_calls") > 0))
        if own.height > 1:
            beginning = find_beginning(own, made.turns.join(own, on="session_id", how="semi"))
            decided = beginning.decided_by
            sentences.append(_BEGINNING.format(
                service=service, begins=_BEGINS[beginning.starts_from if decided else None],
                evidence=f"by {_EVIDENCE[decided]}" if decided else "nothing tells", **beginning.votes))
    return sentences


def open_decisions(store: Store) -> list[str]:
    """Return a sentence for each service of which the log does not decide how sessions begin, or that has several worlds."""
    return [row["evidence"] for row in _rows(store) if row["evidence"]]


def _rows(store: Store) -> list[Row]:
    rows = store.read(
        "select service, starts_from, decided_by, votes, worlds, count(session_id) as n_sessions, "
        "count(*) filter (n_calls > 0) as n_calling from mart.services "
        "left join core.sessions using (service) group by all order by service").to_dicts()
    return [_row(row, row.pop("n_calling") > 1, json.loads(row.pop("votes")), json.loads(row.pop("worlds"))) for row in rows]


def _row(row: Row, is_called: bool, votes: dict[str, int], worlds: Row) -> Row:
    reset, shared = votes.get("reset", 0), votes.get("shared", 0)
    if worlds:
        worlds = {**worlds, "none": row["n_sessions"] - sum(worlds["sessions"])}
    undecided = _UNDECIDED.format(service=row["service"], reset=reset, shared=shared)
    sentences = [undecided] if is_called and not row["decided_by"] else []
    sentences += [_of_worlds(row["service"], worlds)] if worlds else []
    return {**row, "for_reset": reset, "for_shared": shared, "worlds": worlds, "evidence": ". ".join(sentences) or None}


def _of_worlds(service: str, worlds: Row) -> str:
    sizes = worlds["sessions"]
    apart = _NOT_APART if worlds["attribute"] is None else _APART.format(
        attribute=worlds["attribute"], right=worlds["right"], n=sum(sizes))
    return _WORLDS.format(
        service=service, n=len(sizes), sizes=" and ".join(map(str, sizes)), none=worlds["none"], alike=worlds["alike"],
        questions=worlds["alike"] + worlds["against"], apart=apart)


def shown(row: Row) -> Row:
    """Return a row as people read it."""
    worlds = row["worlds"]
    sizes = f"{len(worlds['sessions'])}: {', '.join(map(str, worlds['sessions']))}, none {worlds['none']}" if worlds else "1"
    return {
        "service": row["service"], "sessions": row["n_sessions"],
        "begins": _BEGINS[row["starts_from"] if row["decided_by"] else None], "by": _EVIDENCE[row["decided_by"]],
        "for reset": row["for_reset"], "for shared": row["for_shared"],
        "worlds": sizes, "told apart by": (worlds["attribute"] or "nothing") if worlds else ""}
