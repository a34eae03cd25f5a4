"""How a session ends: errors that stayed, words that were not answered, what the user said last, a hand-over.

Sees: English words of a short list, in the last words only. Does not see: sarcasm, other languages (it abstains), and
whether a thank-you is more than manners. A hand-over has no sign of its own: sometimes it is the right thing to do.
"""

from __future__ import annotations

import polars as pl

from extractors.outcomes.evidence import Evidence, votes

_COMPLAINT = (
    r"(?i)\b(?:not what i|that'?s (?:not|wrong)|this is (?:not|wrong)|isn'?t what|wasn'?t what|"
    r"didn'?t (?:work|help|do|ask)|doesn'?t (?:work|help)|not (?:working|helpful|resolved|right|correct)|"
    r"still (?:not|no|waiting|wrong)|wrong|useless|frustrat\w*|disappoint\w*|unacceptable|ridiculous|terrible|unhappy|"
    r"never ?mind|forget it|complain\w*)\b"
)
_THANKS = r"(?i)\b(?:thanks|thank you|thx|cheers|appreciate|perfect|great|wonderful|awesome|excellent)\b"
_BYE = r"(?i)\b(?:bye|goodbye|stop|exit|that'?s all|that is all|that'?s it|nothing else|have a (?:nice|good|great))\b"
_HANDOVER = (
    r"(?i)\b(?:transfer(?:red|ring)?|escalat\w+|connect(?:ed|ing)? you|hand(?:ed|ing)? (?:you )?over|human agent|"
    r"supervisor|representative|specialist|colleague)\b"
)


def error_last(seen: Evidence) -> pl.DataFrame:
    """-1 where the last call of a tool failed, so that its errors were never recovered from."""
    last = seen.calls.group_by("session_id", "tool", maintain_order=True).last().filter("failed").sort("session_id", "tool")
    rows = last.group_by("session_id", maintain_order=True).agg(pl.col("tool").str.join(", "), "turn_id")
    return votes(rows, -1.0, pl.lit("ended on an error of ") + pl.col("tool"), pl.col("turn_id"))


def unanswered(seen: Evidence) -> pl.DataFrame:
    """-1 where the last turn is a call without a result, or words of the user that are no good-bye."""
    last = seen.turns.group_by("session_id", maintain_order=True).last()
    dangling = (pl.col("kind") == "call") & pl.col("content").is_null()
    closing = pl.col("content").str.contains(_THANKS) | pl.col("content").str.contains(_BYE)
    waiting = (pl.col("kind") == "message") & (pl.col("role") == "user") & ~closing
    rows = last.filter((dangling | waiting).fill_null(False))
    return votes(rows, -1.0, "ends without an answer", pl.concat_list("turn_id"))


def complaint(seen: Evidence) -> pl.DataFrame:
    """-1 where the user's last words complain or take something back."""
    rows = _last_words(seen).filter(pl.col("content").str.contains(_COMPLAINT))
    return votes(rows, -1.0, "the last words complain", pl.concat_list("turn_id"))


def thanks(seen: Evidence) -> pl.DataFrame:
    """+1 where the user's last words thank and don't complain."""
    said = pl.col("content").str.contains(_THANKS) & ~pl.col("content").str.contains(_COMPLAINT)
    return votes(_last_words(seen).filter(said), 1.0, "the last words give thanks", pl.concat_list("turn_id"))


def handover(seen: Evidence) -> pl.DataFrame:
    """+1 (as a mark, not as good) where the agent's last words, or its last call, hand the user to somebody else."""
    ours = seen.turns.filter((pl.col("role") == "assistant") | (pl.col("kind") == "call"))
    last = ours.group_by("session_id", maintain_order=True).last()
    named = pl.col("tool").str.replace_all("[_-]", " ").str.contains(_HANDOVER)
    rows = last.filter((pl.col("content").str.contains(_HANDOVER) | named).fill_null(False))
    return votes(rows, 1.0, "ends with a hand-over", pl.concat_list("turn_id"))


def repeats(seen: Evidence) -> pl.DataFrame:
    """-1 where the user had to say the same thing of at least five words again."""
    said = (
        seen.turns.filter((pl.col("kind") == "message") & (pl.col("role") == "user"))
        .with_columns(pl.col("content").str.to_lowercase().str.extract_all(r"[\p{L}\p{N}]+").list.unique().alias("words"))
        .filter(pl.col("words").list.len() >= 5)
        .with_columns(pl.col("words").shift(1).over("session_id").alias("before"))
        .drop_nulls("before")
    )
    both = pl.col("words").list.set_intersection("before").list.len()
    either = pl.col("words").list.set_union("before").list.len()
    rows = said.filter(both / either >= 0.6).group_by("session_id", maintain_order=True).agg("turn_id")
    return votes(rows, -1.0, "the user had to repeat the request", pl.col("turn_id"))


def _last_words(seen: Evidence) -> pl.DataFrame:
    said = (pl.col("kind") == "message") & (pl.col("role") == "user") & pl.col("content").str.contains(r"\p{L}")
    return seen.turns.filter(said).group_by("session_id", maintain_order=True).last()
