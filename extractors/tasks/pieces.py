"""Conversations in pieces: what a user says until the agent has answered, with the agent's answer and calls, and its words.

In: turns. Out: `Pieces`. Words are counted with their neighbours, what a person said apart from what the agent said; names and
numbers are masked. Sees no order of words beyond neighbours. A message of the system, and what precedes the user's first words,
belong to no piece of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from extractors.tasks.words import document_words, masked

_LEAST = 3
"""Words of fewer pieces are left: they can tell no kind."""


class Pieces(NamedTuple):
    """Pieces of one service's conversations, by session and in order."""

    frame: pl.DataFrame
    """piece (row number), session_id, place, begins and ends (positions of turns, the end exclusive), tools (list), said
    (the user's words)."""
    rows: np.ndarray
    """Piece of each counted word."""
    words: np.ndarray
    """Number of the word, 0-based."""
    weights: np.ndarray
    """log(1 + how often it stands in the piece)."""
    n_words: int
    plain: np.ndarray
    """Number of each word regardless of who said it."""


def cut(turns: pl.DataFrame) -> Pieces:
    """Pieces of the turns' sessions; a frame without users' words gives none."""
    spoken = turns.filter(pl.col("role").is_null() | pl.col("role").is_in(["user", "assistant"])).sort("session_id", "position")
    user = (pl.col("kind") == "message") & (pl.col("role") == "user")
    begins = user & ~user.shift(1, fill_value=False).over("session_id")
    placed = spoken.with_columns(user.alias("user"), begins.cast(pl.Int64).cum_sum().over("session_id").alias("place"))
    placed = placed.with_columns((pl.col("place") - 1).clip(0).alias("place"))
    last = placed.group_by("session_id").agg((pl.col("position").max() + 1).alias("end"))
    frame = (
        placed.group_by("session_id", "place")
        .agg(pl.col("position").min().alias("begins"), pl.col("tool").filter(pl.col("kind") == "call").unique().alias("tools"),
             pl.col("content").filter("user").sort_by(pl.col("position").filter("user")).str.join("\n").alias("said"))
        .sort("session_id", "place")
        .join(last, on="session_id", maintain_order="left")
        .with_columns(pl.coalesce(pl.col("begins").shift(-1).over("session_id"), "end").alias("ends"))
        .drop("end")
        .with_row_index("piece")
    )
    counted = _counted(placed, frame)
    known = counted.select(pl.col("word").unique().sort()).with_row_index("number")
    plain = known.select(pl.col("word").str.slice(2).rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    numbered = counted.join(known, on="word", maintain_order="left")
    return Pieces(frame, numbered["piece"].to_numpy().astype(np.int64), numbered["number"].to_numpy().astype(np.int64),
                  np.log1p(numbered["n"].to_numpy().astype(np.float64)), known.height, plain)


def _counted(placed: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """piece, word (marked with who said it), n, by piece and word."""
    texts = (
        placed.filter((pl.col("kind") == "message") & pl.col("content").is_not_null())
        .join(frame.select("piece", "session_id", "place"), on=["session_id", "place"])
        .group_by("piece", "user")
        .agg(pl.col("content").sort_by("position").str.join("\n"))
        .with_columns(masked(pl.col("content")).alias("text"), (pl.col("piece") * 2 + pl.col("user")).alias("document"))
    )
    side = pl.when(pl.col("document") % 2 == 1).then(pl.lit("u ")).otherwise(pl.lit("a "))
    counted = document_words(texts.select("document", "text")).with_columns(
        (pl.col("document") // 2).alias("piece"), (side + pl.col("word")).alias("word"))
    return counted.filter(pl.len().over("word") >= _LEAST).select("piece", "word", "n").sort("piece", "word")
