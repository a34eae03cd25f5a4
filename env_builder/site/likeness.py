"""Places of pages of one path in, which of them are alike: a page that is shown again under another query, as after a form.

For each place of a route, and each other route whose pages have the same paths, the place is alike that had the same value most
often when the path was looked at before; of several the one whose way from the root is most similar. Ages in words count as
they are now. Abstains where no place had the same value in half of the looks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from env_builder.runtime.site.sources import ABSENT, SourceContext
from env_builder.runtime.site.visits import KIND, Place, SiteVisit, Value

__all__ = ["like_places"]

_LEAST, _SHARE = 2, 0.5
_AGO = 3
"""Routes of a path of which the last look is compared."""


def like_places(visits: Iterable[tuple[SiteVisit, SourceContext]]) -> dict[tuple[str, Value, Place], dict[str, Place]]:
    """Return for each place of a route's answers of a kind the places alike of other routes, by route, and its own."""
    votes: dict[tuple[str, Value, Place], dict[str, Counter[Place]]] = defaultdict(lambda: defaultdict(Counter))
    n_looks: Counter[tuple[str, Value, str]] = Counter()
    for visit, context in visits:
        looked: set[str] = set()
        for look in context.pages_of_path():
            if look.route == visit.route or look.route in looked:
                continue
            looked.add(look.route)
            n_looks[visit.route, visit.kind, look.route] += 1
            of_value: dict[Value, list[Place]] = defaultdict(list)
            for place in look.values:
                if place != KIND and (value := context.shown(look, place)) != ABSENT:
                    of_value[value].append(place)
            for place, value in visit.values.items():
                votes[visit.route, visit.kind, place][look.route].update(of_value.get(value, ()) if place != KIND else ())
            if len(looked) == _AGO:
                break
    alike: dict[tuple[str, Value, Place], dict[str, Place]] = {}
    for (route, kind, place), by_route in votes.items():
        nearest = {other: max(counted, key=lambda each: (counted[each], _similarity(place, each), each))
                 for other, counted in by_route.items() if counted
                 and max(counted.values()) >= max(_LEAST, _SHARE * n_looks[route, kind, other])}
        for other, each in nearest.items():
            alike.setdefault((route, kind, place), {route: place})[other] = each
    kinds = {(route, place): kind for route, kind, place in votes}
    for (route, _, place), others in list(alike.items()):   # what is alike one way is alike the other way
        for other, each in others.items():
            if (other, each) in kinds:
                alike.setdefault((other, kinds[other, each], each), {other: each}).setdefault(route, place)
    return alike


def _similarity(one: Place, other: Place) -> int:
    """Return how many steps two ways have in common, from either end."""
    steps, others = one.split("/"), other.split("/")
    ends = 0
    for own, each in zip(reversed(steps), reversed(others), strict=False):
        if own != each:
            break
        ends += 1
    return ends + sum(own == each for own, each in zip(steps, others, strict=False))
