"""Learn which phrases of a site may be exchanged as wholes: titles of what links lead to, and what asks gave people to type.

In: sessions of pages, routes, asks and messages, values that asks gave by field, texts of templates, words that are exchanged
by themselves. Out: classes of phrases of several words: names of links to entities of one route in one kind of element, and
texts that one field was sent; classes with a phrase in common are one. A name of many entities says what the link does.
Phrases of a class hold the same ones of the words that people searched: a search finds as much as before.
Abstains: from phrases that templates hold, that hold a word which is exchanged by itself, that stand in the address too, and
of which somebody wrote a part.
Does not see: phrases with signs that are escaped somewhere, as quotes are.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import parse_qsl, urljoin, urlsplit

from env_builder.runtime.phrases import is_phrase, separable
from env_builder.runtime.site.layout import step_of
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.runtime.site.trees import Element
from env_builder.site.recorded import PageSession

_MOST_SHARED = 0.1
"""Of the entities of a route, those that one name may lead to, or three."""
_LEAST_SHARED, _PART_LETTERS, _SOUGHT_LETTERS = 3, 7, 4
"""... entities; letters of two words in a row, and of a word that was searched, which are a part of a phrase."""
_MOST_PHRASES = 600
"""Of one site; the others stay."""
_NO_WORD = re.compile(r"[^a-z0-9]+")
_WORD = re.compile(r"[^\W\d_]{3,}")


class KnownTexts(NamedTuple):
    """What people wrote, and what a site says by itself."""

    texts: Sequence[str]
    """Asks and messages."""
    values_of_asks: Mapping[str, Iterable[str]]
    """By field, values that asks gave."""
    constants: set[str]
    """Texts of templates."""
    words: set[str]
    """Words that are exchanged by themselves."""


def learn_phrases(sessions: Sequence[PageSession], routes: SiteRoutes, written: KnownTexts) -> list[set[str]]:
    """Return the classes."""
    groups = [{text for text in map(_core, values) if is_phrase(text)} for _, values in sorted(written.values_of_asks.items())]
    groups += _names_of_entities(sessions, routes)
    groups = [{text for text in group if text not in written.constants and written.words.isdisjoint(_words(text))}
              for group in groups]
    titles = {text for group in groups for text in group}
    phrases = separable(titles)
    queries = _queries(sessions)
    phrases -= set(_written_in_part(titles, [*written.texts, *(value for value in queries if " " in value)]))
    chosen = set(sorted(phrases)[:_MOST_PHRASES])
    searched = frozenset(
        word for value in queries if " " not in value for word in _words(value) if len(word) >= _SOUGHT_LETTERS)
    classes: dict[tuple[int, frozenset[str]], set[str]] = defaultdict(set)
    for number, group in enumerate(_joined([group & chosen for group in groups])):
        for text in group:
            classes[number, searched.intersection(_words(text))].add(text)
    return list(classes.values())


def _names_of_entities(sessions: Sequence[PageSession], routes: SiteRoutes) -> list[set[str]]:
    """Return the names of links to the entities of a route that stand in one kind of element, but for those of many."""
    entities: dict[tuple[str, str], dict[str, set[tuple[str, ...]]]] = defaultdict(lambda: defaultdict(set))
    addressed: set[str] = set()
    """Names that stand in the address, too."""
    about: dict[str, tuple[str, tuple[str, ...]] | None] = {}
    for session in sessions:
        for place, request in enumerate(session.requests):
            page = session.page(place) if request.status < 400 else None
            for parent, element in _links(page) if page is not None else ():
                name = _core(_shown(element))
                if is_phrase(name):
                    path = urlsplit(urljoin(request.url, element.attributes["href"])).path
                    if _NO_WORD.sub("-", name.lower()) in _NO_WORD.sub("-", path.lower()):
                        addressed.add(name)
                    if path not in about:
                        about[path] = _about(routes, path)
                    target = about[path]
                    if target is not None:
                        entities[target[0], step_of(parent)][name].add(target[1])
    groups = []
    for _, names in sorted(entities.items()):
        n_entities = len(set().union(*names.values()))
        groups.append({name for name, own in names.items() if len(own) <= max(_LEAST_SHARED, _MOST_SHARED * n_entities)
                       and len(own) < n_entities and name not in addressed})
    return groups


def _links(page: Element) -> Iterator[tuple[Element, Element]]:
    """Yield the links of a page, each with what it stands in."""
    for parent in page.elements():
        for child in parent.children:
            if isinstance(child, Element) and child.tag == "a" and "href" in child.attributes:
                yield parent, child


def _about(routes: SiteRoutes, path: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the template of a path and the entity that it names; None: none."""
    route = routes.route("GET", path or "/")
    values = tuple(routes.parameters(route, path).values()) if route is not None else ()
    return (route.path, values) if route is not None and values else None


def _core(text: str) -> str:
    """Return a text without signs at its ends."""
    return text.strip(" \t\n.,:;!?()-…\"'")


def _shown(element: Element) -> str:
    texts = [child for each in element.elements() for child in each.children if isinstance(child, str)]
    return " ".join(" ".join(texts).split())


def _queries(sessions: Sequence[PageSession]) -> set[str]:
    """Return the values of queries."""
    return {" ".join(value.split()) for session in sessions for request in session.requests if "?" in request.url
            for _, value in parse_qsl(urlsplit(request.url).query)}


def _written_in_part(phrases: set[str], texts: Iterable[str]) -> Iterator[str]:
    """Yield phrases of which a part was written without the whole; what several have says which one nowhere."""
    whole = re.compile("|".join(re.escape(each) for each in sorted(phrases, key=lambda each: (-len(each), each))) or r"(?!)",
                       re.IGNORECASE)
    parts = {part for text in texts for part in _parts(whole.sub("\n", text))}
    counts = Counter(part for phrase in phrases for part in set(_parts(phrase)))
    telling = {part for part in parts if counts[part] < _LEAST_SHARED}
    yield from (phrase for phrase in phrases if not telling.isdisjoint(_parts(phrase)))


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield words in a row that are long enough to mean something."""
    for line in text.splitlines():
        yield from ((one, other) for one, other in pairwise(_words(line)) if len(one) + len(other) >= _PART_LETTERS)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _joined(groups: Iterable[set[str]]) -> list[set[str]]:
    """Return the groups, those that share a phrase as one."""
    joined: list[set[str]] = []
    for group in groups:
        apart = [each for each in joined if each.isdisjoint(group)]
        joined = [*apart, group.union(*(each for each in joined if not each.isdisjoint(group)))]
    return joined
