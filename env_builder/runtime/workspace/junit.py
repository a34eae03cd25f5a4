"""Results of tests as JUnit XML, which nearly every runner writes.

In: the document, and the paths of a tree. Out: test -> outcome. A test is called as pytest calls it: the file, its classes
and its own name, `tests/test_x.py::TestY::test_z`; where no file of the tree fits, the class name stands for it. Of a test
that stands there twice the worst counts. Entities and document types are refused: the code under test may have written it.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Collection
from xml.etree import ElementTree

OUTCOMES = ("passed", "skipped", "failed", "error")
"""From best to worst."""
MOST_BYTES = 32 << 20
_SUFFIXES = (".py", ".js", ".ts", ".mjs", ".go", ".rb", ".java")


def outcomes(document: bytes, paths: Collection[str]) -> dict[str, str] | None:
    """Return the outcome of each test, None where the document is none."""
    if len(document) > MOST_BYTES or any(each in document for each in (b"<!DOCTYPE", b"<!ENTITY", b"\0")):  # \0: in UTF-16
        return None
    try:
        root = ElementTree.fromstring(document)
    except (ElementTree.ParseError, ValueError, RecursionError):
        return None
    results: dict[str, str] = {}
    places: dict[str, str] = {}
    for case in root.iter("testcase"):
        class_name = case.get("classname") or case.get("file") or ""
        if class_name not in places:
            places[class_name] = place_of(class_name, paths)
        name = "::".join(filter(None, (places[class_name], case.get("name", ""))))
        results[name] = max(results.get(name, "passed"), _outcome(case), key=OUTCOMES.index)
    return results


def place_of(class_name: str, paths: Collection[str]) -> str:
    """Return the file of a tree that a class name stands for, with the classes within: a.b.C -> a/b.py::C."""
    if class_name in paths:
        return class_name
    parts = class_name.replace("/", ".").split(".")
    for n in range(len(parts), 0, -1):
        stem = "/".join(parts[:n])
        for suffix in _SUFFIXES:
            if stem + suffix in paths:
                return "::".join((stem + suffix, *parts[n:]))
    return class_name


def _outcome(case: ElementTree.Element) -> str:
    tags = {child.tag.rpartition("}")[2] for child in case}
    named = (("error", "error"), ("failure", "failed"), ("skipped", "skipped"))
    return next((outcome for tag, outcome in named if tag in tags), "passed")
