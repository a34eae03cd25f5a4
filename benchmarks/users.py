#!/usr/bin/env python3
"""How well the scripted user answers agents that ask as nobody asked it, against what people said.

    benchmarks/users.py DATA [--sessions N]       e.g. ../shared/data/human_desk

Which words ask for what is learnt from the earlier half of the sessions alone, and the user is scripted for the later ones
without what its own agent said (read with privacy off, in their own words): it knows what it has to tell, and must find out
from the agent's words what is asked for.

another_order     the agent's questions come in a drawn order: share that is answered by the turn which the person gave (or one
                  that tells the same), of turns that gave an argument of a later call; `_in_order`: by a user who replays
next_act          the agent's words as they came: share of answers of the person's act (what it tells, yes, no, else);
                  `_majority`: always the most frequent act
reveal_order      of pairs of turns that tell something, share told in the person's order; one that is never told is wrong
invented, early   answers with a fact that is not the person's, or that nothing in the question asked for (both 0, or it fails)
say_us            microseconds of an answer, median: to recorded words, and to those of another session

The table goes to stderr, the last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.mining_data import _ALWAYS_LEFT  # noqa: E402 (a script of its own, from anywhere)
from env_builder.runtime.habits import UserHabits  # noqa: E402
from env_builder.runtime.user import NO, YES, ScriptedUser, UserProgress, granted, opens, question, stated, telling  # noqa: E402  # noqa: E402
from env_builder.users import (  # noqa: E402
    Talk,
    learn,
    talks_of,
    user_rows,
)
from pipelines.running.stage import carry_out  # noqa: E402
from pipelines.settings import Settings  # noqa: E402
from pipelines.stages import STAGES  # noqa: E402
from warehouse.records import Task, frame  # noqa: E402
from warehouse.store import Store  # noqa: E402


def main() -> int:
    """Mine, play and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sessions", type=int, default=1000, help="at most so many sessions are played")
    given = parser.parse_args()
    earlier, later = halves(sessions_of(given.data.resolve()))
    vocabulary = learn(earlier.values())
    chosen = dict(sorted(later.items())[:given.sessions])
    figures = measured(chosen, user_rows(chosen, vocabulary)) | {
        "n_learnt_from": len(earlier), **speed(chosen, user_rows(chosen))}
    for name, value in figures.items():
        print(f"{name:28} {value!s:>10}", file=sys.stderr)
    print(json.dumps({"benchmark": "users", "data": given.data.resolve().name, "figures": figures}))
    return 1 if figures["invented"] or figures["early"] else 0


def sessions_of(data: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sessions and turns of the logs, by the public pipeline's first stages."""
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings(logs=(str(data),), out=scratch, without=_ALWAYS_LEFT, image=False, privacy=False).checked()
        for stage in STAGES:
            if stage.name in ("extract", "sessions"):
                carry_out(stage, settings)
        with Store.open(settings.warehouse, write=False) as store:
            return store.table("core.sessions"), store.table("core.turns")


def halves(tables: tuple[pl.DataFrame, pl.DataFrame]) -> tuple[dict[str, Talk], dict[str, Talk]]:
    """Talks of the earlier and of the later half of the sessions, of those whose user says more than the opening."""
    sessions, turns = tables
    ids = sessions.sort("started_at", "session_id")["session_id"].to_list()
    empty: dict[str, Any] = {"service": "", "family": "", "slots": "{}", "goal": "", "segment_of": None, "derived_from": None,
                             "starts_at": None, "split": "train", "difficulty": None}
    tasks = frame(Task, [empty | {"task_id": one, "session_ids": [one], "succeeded_session_ids": [one]} for one in ids])
    talks, _ = talks_of(tasks, turns)
    kept = [one for one in ids if talks[one].turns]
    return {one: talks[one] for one in kept[:len(kept) // 2]}, {one: talks[one] for one in kept[len(kept) // 2:]}


def measured(talks: dict[str, Talk], rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """All figures but the speed."""
    counts: Counter[str] = Counter()
    acts: Counter[str] = Counter()
    for name, talk in talks.items():
        row = rows[name]
        unheard = row | {"script": [one | {"heard": []} for one in row["script"]], "after": [], "patience": None}
        user = ScriptedUser(unheard, [{"role": "user", "content": "\n".join(talk.opening)}])
        counts += other_order(user, talk, row, random.Random(name))
        counts += as_it_came(user, talk, row, acts)
    acts_in_all = sum(acts.values())
    return {
        "n_sessions": len(talks), "n_questions": counts["asked"], "n_turns": acts_in_all, "n_pairs": counts["pairs"],
        "another_order": share(counts["answered"], counts["asked"]),
        "another_order_in_order": share(counts["in_order"], counts["asked"]),
        "next_act": share(counts["acts"], acts_in_all),
        "next_act_majority": share(max(acts.values(), default=0), acts_in_all),
        "reveal_order": share(counts["in_their_order"], counts["pairs"]),
        "invented": counts["invented"], "early": counts["early"]}


def other_order(user: ScriptedUser, talk: Talk, row: dict[str, Any], draw: random.Random) -> Counter[str]:
    """Questions in a drawn order, each to a user who has told what the questions before it asked for."""
    questions = [place for place, one in enumerate(row["script"])
                 if one["when"] == "asked" and _slots(one) and talk.heard[place]]
    drawn, spoken, counts = draw.sample(questions, len(questions)), 0, Counter[str]()
    for nth, place in enumerate(drawn):
        words = talk.heard[place][-1]
        progress, reply = user.reply(UserProgress(spoken), words)
        new = [other for other in range(len(talk.turns)) if (progress.spoken & ~spoken) >> other & 1]
        right = any(other == place or _slots(row["script"][other]) == _slots(row["script"][place]) for other in new)
        counts += Counter(asked=1, answered=int(right), in_order=int(questions[nth] == place))
        counts["invented"] += reply is not None and not stated(reply) <= stated("\n".join([*talk.opening, *talk.turns]))
        counts["early"] += any(_is_early(row["script"][other], words) for other in new)
        spoken |= 1 << place
    return counts


def as_it_came(
    user: ScriptedUser, talk: Talk, row: dict[str, Any], acts: Counter[str], habits: UserHabits | None = None
) -> Counter[str]:
    """Return the agent's words as they came; what the user told stays told, whatever the person said."""
    counts, progress, order = Counter[str](), UserProgress(), list[int]()
    for place, heard in enumerate(talk.heard[:-1]):
        before, reply = progress, None
        for words in heard:
            progress, answer = user.reply(progress, words, habits)
            reply = answer or reply
        new = [other for other in range(len(talk.turns)) if (progress.spoken & ~before.spoken) >> other & 1]
        order += new
        act = _act(row["script"][place], talk.turns[place])
        acts[act] += 1
        outcome = _act(row["script"][new[-1]], talk.turns[new[-1]]) if new else {YES: "yes", NO: "no"}.get(reply or "", "else")
        counts["acts"] += act == outcome
    tells = [place for place, one in enumerate(row["script"]) if one["tells"]]
    for one, other in ((one, other) for nth, one in enumerate(tells) for other in tells[nth + 1:]):
        counts["pairs"] += 1
        counts["in_their_order"] += one in order and (other not in order or order.index(one) <= order.index(other))
    return counts


def speed(talks: dict[str, Talk], rows: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Microseconds of an answer to recorded words, and to others' words."""
    users = [(ScriptedUser(rows[name]), talk) for name, talk in talks.items()]
    others = [talk for _, talk in reversed(users)]
    took: dict[str, list[float]] = {"say_us_recorded": [], "say_us_other": []}
    for (user, talk), other in zip(users, others, strict=True):
        for name, words in (("say_us_recorded", _words(talk)), ("say_us_other", _words(other))):
            progress = UserProgress()
            for word in words:
                began = time.perf_counter()
                progress, _ = user.reply(progress, word)
                took[name].append(time.perf_counter() - began)
    return {name: round(sorted(each)[len(each) // 2] * 1e6, 2) for name, each in took.items() if each}


def _words(talk: Talk) -> Iterator[str]:
    return (words for heard in talk.heard for words in heard)


def _slots(one: dict[str, Any]) -> list[str]:
    return sorted(value for kind, value in one["tells"] if kind == "argument")


def _is_early(one: dict[str, Any], words: str) -> bool:
    """Return whether a turn volunteers what the question neither asked for nor offered."""
    questions = question(words)
    offered = not stated(words).isdisjoint((kind, value) for kind, value in one["learnt"])
    return bool(one["tells"]) and one["when"] != "unasked" and not (
        opens(questions) or offered or not telling(questions).isdisjoint(one["asks"]))


def _act(one: dict[str, Any], text: str) -> str:
    """Return what a turn does: names of the arguments that it gives, or that it tells facts; yes, no, else."""
    if one["tells"]:
        return " ".join(_slots(one)) or "tells"
    return {True: "yes", False: "no", None: "else"}[granted(text) if one["when"] == "confirmed" else None]


def share(part: int, whole: int) -> float | None:
    """Return a share, None of nothing."""
    return round(part / whole, 4) if whole else None


if __name__ == "__main__":
    sys.exit(main())
