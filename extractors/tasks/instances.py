"""Which sessions ask for the same thing, told from their words.

Sees: all words of the user, with the names of things (words with digits) counted more. Does not see: a goal that is the
same in other words altogether; two goals of one person in nearly the same words are taken for one ("twins").

Where most sessions begin with words that others used to the letter, but for numbers and names with digits (scripts,
buttons, forms, benchmarks), only the first words count and must be nearly the same, numbers and names included; else people
paraphrase, and all they say counts.
"""

from __future__ import annotations

import polars as pl

from extractors.tasks.likeness import ONE, group, pairs, weigh
from extractors.tasks.words import document_words, is_identifier, masked

_SCRIPTED = 0.5
"""Share of sessions whose first words, words with digits masked, others used too: from there on the service is scripted."""

_SAME_SCRIPT = 0.9
"""Average likeness from which on two scripted requests are one: a changed name makes another request."""

_SAME_REQUEST = 0.13
"""The same for paraphrased conversations: likeness is low, as all that was said is compared."""

_NAMES_COUNT = 4
"""A word that names a thing counts as if said this many times more."""


def same_request(asked: pl.DataFrame) -> pl.DataFrame:
    """Columns session_id, request: sessions of one service with the same `request` asked for the same thing.

    `asked` is of `asking.ASKED`. `request` is the id of the first session, so it does not depend on row order.
    """
    parts = [_in_service(part.sort("session_id")) for _, part in asked.sort("service").group_by("service", maintain_order=True)]
    empty = pl.DataFrame(schema={"session_id": pl.String, "request": pl.String})
    return pl.concat([empty, *parts]).sort("session_id")


def _in_service(asked: pl.DataFrame) -> pl.DataFrame:
    templates = asked.select(masked(pl.col("goal").str.strip_chars()))["goal"]
    scripted = templates.is_duplicated().sum() / asked.height > _SCRIPTED
    text = "goal" if scripted else "said"
    documents = (
        asked.group_by(pl.col(text).str.strip_chars().alias("text"))
        .agg(pl.col("session_id").min().alias("document"), pl.len().alias("n"))
        .sort("document")
    )
    words = document_words(documents)
    if not scripted:
        named = is_identifier(pl.col("word"))
        words = words.with_columns(pl.when(named).then(pl.col("n") + _NAMES_COUNT).otherwise(pl.col("n")).alias("n"))
    alike = pairs(weigh(words))
    if not scripted:
        alike = _without_strangers(alike, words)
    sizes = dict(documents.select("document", "n").iter_rows())
    if scripted:
        alike = _with_extended(_without_refilled(alike, documents), documents)
    groups = group(documents["document"].to_list(), alike, _SAME_SCRIPT if scripted else _SAME_REQUEST, sizes)
    of_document = pl.DataFrame({"document": list(groups), "request": list(groups.values())})
    of_text = documents.join(of_document, on="document").select("text", "request")
    return (
        asked.select("session_id", pl.col(text).str.strip_chars().alias("text"))
        .join(of_text, on="text")
        .select("session_id", "request")
    )


def _without_strangers(alike: pl.DataFrame, words: pl.DataFrame) -> pl.DataFrame:
    """Drop pairs in which both sides name things, but no thing that the other names."""
    names = words.filter(is_identifier(pl.col("word")) & ~pl.col("word").str.contains(" ")).select("document", "word")
    naming = names["document"].unique()
    shared = (
        names.join(names, on="word", suffix="_b")
        .filter(pl.col("document") < pl.col("document_b"))
        .select(pl.col("document").alias("a"), pl.col("document_b").alias("b"))
        .unique()
        .with_columns(pl.lit(True).alias("shared"))
    )
    both = pl.col("a").is_in(naming.implode()) & pl.col("b").is_in(naming.implode())
    return alike.join(shared, on=["a", "b"], how="left").filter(~both | pl.col("shared").is_not_null()).sort("a", "b")


def _without_refilled(alike: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Drop pairs of one template that hold other numbers or names: however long it is, they ask for other things."""
    filled = documents.select("document", masked(pl.col("text")).alias("template"))
    refilled = filled.join(filled, on="template", suffix="_b").select(
        pl.col("document").alias("a"), pl.col("document_b").alias("b")
    )
    return alike.join(refilled, on=["a", "b"], how="anti").sort("a", "b")


def _with_extended(alike: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Take a scripted text that begins with all of another one (a sentence was added) for the same as that."""
    ended = pl.col("text").str.to_lowercase().str.strip_chars_end(".!? ")
    text = documents.select("document", ended.alias("text")).sort("text", "document")
    follows = text.with_columns(pl.all().shift(1).name.suffix("_before")).filter(
        pl.col("text").str.starts_with(pl.col("text_before"))
    )
    extended = follows.select(
        pl.min_horizontal("document", "document_before").alias("a"),
        pl.max_horizontal("document", "document_before").alias("b"),
        pl.lit(ONE, dtype=pl.Int64).alias("likeness"),
    )
    return pl.concat([alike.join(extended, on=["a", "b"], how="anti"), extended]).sort("a", "b")
