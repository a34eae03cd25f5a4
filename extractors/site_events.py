"""Tell events of web sites from calls of tools: pages, forms that answer with pages, and what other logs tell of the same.

In: events (`core.events`). Out: which of them belong to a site, and to none of an application's tools: pages, requests that a
page, a redirect or a file answered; access logs most of whose paths are paths of a site; clicks on a site's pages. An XHR with
JSON is a call of a tool as before. Without recorded pages nothing belongs to a site.
Does not see: an access log of a site that shares paths with another application; clicks without an address.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import polars as pl

_PAGE = '"type":"text/html"'
SHARE = 0.5
"""An access log of which so many paths are a site's is the site's."""


def of_sites(events: pl.DataFrame) -> pl.Series:
    """Return for each event whether it is part of a site."""
    is_page = (pl.col("kind") == "page") & pl.col("value").str.contains(_PAGE, literal=True)
    pages = events.filter(is_page.fill_null(False) & pl.col("service").is_not_null())
    if pages.is_empty():
        return pl.repeat(False, events.height, dtype=pl.Boolean(), eager=True)
    hosts = pages["service"].unique().sort().to_list()
    answered = pl.col("value").str.json_path_match("$.type").is_not_null() & pl.col("kind").is_in(["page", "request"])
    of_pages = events.select((pl.col("service").is_in(hosts) & answered).fill_null(False).alias("of"))["of"]
    addresses = "|".join(rf"://{re.escape(host)}(?:[:/\"?#]|$)" for host in hosts)
    states_one = pl.any_horizontal(pl.col(name).str.contains(addresses).fill_null(False) for name in ("arguments", "content"))
    clicks = events.select(((pl.col("kind") == "business") & states_one).alias("of"))["of"]
    paths = {urlsplit(tool.partition(" ")[2]).path for tool in events.filter(of_pages)["tool"].drop_nulls()}
    return of_pages | clicks | _of_access_logs(events, paths)


def _of_access_logs(events: pl.DataFrame, paths: set[str]) -> pl.Series:
    is_log = (pl.col("format") == "access_log") & (pl.col("kind") == "request")
    path = pl.col("tool").str.extract(r"^\S+ ([^?]*)")
    shares = events.filter(is_log).group_by("file_id").agg(path.is_in(sorted(paths)).mean().alias("share"))
    files = shares.filter(pl.col("share") >= SHARE)["file_id"].to_list()
    return events.select((is_log & pl.col("file_id").is_in(files)).fill_null(False).alias("of"))["of"]
