"""Signals about how a session ends: errors, unanswered words, last words, tests, claims, closing states, what came after.

Sees English words of short lists in the last words; summaries of test runners, builds and exit codes in answers; an argument of
two to five values of the tool that most sessions end by; goals that a later session continues. Does not see: sarcasm, other
languages (it abstains), tests that check nothing, requests answered by words alone. A hand-over and a repeated request have no
fixed sign: the data decide."""

from __future__ import annotations

import math

import polars as pl

from extractors.outcomes.evidence import Evidence, votes

COMPLAINT = (
    r"(?i)\b(?:not what i|that'?s (?:not|wrong)|this is (?:not|wrong)|isn'?t what|wasn'?t what|"
    r"didn'?t (?:work|help|do|ask)|doesn'?t (?:work|help)|not (?:working|helpful|resolved|right|correct)|"
    r"still (?:not|no|waiting|wrong)|wrong|useless|frustrat\w*|disappoint\w*|unacceptable|ridiculous|terrible|unhappy|"
    r"never ?mind|forget it|complain\w*)\b")
THANKS = r"(?i)\b(?:thanks|thank you|thx|cheers|appreciate|perfect|great|wonderful|awesome|excellent)\b"
_BYE = r"(?i)\b(?:bye|goodbye|stop|exit|that'?s all|that is all|that'?s it|nothing else|have a (?:nice|good|great))\b"
_HANDOVER = (
    r"(?i)\b(?:transfer(?:red|ring)?|escalat\w+|connect(?:ed|ing)? you|hand(?:ed|ing)? (?:you )?over|human agent|"
    r"supervisor|representative|specialist|colleague)\b")


def error_last(evidence: Evidence) -> pl.DataFrame:
    """-1 where the last call of a tool failed, so that its errors were never recovered from."""
    last = evidence.calls.group_by("session_id", "tool", maintain_order=True).last().filter("failed").sort("session_id", "tool")
    rows = last.group_by("session_id", maintain_order=True).agg(pl.col("tool").str.join(", "), "turn_id")
    return votes(rows, -1.0, pl.lit("ended on an error of ") + pl.col("tool"), pl.col("turn_id"))


def unanswered(evidence: Evidence) -> pl.DataFrame:
    """-1 where the last turn is a call without a result, or words of the user that are no good-bye."""
    last = evidence.turns.group_by("session_id", maintain_order=True).last()
    dangling = (pl.col("kind") == "call") & pl.col("content").is_null()
    closing = pl.col("content").str.contains(THANKS) | pl.col("content").str.contains(_BYE)
    waiting = (pl.col("kind") == "message") & (pl.col("role") == "user") & ~closing
    rows = last.filter((dangling | waiting).fill_null(False))
    return votes(rows, -1.0, "ends without an answer", pl.concat_list("turn_id"))


def complaint(evidence: Evidence) -> pl.DataFrame:
    """-1 where the user's last words complain or take something back."""
    rows = _last_words(evidence).filter(pl.col("content").str.contains(COMPLAINT))
    return votes(rows, -1.0, "the last words complain", pl.concat_list("turn_id"))


def thanks(evidence: Evidence) -> pl.DataFrame:
    """+1 where the user's last words thank and don't complain."""
    thankful = pl.col("content").str.contains(THANKS) & ~pl.col("content").str.contains(COMPLAINT)
    return votes(_last_words(evidence).filter(thankful), 1.0, "the last words give thanks", pl.concat_list("turn_id"))


def handover(evidence: Evidence) -> pl.DataFrame:
    """+1 (as a mark, not as good) where the agent's last words, or its last call, hand the user to somebody else."""
    ours = evidence.turns.filter((pl.col("role") == "assistant") | (pl.col("kind") == "call"))
    last = ours.group_by("session_id", maintain_order=True).last()
    named = pl.col("tool").str.replace_all("[_-]", " ").str.contains(_HANDOVER)
    rows = last.filter((pl.col("content").str.contains(_HANDOVER) | named).fill_null(False))
    return votes(rows, 1.0, "ends with a hand-over", pl.concat_list("turn_id"))


def repeats(evidence: Evidence) -> pl.DataFrame:
    """-1 where the user had to repeat a message of at least five words."""
    messages = (
        evidence.turns.filter((pl.col("kind") == "message") & (pl.col("role") == "user"))
        .with_columns(pl.col("content").str.to_lowercase().str.extract_all(r"[\p{L}\p{N}]+").list.unique().alias("words"))
        .filter(pl.col("words").list.len() >= 5).with_columns(pl.col("words").shift(1).over("session_id").alias("before"))
        .drop_nulls("before"))
    both = pl.col("words").list.set_intersection("before").list.len()
    either = pl.col("words").list.set_union("before").list.len()
    rows = messages.filter(both / either >= 0.6).group_by("session_id", maintain_order=True).agg("turn_id")
    return votes(rows, -1.0, "the user had to repeat the request", pl.col("turn_id"))


def _last_words(evidence: Evidence) -> pl.DataFrame:
    from_user = (pl.col("kind") == "message") & (pl.col("role") == "user") & pl.col("content").str.contains(r"\p{L}")
    return evidence.turns.filter(from_user).group_by("session_id", maintain_order=True).last()


_MOST = 0.5
"""Share of a service's sessions with words from which on a tool's last call closes them."""
_VALUES = (2, 5)


def closing(evidence: Evidence) -> pl.DataFrame:
    """+1 where a session is closed with the value that most are, -1 where with another."""
    worded = evidence.session_requests.filter("worded").select("session_id", pl.col("service").alias("kind"))
    last = evidence.calls.filter(~pl.col("failed")).join(worded, on="session_id").sort("session_id", "position").group_by(
        "session_id", maintain_order=True).last()
    n_worded = worded.group_by("kind").agg(pl.len().alias("n_sessions"))
    by_tool = last.with_columns(pl.len().over("kind", "tool").alias("n")).join(n_worded, on="kind")
    closed = by_tool.filter(pl.col("n") >= _MOST * pl.col("n_sessions")).select("session_id", "kind", "tool", "turn_id")
    place = "kind", "tool", "path"
    valued = closed.join(evidence.values, on="turn_id").filter(pl.col("value").n_unique().over(place).is_between(*_VALUES))
    counts = valued.group_by(*place, "value").len("n").sort(*place, "n", "value", descending=[False] * 3 + [True, False])
    usual = counts.group_by(*place, maintain_order=True).agg(pl.col("value").first().alias("usual"))
    one = valued.join(usual, on=place).sort("session_id", "path").group_by("session_id", maintain_order=True).first()
    vote = pl.when(pl.col("value") == pl.col("usual")).then(1.0).otherwise(-1.0)
    return votes(one, vote, pl.format("closed with {} = {}", "path", "value"), pl.concat_list("turn_id"))


_FAILED = (
    r"(?im)\b[1-9]\d* (?:tests? )?(?:failed|failing)\b|\btest result: FAILED\b|\bBUILD FAILED\b|"
    r"\bexit(?:ed with)?(?: code| status)[: ]+[1-9]\d*\b")
_PASSED = (
    r"(?im)\b[1-9]\d* (?:tests? )?pass(?:ed|ing)\b|\btest result: ok\b|\bBUILD SUCCESS(?:FUL)?\b|\ball (?:tests|checks) pass")
_CLAIM = (
    r"(?i)\b(?:I(?:'ve| have)(?: now| just| successfully| already)? \w+ed|"
    r"(?:has|have) (?:now |just |successfully |already )?been \w+ed)\b")
_NO_CLAIM = r"(?i)\b(?:has|have)(?: not|n't) been\b|\b(?:received|reviewed|checked|confirmed|looked|located|noted|verified)\b"
_CALLING = 0.8
"""Share of a service's sessions with a call that worked, from which on a session without one is taken for not served."""
_UNSERVED = -1.0
"""Log odds of a session that was not served."""


def unserved(evidence: Evidence) -> pl.DataFrame:
    """Return a probability below one half, as -1..1, where no call worked, in a service that works with calls."""
    works = evidence.calls.filter(~pl.col("failed")).select("session_id", pl.lit(True).alias("called")).unique()
    of = evidence.session_requests.select("session_id", "service").join(works, on="session_id", how="left").with_columns(
        pl.col("called").fill_null(False))
    rows = of.filter(~pl.col("called") & (pl.col("called").mean().over("service") >= _CALLING))
    turns = evidence.turns.group_by("session_id", maintain_order=True).agg(pl.col("turn_id").last())
    vote = round(2.0 / (1.0 + math.exp(-_UNSERVED)) - 1.0, 6)
    return votes(rows.join(turns, on="session_id"), vote, "nothing was looked up or done", pl.concat_list("turn_id"))


def tests(evidence: Evidence) -> pl.DataFrame:
    """1 where the last run of tests or of a build passed, -1 where it failed."""
    failed, passed = pl.col("content").str.contains(_FAILED), pl.col("content").str.contains(_PASSED)
    run = (pl.col("kind") == "call") & (failed | passed)
    ran = evidence.turns.filter(run).group_by("session_id", maintain_order=True).last()
    description = pl.when(failed).then(pl.lit("the last tests failed")).otherwise(pl.lit("the last tests passed"))
    return votes(ran, pl.when(failed).then(-1.0).otherwise(1.0), description, pl.concat_list("turn_id"))


def claimed(evidence: Evidence) -> pl.DataFrame:
    """-1 where the agent's last words say that something was done, and nothing that acts was called with success."""
    if not evidence.calls["acts"].any():
        return votes(evidence.session_requests.clear(), -1.0, "", pl.concat_list("session_id"))
    message = (pl.col("kind") == "message") & (pl.col("role") == "assistant")
    claims = pl.col("content").str.contains(_CLAIM) & ~pl.col("content").str.contains(_NO_CLAIM)
    last = evidence.turns.filter(message & claims).join(evidence.writes, on="session_id", how="anti").group_by(
        "session_id", maintain_order=True).last()
    return votes(last, -1.0, "says that it was done, and nothing was", pl.concat_list("turn_id"))


def repeated_request(evidence: Evidence) -> pl.DataFrame:
    """-1 where a later session goes on with one of its goals."""
    later = evidence.goals.drop_nulls("continues").select(
        pl.col("session_id").alias("later"), "goal", pl.col("continues").alias("goal_id"))
    came = evidence.goals.select("goal_id", "session_id").join(later, on="goal_id").sort("session_id", "later", "goal_id")
    first = came.group_by("session_id", maintain_order=True).first()
    turns = evidence.turns.group_by("session_id", maintain_order=True).agg(pl.col("turn_id").head(1))
    description = pl.format("asked for again in session {}: {}", "later", "goal")
    return votes(first.join(turns, on="session_id"), -1.0, description, pl.col("turn_id"))
