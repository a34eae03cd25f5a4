"""Results of tests as JUnit XML, which most runners and CI systems write.

In: a file of one or several suites. Out: one log event a file, `test_run`, with the outcome of each test: passed, failed,
error, skipped, or flaky (it failed, and passed when it was run again). Of a test that stands there twice the worst counts.

Sees the dialects of pytest, Maven Surefire (reruns), Gradle, Jest, Go and .NET converters. Does not see what a test printed;
properties; which commit was tested (the CI's own events say it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.markup import elements, first_names
from extractors.formats.values import dumped
from warehouse.vocabulary import TEST_RUN

_ROOTS = ("testsuites", "testsuite")
_OUTCOMES = ("passed", "skipped", "flaky", "failed", "error")
"""From best to worst."""
_NO_CLASS, _MOST_DEPTH = "test", 100
"""What the runner of Node.js gives every test as its class."""
_SUITE = re.compile(rb"<testsuite\b[^>]*>")
_ATTRIBUTE = rb"\b%s\s*=\s*[\"']([^\"']*)[\"']"


def claims(head: Head) -> bool:
    """Return whether the root is a suite of tests, or several."""
    if head.layout != "xml":
        return False
    return first_names("\n".join(head.text).encode())[:1] in [[root] for root in _ROOTS]


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One document a record."""
    if not isinstance(record.value, bytes):
        raise RejectedRecord("no_xml", "the record is no XML document; name another format")
    outcomes: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for case, suites in _cases(record.value):
        test = _name(case, suites)
        outcomes[test] = max(outcomes.get(test, "passed"), _outcome(case), key=_OUTCOMES.index)
        seconds[test] = seconds.get(test, 0.0) + _number(case.get("time"))
    if not outcomes and b"<testsuite" not in record.value:
        raise RejectedRecord("no_tests", "the document holds no suite of tests; leave it out")
    match = _SUITE.search(record.value)
    suite = match[0] if match is not None else b""
    facts = {"suite": _attribute(suite, b"name"), "outcomes": outcomes, "seconds": round(sum(seconds.values()), 6)}
    emit.event(record, "log", tool=TEST_RUN, arguments=dumped(facts), lossy=[],
               happened_at=microseconds(_attribute(suite, b"timestamp")), service=emit.envelope.service({}))


def _cases(document: bytes) -> Iterator[tuple[Element, tuple[str, ...]]]:
    """Yield each test with the names of the suites around it."""
    waiting: list[tuple[Element, tuple[str, ...]]] = [(root, ()) for root in elements(document, *_ROOTS)]
    while waiting:
        element, suites = waiting.pop()
        if element.tag == "testcase":
            yield element, suites
        elif len(suites) < _MOST_DEPTH:
            inner = (*suites, element.get("name", "")) if element.tag == "testsuite" else suites
            waiting += [(child, inner) for child in reversed(element)]


def _name(case: Element, suites: tuple[str, ...]) -> str:
    """Return a test's id: the file or class it is in, and its own name; suites where the class names nothing, as in Node.js."""
    place = case.get("classname") or case.get("file")
    within = [case.get("file"), *suites] if place == _NO_CLASS else [place]
    return "::".join(filter(None, (*within, case.get("name", ""))))


def _outcome(case: Element) -> str:
    children = {child.tag for child in case}
    if "error" in children or "failure" in children:
        return "error" if "failure" not in children else "failed"
    if children & {"flakyFailure", "flakyError", "rerunFailure", "rerunError"}:
        return "flaky"
    return "skipped" if "skipped" in children or case.get("status") in ("notrun", "disabled", "skipped") else "passed"


def _number(text: str | None) -> float:
    try:
        return float((text or "0").replace(",", ""))
    except ValueError:
        return 0.0


def _attribute(tag: bytes, name: bytes) -> str | None:
    match = re.search(_ATTRIBUTE % name, tag)
    return match[1].decode("utf-8", "replace") if match is not None else None


FORMAT = Format(name="junit", claims=claims, read=read, sample=sample("junit.xml"), whole=True, rank=30)
