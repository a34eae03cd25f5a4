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

from extractors.tasks.words import masked, split_words

PHRASED = 0.5
"""Share of a service's sessions that ask in phrases of others, from which on the phrases decide."""
MINIMUM_OPENINGS = 3
"""Sessions that open with a phrase, from which on it is one that asks."""
LONGEST_LEAD = 20
"""Words before a request, within its sentence, that are taken for small talk."""
SHORTEST = 3
"""Words of a request; digits of an answer that names somebody."""
_END = r"[.!?…]+(?:\s|$)|\n"


def requests_by_phrase(requests: pl.DataFrame) -> dict[str, str] | None:
    """Return session -> request (its first session) for sessions that ask in stock phrases; None if the service has none.

    Sessions of one request ask for the same in all their sentences, and give an answer with digits in common.
    """
    asking, answers = _asking(_sentences(requests, "said"), _sentences(requests, "goal"))
    n_sessions = Counter(phrase for phrases in asking.values() for phrase in phrases)
    if sum(any(n_sessions[phrase] > 1 for phrase in phrases) for phrases in asking.values()) < PHRASED * requests.height:
        return None
    alike: dict[frozenset[str], list[str]] = defaultdict(list)
    for session_id in sorted(asking):
        alike[asking[session_id]].append(session_id)
    return {session_id: min(group) for sessions in alike.values()
            for group in _by_names({each: answers.get(each, frozenset()) for each in sessions}) for session_id in group}


def _sentences(requests: pl.DataFrame, column: str) -> pl.DataFrame:
    """(session_id, sentence, template) of the sentences that hold a digit; lower-cased."""
    text = pl.col(column).str.replace_all(_END, "\n").str.split("\n").alias("text")
    words = requests.select("session_id", text).explode("text").with_columns(
        split_words(pl.col("text")).list.join(" ").alias("sentence")).filter(pl.col("sentence").str.contains(r"\d"))
    return words.select("session_id", "sentence", masked(pl.col("sentence")).alias("template")).unique().sort(pl.all())


def _asking(said: pl.DataFrame, opening: pl.DataFrame) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """(session -> its asking sentences without the small talk before them, session -> the digits of each other sentence).

    A sentence whose like opens no session is an answer if it is common or short; any other asks, whether others say it or not.
    """
    opens = Counter(opening.select("session_id", "template").unique()["template"])
    common = Counter(said.select("session_id", "template").unique()["template"])
    stock = {template for template, n in opens.items() if n >= MINIMUM_OPENINGS}
    repeated = {sentence for sentence, n in Counter(opening["sentence"]).items() if n > 1}
    asking: dict[str, set[str]] = defaultdict(set)
    answers: dict[str, set[str]] = defaultdict(set)
    for session_id, sentence, template in said.iter_rows():
        words = sentence.split()
        is_short = sum(not any(map(str.isdigit, word)) for word in words) < SHORTEST
        is_answer = not opens[template] and (is_short or common[template] >= MINIMUM_OPENINGS)
        tail = _tail(template, stock) or _tail(sentence, repeated) or len(words) * (not is_answer)
        if tail:
            asking[session_id].add(" ".join(words[-tail:]))
        elif len(digits := "".join(filter(str.isdigit, sentence))) >= SHORTEST:
            answers[session_id].add(digits)
    first, second = ({session_id: frozenset(each) for session_id, each in each_kind.items()} for each_kind in (asking, answers))
    return first, second


def _tail(sentence: str, stock: set[str]) -> int:
    """Return how many words at the end of a sentence ask: those of the shortest stock phrase that it ends with, or 0."""
    words = sentence.split()
    for first in range(min(LONGEST_LEAD, len(words) - SHORTEST), -1, -1):
        if any(map(str.isdigit, "".join(words[first:]))) and " ".join(words[first:]) in stock:
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
