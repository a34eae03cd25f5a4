"""Results of tests as JUnit XML, which nearly every runner writes.

In: the document, and the paths of a tree. Out: each test with its outcome, seconds and message. A test is called as pytest
calls it: the file, its classes or suites and its own name, `tests/test_x.py::TestY::test_z`; where no file of the tree fits,
the class name stands for it. Entities and document types are refused: the code under test may have written it. Standard
library only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from .sandbox import WORKSPACE

OUTCOMES = ("passed", "skipped", "failed", "error")
"""From best to worst."""
MOST_BYTES = 32 << 20
_MOST_DEPTH = 100
_SUFFIXES = (".py", ".js", ".ts", ".mjs", ".go", ".rb", ".java")
_NO_CLASS = ("", "test")
"""Class names that name nothing: the runner of Node.js gives every test the latter."""


class CaseResult(NamedTuple):
    """A test as a document has it."""

    test: str
    """Its id."""
    outcome: str
    seconds: float
    message: str
    """Of one that failed: what the runner wrote of it."""


def outcomes(document: bytes, paths: Collection[str]) -> dict[str, str] | None:
    """Return the outcome of each test, of one that stands there twice the worst; None where the document is none."""
    cases = test_cases(document, paths)
    if cases is None:
        return None
    results: dict[str, str] = {}
    for case in cases:
        results[case.test] = max(results.get(case.test, "passed"), case.outcome, key=OUTCOMES.index)
    return results


def test_cases(document: bytes, paths: Collection[str]) -> list[CaseResult] | None:
    """Return all tests of a document in their order; None where it is none."""
    if len(document) > MOST_BYTES or any(each in document for each in (b"<!DOCTYPE", b"<!ENTITY", b"\0")):  # \0: in UTF-16
        return None
    try:
        root = ElementTree.fromstring(document)
    except (ElementTree.ParseError, ValueError, RecursionError):
        return None
    places: dict[str, str] = {}
    cases = []
    for case, suites in _with_suites(root):
        class_name = case.get("classname") or ""
        if class_name in _NO_CLASS and class_name not in paths:
            class_name = _in_workspace(case.get("file") or "")
        if class_name not in places:
            places[class_name] = place_of(class_name, paths)
        within = suites if case.get("classname") in _NO_CLASS else ()
        outcome, message = _outcome(case)
        name = _in_workspace(case.get("name", ""))
        names = (places[class_name], *within, "" if name == class_name else name)   # a file that could not be loaded
        cases.append(CaseResult("::".join(filter(None, names)), outcome, _number(case.get("time")), message))
    return cases


test_cases.__test__ = False  # type: ignore[attr-defined]


def test_id(class_name: str, name: str, paths: Collection[str]) -> str:
    """Return a test's id: the file of a tree that its class lies in, its classes, its own name."""
    return "::".join(filter(None, (place_of(class_name, paths), name)))


test_id.__test__ = False  # type: ignore[attr-defined]


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


def _in_workspace(path: str) -> str:
    """Return a path of the sandbox as one of the tree, and any other text as it is."""
    return path.removeprefix("file://").removeprefix(f"{WORKSPACE}/")


def _with_suites(root: ElementTree.Element) -> Iterator[tuple[ElementTree.Element, tuple[str, ...]]]:
    """Yield each test with the names of the suites around it, in the order of the document; what lies too deep is left out."""
    waiting: list[tuple[ElementTree.Element, tuple[str, ...]]] = [(root, ())]
    while waiting:
        element, suites = waiting.pop()
        tag = element.tag.rpartition("}")[2]
        if tag == "testcase":
            yield element, suites
        elif len(suites) < _MOST_DEPTH:
            inner = (*suites, element.get("name", "")) if tag == "testsuite" else suites
            waiting += [(child, inner) for child in reversed(element)]


def _outcome(case: ElementTree.Element) -> tuple[str, str]:
    """Return what came of a test, and what the runner wrote where it failed."""
    children = {child.tag.rpartition("}")[2]: child for child in reversed(case)}
    for tag, outcome in (("error", "error"), ("failure", "failed"), ("skipped", "skipped")):
        if (child := children.get(tag)) is not None:
            return outcome, "" if outcome == "skipped" else f"{child.get('message', '')}\n{child.text or ''}"
    return "passed", ""


def _number(text: str | None) -> float:
    try:
        return float((text or "0").replace(",", ""))
    except ValueError:
        return 0.0
