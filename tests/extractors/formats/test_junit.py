"""Results of tests: each test by its file or class, or by its suites where its runner gives all of them one class."""

from __future__ import annotations

from pathlib import Path

import orjson

from extractors.inventory import SourceFile
from extractors.reading import read

DOCUMENT = """<?xml version="1.0"?><testsuites><testcase name="top" classname="test"/>
<testsuite name="slug"><testcase name="small" classname="test" time="0.5"/><testsuite name="deep">
<testcase name="small" classname="test" file="test/a.js"><failure/></testcase></testsuite></testsuite>
<testsuite name="pytest"><testcase classname="tests.test_a.TestX" name="t" time="1"/><testcase file="a.rb" name="t"/>
<testcase name="lonely"><skipped/></testcase></testsuite></testsuites>"""


def test_tests_are_named_by_file_class_or_suites(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_text(DOCUMENT)
    [event] = read(SourceFile(path, path.name)).events.to_dicts()
    facts = orjson.loads(event["arguments"])
    assert facts["outcomes"] == {
        "top": "passed", "slug::small": "passed", "test/a.js::slug::deep::small": "failed", "tests.test_a.TestX::t": "passed",
        "a.rb::t": "passed", "lonely": "skipped"}
    assert facts["seconds"] == 1.5
