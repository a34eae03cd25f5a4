"""Compare answers of a web site: the status, where it leads, and every element, attribute and text of the page.

Volatile parts are masked on both sides: anti-forgery fields, long random tokens, times of day. A download has no body in a HAR;
it counts as the same if type and file name are, and size where both know it. Used by browser_room.py, which reads HARs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from env_builder.runtime.site.trees import Element, squeeze
from env_builder.site.parsing import parse

MASK = "…"
_FORGERY = re.compile(r"csrf|xsrf|authenticity|nonce|token", re.IGNORECASE).search
_TOKEN = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20,}(?![A-Za-z0-9])"
                    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME_OF_DAY = re.compile(
    r"\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s*[ap]\.?m\b\.?)?|\b\d{1,2}\s+[ap]\.m\.|\b(?:noon|midnight)\b", re.IGNORECASE)
_WORD = re.compile(r"""[^\s/?&=#,;:()"']+""")
"""A price is one word, each part of an address another."""
BROKEN = frozenset({502, 503})
"""Statuses of faults that no site answers on purpose."""


@dataclass(frozen=True, eq=False)
class Download:
    """A file: its type, name and size; a size of 0 is not known."""

    kind: str
    name: str
    size: int

    def __eq__(self, other: object) -> bool:
        """Whether nothing that both know differs."""
        return isinstance(other, Download) and (self.kind, self.name) == (other.kind, other.name) and (
            self.size == other.size or not self.size or not other.size)

    def __hash__(self) -> int:
        """Return the same for downloads that may be equal."""
        return hash((self.kind, self.name))


@dataclass(frozen=True)
class SiteAnswer:
    """What a site answered, masked."""

    status: int | None
    location: str = ""
    page: Element | None = None
    download: Download | None = None
    """What is no page."""
    words: frozenset[str] = field(default=frozenset(), compare=False)
    """Words of the page's texts and attribute values."""


def site_answer(value: dict[str, Any]) -> SiteAnswer:
    """Return the answer that an event of a HAR holds (`status`, `location`, `type`, `body`, `file`, `size`)."""
    answer = SiteAnswer(value.get("status"), mask_text(str(value.get("location") or "")))
    kind, body = str(value.get("type") or ""), value.get("body")
    if answer.location:
        return answer
    if kind == "text/html" and isinstance(body, str):
        page = mask_page(squeeze(parse(body)))
        return replace(answer, page=page, words=frozenset(words_of(values_of(page))))
    return replace(answer, download=Download(kind, str(value.get("file") or ""), int(value.get("size") or 0)))


def mask_text(text: str) -> str:
    """Return a text with its random tokens and times of day masked."""
    return _TIME_OF_DAY.sub(MASK, _TOKEN.sub(MASK, text))


def mask_page(page: Element) -> Element:
    """Mask the volatile parts of a squeezed page, in place; the same page comes back."""
    for element in page.elements():
        names = f"{element.attributes.get('name', '')} {element.attributes.get('id', '')}"
        is_forgery = element.tag in ("input", "meta") and _FORGERY(names)
        for name, value in element.attributes.items():
            is_value = is_forgery and name in ("value", "content")
            element.attributes[name] = MASK if is_value or _FORGERY(name) else mask_text(value)
        element.children = [mask_text(child) if isinstance(child, str) else child for child in element.children]
    return page


def values_of(page: Element) -> Iterator[str]:
    """Yield the texts and the attribute values of a page."""
    for element in page.elements():
        yield from element.attributes.values()
        yield from (child for child in element.children if isinstance(child, str))


def words_of(values: Iterable[str]) -> Iterator[str]:
    """Yield the words of texts."""
    for value in values:
        yield from _WORD.findall(value)
