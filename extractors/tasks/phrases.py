"""Requests in stock phrases: which sessions ask, among greetings and small talk, for the same of the same entities.

In: requests of one service (`REQUESTS`). Out: for each session the set of its asking sentences, in a normal form. A sentence
*asks* if it holds a word with a digit, and its like (such words masked) opens other sessions of the service. What only ever
answers the agent ("my number is 4118") asks for nothing; it names entities, and sessions that name none in common are about
different people.

Sees: sentences as others said them, with words before ("Anyway, …") or none. Does not see: requests that name no number, id or
date, and paraphrases; where fewer than `PHRASED` of the sessions ask in such sentences, nothing is said of the service.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import polars as pl

from extractors.tasks.words import is_identifier, masked, split_words

PHRASED = 0.5
"""Share of a service's sessions that ask in phrases of others, from which on the phrases decide."""
MINIMUM_OPENINGS = 3
"""Sessions that open with a phrase, from which on it is one that asks."""
LONGEST_LEAD = 20
"""Words before a request, within its sentence, that are taken for small talk."""
SHORTEST = 3
"""Words of a request."""
_END = r"[.!?…]+(?:\s|$)|\n"


def requests_by_phrase(requests: pl.DataFrame) -> dict[str, str] | None:
    """Return session -> request (its first session) for sessions that ask in stock phrases; None if the service has none.

    Sessions of one request ask for the same in all their sentences, and their answers to the agent name an entity in common.
    """
    sentences = _sentences(requests, "said")
    asking = _asking(sentences, _sentences(requests, "goal"))
    if len(asking) < PHRASED * requests.height:
        return None
    names = sentences.filter(is_identifier(pl.col("word"))).group_by("session_id").agg(pl.col("word").unique())
    named = dict(names.iter_rows())
    of_phrases = {word for phrases in asking.values() for phrase in phrases for word in phrase.split()}
    alike: dict[frozenset[str], list[str]] = defaultdict(list)
    for session_id in sorted(asking):
        alike[asking[session_id]].append(session_id)
    return {session_id: min(group) for sessions in alike.values()
            for group in _by_names({each: frozenset(named.get(each, ())) - of_phrases for each in sessions})
            for session_id in group}


def _sentences(requests: pl.DataFrame, column: str) -> pl.DataFrame:
    """(session_id, sentence, template, word) of every word of the sentences that hold a digit; sentences lower-cased."""
    text = pl.col(column).str.replace_all(_END, "\n").str.split("\n").alias("text")
    texts = requests.select("session_id", text).explode("text").with_columns(split_words(pl.col("text")).alias("word"))
    words = texts.with_columns(
        pl.col("word").list.join(" ").alias("sentence")).filter(pl.col("sentence").str.contains(r"\d"))
    return words.with_columns(masked(pl.col("sentence")).alias("template")).select(
        "session_id", "sentence", "template", "word").explode("word")


def _asking(sentences: pl.DataFrame, opening: pl.DataFrame) -> dict[str, frozenset[str]]:
    """Session -> its asking sentences, without the small talk before them."""
    columns = ("session_id", "sentence", "template")
    rows = sentences.select(columns).unique().sort(columns)
    opens = Counter(template for _, _, template in opening.select(columns).unique(["session_id", "template"]).iter_rows())
    stock = {template for template, n in opens.items() if n >= MINIMUM_OPENINGS}
    asking: dict[str, set[str]] = defaultdict(set)
    for session_id, sentence, template in rows.iter_rows():
        tail = _tail(template, stock)
        if tail:
            asking[session_id].add(" ".join(sentence.split()[-tail:]))
    return {session_id: frozenset(sentences) for session_id, sentences in asking.items()}


def _tail(template: str, stock: set[str]) -> int:
    """Return how many words at the end of a sentence ask: those of the longest stock phrase that it ends with, or 0."""
    words = template.split()
    for first in range(min(LONGEST_LEAD, len(words) - SHORTEST), -1, -1):
        if "0" in words[first:] and " ".join(words[first:]) in stock:
            return len(words) - first
    return 0


def _by_names(named: dict[str, frozenset[str]]) -> Iterable[list[str]]:
    """Group sessions that name an entity in common, one through another; those that name none join where all are one group."""
    groups: list[tuple[set[str], list[str]]] = []
    for session_id, names in named.items():
        if not names:
            continue
        joined, members = set(names), [session_id]
        apart = []
        for group in groups:
            if group[0] & joined:
                joined |= group[0]
                members += group[1]
            else:
                apart.append(group)
        groups = [*apart, (joined, members)]
    nameless = [session_id for session_id, names in named.items() if not names]
    if len(groups) <= 1:
        return [[*(groups[0][1] if groups else []), *nameless]] if groups or nameless else []
    return [*(members for _, members in groups), *([session_id] for session_id in nameless)]
