"""Recorded sessions of a site in, the laws of its forms out: what each kind of posts does (`runtime/site/form_ledger.py`).

A kind of posts is a route and the names of its fields; hidden fields that always have one value tell kinds of one route apart.
Hidden ids that stand in the address of the page as well, or in which forms of a page differ, say which entity it is about. It
updates if the form, where somebody looks at it again before the next post, mostly shows what was posted; else it appends. It is
about the session alone if it has a password, or if the site asks for a login after it. Does not see: a form that no page
showed before it was posted, and what a post does to other entities.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from env_builder.runtime.site.form_ledger import APPEND, SESSION, UPDATE, FormLaw, ShownForm, forms_on, general, shown_form
from env_builder.runtime.site.routes import ID
from env_builder.site.recorded import SECRET, PageSession, asks_for_login, login_of

_PARTS = re.compile(r"[/_.-]")
_MOST_KINDS = 12
"""A hidden field with more values than that among a route's posts names entities, not kinds of work."""
Routing = Callable[[str, str], str | None]
"""(method, url) -> template of the path, None if the path has no route."""


class _Example(NamedTuple):
    """A post of the log."""

    route: str
    form: tuple[tuple[str, str], ...]
    shown: ShownForm | None
    again: ShownForm | None
    """The form as it is shown next."""
    is_session: bool
    keys: frozenset[str]
    """Hidden fields that name what the page is about, or tell its form from others like it on the page."""


def learn_laws(sessions: Iterable[PageSession], routing: Routing) -> list[FormLaw]:
    """Return the laws, in a fixed order."""
    by_route: dict[str, list[_Example]] = defaultdict(list)
    for session in sessions:
        for example in _examples(session, routing):
            by_route[example.route].append(example)
    laws = [law for route in sorted(by_route) for law in _laws(route, by_route[route])]
    return sorted(laws, key=lambda law: (law.route, sorted(law.constants.items()), sorted(law.names)))


def accepted(session: PageSession, index: int) -> bool:
    """Return whether a post was taken: it led on to a page that asks for no login, or to one that does not show it again."""
    request = session.requests[index]
    if request.status >= 400:
        return False
    if request.location:
        return session.lets_in(index) if login_of(request) is not None else not _asks_for_login(session, index + 1)
    page = session.page(index)
    names = [name for name, _ in request.form or ()]
    return page is not None and shown_form(page, request.url, request.url, names) is None


def form_before(session: PageSession, index: int) -> ShownForm | None:
    """Return the form of a post as the session last saw it."""
    request = session.requests[index]
    names = [name for name, _ in request.form or ()]
    for earlier in range(index - 1, -1, -1):
        page = session.page(earlier)
        if page is not None and (form := shown_form(page, session.requests[earlier].url, request.url, names)) is not None:
            return form
    return None


def _examples(session: PageSession, routing: Routing) -> Iterator[_Example]:
    for index, request in enumerate(session.requests):
        route = routing(request.method, request.url)
        if request.method != "POST" or route is None or not accepted(session, index):
            continue
        is_session = login_of(request) is not None or _asks_for_login(session, index + 1, offers=True)
        yield _Example(route, request.form or (), form_before(session, index), _form_after(session, index), is_session,
                       _keys(session, index))


def _keys(session: PageSession, index: int) -> frozenset[str]:
    """Return the names of hidden fields that may say which entity a post is about."""
    request = session.requests[index]
    values = dict(request.form or ())
    for earlier in range(index - 1, -1, -1):
        page, url = session.page(earlier), session.requests[earlier].url
        if page is None or (shown := shown_form(page, url, request.url, values)) is None:
            continue
        named = set(_PARTS.split(urlsplit(url).path)) | {value for _, value in parse_qsl(urlsplit(url).query)}
        alike = [each for each in forms_on(page, url) if each.url == shown.url and each.values.keys() == shown.values.keys()]
        return frozenset(name for name in shown.values.keys() - shown.visible if ID.fullmatch(values.get(name, "")) and (
            values[name] in named or len({each.values[name] for each in alike}) > 1))
    return frozenset()


def _form_after(session: PageSession, index: int) -> ShownForm | None:
    """Return the form as it is shown next, before anything else is posted to the address."""
    request = session.requests[index]
    names = [name for name, _ in request.form or ()]
    for later in range(index + 1, len(session.requests)):
        if session.requests[later].method == "POST":
            return None
        page = session.page(later)
        if page is not None and (form := shown_form(page, session.requests[later].url, request.url, names)) is not None:
            return form
    return None


def _asks_for_login(session: PageSession, begin: int, offers: bool = False) -> bool:
    """Return whether the first page from there on has a field for a password (`offers`: and earlier pages had none)."""
    for later in range(begin, len(session.requests)):
        page = session.page(later)
        if page is not None:
            return asks_for_login(page) and (not offers or begin > 1)
    return False


class _PostKind(NamedTuple):
    """Posts of one route that do the same work."""

    constants: dict[str, str]
    names: frozenset[str]
    visible: frozenset[str]
    open_names: frozenset[str]
    """Names of fields that never held a secret."""
    is_session: bool
    keys: frozenset[str]
    shows_again: Counter[bool]
    """How often the form showed next what was changed in it, and how often not."""


def _laws(route: str, examples: Sequence[_Example]) -> Iterator[FormLaw]:
    """Yield a law for each kind of posts of a route; kinds with the same visible fields share what shows that they update."""
    hidden = _kind_fields(examples)
    groups: dict[tuple[str | None, ...], list[_Example]] = defaultdict(list)
    for example in examples:
        values = dict(example.form)
        groups[tuple(values.get(name) for name in hidden)].append(example)
    kinds = [_post_kind(groups[key], {name: value for name, value in zip(hidden, key, strict=True) if value is not None})
             for key in sorted(groups, key=repr)]
    for kind in kinds:
        shows: Counter[bool] = Counter()
        for other in kinds:
            if other.visible == kind.visible:
                shows += other.shows_again
        effect = SESSION if kind.is_session else UPDATE if shows[True] > shows[False] else APPEND
        counted = kind.visible if effect == UPDATE else kind.open_names - kind.constants.keys()
        yield FormLaw(route, kind.names, kind.constants, counted - kind.keys, effect, kind.keys)


def _post_kind(group: Sequence[_Example], constants: dict[str, str]) -> _PostKind:
    shown = frozenset(general(name) for example in group if example.shown for name in example.shown.visible)
    names = frozenset(general(name) for example in group for name, _ in example.form)
    secret = {general(name) for example in group for name, value in example.form if value == SECRET}
    return _PostKind(constants, names, (shown or names) - secret, names - secret,
                     sum(example.is_session for example in group) * 2 > len(group), frozenset(
                         name for name, n in Counter(name for example in group for name in example.keys).items()
                         if 2 * n > len(group) and general(name) == name and name not in constants),
                     Counter(again for example in group if (again := _shows_again(example)) is not None))


def _kind_fields(examples: Sequence[_Example]) -> list[str]:
    """Return names of hidden fields that tell kinds of work apart, or always have one value: buttons, actions."""
    values: dict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        for name, value in example.form:
            is_visible = example.shown is not None and name in example.shown.visible
            if value and not is_visible and general(name) == name:
                values[name][value] += 1
    return [name for name, counts in sorted(values.items()) if SECRET not in counts and not any(map(_is_number, counts))
            and len(counts) <= min(_MOST_KINDS, counts.total() // 2)]


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _shows_again(example: _Example) -> bool | None:
    """Return whether the form shows next what was changed in it; None if nothing was changed or the form was not read again."""
    if example.shown is None or example.again is None:
        return None
    posted: dict[str, tuple[str, ...]] = {}
    for name, value in example.form:
        posted[name] = (*posted.get(name, ()), value)
    changed = [name for name in example.shown.visible if posted.get(name, ()) != example.shown.values.get(name, ())]
    if not changed:
        return None
    return sum(example.again.values.get(name, ()) == posted.get(name, ()) for name in changed) * 2 > len(changed)
