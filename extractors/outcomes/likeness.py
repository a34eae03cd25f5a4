"""What sessions have in common, so that a review of one says something of the others.

Input: the evidence and the votes. Output: the traits of each session, a set of (`TRAITS` name, text):

- `vote`: its service, a signal, and the direction of its vote;
- `kind`: the kinds of request of its goals;
- `ending`: these, the tools by which it changed something, and whether it declined;
- `refusal`: a sentence of a message that declines, numbers and names with digits masked;
- `end`: its request, and the calls by which it changed something, argument by argument.

Does not see: sentences of one meaning in other words, and ends that are equal by other calls."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set

import polars as pl

from extractors.outcomes.evidence import Evidence
from extractors.outcomes.refusals import steps_of

TRAITS = {"vote": 0.3, "kind": 0.3, "ending": 0.5, "refusal": 1.0, "end": 2.0}
"""Variance, in squared log odds, of the error that sessions with the same trait are taken to share."""
TELLING = ("ending", "refusal", "end")
"""Traits by which a review judges a session on which no signal votes."""
Trait = tuple[str, str]
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_NAME = re.compile(r"\S*\d\S*")


def traits_of(evidence: Evidence, votes: pl.DataFrame) -> dict[str, frozenset[Trait]]:
    """Return the traits of each session that has one. `votes`: columns session_id, name, vote."""
    traits: dict[str, set[Trait]] = defaultdict(set)
    services = dict(evidence.session_requests.select("session_id", "service").iter_rows())
    for session, name, vote in votes.filter(pl.col("vote") != 0).select("session_id", "name", "vote").iter_rows():
        traits[session].add(("vote", f"{services.get(session)}: {name} {'for' if vote > 0 else 'against'}"))
    refusals = _refusals(evidence)
    kinds = {session: " ".join(sorted(set(part["kind"])))
             for (session,), part in evidence.goals.select("session_id", "kind").group_by("session_id")}
    for session, request, tools, calls in _ends(evidence).iter_rows():
        kind = kinds.get(session, "")
        if kind:
            traits[session] |= {("kind", kind), ("ending", f"{kind}: {tools} {'declined' if session in refusals else ''}")}
        if request is not None:
            traits[session].add(("end", f"{request}: {calls}"))
    for session, sentences in refusals.items():
        traits[session] |= {("refusal", sentence) for sentence in sentences}
    return {session: frozenset(each) for session, each in traits.items()}


def alike_sessions(traits: Mapping[str, Set[Trait]], reviewed: Iterable[str]) -> set[str]:
    """Return the sessions that share more than votes and a kind of request with a reviewed one."""
    telling = {trait for name in reviewed for trait in traits.get(name, ()) if trait[0] in TELLING}
    return {name for name, each in traits.items() if not telling.isdisjoint(each)}


def _ends(evidence: Evidence) -> pl.DataFrame:
    """Return a row a session: its request if it can be compared with others, its write tools, and its write calls."""
    writes = evidence.writes.with_columns(pl.concat_str("tool", pl.col("arguments").fill_null(""), separator=" ").alias("call"))
    of_session = writes.group_by("session_id").agg(
        pl.col("tool").unique().sort().str.join(" ").alias("tools"), pl.col("call").sort().str.join("; ").alias("calls"))
    return (
        evidence.session_requests.select("session_id")
        .join(evidence.requests.select("session_id", "request"), on="session_id", how="left")
        .join(of_session, on="session_id", how="left").with_columns(pl.col("tools", "calls").fill_null(""))
        .select("session_id", "request", "tools", "calls").sort("session_id"))


def _refusals(evidence: Evidence) -> Mapping[str, set[str]]:
    """Return the masked sentences of the messages that decline, by session; only those that other sessions share."""
    sentences: dict[str, set[str]] = {}
    for session, steps in steps_of(evidence):
        said = {masked for step in steps if step.declines for part in _SENTENCE.split(step.content)
                if (masked := _NAME.sub("#", part.strip().lower()))}
        if said:
            sentences[session] = said
    n_sessions = Counter(sentence for said in sentences.values() for sentence in said)
    return {session: {each for each in said if n_sessions[each] > 1} for session, said in sentences.items()}
