"""Requests of a site in, the names in queries out whose values choose the page: `?page=card&id=7` and `?page=list`.

In: what was requested on each path, and the pages that came back. Out: (template of a path, name). A name chooses if its values
are few words, and the pages of each value have several elements in common that no page of another value has; of forms that
are posted there, fields. Sees: tags, classes, names and ids of elements. Does not see: a page that was requested once, and a
query that chooses by a number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from env_builder.runtime.site.routes import SELECTS, SiteRoutes
from env_builder.runtime.site.trees import Element

_MOST = 24
"""A name with more values than that is no choice of pages."""
_LEAST, _SHARE = 4, 0.8
"""Elements that pages of one value alone have in common, and the share of requests whose value was met more than once."""
_TELLING = ("class", "id", "name")
_WORD = re.compile(r"[A-Za-z_][\w.@-]{0,39}")
_DIGITS = re.compile(r"\d+")


class SelectedRequest(NamedTuple):
    """A request, and what tells its page from others."""

    method: str
    url: str
    marks: frozenset[str]
    """Elements of the page that came back to a GET; fields of a form that was posted."""


def page_marks(page: Element) -> frozenset[str]:
    """Return what the elements of a page are, without their texts and numbers."""
    return frozenset(_DIGITS.sub("#", " ".join((each.tag, *(each.attributes.get(name, "") for name in _TELLING))))
                     for each in page.elements())


def selecting_names(templates: dict[str, str], requests: Iterable[SelectedRequest]) -> dict[str, str]:
    """Return an entry for each name that chooses, as `SiteRoutes` takes them with the templates of paths."""
    if any(SELECTS in each for each in templates):
        return {}   # they were given with their names
    routes = SiteRoutes(templates)
    met: dict[tuple[str, str, str], dict[str, list[frozenset[str]]]] = defaultdict(lambda: defaultdict(list))
    for method, url, marks in requests:
        route = routes.route(method, url) if marks else None
        if route is not None:
            for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True):
                met[route.path, name, method][value].append(marks)
    return {f"{path}{SELECTS}{name}": "" for (path, name, method), values in sorted(met.items())
            if _chooses(values, 1 if method == "POST" else _LEAST)}


def _chooses(values: dict[str, list[frozenset[str]]], least: int) -> bool:
    often = {value: marks for value, marks in values.items() if len(marks) > 1}
    n_often, n_all = (sum(map(len, each.values())) for each in (often, values))
    if len(often) <= 1 or len(values) > _MOST or n_often < _SHARE * n_all or not all(map(_WORD.fullmatch, values)):
        return False
    return all(_is_apart(marks, [each for other, own in often.items() if other != value for each in own], least)
               for value, marks in often.items())


def _is_apart(own: Sequence[frozenset[str]], others: Sequence[frozenset[str]], least: int) -> bool:
    """Return whether pages have enough in common that none of the others has."""
    return len(frozenset.intersection(*own) - frozenset().union(*others)) >= least
