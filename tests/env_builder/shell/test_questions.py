"""Questions are known tests without their answers: what was expected is gone, what is computed is reported, others compare."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from env_builder.runtime.workspace.sandbox import WITHIN, ChangedFile
from env_builder.runtime.workspace.verifying import ANSWERS, digests
from env_builder.shell.questions import BlindQuestions, KnownTests, answers_in, digest, written

SOURCES = frozenset(["lamp"])


def asked(text: str, *names: str, turned: bool = False, helpers: dict[str, str] | None = None) -> str:
    """Return the questions of tests of a module."""
    files = {"tests/test_lamp.py": ChangedFile(text.encode(), 0o100644)}
    files |= {path: ChangedFile(each.encode(), 0o100644) for path, each in (helpers or {}).items()}
    ids = [f"tests/test_lamp.py::{name}" for name in names or ("test",)]
    return written(files, ids if turned else [], [] if turned else ids, SOURCES)["tests/test_lamp.py"].content.decode()


def body(statements: str, head: str = "from lamp import f, g, Lamp, lit\n") -> str:
    """Return what stands in the place of the statements of a test."""
    lines = "".join(f"    {line}\n" for line in statements.splitlines())
    questions = asked(f"{head}\ndef test():\n{lines}")
    _, _, inner = questions.partition("with traceroom_ask.whole():\n")
    return "\n".join(line.strip() for line in inner.splitlines())


@pytest.mark.parametrize(("test", "question"), [
    ("assert f(1) == {'a': 2}", "traceroom_ask.ask(f(1))"),
    ("assert {'a': 2} == f(1)", "traceroom_ask.ask(f(1))"),
    ("assert f(1) is None", "traceroom_ask.ask(f(1))"),
    ("assert f(1) == 'secret', 'message'", "traceroom_ask.ask(f(1))"),
    ("assert (f(1), g(2)) == (3, 4)", "traceroom_ask.ask(f(1), g(2))"),
    ("assert f(1) == g(2)", "traceroom_ask.ask(f(1), g(2))"),
    ("assert f(1) == 2 and g(1) == 3", "traceroom_ask.ask(f(1))\ntraceroom_ask.ask(g(1))"),
    ("expected = [1, 2]\nassert f(1) == expected", "traceroom_ask.ask(f(1))"),
    ("expected = dict(a=1)\nresult = f(1)\nassert result == expected", "result = f(1)\ntraceroom_ask.ask(result)"),
    ("assert 'x' in f(1)", "traceroom_ask.compared('contains', f(1), 'x')"),
    ("assert 'x' not in f(1)", "traceroom_ask.compared('contains', f(1), 'x')"),
    ("assert f(1) > 2", "traceroom_ask.compared('gt', f(1), 2)"),
    ("assert f(1) != 2", "traceroom_ask.compared('ne', f(1), 2)"),
    ("assert f(1).startswith('x')", "traceroom_ask.called(f(1), 'startswith', 'x')"),
    ("assert not f(1)", "traceroom_ask.ask(bool(f(1)))"),
    ("assert isinstance(f(1), Lamp)", "traceroom_ask.ask(bool(isinstance(f(1), Lamp)))"),
    ("assert f(1) == 1 or g(1)", "traceroom_ask.ask(bool(f(1) == 1 or g(1)))"),
    ("with pytest.raises(ValueError, match='bad'):\n    f(1)", "with traceroom_ask.asking(ValueError):\nf(1)"),
    ("with pytest.raises(ValueError) as error:\n    f(1)\nassert str(error.value) == 'bad'",
     "with traceroom_ask.asking(ValueError) as error:\nf(1)\ntraceroom_ask.ask(str(error.value))"),
    ("lit.on = f(1)\nassert lit.state == 'on'", "lit.on = f(1)\ntraceroom_ask.ask(lit.state)")])
def test_what_is_compared_is_reported_without_what_was_expected(test: str, question: str) -> None:
    assert body(test, "import pytest\nfrom lamp import f, g, Lamp, lit\n") == question


@pytest.mark.parametrize(("call", "question"), [
    ("self.assertEqual(f(1), 'secret')", "traceroom_ask.ask(f(1))"),
    ("self.assertEqual('secret', f(1))", "traceroom_ask.ask(f(1))"),
    ("self.assertTrue(f(1))", "traceroom_ask.ask(bool(f(1)))"),
    ("self.assertFalse(f(1) == 'secret')", "traceroom_ask.ask(f(1))"),
    ("self.assertIn('x', f(1))", "traceroom_ask.compared('contains', f(1), 'x')"),
    ("self.assertGreater(f(1), 2)", "traceroom_ask.compared('gt', f(1), 2)"),
    ("self.assertIsNone(f(1))", "traceroom_ask.ask(f(1))"),
    ("self.assertIsNotNone(f(1))", "traceroom_ask.ask(bool(f(1) is not None))"),
    ("self.assertRaises(ValueError, f, 1)", "traceroom_ask.raised(ValueError, f, 1)"),
    ("with self.assertRaises(ValueError):\n            f(1)", "with traceroom_ask.asking(ValueError):\nf(1)")])
def test_methods_of_unittest_are_reported(call: str, question: str) -> None:
    text = f"import unittest\nfrom lamp import f\n\nclass TestLamp(unittest.TestCase):\n    def test(self):\n        {call}\n"
    questions = asked(text, "TestLamp::test")
    assert "secret" not in questions and "class TestLamp(unittest.TestCase)" in questions
    inner = questions.partition("with traceroom_ask.whole():\n")[2]
    assert "\n".join(line.strip() for line in inner.splitlines()) == question


@pytest.mark.parametrize("call", ["assert_equal('secret', f(1))", "eq_(f(1), 'secret')", "tools.assert_equals(f(1), 'secret')"])
def test_helpers_called_like_assertions_are_reported(call: str) -> None:
    head = "from nose.tools import eq_\nfrom common import assert_equal\nfrom lamp import f\n"
    assert body(call, head) == "traceroom_ask.ask(f(1))"


def test_expected_columns_of_parameters_are_hidden() -> None:
    text = ("import pytest\nfrom lamp import f\n\n"
            "@pytest.mark.parametrize('given, expected', [(1, 'one'), pytest.param(2, 'two', id='x')])\n"
            "@pytest.mark.parametrize(('mode',), [('fast',)])\ndef test(given, expected, mode):\n"
            "    assert f(given, mode) == expected\n")
    questions = asked(text)
    assert "'one'" not in questions and "two" not in questions and "'fast'" in questions
    assert "[(1, None), pytest.param(2, None, id='x')]" in questions
    both = text.replace("f(given, mode) == expected", "f(given, expected) == expected")
    assert "'one'" in asked(both), "a value that the source is given has to stay"


def test_expected_values_of_a_module_go_with_the_tests_that_read_them() -> None:
    text = ("from lamp import f\nEXPECTED = {'a': 'secret'}\nGIVEN = 'given'\nOTHER = 'other secret'\nSHARED = 'shared'\n"
            "pytestmark = None\n\ndef test():\n    assert f(GIVEN) == EXPECTED\n\ndef test_else():\n    assert f(1) == OTHER\n")
    questions = asked(text, helpers={"tests/test_more.py": "from tests.test_lamp import SHARED\n"})
    assert "secret" not in questions and "GIVEN = 'given'" in questions and "SHARED" in questions and "pytestmark" in questions


def test_helpers_and_data_stay_and_other_tests_go() -> None:
    files = {path: ChangedFile(text.encode(), 0o100644) for path, text in {
        "tests/test_lamp.py": "from lamp import f\nfrom tests.helpers import made\n\ndef helper():\n    return made()\n\n"
                              "def test():\n    assert f(helper()) == 'secret'\n\n"
                              "def test_else():\n    assert f(2) == 'other'\n",
        "tests/helpers.py": "def made(): return 1\n", "tests/data.json": "{}", "tests/conftest.py": "import pytest\n",
        "tests/test_other.py": "def test_third(): assert True\n", "tests/test_broken.py": "def ("}.items()}
    questions = written(files, ["tests/test_lamp.py::test"], [], SOURCES)
    text = questions["tests/test_lamp.py"].content.decode()
    assert "def helper()" in text and "test_else" not in text and "secret" not in text
    kept = {path for path in files if questions.get(path) == files[path]}
    assert kept == {"tests/helpers.py", "tests/data.json", "tests/conftest.py"}
    assert "tests/test_broken.py" not in questions and b"test_third" not in questions["tests/test_other.py"].content


@pytest.mark.parametrize(("statement", "question"), [
    ("assert os.environ['A'] == 'b'", "traceroom_ask.ask(os.environ['A'])"),
    ("assert lamp.STATE == {'a': 1}", "traceroom_ask.ask(lamp.STATE)"),
    ("import sys\nassert sys.path == []", "import sys\ntraceroom_ask.ask(sys.path)"),
    ("assert seen == [1]", "traceroom_ask.ask(seen)"),
    ("assert f(1) == Color.RED", "traceroom_ask.ask(f(1))")])
def test_the_state_of_a_module_is_no_constant(statement: str, question: str) -> None:
    head = ("import os\nimport lamp\nfrom enum import Enum\nfrom lamp import f\nclass Color(Enum):\n    RED = 1\n"
            "seen = lamp.seen()\n")
    assert body(statement, head) == question


def test_variants_exchange_texts_and_numbers_alike_in_all_of_a_test() -> None:
    text = ("from lamp import f, Lamp\n\ndef test():\n    lamp = Lamp(name='wick 7', size=3)\n"
            "    assert f(lamp, 'wick 7', 3) == 'x'\n")
    variants = [each for each in asked(text, turned=True).split("def ") if each.startswith("test__variant")]
    calls = {each.partition("whole():")[2].replace("\n", " ") for each in variants}
    assert any("name='wick 8', size=4" in each and "f(lamp, 'wick 8', 4)" in each for each in calls)
    assert any("name='xjdl 7', size=3" in each and "f(lamp, 'xjdl 7', 3)" in each for each in calls)
    assert len(calls) == len(variants) >= 4 and not any("'x'" in each for each in calls)
    assert "variant" not in asked(text), "only what the solution turns has variants"


@pytest.mark.parametrize("text", ["def test():\n    f(1)\n", "def test():\n    assert True\n", "async def test():\n    pass\n"])
def test_a_test_that_compares_nothing_of_the_source_gives_nothing_away(text: str) -> None:
    questions = asked("from lamp import f\n\n" + text)
    assert "def test" not in questions or "ask(" in questions


def reported(folder: Path, test: str, source: str) -> dict[str, list[str]]:
    """Return what a question reports, run here in a process of its own."""
    files = written({"test_lamp.py": ChangedFile(test.encode(), 0o100644)}, ["test_lamp.py::test"], [], SOURCES)
    folder.mkdir(exist_ok=True)
    (folder / "lamp.py").write_text(source)
    for path, file in files.items():
        (folder / path).write_bytes(file.content)
    answers = folder / "answers"
    answers.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "traceroom_pytest", "-p", "no:cacheprovider",
               "-c", str(WITHIN / "pytest.ini"), "--rootdir", str(folder), str(folder)]
    subprocess.run(command, capture_output=True, check=False,
                   env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{folder}:{WITHIN}", ANSWERS: str(answers),
                        "PYTHONDONTWRITEBYTECODE": "1"}, cwd=folder)
    file = ChangedFile(answers.read_bytes(), 0o100644) if answers.exists() else None
    lines = answers_in(file)
    assert {question: digest(each) for question, each in lines.items()} == digests(file)
    return lines


def test_values_of_the_same_meaning_are_reported_alike_and_others_are_not(tmp_path: Path) -> None:
    test = "from lamp import f\n\ndef test():\n    assert f() == 'secret'\n"
    alike = ["return {'a': 1, 'b': (1.0, None)}",
             "from collections import OrderedDict\n    return OrderedDict(b=(1, None), a=1)",
             "class D(dict):\n        __eq__ = lambda s, o: True\n        items = lambda s: []\n    return D(a=1, b=(1, None))"]
    others = ["return {'a': 2, 'b': (1, None)}", "return {'a': 1, 'b': [1, None]}",
              "return {'a': True, 'b': (1, None)}",
              "return {'a': '1', 'b': (1, None)}", "class A:\n        __eq__ = lambda s, o: True\n    return A()",
              "raise KeyError"]
    first, *same = (reported(tmp_path / "x", test, f"def f():\n    {each}\n")["test_lamp.py::test"] for each in alike)
    assert same == [first, first]
    for each in others:
        assert reported(tmp_path / "x", test, f"def f():\n    {each}\n")["test_lamp.py::test"] != first


def test_what_counts_is_what_is_steady_and_tells(tmp_path: Path) -> None:
    tests = {"test_lamp.py": ChangedFile(b"from lamp import f\n\ndef test():\n    assert f('a 1') == 2\n", 0o100644)}
    answers = {"right": {"test_lamp.py::test": ["r"], "test_lamp.py::test__variant0": ["r0"],
                         "test_lamp.py::test__variant1": ["same"],
                         "test_lamp.py::test__variant2": ['["ended"']},
               "before": {"test_lamp.py::test": ["b"], "test_lamp.py::test__variant0": ["b0"],
                          "test_lamp.py::test__variant1": ["same"],
                          "test_lamp.py::test__variant2": ["x"]}}
    known = KnownTests(tests, ["test_lamp.py::test"], [])
    right: dict[str, ChangedFile] = {"lamp.py": ChangedFile(b"right", 0o100644)}
    made = BlindQuestions.of(known, ["lamp"], {}, right, lambda files, tree: answers["right" if tree else "before"])
    assert made.answers.keys() == {"test_lamp.py::test", "test_lamp.py::test__variant0"}
    assert not made.forgeable
    turns = iter([["1"], ["2"], ["3"]])
    unsteady = BlindQuestions.of(known, ["lamp"], {}, right, lambda files, tree: {"test_lamp.py::test": next(turns)})
    assert unsteady.answers == {} and unsteady.forgeable
    same = BlindQuestions.of(known, ["lamp"], {}, right, lambda files, tree: {"test_lamp.py::test": ["same"]})
    assert same.forgeable and same.answers.keys() == {"test_lamp.py::test"}


def test_lines_that_are_none_are_no_answers() -> None:
    lines = [json.dumps(["a", [1]]), "no json", "[]", "5", json.dumps(["a", [2]]), "ÿ"]
    report = ChangedFile("\n".join(lines).encode(), 0o100644)
    assert answers_in(report)["a"] == [lines[0], lines[4]] and digests(report)["a"] == digest([lines[0], lines[4]])
    assert answers_in(None) == digests(None) == {}
