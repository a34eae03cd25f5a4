"""The words around an agent's work: what was said before its first move, and the script of its user, mined from the session.

In: the tasks and the turns of their sessions. Out: a frame with one row a task: its opening and its user's script, both as JSON
(docs/environment.md). Sees: the primary session of a task (its best good one, else the first); the agent's question before each
turn of the user; which arguments of later calls a turn gave first, and which words ask for the same in other sessions of the
service; what was confirmed, and what of a like form was ever shown. Does not see: what a user would have said to questions that
nobody asked, and facts in words alone that no call took up.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from math import log
from typing import Any, NamedTuple

import polars as pl

from env_builder.events import SessionEvents, events_by
from env_builder.runtime.answers import failed, parse
from env_builder.runtime.canonical import canonical, styled, written
from env_builder.runtime.relevance import leaves
from env_builder.runtime.user import CHARACTERS, chooses, confirms, granted, question, shape, stated, telling
from env_builder.runtime.words import Fact
from warehouse.records import Memoize, recompute, refusals_flagged

SCHEMA = {"task_id": pl.String(), "session_id": pl.String(), "opening": pl.String(), "script": pl.String()}

AS_WRITTEN = {"separators": (",", ":"), "ensure_ascii": False}
"""Style of JSON in which fields stay in their order."""
SESSIONS = {"task_id": pl.String(), "session_id": pl.String(), "probability": pl.Float64(), "steps": pl.String()}


def scripts(
    tasks: pl.DataFrame, turns: pl.DataFrame, memoize: Memoize = recompute, spoken: Spoken | None = None
) -> pl.DataFrame:
    """Return `opening` (JSON list of {"role", "content"}) and `script` (JSON, the task's `user` row) of every task of `tasks`.

    The opening holds all messages before the agent's first move: its first call, or its first words after the user's.
    A greeting that comes before the user's first words belongs to the opening. What the user says between two moves
    of the agent is one turn. A task whose session has no turns gets none of either. `spoken`: of these tasks, as `spoken_in`
    gives it.
    """
    talks, openings, read = spoken or spoken_in(tasks, turns, memoize)
    rows: dict[str, dict[str, Any]] = {}
    for (_,), own in tasks.sort("service", "task_id").group_by("service", maintain_order=True):
        rows |= _rows({task_id: talks[task_id] for task_id in own["task_id"].to_list()}, read)
    for task_id, events in events_by("task_id", part(tasks, turns).sort("task_id", "position")).items():
        rows[task_id] = with_events(rows[task_id], events)
    texts = [
        {"task_id": task_id, "session_id": session_id, "opening": canonical(openings[task_id]),
         "script": canonical(rows[task_id])}
        for task_id, session_id in primary(tasks).select("task_id", "session_id").iter_rows()
    ]
    return pl.DataFrame(texts, schema=SCHEMA).sort("task_id")


def talks_of(tasks: pl.DataFrame, turns: pl.DataFrame) -> tuple[dict[str, Talk], dict[str, list[dict[str, str]]]]:
    """Of every task its talk, and its opening."""
    talks = {task_id: Talk([], [], [[]], [], []) for task_id in tasks["task_id"].to_list()}
    openings: dict[str, list[dict[str, str]]] = {task_id: [] for task_id in talks}
    spoke: dict[str, int] = {}
    columns = ("task_id", "step", "kind", "role", "by_agent", "content", "arguments")
    rows = part(tasks, turns).sort("task_id", "position").select(columns).iter_rows()
    for task_id, step, kind, role, by_agent, content, arguments in rows:
        talk = talks[task_id]
        if kind == "call":
            talk.shown.extend(text for text in (arguments, content) if text)
            if by_agent and arguments is not None:
                talk.given.extend((len(talk.turns), name, value) for name, value in values_of(arguments))
        elif kind != "message" or content is None:
            continue
        elif step == 0:
            openings[task_id].append({"role": role, "content": content})
            talk.opening.extend([content] if role == "user" else [])
        elif role == "user" and spoke.get(task_id) == step:
            talk.turns[-1] = f"{talk.turns[-1]}\n{content}"
        elif role == "user":
            talk.turns.append(content)
            talk.heard.append([])
            spoke[task_id] = step
        elif by_agent and content.strip():
            talk.heard[-1].append(content)
    return talks, openings


def solutions(tasks: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """`solution` (JSON list of {"tool", "arguments"} | {"say"}) of every task: its agent's steps in its session, the fields of
    arguments in the order that the agent wrote them.

    A failed call that a later call of the same tool puts right is left out: it is no part of the way.
    """
    return _steps(tasks, turns, without_failed_tries=True)


def _steps(tasks: pl.DataFrame, turns: pl.DataFrame, without_failed_tries: bool) -> pl.DataFrame:
    """Return the steps of every task's agent; a call whose logged arguments are no JSON object cannot be made again."""
    is_call = (pl.col("kind") == "call") & pl.col("arguments").is_not_null()
    is_word = (pl.col("kind") == "message") & (pl.col("content").fill_null("").str.strip_chars() != "")
    moves = part(tasks, refusals_flagged(turns)).filter((pl.col("step") > 0) & pl.col("by_agent") & (is_call | is_word))
    columns = "task_id", "kind", "tool", "arguments", "arguments_raw", "content", "is_error"
    by_task: dict[str, list[Any]] = {task_id: [] for task_id in tasks["task_id"].to_list()}
    for task_id, *move in moves.sort("task_id", "position").select(columns).iter_rows():
        by_task[task_id].append(move)
    rows = [styled(_made(own, without_failed_tries), AS_WRITTEN) for own in by_task.values()]
    return pl.DataFrame({"task_id": list(by_task), "solution": rows},
                        schema={"task_id": pl.String(), "solution": pl.String()}).sort("task_id")


def _made(moves: Iterable[Sequence[Any]], without_failed_tries: bool) -> list[dict[str, object]]:
    """Return the steps of these moves (kind, tool, arguments, arguments_raw, content, is_error)."""
    worked: set[str] = set()
    steps: list[dict[str, object]] = []
    for kind, tool, arguments, raw, content, is_error in reversed([*moves]):
        if kind != "call":
            steps.append({"say": content})
            continue
        has_failed = failed(content or "", parse(content or ""), is_error)
        if not (without_failed_tries and has_failed and tool in worked):
            steps.append({"arguments": _in_order(arguments, raw), "tool": tool})
        worked |= set() if has_failed else {tool}
    return steps[::-1]


def _in_order(arguments: str, raw: str | None) -> Any:
    """Read arguments with their fields in the order of the raw text; in canonical order if that text is something else."""
    read = parse(raw or "")
    return read if written(read) == arguments else json.loads(arguments)


def sessions_of(tasks: pl.DataFrame, turns: pl.DataFrame, outcomes: pl.DataFrame) -> pl.DataFrame:
    """(task_id, session_id, probability, steps) of all sessions of the tasks but the good one that gives the solution.

    `outcomes`: (session_id, probability); `steps`: JSON as in `solutions`. Sorted by task_id, session_id.
    """
    others = tasks.select("task_id", "session_ids", "starts_at", "segment_of").explode("session_ids").rename(
        {"session_ids": "session_id"}).drop_nulls("session_id").join(
        primary(tasks.filter(pl.col("succeeded_session_ids").list.len() > 0)).select("task_id", "session_id"),
        on=["task_id", "session_id"], how="anti")
    one = pl.concat_list("session_id")
    alone = others.with_columns(
        pl.concat_str("task_id", "session_id", separator=" ").alias("task_id"), one.alias("session_ids"),
        one.alias("succeeded_session_ids"))
    steps = _steps(alone, turns, without_failed_tries=False).rename({"task_id": "both", "solution": "steps"})
    return others.with_columns(pl.concat_str("task_id", "session_id", separator=" ").alias("both")).join(
        steps, on="both").join(outcomes.select("session_id", "probability"), on="session_id", how="left").select(
        "task_id", "session_id", "probability", "steps").sort("task_id", "session_id")


def led_by_solution(tasks: pl.DataFrame, turns: pl.DataFrame, rubrics: pl.DataFrame) -> pl.DataFrame:
    """Return `tasks` with the session that gives the known solution as the first of the good ones.

    The task's opening and its user come from that session then: another good session may have been asked for something else, or
    have said more. `rubrics`: (task_id, solution).
    """
    several = tasks.filter(pl.col("succeeded_session_ids").list.len() > 1).join(
        rubrics.select("task_id", "solution"), on="task_id").select(
            "task_id", "succeeded_session_ids", "starts_at", "segment_of", "solution")
    each = several.explode("succeeded_session_ids").rename({"succeeded_session_ids": "session_id"})
    one = pl.concat_list("session_id")
    alone = each.select(
        pl.concat_str("task_id", "session_id", separator=" ").alias("task_id"), one.alias("session_ids"),
        one.alias("succeeded_session_ids"), "starts_at", "segment_of")
    wanted = each.with_columns(pl.concat_str("task_id", "session_id", separator=" ").alias("both"))
    giving = wanted.join(solutions(alone, turns).rename({"task_id": "both", "solution": "steps"}), on="both").filter(
        pl.col("steps") == pl.col("solution")).group_by("task_id").agg(pl.col("session_id").min().alias("first"))
    order = dict(giving.iter_rows())
    good = [[order[task_id], *(name for name in names if name != order[task_id])] if task_id in order else names
            for task_id, names in tasks.select("task_id", "succeeded_session_ids").iter_rows()]
    return tasks.with_columns(pl.Series("succeeded_session_ids", good, dtype=pl.List(pl.String())))


def longest(turns: pl.DataFrame) -> int:
    """Tokens that the longest session takes, as the runtime estimates them (`runtime/user.py`)."""
    signs = pl.sum_horizontal(pl.col("tool", "arguments", "content").str.len_chars().fill_null(0))
    most = turns.group_by("session_id").agg(signs.sum().alias("signs"))["signs"].max()
    return -(-most // CHARACTERS) if isinstance(most, int) else 0


def primary(tasks: pl.DataFrame) -> pl.DataFrame:
    """(task_id, session_id, starts_at, segment_of): the session that gives each task its words."""
    best = pl.coalesce(pl.col("succeeded_session_ids").list.first(), pl.col("session_ids").list.first(), "segment_of")
    return tasks.select("task_id", best.alias("session_id"), "starts_at", "segment_of")


def part(tasks: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Return turns of the tasks' primary sessions with `task_id`, `by_agent` and `step`: 0 before the agent's first move,
    then counted up at each of its moves. Of a later segment of a session, only the turns from its start on."""
    own = primary(tasks).join(turns, on="session_id").filter(
        pl.col("segment_of").is_null() | pl.col("starts_at").is_null() | (pl.col("happened_at") >= pl.col("starts_at")))
    is_call = pl.col("kind") == "call"
    by_agent = pl.when(is_call).then(pl.col("requestor").fill_null("assistant") != "user").otherwise(
        pl.col("role") == "assistant").fill_null(False)
    user_spoke = ((pl.col("role") == "user") & ~is_call).fill_null(False).cum_sum().over("task_id") > 0
    return own.sort("task_id", "position").with_columns(by_agent.alias("by_agent")).with_columns(
        (pl.col("by_agent") & (user_spoke | is_call)).cum_sum().over("task_id").alias("step"))


LEAST_PATIENCE = 6
"""Answers in a row that tell nothing new after which a user leaves, at the least."""
SHORTEST_VALUE = 2
LEAST_TIMES, LEAST_SHARE = 3, 0.3
"""Questions with a word that were answered by an argument's value, and their share of those with it: then it asks for that."""
LEAST_GRANTED, MOST_AGREED = 0.7, 50
"""Share of the questions for a yes with a word that got one, for a word of what is agreed to; and how many are kept."""
UNHEARD = 1.0
"""Weight of a word of an argument's name that no question holds."""
MOST_SEEN = 500
"""Facts that are kept of what was shown: what else has the form of what the user wants."""

_TOKEN = re.compile(r"[^\W_]+(?:[_\-.@][^\W_]+)*")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DAY = re.compile(r"\d{4}(-\d{2}-\d{2})")


class Talk(NamedTuple):
    """A task's session, parted where its user speaks."""

    opening: list[str]
    """Words of the user before the agent's first move."""
    turns: list[str]
    heard: list[list[str]]
    """What the agent said before each turn, since the one before; and after the last."""
    given: list[tuple[int, str, str]]
    """(turns told before the call, argument's name, its value) of each value of the agent's calls."""
    shown: list[str]
    """Texts of arguments and answers."""


class Turned(NamedTuple):
    """What one turn of a talk is."""

    when: str
    words: frozenset[str]
    """Telling words of the question before it."""
    slots: frozenset[str]
    """Names of the arguments that it was the first to give."""
    tells: list[Fact]
    learnt: list[Fact]
    grants: bool
    """Does it begin with a yes?"""


class Read(NamedTuple):
    """What a talk holds, whatever others say."""

    turned: list[Turned]
    given: frozenset[str]
    """Names of the arguments that its opening was the first to give."""
    wants: list[Fact]
    """What the user asks for, sorted."""
    shown: list[Fact]
    """What else of the same forms was said or shown."""


class Vocabulary(NamedTuple):
    """Which words ask for what, learnt from the talks of a service."""

    n_questions: int
    n_of: Counter[str]
    """Questions with a word."""
    words_of: dict[str, frozenset[str]]
    """Argument's name -> words that ask for it."""
    agreed: list[str]
    """Words of questions for a yes that nearly all got one, sorted."""

    def weighed(self, words: frozenset[str], slots: Iterable[str]) -> dict[str, float]:
        """Return these words and those that ask for these arguments, with their weight: the rarer the more."""
        asking = words.union(*(self.words_of.get(slot, _words(slot)) for slot in slots))
        return {word: round(log(1 + self.n_questions / (1 + self.n_of[word])), 2) if self.n_of[word] else UNHEARD
                for word in sorted(asking)}


def user_rows(
    talks: Mapping[str, Talk], vocabulary: Vocabulary | None = None, memoize: Memoize = recompute
) -> dict[str, dict[str, Any]]:
    """Return the `user` row of each task of one service; {"turns": []} alone where the user says no more than the opening.

    `vocabulary`: learnt from other talks; then what the agent said in these here is not taken to ask for anything.
    """
    return _rows(talks, reads_of(talks, memoize), vocabulary)


def _rows(
    talks: Mapping[str, Talk], read: Mapping[str, Read], vocabulary: Vocabulary | None = None
) -> dict[str, dict[str, Any]]:
    learnt = vocabulary or vocabulary_of(read[name].turned for name in talks)
    return {name: _row(talk, read[name], learnt, vocabulary is None) for name, talk in talks.items()}


def reads_of(talks: Mapping[str, Talk], memoize: Memoize = recompute) -> dict[str, Read]:
    """Return what each talk holds."""
    return {name: _read(*memoize(["talk", *talk], partial(_reading, talk))) for name, talk in talks.items()}


class Spoken(NamedTuple):
    """What was said in the sessions of tasks, by task."""

    talks: dict[str, Talk]
    openings: dict[str, list[dict[str, str]]]
    read: dict[str, Read]


def spoken_in(tasks: pl.DataFrame, turns: pl.DataFrame, memoize: Memoize = recompute) -> Spoken:
    """Return what was said in the sessions of these tasks."""
    talks, openings = talks_of(tasks, turns)
    return Spoken(talks, openings, reads_of(talks, memoize))


def _reading(talk: Talk) -> list[Any]:
    """Return a `Read` as JSON value."""
    own_turns = turned(talk)
    granting = [words for one, text, heard in zip(own_turns, talk.turns, talk.heard, strict=False)
                if one.when == "confirmed" and granted(text) for words in heard[-1:]]
    wants = {fact for fact in _stated([*talk.opening, *talk.turns, *granting]) if shape(fact)}
    shapes = {shape(fact) for fact in wants}
    stated_facts = _stated([words for heard in talk.heard for words in heard])
    candidates = {fact for fact in stated_facts.union(*map(_shown, talk.shown)) if shape(fact) in shapes}
    return [[[one.when, sorted(one.words), sorted(one.slots), one.tells, one.learnt, one.grants] for one in own_turns],
            sorted(first_given(talk, 0, "\n".join(talk.opening))), sorted(wants), sorted(candidates - wants)[:MOST_SEEN]]


def _read(turned: list[list[Any]], given: list[str], wants: list[Fact], shown: list[Fact]) -> Read:
    return Read([Turned(when, frozenset(words), frozenset(slots), *rest) for when, words, slots, *rest in turned],
                frozenset(given), wants, shown)


def learn(talks: Iterable[Talk]) -> Vocabulary:
    """Which words ask for what in these talks."""
    return vocabulary_of(map(turned, talks))


def vocabulary_of(turned: Iterable[Sequence[Turned]]) -> Vocabulary:
    """Return the same, of talks whose turns are known."""
    n, n_of = 1, Counter[str]()
    by_slot: dict[str, Counter[str]] = defaultdict(Counter)
    confirming, granting = Counter[str](), Counter[str]()
    for one in (each for talk in turned for each in talk):
        n += 1
        confirming.update(one.words if one.when == "confirmed" else ())
        granting.update(one.words if one.when == "confirmed" and one.grants else ())
        n_of.update(one.words)
        for slot in one.slots:
            by_slot[slot].update(one.words)
    usual = {word for word, times in granting.items() if times >= LEAST_TIMES and times >= LEAST_GRANTED * confirming[word]}
    agreed = sorted(sorted(usual, key=lambda word: (-granting[word], word))[:MOST_AGREED])
    return Vocabulary(n, n_of, {slot: _words(slot) | {
        word for word, times in talk.items() if times >= LEAST_TIMES and times >= LEAST_SHARE * n_of[word]}
        for slot, talk in by_slot.items()}, agreed)


def _row(talk: Talk, read: Read, learnt: Vocabulary, own: bool) -> dict[str, Any]:
    if not talk.turns:
        return {"turns": []}
    script = []
    for one, heard in zip(read.turned, talk.heard, strict=False):
        asks = learnt.weighed(one.words if own else frozenset(), one.slots) if one.when != "unasked" else {}
        script.append({"heard": heard, "when": one.when if asks or one.when == "confirmed" else "unasked", "asks": asks,
                       "tells": [list(fact) for fact in one.tells], "learnt": [list(fact) for fact in one.learnt]})
    yes = {"agreed": learnt.agreed} if any(one.when == "confirmed" for one in read.turned) else {}
    runs = groupby(read.turned, lambda one: bool(one.tells))
    longest = max((len(list(run)) for tells, run in runs if not tells), default=0)
    return {"turns": talk.turns, "script": script, "after": talk.heard[-1], **yes,
            "asks": learnt.weighed(frozenset(), read.given),
            "wants": [list(fact) for fact in read.wants], "seen": [list(fact) for fact in read.shown],
            "patience": LEAST_PATIENCE + longest}


def with_events(row: dict[str, Any], events: SessionEvents) -> dict[str, Any]:
    """Return a task's `user` row with the events of its session; a turn that comes with events is never said unasked."""
    own = events.rows()
    if not own:
        return row
    script = [{**one, "when": "asked"} if place in events.by_turn and one["when"] == "unasked" else one
              for place, one in enumerate(row.get("script", ()))]
    return {**row, **({"script": script} if script else {}), "events": own}


def turned(talk: Talk) -> list[Turned]:
    """Return what each turn of the talk is."""
    own = set(_stated(talk.opening))
    stated_facts: set[Fact] = set()
    before = "\n".join(talk.opening)
    turns = []
    for place, (text, heard) in enumerate(zip(talk.turns, talk.heard, strict=False)):
        stated_facts |= _stated(heard)
        questions = question("\n".join(heard))
        facts, before = stated(text), "\n".join((before, *heard))
        slots = first_given(talk, place + 1, text, before)
        tells = sorted(facts - own - stated_facts) + [("argument", slot) for slot in sorted(slots)]
        learnt = sorted(fact for fact in (facts & stated_facts) - own if fact[0] in ("id", "date"))
        yes_or_no = bool(questions) and confirms(questions) and not chooses(questions) and granted(text) is not None
        when = "confirmed" if yes_or_no else "asked" if questions else "unasked"
        turns.append(Turned(when, telling(questions), slots, tells, learnt, granted(text) is True))
        own |= facts
        before = f"{before}\n{text}"
    return turns


def first_given(talk: Talk, n_told: int, text: str, before: str = "") -> frozenset[str]:
    """Names of the arguments of later calls whose value the text gives and nobody gave before."""
    small, old = text.casefold(), before.casefold()
    return frozenset(name for at, name, value in talk.given
                     if at >= n_told and holds(small, value) and not holds(old, value))


def holds(text: str, value: str) -> bool:
    """Return whether a text has the value as words of its own; both in small letters."""
    at = text.find(value)
    return at >= 0 and not text[at - 1:at].isalnum() and not text[at + len(value):at + len(value) + 1].isalnum()


@lru_cache(4096)
def _shown(text: str) -> frozenset[Fact]:
    """Ids and days of a text of a tool."""
    ids = {("id", word.casefold()) for word in _TOKEN.findall(text) if len(word) >= 4 and any(sign.isdigit() for sign in word)}
    return frozenset(ids | {("date", f"-{day}") for day in _DAY.findall(text)})


def _stated(texts: Sequence[str]) -> frozenset[Fact]:
    return frozenset().union(*map(stated, texts))


@lru_cache(4096)
def _words(name: str) -> frozenset[str]:
    """Telling words of an argument's name."""
    return telling(_CAPITAL.sub(" ", name).replace("_", " "))


def values_of(arguments: str) -> list[tuple[str, str]]:
    """(name, value) of the scalars of a call's arguments, in small letters; of a list's elements the list's name."""
    read = json.loads(arguments)
    pairs = read.items() if isinstance(read, dict) else ()
    scalars = ((name, leaf) for name, value in pairs for leaf in leaves(value) if isinstance(leaf, str | int | float))
    return [(name, value) for name, leaf in scalars for value in [str(leaf).casefold()] if len(value) >= SHORTEST_VALUE]
