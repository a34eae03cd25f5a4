"""Answer a search from the answers to other searches of the same tool: `filter` rules (docs/behaviour.md).

In: a rule, arguments, and all answers of the tool in the state of the moment. Out: the elements that match, in their order, or
None. A search is answered only if earlier ones show all that it may find: one whose conditions all follow from those of the
new search, or several whose windows (dates, numbers) together cover its own. An answer as long as the longest may have been
cut: it shows all up to its last element, and only if the order is known.
Sees: conditions on fields of the elements, each with one argument. Does not see: elements that no search showed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, NamedTuple

from .caching import cached
from .canonical import canonical
from .lists import Listing, read, written
from .selections import OPERATORS, at, order

Rule = dict[str, Any]
Path = tuple[str, ...]
Paths = tuple[Path, ...]
Condition = tuple[str, Paths]
"""(operator, paths of the element of which one must meet it)."""
Key = tuple[int, Any, int]
"""A bound: -1, 0, 1 for below everything, at a value, above everything; the value; 1 if just above it."""
Bounds = tuple[Key, Key]
LOWEST, HIGHEST = (-1, "", 0), (1, "", 0)
DAY, MINUTE = len("2000-01-01"), len("2000-01-01 00:00")
AFTER_ALL = "\uffff"
"""Sorts above all that may follow a day."""


class AnsweredSearch(NamedTuple):
    """A question that was answered: the arguments that are given, and which elements it shows, in order."""

    given: dict[str, Any]
    places: list[int]
    content: str


def without_blanks(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without those that are null or an empty text: they restrict nothing."""
    return {name: value for name, value in arguments.items() if value not in (None, "")}


def elements_of(rule: Rule, content: str) -> Listing | None:
    """Return the elements that an answer shows, None if it is no such list and does not say that there is none."""
    if content == rule["empty"]:
        return Listing([], [], rule["form"])
    listing = read(content) if content[:1] in ("[", "{", "-") else None
    is_of_form = listing is not None and written(rule["form"], listing.values, listing.texts) == content
    return listing if is_of_form else None


class Collection:
    """All elements that the answers of a tool show in one state. Sets of elements are numbers, one bit for each."""

    def __init__(self, rule: Rule, answers: Iterable[tuple[dict[str, Any], str]]) -> None:
        self.rule = rule
        self.conditions: dict[str, list[Condition]] = {
            name: [(operator, tuple(map(tuple, paths))) for operator, paths in conditions]
            for name, conditions in rule["conditions"].items()}
        self.values: list[Any] = []
        self.texts: list[str] = []
        self._places: dict[str, int] = {}
        self._masks: dict[tuple[Condition, str], int] = {}
        self.removed = 0
        """Elements that write calls removed since the answers."""
        searches = (self._search(arguments, content) for arguments, content in answers)
        self.searches = [search for search in searches if search is not None]

    def _search(self, arguments: dict[str, Any], content: str) -> AnsweredSearch | None:
        listing = elements_of(self.rule, content)
        given = without_blanks(arguments)
        if listing is None or not given.keys() <= self.conditions.keys():
            return None
        names = listing.texts or list(map(canonical, listing.values))
        places = [self._places.setdefault(name, len(self._places)) for name in names]
        for place, value in zip(places, listing.values, strict=True):
            if place == len(self.values):
                self.values.append(value)
                self.texts += listing.texts[places.index(place):][:1]
        return AnsweredSearch(given, places, content) if len(set(places)) == len(places) else None

    @cached_property
    def everything(self) -> int:
        return (1 << len(self.values)) - 1

    def mask(self, condition: Condition, given: Any) -> int:
        """Return the elements that meet a condition."""
        name = condition, canonical(given)
        if name not in self._masks:
            operator, paths = condition
            if operator == "words":  # each somewhere
                words = given.casefold().split() if isinstance(given, str) else []
                parts = (self.mask(("part_folded", paths), word) for word in words)
                self._masks[name] = reduce(int.__and__, parts, self.everything if words else 0)
            elif len(paths) > 1:
                self._masks[name] = reduce(int.__or__, (self.mask((operator, (path,)), given) for path in paths))
            else:
                holds = MATCHING[operator]
                self._masks[name] = sum(1 << place for place, value in enumerate(self.values) if holds(
                    at(value, list(paths[0])) if paths else value, given))
        return self._masks[name]

    def certain(self, name: str, given: Any) -> tuple[int, int]:
        """Return the elements that surely meet the condition on an argument, and those that may."""
        conditions = self.conditions[name]
        if _key(given) is None and any(operator in BOUNDS for operator, _ in conditions):
            return 0, self.everything
        masks = [self.mask(condition, given) for condition in conditions]
        return (reduce(int.__and__, masks), reduce(int.__or__, masks)) if masks else (0, self.everything)

    def select(self, given: dict[str, Any], skip: AnsweredSearch | None = None) -> list[int] | None:
        """Return what a search finds, None if other searches do not show all of it. `skip`: one that does not count."""
        others = [search for search in self.searches if search is not skip]
        for search in others:
            if self._is_complete(search) and self._follows(search.given, given, None):
                places = self._matching(search, given)
                arranged = None if places is None else self.arranged(places, search.places)
                if arranged is not None:
                    return self._cut(arranged)
        return next((places for path in self._windows for places in [self._within_windows(path, given, others)]
                     if places is not None), None)

    def _is_complete(self, search: AnsweredSearch) -> bool:
        most: int = self.rule["most"]
        return len(search.places) < most

    def _cut(self, places: list[int]) -> list[int] | None:
        most: int = self.rule["most"]
        return places[:most] if self.rule["cuts"] or len(places) <= most else None

    def _follows(self, wide: dict[str, Any], narrow: dict[str, Any], window: Path | None) -> bool:
        """Return whether what the narrow search finds the wide one finds too, but for conditions on the window."""
        return all(self._window_of(name) == (window,) or (name in narrow and (
            canonical(narrow[name]) == canonical(value) or self._implies(name, narrow[name], value)))
            for name, value in wide.items())

    def _implies(self, name: str, narrow: Any, wide: Any) -> bool:
        return bool(self.conditions[name]) and all(
            implies(operator, narrow, wide) for operator, _ in self.conditions[name])

    def _window_of(self, name: str) -> tuple[Path | None, ...]:
        """Return the path that an argument bounds, in a tuple; an empty one if it is no bound or this is not sure."""
        conditions = self.conditions[name]
        paths = {paths[0] for operator, paths in conditions if operator in BOUNDS}
        is_bound = len(paths) == 1 and all(operator in BOUNDS for operator, _ in conditions)
        return tuple(paths) if is_bound else ()

    @cached_property
    def _windows(self) -> list[Path]:
        """Return the paths whose windows are searched: those that arguments bound, and the one of the order."""
        bounded = {path for name in self.conditions for path in self._window_of(name) if path is not None}
        return sorted(bounded | {tuple(path) for path, _ in self.rule["orders"][:1]})

    def _matching(self, search: AnsweredSearch, given: dict[str, Any]) -> list[int] | None:
        """Return the elements of a search that meet all conditions, None if of one of them nobody can say."""
        sure = possible = sum(1 << place for place in search.places)
        for name, value in given.items():
            if name not in search.given or canonical(search.given[name]) != canonical(value):
                certain, may = self.certain(name, value)
                sure, possible = sure & certain, possible & may
        sure, possible = sure & ~self.removed, possible & ~self.removed
        return [place for place in search.places if sure >> place & 1] if sure == possible else None

    def remove(self, removed: Iterable[tuple[str, str]]) -> None:
        """Leave out the elements that have one of these values: (field, value)."""
        pairs = set(removed)
        self.removed = sum(1 << place for place, value in enumerate(self.values) if any(
            isinstance(value, dict) and field in value and str(value[field]) == text for field, text in pairs))

    def arranged(self, places: list[int], listed: list[int] | None = None) -> list[int] | None:
        """Return the elements in order, None if it is not known. `listed`: elements in an order that was seen."""
        orders = [(list(path), descending) for path, descending in self.rule["orders"]]
        if not orders:
            is_listed = len(places) < 2 or (listed is not None and self.rule["listed"])
            return places if is_listed else None
        path, descending = orders[0]
        try:
            ordered = sorted(places, key=lambda place: at(self.values[place], path), reverse=descending)
            is_sure = all(self._precedes(one, other, orders) for one, other in pairwise(ordered))
        except TypeError:
            return None
        return ordered if is_sure else places if listed is not None and self.rule["listed"] else None

    def _precedes(self, one: int, other: int, orders: list[tuple[list[str], bool]]) -> bool:
        pairs = [(at(self.values[one], path), at(self.values[other], path)) for path, _ in orders]
        strict = all(first > second if descending else first < second
                     for (first, second), (_, descending) in zip(pairs, orders, strict=True))
        return strict or (self.rule["listed"] and (one, other) in self.pairs and (other, one) not in self.pairs)

    @cached_property
    def pairs(self) -> set[tuple[int, int]]:
        """Return which element was seen before which other one."""
        return {(one, other) for search in self.searches
                for index, one in enumerate(search.places) for other in search.places[index + 1:]}

    def _within_windows(self, path: Path, given: dict[str, Any], others: list[AnsweredSearch]) -> list[int] | None:
        """Return what a search finds that others show together: their windows on the path cover its own."""
        own = self._bounds(given, path, max_low=False)
        used: list[AnsweredSearch] = []
        places: dict[int, None] = {}
        for search in others:
            matching = self._matching(search, given) if self._follows(search.given, given, path) else None
            if matching is not None:
                used.append(search)
                places |= dict.fromkeys(matching)
        arranged = self.arranged(list(places)) if own is not None and used else None
        selected = None if arranged is None else self._cut(arranged)
        if own is None or selected is None:
            return None
        last = None
        if selected and self.rule["cuts"] and len(selected) == self.rule["most"] and self._order_path == path:
            last = selected[-1]  # what comes after it does not matter
            end = self._at(last, path)
            if end is not None:
                own = (max(own[0], end[0]), own[1]) if self._is_descending else (own[0], min(own[1], end[1]))
        windows = [bounds for search in used for bounds in [self._shown_bounds(search, path, last)] if bounds is not None]
        return selected if _cover(windows, own) else None

    @property
    def _order_path(self) -> Path | None:
        orders = self.rule["orders"]
        return tuple(orders[0][0]) if len(orders) == 1 else None

    @property
    def _is_descending(self) -> bool:
        return bool(self.rule["orders"][0][1])

    def _bounds(self, given: dict[str, Any], path: Path, max_low: bool) -> Bounds | None:
        """Return the window of a search: the narrowest (`max_low`) or the widest that its conditions may mean."""
        low, high = LOWEST, HIGHEST
        for name, value in given.items():
            if self._window_of(name) != (path,):
                continue
            key = _key(value)
            if key is None:
                return None
            each = [_bounds(operator, key) for operator, _ in self.conditions[name]]
            lows, highs = [bounds[0] for bounds in each], [bounds[1] for bounds in each]
            low = max(low, max(lows) if max_low else min(lows))
            high = min(high, min(highs) if max_low else max(highs))
        return low, high

    def _shown_bounds(self, search: AnsweredSearch, path: Path, last: int | None) -> Bounds | None:
        """Return the window in which a search shows all there is: one that was cut up to its last element, if that is `last`
        with it, as what was cut comes after it even in a tie."""
        bounds = self._bounds(search.given, path, max_low=True)
        if bounds is None or self._is_complete(search):
            return bounds
        end = self._at(search.places[-1], path) if self._order_path == path else None
        if end is None:
            return None
        is_last = search.places[-1] == last and self.rule["listed"]
        if self._is_descending:
            return max(bounds[0], end[0] if is_last else end[1]), bounds[1]
        return bounds[0], min(bounds[1], end[1] if is_last else end[0])

    def _at(self, place: int, path: Path) -> Bounds | None:
        """Return the window of an element's own value on the path."""
        key = _key(at(self.values[place], list(path)))
        return None if key is None else _bounds("is", key)

    def written(self, places: list[int]) -> str:
        """Return the answer that shows these elements."""
        if not places and self.rule["empty"] is not None:
            return str(self.rule["empty"])
        texts = [self.texts[place] for place in places] if self.texts else []
        return written(self.rule["form"], [self.values[place] for place in places], texts)


def filtered(
    rule: Rule, arguments: dict[str, Any], answers: Iterable[tuple[dict[str, Any], str]],
    removed: Iterable[tuple[str, str]] = (),
) -> str | None:
    """Return the answer to a search, None if the answers to others do not tell it. `removed`: (field, value) of elements
    that write calls removed since."""
    given = without_blanks(arguments)
    if sorted(given) not in rule["names"] or any(foreign_characters(value, rule["characters"][name])
                                                 for name, value in given.items()):
        return None
    try:
        collection = Collection(rule, answers)
        collection.remove(removed)
        places = collection.select(given)
    except TypeError:  # values that do not compare
        return None
    return None if places is None or bool(places) not in rule["finds"] else collection.written(places)


def foreign_characters(value: Any, usual: str) -> bool:
    """Return whether a text has a character, no letter or digit, that may mean something of its own in a search."""
    return isinstance(value, str) and any(not character.isalnum() and character not in usual for character in value)


def _key(value: Any) -> Any:
    """Return a number, or a date or an instant as text in one notation; None for anything else."""
    ordered = order(value)
    if ordered is None:
        return None
    return str(ordered[1]).replace("T", " ") if ordered[0] else ordered[1]


def _instant(text: str) -> str:
    """Return the beginning of a day or a minute as an instant."""
    return text + " 00:00:00" if len(text) == DAY else text + ":00" if len(text) == MINUTE else text


def _bounds(operator: str, key: Any) -> Bounds:
    """Return the window that a condition leaves open."""
    last = key + AFTER_ALL if isinstance(key, str) else key
    exact = _instant(key) if isinstance(key, str) else key
    return {
        "from": ((0, key, 0), HIGHEST), "above": ((0, last, 1), HIGHEST), "until": (LOWEST, (0, last, 1)),
        "upto": (LOWEST, (0, exact, 1)), "below": (LOWEST, (0, key, 0)), "is": ((0, key, 0), (0, exact, 1))}[operator]


def _cover(windows: list[Bounds], own: Bounds) -> bool:
    """Return whether the windows leave no gap in this one."""
    reached = own[0]
    for low, high in sorted(windows):
        if low <= reached:
            reached = max(reached, high)
    return reached >= own[1]


@cached(4096)
def _folded_words(text: str) -> tuple[str, ...]:
    return tuple(text.casefold().split())


def _are_inside(narrow: Any, wide: Any) -> bool:
    return isinstance(narrow, str) and isinstance(wide, str) and all(
        any(word in other for other in _folded_words(narrow)) for word in _folded_words(wide))


def _is_within(operator: str) -> Callable[[Any, Any], bool]:
    def within(narrow: Any, wide: Any) -> bool:
        one, other = _key(narrow), _key(wide)
        if one is None or other is None or isinstance(one, str) != isinstance(other, str):
            return False
        (low, high), (lowest, highest) = _bounds(operator, one), _bounds(operator, other)
        return low >= lowest and high <= highest

    return within


def implies(operator: str, narrow: Any, wide: Any) -> bool:
    """Return whether whatever meets a condition on one value meets that on another."""
    return operator == "ignored" or (operator in IMPLIED and IMPLIED[operator](narrow, wide))


BOUNDS = ("from", "until", "upto", "above", "below")
IMPLIED: dict[str, Callable[[Any, Any], bool]] = {
    **{operator: OPERATORS[operator] for operator in ("is_folded", "starts", "part", "part_folded")}, "words": _are_inside,
    **{operator: _is_within(operator) for operator in BOUNDS}}


def _upto(there: Any, given: Any) -> bool:
    one, other = _key(there), _key(given)
    if one is None or other is None or isinstance(one, str) != isinstance(other, str):
        return False
    return bool(_instant(one) <= _instant(other)) if isinstance(one, str) else bool(one <= other)


MATCHING: dict[str, Callable[[Any, Any], bool]] = {
    **{name: holds for name, holds in OPERATORS.items() if name != "anywhere"},
    "upto": _upto, "ignored": lambda there, given: True}
"""How the value at a path is compared; `words` is put together of `part_folded`."""
