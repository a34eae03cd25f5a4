"""What of a page is right, and what a person could do next: places, links and forms, unrecorded walks.

A place is a text or an attribute of a page, by the tags above it; the rows of a table (`tr`), of a list (`li`) and the options
of a choice are one place together. A value is each text and attribute, those in rows too. Answers may mark places as unknown:
the element has `data-unknown`, which names the attributes that it lacks, `text` or `rows`. A next step is the request that a
person made from a page: by a link (its address) or a form (its address, its method and the names of its fields).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urljoin, urlsplit

from browser_pages import MASK, SiteAnswer
from browser_replay import SiteRequest

from env_builder.runtime.site.trees import Element, encode

UNKNOWN = "data-unknown"
_ROW_MARK = f"{UNKNOWN} rows"
_ROWS = frozenset({"tr", "li", "option"})
_FIELDS = ("input", "select", "textarea", "button")
_NUMBER = re.compile(r"\d{2,}")


class PlaceCounts(NamedTuple):
    """Places or values of pages: all, right, and wrong or missing without a mark."""

    n_all: int
    n_right: int
    n_unmarked: int


class Offer(NamedTuple):
    """What a page offers to request; of a link no fields."""

    method: str
    address: str
    fields: frozenset[str] | None = None


def count_places(recorded: Element, answered: Element | None, *, in_rows: bool) -> PlaceCounts:
    """Return how many places (`in_rows`: values) of a recorded page are answered right, in order; a surplus one is wrong.

    A mark of rows covers what is missing or surplus between these rows and what differs in them, another mark one place."""
    right = [place[:2] for place in _places(recorded, in_rows)]
    marked = list(_places(answered, in_rows)) if answered is not None else []
    answer = [place[:2] for place in marked]
    n_same = 0
    while n_same < min(len(right), len(answer)) and right[n_same] == answer[n_same]:
        n_same += 1
    matcher = SequenceMatcher(None, right[n_same:], answer[n_same:], False)
    n_all = n_right = n_same
    n_unmarked = 0
    for name, begin, end, own_begin, own_end in matcher.get_opcodes():
        block = marked[n_same + own_begin:n_same + own_end]
        n_places = max(end - begin, sum(value != _ROW_MARK for _, value, _ in block))
        n_all += n_places
        if name == "equal":
            n_right += n_places
        elif not any(is_covered or value == _ROW_MARK for _, value, is_covered in block):
            n_unmarked += max(n_places - sum(value.startswith(UNKNOWN) for _, value, _ in block), 0)
    return PlaceCounts(n_all, n_right, n_unmarked)


def place_values(page: Element) -> list[str]:
    """Return what stands in the places of a page, rows as JSON."""
    return [value for _, value, _ in _places(page, False)]


def _places(root: Element, in_rows: bool) -> Iterator[tuple[str, str, bool]]:
    """Yield the place of each text and attribute, its value, and whether it stands in a row that is marked."""
    waiting: list[tuple[Element | str, str, bool]] = [(root, "", False)]
    while waiting:
        node, path, is_covered = waiting.pop()
        if isinstance(node, str):
            yield path, node, is_covered
            continue
        marks = node.attributes.get(UNKNOWN, "").split()
        is_covered |= "row" in marks
        below = f"{path}/{node.tag}"
        yield from ((f"{below}@{name}", value, is_covered) for name, value in node.attributes.items() if name != UNKNOWN)
        yield from ((f"{below}@{mark}", f"{UNKNOWN} {mark}", False) for mark in marks if mark not in ("row", "rows"))
        if not in_rows and any(isinstance(child, Element) and child.tag in _ROWS for child in node.children):
            text = encode(node.children)
            yield f"{below}/rows", text, is_covered or UNKNOWN in text or "rows" in marks
            continue
        children = [child for child in node.children if not (marks and _is_unknown(child))]
        if "rows" in marks:   # a mark between all children, so that it stands next to each that is missing or surplus
            children = [each for child in children for each in (_ROW_MARK, child)] + [_ROW_MARK]
        waiting += [(child, below, is_covered) for child in reversed(children)]


def _is_unknown(node: Element | str) -> bool:
    """Return whether a node does nothing but say that something is unknown."""
    while isinstance(node, Element) and len(node.children) == 1 and not node.attributes:
        node = node.children[0]
    return node == "[unknown]"


def offers_of(page: Element, url: str) -> list[Offer]:
    """Return what the links and forms of a page request."""
    offers = [Offer("GET", _local(urljoin(url, each.attributes["href"]))) for each in page.elements()
              if each.tag == "a" and "href" in each.attributes]
    for form in (each for each in page.elements() if each.tag == "form"):
        names = {each.attributes["name"] for each in form.elements() if each.tag in _FIELDS and "name" in each.attributes}
        address = _local(urljoin(url, form.attributes.get("action", "")))
        offers.append(Offer(form.attributes.get("method", "get").upper(), address, frozenset(names)))
    return offers


def _local(url: str) -> str:
    address = urlsplit(url)
    return f"{address.path or '/'}{'?' if address.query else ''}{address.query}"


def steps_of(session: Sequence[SiteRequest]) -> Iterator[tuple[int, Offer]]:
    """Yield each step that a person took from a page by a link or form of it: the page's ordinal, and the link or form.

    What follows a redirect is no step; a form whose fields hold all that was sent goes before a link."""
    page: int | None = None
    for index, request in enumerate(session):
        is_step = index == 0 or not session[index - 1].answer.location
        if page is not None and is_step and (offer := taken(session[page], request)) is not None:
            yield page, offer
        if request.is_page:
            page = index


def taken(page: SiteRequest, request: SiteRequest) -> Offer | None:
    """Return the link or form of a page that a request came from."""
    address, path = _local(request.url), urlsplit(request.url).path
    form = request.form if isinstance(request.form, dict) else {}
    sent = set(form) or {name for name, _ in parse_qsl(urlsplit(request.url).query, keep_blank_values=True)}
    offers = offers_of(page.answer.page, page.url) if page.answer.page is not None else []
    for offer in offers:
        is_form = offer.fields is not None and offer.method == request.method and sent <= offer.fields
        if is_form and (offer.address == address or (request.method == "GET" and urlsplit(offer.address).path == path)):
            return offer
    return next((offer for offer in offers if offer == Offer(request.method, address)), None)


def is_offered(step: Offer, page: Element | None, url: str, made: Collection[str]) -> bool:
    """Return whether a page offers a step; numbers that the session made may be others."""
    if page is None:
        return False
    parts = [re.escape(part) if part not in made else r"\d+" for part in re.split(r"(\d{2,})", step.address)]
    fits = re.compile("".join(parts)).fullmatch
    return any(offer.method == step.method and offer.fields == step.fields and fits(offer.address)
               for offer in offers_of(page, url))


def made_numbers(session: Sequence[SiteRequest], known: Collection[str]) -> set[str]:
    """Return the numbers that a session's own forms made: those that no other session has, and not the session before it."""
    made: set[str] = set()
    before: set[str] = set()
    has_posted = False
    for request in session:
        numbers = {number for word in request.answer.words for number in _NUMBER.findall(word)}
        before.update(_NUMBER.findall(request.url))
        if has_posted:
            made |= {number for number in numbers - before if number not in known}
        before |= numbers
        has_posted |= request.method == "POST"
    return made


def probes_of(data: Path) -> list[dict[str, Any]]:
    """Return the unrecorded walks, with the application's answers."""
    file = data / "truth" / "probes.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def have_same_offers(recorded: SiteAnswer, answered: SiteAnswer | None, url: str) -> bool:
    """Return whether answers have the same status and lead to the same place, or offer the same links and forms."""
    if answered is None or (answered.status, answered.location) != (recorded.status, recorded.location):
        return False
    if recorded.page is None or answered.page is None:
        return recorded == answered
    return _sorted(offers_of(recorded.page, url)) == _sorted(offers_of(answered.page, url))


def _sorted(offers: Iterable[Offer]) -> list[tuple[str, str, list[str]]]:
    return sorted((offer.method, offer.address, sorted(offer.fields or ())) for offer in offers if offer.address != MASK)
