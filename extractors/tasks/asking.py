"""What each session asked for, in the words of who asked.

In: sessions and turns. Out: a frame, one row a session that asked for something (`ASKED`), and verdicts for the others.

Sees: messages of role user; for runs of requests without messages, texts for people inside the arguments. Does not see:
what was meant but not said, and an answer to a question of the agent that changes the goal later on.
"""

from __future__ import annotations

import polars as pl

from warehouse.records import Verdict, frame

ASKED = {
    "session_id": pl.String(),
    "service": pl.String(),
    "source": pl.String(),
    "identity": pl.String(),
    "started_at": pl.Datetime("us", "UTC"),
    "goal": pl.String(),
    "said": pl.String(),
    "spoken": pl.Boolean(),
    "worded": pl.Boolean(),
}
"""goal: the first substantive words; said: all words of the user; spoken: whether these are words of a conversation; worded:
whether they are anybody's words at all, and not the names of what was called."""

_SUBSTANTIVE = 4
"""A first message of fewer words is a greeting, and the goal goes on in the next one."""

_TEXT_FOR_PEOPLE = 3
"""A string in arguments with this many words, mostly letters, is a text that a person wrote."""

_CHOICE = 3
"""A text of more sessions than this is one of a list to choose from, where the session has a rarer one."""


def ask(sessions: pl.DataFrame, turns: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One row of `ASKED` a session that asked for something and was answered, by session_id; verdicts for the rest."""
    told = _told(sessions, turns)
    kept = told.filter(pl.col("reason").is_null()).select(list(ASKED)).sort("session_id")
    return kept.cast(pl.Schema(ASKED)), _left(told.filter(pl.col("reason").is_not_null()))


def heard(sessions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """One row of `ASKED` a session that asked for something, answered or not, by session_id."""
    told = _told(sessions, turns).filter(pl.col("goal").is_not_null())
    return told.select(list(ASKED)).sort("session_id").cast(pl.Schema(ASKED))


def _told(sessions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Columns of `ASKED`, and the reason why a session is no task."""
    per_session = sessions.select("session_id", "service", "source", "identity", "started_at")
    asked = (
        per_session.join(_words(turns), on="session_id", how="left")
        .join(_activity(turns), on="session_id", how="left")
        .join(_texts(turns), on="session_id", how="left")
        .with_columns(pl.col("n_calls", "n_answers").fill_null(0), pl.col("said").is_not_null().alias("spoken"))
        .with_columns(pl.any_horizontal(pl.col("said", "text").is_not_null()).alias("worded"))
        .with_columns(pl.coalesce("goal", "text", "tools").alias("goal"), pl.coalesce("said", "text", "tools").alias("said"))
    )
    idle = (pl.col("n_calls") == 0) & (pl.col("n_answers") == 0)
    return asked.with_columns(
        pl.when(pl.col("goal").is_null()).then(pl.lit("no_request")).when(idle).then(pl.lit("no_answer")).alias("reason")
    )


def _words(turns: pl.DataFrame) -> pl.DataFrame:
    spoken = (
        turns.filter((pl.col("kind") == "message") & (pl.col("role") == "user") & (pl.col("content").str.strip_chars() != ""))
        .sort("session_id", "position")
        .with_columns(
            (pl.col("content").str.count_matches(r"[\p{L}\p{N}]+") >= _SUBSTANTIVE).cast(pl.Int32).alias("substantive")
        )
        .with_columns(pl.col("substantive").cum_sum().over("session_id").alias("n_before"))
    )
    opening = (pl.col("n_before") - pl.col("substantive")) == 0
    return spoken.group_by("session_id", maintain_order=True).agg(
        pl.col("content").filter(opening).str.join("\n").alias("goal"), pl.col("content").str.join("\n").alias("said")
    )


def _activity(turns: pl.DataFrame) -> pl.DataFrame:
    answers = (pl.col("kind") == "message") & (pl.col("role") == "assistant") & (pl.col("content").str.strip_chars() != "")
    calls = pl.col("kind") == "call"
    return (
        turns.sort("session_id", "position")
        .group_by("session_id", maintain_order=True)
        .agg(
            calls.sum().alias("n_calls"),
            answers.sum().alias("n_answers"),
            pl.col("tool").filter(calls).unique(maintain_order=True).sort().str.join(", ").replace("", None).alias("tools"),
        )
    )


def _texts(turns: pl.DataFrame) -> pl.DataFrame:
    quoted = (
        turns.filter((pl.col("kind") == "call") & pl.col("arguments").is_not_null())
        .sort("session_id", "position")
        .select("session_id", pl.col("arguments").str.extract_all(r'"(?:[^"\\]|\\.)*"').alias("text"))
        .explode("text")
        .drop_nulls("text")
        .with_columns(pl.col("text").str.strip_chars('"'))
    )
    written = pl.col("text").str.count_matches(r"\p{L}{2,}") >= _TEXT_FOR_PEOPLE
    spaced = pl.col("text").str.count_matches(r"\s") >= _TEXT_FOR_PEOPLE - 1
    texts = quoted.filter(written & spaced).with_columns(pl.col("session_id").n_unique().over("text").alias("n"))
    rare = pl.col("n") <= pl.max_horizontal(pl.lit(_CHOICE), pl.col("n").min().over("session_id"))
    return (
        texts.filter(rare)
        .group_by("session_id", maintain_order=True)
        .agg(pl.col("text").unique(maintain_order=True).head(3).str.join("\n"))
    )


def _left(rows: pl.DataFrame) -> pl.DataFrame:
    details = {
        "no_request": "session {} holds no words of a user and no request; nothing was asked that could be a task",
        "no_answer": "session {} ends with the user's words: no agent answered, no tool was called; "
        "look for the rest of it in the log",
    }
    return frame(
        Verdict,
        [
            {
                "stage": "tasks",
                "subject": session,
                "kept": False,
                "reason": reason,
                "detail": details[reason].format(session),
                "file_id": None,
                "line": None,
            }
            for session, reason in rows.select("session_id", "reason").sort("session_id").iter_rows()
        ],
    )
