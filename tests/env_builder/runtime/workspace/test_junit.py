"""Results are read as runners write them, and what the code under test may have written harms nobody."""

from __future__ import annotations

import pytest

from env_builder.runtime.workspace.junit import MOST_BYTES, outcomes, place_of, test_cases, test_id

PATHS = {"tests/test_a.py", "tests/test_a/test_b.py", "web/sum.test.js"}


def test_each_test_has_its_outcome_under_the_name_that_pytest_gives_it() -> None:
    document = b"""<?xml version="1.0"?><testsuites><testsuite>
        <testcase classname="tests.test_a.TestX" name="test_one[a.b-1]"/>
        <testcase classname="tests.test_a" name="test_two"><failure message="x">y</failure></testcase>
        <testcase classname="tests.test_a.test_b" name="test_three"><skipped/></testcase>
        <testcase classname="" name="tests.broken"><error/></testcase>
        <testcase file="web/sum.test.js" name="adds"/><testcase name="lonely"/></testsuite></testsuites>"""
    assert outcomes(document, PATHS) == {
        "tests/test_a.py::TestX::test_one[a.b-1]": "passed", "tests/test_a.py::test_two": "failed",
        "tests/test_a/test_b.py::test_three": "skipped", "tests.broken": "error", "web/sum.test.js::adds": "passed",
        "lonely": "passed"}


@pytest.mark.parametrize(("first", "second", "worst"), [
    ("", "<failure/>", "failed"), ("<failure/>", "", "failed"), ("<skipped/>", "", "skipped"),
    ("<error/>", "<failure/>", "error")])
def test_of_a_test_that_stands_there_twice_the_worst_counts(first: str, second: str, worst: str) -> None:
    case = '<testcase classname="tests.test_a" name="t">{}</testcase>'
    document = f"<a>{case.format(first)}{case.format(second)}</a>".encode()
    assert outcomes(document, PATHS) == {"tests/test_a.py::t": worst}


@pytest.mark.parametrize("document", [
    b"", b"\xff\xfe", b"no xml", b"<a><testcase name='x'/>", b"<a/><a/>", b"\0", b"<!DOCTYPE a><a><testcase name='x'/></a>",
    b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', '<!DOCTYPE a [<!ENTITY x "y">]><a><testcase name="&x;"/></a>'.encode("utf-16"),
    b" " * (MOST_BYTES + 1)], ids=range(10))
def test_what_is_no_document_of_results_says_nothing(document: bytes) -> None:
    assert outcomes(document, PATHS) is None


def test_depth_and_namespaces_are_read() -> None:
    deep = b"<a>" * 50_000 + b'<testcase xmlns="urn:x" classname="tests.test_a" name="t"/>' + b"</a>" * 50_000
    assert outcomes(deep, PATHS) in (None, {}, {"tests/test_a.py::t": "passed"})
    assert outcomes(b'<a><testcase name="t"><f:failure xmlns:f="urn:y"/></testcase></a>', PATHS) == {"t": "failed"}


def test_a_class_name_stands_for_the_longest_file_that_fits() -> None:
    assert place_of("tests.test_a.test_b", PATHS) == "tests/test_a/test_b.py"
    assert place_of("tests.test_a.TestB.TestC", PATHS) == "tests/test_a.py::TestB::TestC"
    assert place_of("elsewhere.Y", PATHS) == "elsewhere.Y"


def test_ids_name_the_file_that_a_class_lies_in() -> None:
    assert test_id("tests.test_a.Lamp", "test_a[x.y]", PATHS) == "tests/test_a.py::Lamp::test_a[x.y]"
    assert test_id("tests.test_a.test_b", "test_a", PATHS) == "tests/test_a/test_b.py::test_a"
    assert test_id("Lamp burns", "clean", PATHS) == "Lamp burns::clean"


def test_seconds_and_messages_of_failures_are_read() -> None:
    document = (b'<a><testcase name="x" time="1,002.5"/><testcase name="y" time="soon"><skipped message="later"/></testcase>'
                b'<testcase name="z"><failure message="1 != 2">line 3</failure></testcase></a>')
    cases = test_cases(document, PATHS)
    assert cases is not None
    assert [(case.test, case.seconds, case.message) for case in cases] == [
        ("x", 1002.5, ""), ("y", 0.0, ""), ("z", 0.0, "1 != 2\nline 3")]


def test_suites_stand_for_the_class_where_the_class_names_nothing() -> None:
    document = b"""<testsuites><testcase classname="test" name="top" file="web/sum.test.js"/>
        <testsuite name="adds"><testcase classname="test" name="top"/><testsuite name="floats">
        <testcase classname="test" name="near" file="web/sum.test.js"/></testsuite></testsuite>
        <testsuite name="of pytest"><testcase classname="tests.test_a" name="top"/></testsuite></testsuites>"""
    assert outcomes(document, PATHS) == {
        "web/sum.test.js::top": "passed", "adds::top": "passed", "web/sum.test.js::adds::floats::near": "passed",
        "tests/test_a.py::top": "passed"}
