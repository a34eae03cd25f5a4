"""Text to words, and which words name a thing.

Sees: letters and digits of any script, lower-cased. Does not see: word order beyond neighbours, spelling, meaning.
"""

from __future__ import annotations

import polars as pl

WORD = r"[\p{L}\p{N}](?:[\p{L}\p{N}_@./:'’#-]*[\p{L}\p{N}])?"
"""A word: letters and digits, with the punctuation that ids, addresses and instants hold inside."""

IDENTIFIER = r"^[\p{L}\p{N}_@./:#-]*\p{N}[\p{L}\p{N}_@./:#-]*$"
"""A word with a digit in it; together with `IDENTIFIER_LENGTH` it may name one thing."""

IDENTIFIER_LENGTH = 5
"""Shorter words with digits are mostly counts, hours and prices."""

_MEASURE = r"^(?:-?\p{N}+[.,]\p{N}+|\p{N}{4}-\p{N}{2}-\p{N}{2}.*|\p{N}{1,2}[:/.]\p{N}{1,2}.*)$"
"""Decimal numbers, dates and times of day have digits, but name nothing."""


def is_identifier(word: pl.Expr) -> pl.Expr:
    """Whether a word looks like the name of one thing: a digit in it, and no shorter than `IDENTIFIER_LENGTH`."""
    return (word.str.len_chars() >= IDENTIFIER_LENGTH) & word.str.contains(IDENTIFIER) & ~word.str.contains(_MEASURE)


def split_words(text: pl.Expr) -> pl.Expr:
    """Lower-cased words of a text, in order, as a list column."""
    return text.str.to_lowercase().str.extract_all(WORD)


def masked(text: pl.Expr) -> pl.Expr:
    """The text lower-cased with every word that holds a digit replaced by `0`: what is left is the kind of request."""
    return text.str.to_lowercase().str.replace_all(r"[\p{L}\p{N}_@.#-]*\p{N}[\p{L}\p{N}_@.#-]*", "0")


def document_words(documents: pl.DataFrame, text: str = "text", document: str = "document") -> pl.DataFrame:
    """Words and pairs of neighbouring words of each document, counted: columns document, word, n."""
    listed = documents.select(document, split_words(pl.col(text)).alias("word")).explode("word").drop_nulls("word")
    follows = pl.col(document) == pl.col(document).shift(-1)
    neighbours = listed.with_columns((pl.col("word") + " " + pl.col("word").shift(-1)).alias("word")).filter(
        follows.fill_null(False))
    return pl.concat([listed, neighbours]).group_by(document, "word").agg(pl.len().alias("n")).sort(document, "word")
