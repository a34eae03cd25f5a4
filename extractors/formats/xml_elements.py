"""The elements of an XML log, one after another, without what an XML file can do beyond holding data.

A document type declaration is refused before anything is read: entities that multiply, and files or addresses outside, can only
be declared there. Elements are let go as soon as they are read, so memory is that of one of them.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.parsers import expat

_LOOK_AT = 12


class _Seen(Exception):
    """Enough was seen."""


def first_names(content: bytes) -> list[str]:
    """Names of the first elements, without namespaces; empty where it is no XML, or declares a document type."""
    names: list[str] = []

    def begin(name: str, _: dict[str, str]) -> None:
        names.append(name.rpartition("}")[2].rpartition(":")[2])
        if len(names) == _LOOK_AT:
            raise _Seen

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(content, False)
    except (expat.ExpatError, LookupError, ValueError):   # what was seen before the damage still tells
        return names
    except _Seen:
        pass
    return names


def elements(content: bytes, *names: str) -> Iterator[ElementTree.Element]:
    """Each element called one of `names`, when it ends; outermost of them only, namespaces removed from tags.

    Errors: ValueError where the XML is damaged or declares a document type.
    """
    _check(content)
    wanted, depth = frozenset(names), 0
    path: list[ElementTree.Element] = []
    try:
        for event, element in ElementTree.iterparse(io.BytesIO(content), events=("start", "end")):
            if event == "start":
                element.tag = element.tag.rpartition("}")[2]
                path.append(element)
                depth += element.tag in wanted
                continue
            path.pop()
            if element.tag in wanted:
                depth -= 1
                if not depth:
                    yield element
            if path and not depth:
                path[-1].remove(element)
    except ElementTree.ParseError as error:
        raise ValueError(f"damaged XML ({error})") from error


def _check(content: bytes) -> None:
    """Refuse a document type declaration; it can only stand before the first element."""

    def begin(name: str, _: dict[str, str]) -> None:
        raise _Seen

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ValueError(f"damaged XML ({error})") from error
    except _Seen:
        return


def _refuse(*_: object) -> None:
    raise ValueError("it declares a document type, which may hold entities")
