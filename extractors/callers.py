"""Who calls, as an argument: of requests whose outcome hangs on the one who makes them, which their own arguments do not say.

In: requests with the tool that each asks for, and its arguments. Out: the same; those of such tools with one argument more.
A request that changes something hangs on its caller where most callers are things of the application themselves: other requests
ask for them by the same name, or the answer names them. One that reads does where the same question gets each caller an answer
that names the one who asks. Sees: the identity as the log writes it, answers with bodies. Does not see: a caller whom the
application knows by another name than the log.
"""

from __future__ import annotations

import orjson
import polars as pl

from extractors.formats.overlap import canonical

READS = ("GET", "HEAD", "OPTIONS")
CALLER = "caller"
MINIMUM_CALLERS = 3
MOSTLY = 0.5
NEARLY = 0.8
_BODY = '"body":'
"""An answer without a body tells nothing of who asked."""
_TEXTS = r'"[^"\\]+"'


def told(requests: pl.DataFrame) -> pl.DataFrame:
    """Requests in which the caller is an argument where the outcome hangs on it."""
    known = requests.filter(
        pl.col("name").is_not_null() & pl.col("_merged").is_not_null() & pl.col("value").str.contains(_BODY, literal=True))
    tools = [*_acting(known), *_reading(known)] if known.height else []
    if not tools:
        return requests
    asked = known.filter(pl.col("_tool").is_in(tools)).select("_tool", "_merged", "name").unique(maintain_order=True)
    merged = [_with(arguments, name) for arguments, name in asked.select("_merged", "name").iter_rows()]
    whole = asked.with_columns(
        pl.Series("_whole", merged, pl.String()), pl.Series("_sorted", [canonical(text) for text in merged], pl.String()))
    return requests.join(whole, on=["_tool", "_merged", "name"], how="left", maintain_order="left").with_columns(
        pl.coalesce("_whole", "_merged").alias("_merged"), pl.coalesce("_sorted", "_canonical").alias("_canonical"),
    ).drop("_whole", "_sorted")


def _acting(requests: pl.DataFrame) -> list[str]:
    """Tools that change something, most callers of which are things of the application."""
    acts = requests.filter(~pl.col("_method").is_in(READS)).with_columns(_quoted().alias("_who"))
    if acts.is_empty():
        return []
    asked = requests.filter(pl.col("_merged") != "{}")["_merged"].unique().str.extract_all(_TEXTS).explode().unique()
    things = acts["_who"].unique()
    named = things.filter(things.is_in(asked.implode()))
    known = pl.col("_who").is_in(named.implode()) | pl.col("value").str.contains(pl.col("_who"), literal=True)
    said = pl.col("_merged").str.contains(pl.col("_who"), literal=True)
    return _tools(acts, known.mean() >= MOSTLY, said.mean() < MOSTLY)


def _reading(requests: pl.DataFrame) -> list[str]:
    """Tools that read, and tell everybody who asks the same of themselves."""
    asked = ["_tool", "_canonical"]
    reads = requests.filter(pl.col("_method").is_in(READS)).with_columns(_quoted().alias("_who"))
    shared = reads.filter(pl.col("name").n_unique().over(asked) >= MINIMUM_CALLERS)
    told_ = pl.col("value").str.contains(pl.col("_who"), literal=True)
    return _tools(shared, told_.mean() >= NEARLY)


def _tools(requests: pl.DataFrame, *when: pl.Expr) -> list[str]:
    enough = pl.col("name").n_unique() >= MINIMUM_CALLERS
    found = requests.group_by("_tool").agg(pl.all_horizontal(enough, *when).alias("hangs"))
    return sorted(found.filter("hangs")["_tool"])


def _quoted() -> pl.Expr:
    return pl.format('"{}"', "name")


def _with(arguments: str, name: str) -> str:
    """The arguments, and who calls; a name that is taken gets its place in front."""
    merged = orjson.loads(arguments)
    own = f"request_{CALLER}" if CALLER in merged else CALLER
    return orjson.dumps({**merged, own: name}).decode()
