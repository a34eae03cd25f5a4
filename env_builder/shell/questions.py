"""Questions: known tests without their answers, whose values are compared outside of the code under test.

In: files of known tests, and which of their tests count. Out: files in which every comparison reports the computed value
instead (`traceroom_ask`), and expected values are gone: `assert parse(x) == {"a": 1}` becomes `ask(parse(x))`. Of each test
there are also variants with other inputs, letters and numbers exchanged alike in all of it, so that answers that were learnt
by heart are none. What counts is decided by running them (`BlindQuestions.of`): the same answer twice with the known solution,
and, of variants, an answer that it and the state before do not share.

Sees: `assert` with comparisons, `pytest.raises`, assertions of `unittest`, nose and helpers of these names, parametrised
tests. Expected is what is made of constants alone: literals, names and classes that do not come from the source. Does not
see: expected values in files or helpers, mocks, doctests, other languages: their tests stay without a question. A right
solution that differs from the known one where the tests compare equal, or on exchanged inputs, is refused: containment and
order are therefore reported as yes or no.

Method: metamorphic variants of tests and differential comparison (Liu et al., EvalPlus 2023; McKeeman 1998).
"""

from __future__ import annotations

import ast
import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from env_builder.runtime.workspace.sandbox import ChangedFile
from env_builder.runtime.workspace.trees import Tree
from env_builder.runtime.workspace.verifying import VARIANT

MOST_TESTS = 40
"""Test functions of which questions are made, those that the solution turns first."""
MOST_VARIANTS = 3
"""Variants of a test that are used."""
ASK = "traceroom_ask"
_EQUAL = ("assertEqual", "assertIs", "assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual",
          "assertMultiLineEqual", "assertSequenceEqual", "assertEquals", "assertCountEqual")
_COMPARED = {"assertIn": ast.In, "assertNotIn": ast.NotIn, "assertGreater": ast.Gt, "assertLess": ast.Lt,
             "assertGreaterEqual": ast.GtE, "assertLessEqual": ast.LtE, "assertNotEqual": ast.NotEq, "assertIsNot": ast.IsNot}
_OPERATORS = {ast.In: "contains", ast.NotIn: "contains", ast.Gt: "gt", ast.Lt: "lt", ast.GtE: "ge", ast.LtE: "le",
              ast.NotEq: "ne"}
"""Comparisons that are reported by what the values hold."""
_METHODS = ("startswith", "endswith", "isdigit", "isalpha", "isupper", "islower", "isspace", "issubset", "issuperset",
            "isdisjoint", "isidentifier", "isnumeric", "isdecimal", "isalnum", "istitle", "isascii", "isprintable",
            "is_integer")
"""Methods of Python's own kinds that say yes or no."""
_ASSERTIONS = {name.lower(): name for name in (
    *_EQUAL, *_COMPARED, "assertTrue", "assertFalse", "assertIsNone", "assertIsNotNone", "assertIsInstance", "assertRaises")}
_ASSERTIONS["eq"] = _ASSERTIONS["asserteq"] = "assertEqual"
"""Name in small letters without underscores -> its name in `unittest`."""
_RAISING = ("raises", "assertRaises", "assertRaisesRegex", "assertRaisesRegexp")
_VALUES = (ast.Eq, ast.Is)
_MODES = {"utf-8", "utf8", "ascii", "latin-1", "r", "w", "a", "rb", "wb", "strict", "ignore", "replace", ""}
"""Texts that stay: names of encodings and ways to open a file."""
_WORDS = re.compile(r"[^\W\d]\w*")
_OF_RUNNER = frozenset(("pytestmark", "pytest_plugins", "collect_ignore", "collect_ignore_glob", "__test__", "__all__"))
"""Names of a module that the runner reads."""
_CONSTRUCTORS = frozenset(("bool", "bytearray", "bytes", "complex", "date", "datetime", "defaultdict", "deque", "dict", "float",
                           "frozenset", "int", "list", "range", "set", "str", "time", "timedelta", "timezone", "tuple"))
"""Lower-case names of kinds of values: calling them does nothing but make one."""
_COMPUTING = (ast.Lambda, ast.Await, ast.NamedExpr, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Answers = Mapping[str, list[str]]
"""Question -> lines that it reported, in order."""
Run = Callable[[Tree, Tree], Answers]
"""(tests, source and all else) -> what the tests reported."""


class KnownTests(NamedTuple):
    """Known tests, and which of them count, by their ids."""

    files: Tree
    turned: Sequence[str]
    """Those that fail before and pass after."""
    others: Sequence[str]
    """Those that pass before and after."""


class BlindQuestions(NamedTuple):
    """Questions of a task, with the known solution's answers."""

    files: dict[str, ChangedFile]
    answers: dict[str, str]
    """Question -> digest of its answer (verifying.py)."""
    forgeable: bool
    """None tells the known solution from the state before."""

    @classmethod
    def of(cls, tests: KnownTests, sources: Iterable[str], before: Tree, after: Tree, run: Run) -> BlindQuestions:
        """Make questions of known tests. `sources`: names of modules of the source; `before`, `after`: trees without tests."""
        files = written(tests.files, tests.turned, tests.others, frozenset(sources))
        if not any(path.endswith(".py") and b"import traceroom_ask" in file.content for path, file in files.items()):
            return cls({}, {}, True)
        right, again, wrong = run(files, after), run(files, after), run(files, before)
        stable = {question: lines for question, lines in right.items() if question and again.get(question) == lines}
        telling = {question for question, lines in stable.items() if wrong.get(question) != lines}
        kept: dict[str, str] = {}
        n_variants: dict[str, int] = {}
        for question, lines in sorted(stable.items()):
            own, is_variant = question.partition(VARIANT)[0], VARIANT in question
            if is_variant:
                ended = any('["ended"' in line for line in lines)
                if question not in telling or ended or n_variants.get(own, 0) >= MOST_VARIANTS:
                    continue
                n_variants[own] = n_variants.get(own, 0) + 1
            kept[question] = digest(lines)
        return cls(files, kept, not telling.intersection(kept))


def digest(lines: Iterable[str]) -> str:
    """Return the digest of an answer, as `verifying.digests` has it."""
    return sha256("\n".join(lines).encode()).hexdigest()[:32]


def answers_in(report: ChangedFile | None) -> dict[str, list[str]]:
    """Return question -> reported lines."""
    answers: dict[str, list[str]] = {}
    for line in report.content.decode("ascii", "replace").splitlines() if report is not None else ():
        try:
            answers.setdefault(json.loads(line)[0], []).append(line)
        except (ValueError, LookupError, TypeError):
            continue
    return answers


def written(tests: Tree, turned: Sequence[str], others: Sequence[str], sources: frozenset[str]) -> dict[str, ChangedFile]:
    """Return the files of tests with questions in the place of tests, and without tests of which there are none. Only those
    that the solution turns have variants."""
    functions: dict[str, dict[str, bool]] = {}
    for test in dict.fromkeys(each.partition("[")[0] for each in (*turned, *others)):
        path, _, name = test.partition("::")
        if sum(map(len, functions.values())) < MOST_TESTS:
            functions.setdefault(path, {})[name] = any(each.partition("[")[0] == test for each in turned)
    files = {}
    words = {path: frozenset(_WORDS.findall(file.content.decode("utf-8", "replace"))) for path, file in tests.items()
             if path.endswith(".py")}
    n_modules = Counter(word for each in words.values() for word in each)
    for path, file in tests.items():
        is_module = path in functions or _is_test_module(path)
        content = file.content.decode("utf-8", "replace")
        elsewhere = frozenset(word for word in words.get(path, ()) if n_modules[word] > 1) | _OF_RUNNER
        text = _module(content, functions.get(path, {}), sources, elsewhere) if is_module else None
        if text is not None:
            files[path] = ChangedFile(text.encode(), file.mode)
        elif not is_module:
            files[path] = file
    return files


def _is_test_module(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def _module(
    text: str, chosen: Mapping[str, bool], sources: frozenset[str], elsewhere: frozenset[str] = frozenset(),
) -> str | None:
    """Return a module of tests as questions; None where it cannot be parsed. `elsewhere`: words of the other modules."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    names = _PlainNames(module, sources)
    module.body = [each for node in module.body for each in _definitions(node, "", chosen, names)]
    _drop_unread(module, elsewhere)
    after = next((n for n, node in enumerate(module.body) if not _is_head(node)), len(module.body))
    module.body.insert(after, ast.Import([ast.alias(ASK)]))
    return ast.unparse(ast.fix_missing_locations(module)) + "\n"


def _is_head(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _definitions(node: ast.stmt, above: str, chosen: Mapping[str, bool], names: _PlainNames) -> Iterator[ast.stmt]:
    """Yield what stands in the place of a statement of a module or class."""
    if isinstance(node, ast.ClassDef):
        inner = f"{above}{node.name}::"
        if any(name.startswith(inner) for name in chosen) or not node.name.lower().startswith("test"):
            node.body = [each for part in node.body for each in _definitions(part, inner, chosen, names)] or [ast.Pass()]
            yield node
    elif isinstance(node, Function) and node.name.startswith("test"):
        if above + node.name in chosen:
            yield from _questions(node, names, with_variants=chosen[above + node.name])
    elif not (isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)):
        yield node


def _questions(test: Function, names: _PlainNames, with_variants: bool) -> Iterator[Function]:
    """Yield a test as a question, then its variants."""
    plain = names.within(test)
    question = _Asking(plain).of(copy.deepcopy(test))
    if question is None:
        return
    yield ast.fix_missing_locations(question)
    texts = {ast.unparse(question)}
    for number, exchange in enumerate(_exchanges(question) if with_variants else ()):
        variant = ast.fix_missing_locations(exchange.of(copy.deepcopy(question)))
        if ast.unparse(variant) not in texts:
            texts.add(ast.unparse(variant))
            variant.name = f"{question.name}{VARIANT}{number}"
            yield variant


class _PlainNames:
    """Names of a module of tests that do not come from the source."""

    def __init__(self, module: ast.Module, sources: frozenset[str]) -> None:
        self._plain: set[str] = set()
        self._constants: set[str] = set()
        own: dict[str, ast.stmt] = {}
        for node in ast.walk(module):
            if isinstance(node, ast.Import):
                self._plain |= {(name.asname or name.name).partition(".")[0] for name in node.names
                                if name.name.partition(".")[0] not in sources}
            elif isinstance(node, ast.ImportFrom) and not node.level and (
                    node.module or "").partition(".")[0] not in sources:
                self._plain |= {name.asname or name.name for name in node.names}
        for statement in module.body:
            if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                own[statement.name] = statement
        self._plain |= _builtins()
        for name, statement in own.items():
            if _free(statement) <= self._plain | {name}:
                self._plain.add(name)
        for statement in module.body:
            target = _only_target(statement)
            if target is not None and isinstance(statement, ast.Assign) and self.is_constant(statement.value):
                self._constants.add(target)

    def within(self, test: Function) -> _PlainNames:
        """Return the names within a test: its own classes, and names that it sets once to a constant."""
        inner = copy.copy(self)
        inner._plain, inner._constants = set(self._plain), set(self._constants)
        n_set: dict[str, int] = {}
        for node in ast.walk(test):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                n_set[node.id] = n_set.get(node.id, 0) + 1
        arguments = {each.arg for each in ast.walk(test.args) if isinstance(each, ast.arg)}
        inner._constants -= arguments | n_set.keys()
        for node in ast.walk(test):
            if isinstance(node, ast.ClassDef) and _free(node) <= inner._plain | {node.name}:
                inner._plain.add(node.name)
        for node in ast.walk(test):
            name = _only_target(node)
            if name is not None and n_set[name] == 1 and isinstance(node, ast.Assign) and inner.is_constant(node.value):
                inner._constants.add(name)
        inner._constants |= _expected_parameters(test, inner)
        return inner

    def is_constant(self, node: ast.expr) -> bool:
        """Whether an expression is made of constants alone."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            return node.id in self._constants or node.id in self._plain
        if isinstance(node, ast.Starred):
            return self.is_constant(node.value)
        if isinstance(node, ast.Attribute):   # os.environ is a state, Color.RED is not
            return node.attr[:1].isupper() and self.is_constant(node.value)
        if isinstance(node, ast.Call):
            called = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            given = [called, *node.args, *(word.value for word in node.keywords)]
            return all(map(self.is_constant, given))
        if isinstance(node, _COMPUTING):
            return False
        return all(self.is_constant(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))


def _only_target(node: ast.AST) -> str | None:
    """Return the name that a statement sets to a value, where it is one alone."""
    is_one = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    return node.targets[0].id if is_one else None  # type: ignore[attr-defined]


def _builtins() -> set[str]:
    import builtins

    return {name for name in dir(builtins) if name not in ("open", "input", "eval", "exec", "globals", "locals", "vars")}


def _free(node: ast.AST) -> set[str]:
    """Return the names that a definition reads and does not set itself."""
    read, own = set[str](), set[str]()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            (read if isinstance(each.ctx, ast.Load) else own).add(each.id)
        elif isinstance(each, ast.arg):
            own.add(each.arg)
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and each is not node:
            own.add(each.name)
    return read - own


def _expected_parameters(test: Function, names: _PlainNames) -> set[str]:
    """Return the parameters that a test only compares with: they are expected values."""
    sides: dict[str, int] = {}
    for node in ast.walk(test):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assert):
            pairs = list(_pairs(node.test))
        elif isinstance(node, ast.Call) and _assertion(node) in _EQUAL:
            pairs = [(node.args[0], node.args[1])] if len(node.args) >= 2 else []
        for one, other in [each for pair in pairs for each in (pair, pair[::-1])]:
            if isinstance(one, ast.Name) and not names.is_constant(other):
                sides[one.id] = sides.get(one.id, 0) + 1
    read = [node.id for node in ast.walk(test) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    arguments = {each.arg for each in ast.walk(test.args) if isinstance(each, ast.arg)}
    given = {name for names_of, _ in map(_parametrised, test.decorator_list) for name in names_of}
    return {name for name, n in sides.items() if name in arguments & given and read.count(name) == n}


def _assertion(call: ast.expr) -> str | None:
    """Return the name in `unittest` of an assertion: `self.assertEqual`, `assert_equal` of nose or a helper, `eq_`."""
    if not isinstance(call, ast.Call):
        return None
    called = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""
    return _ASSERTIONS.get(called.replace("_", "").lower())


def _pairs(test: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the two sides of a comparison for equality; of two tuples those of each place."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], _VALUES):
        one, other = test.left, test.comparators[0]
        if isinstance(one, ast.Tuple) and isinstance(other, ast.Tuple) and len(one.elts) == len(other.elts):
            yield from zip(one.elts, other.elts, strict=True)
        else:
            yield one, other


def _parametrised(decorator: ast.expr) -> tuple[list[str], list[ast.expr]]:
    """Return the names and rows of a `parametrize`; none where it is another decorator or they are no literals."""
    if not (isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute)
            and decorator.func.attr == "parametrize" and len(decorator.args) >= 2):
        return [], []
    given, rows = decorator.args[:2]
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        names = [name.strip() for name in given.value.split(",")]
    elif isinstance(given, ast.Tuple | ast.List):
        names = [each.value for each in given.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    else:
        names = []
    return (names, rows.elts) if isinstance(rows, ast.List | ast.Tuple) else ([], [])


class _Asking(ast.NodeTransformer):
    """Puts reports in the place of comparisons."""

    def __init__(self, names: _PlainNames) -> None:
        self._names = names
        self._n_asked = 0

    def of(self, test: Function) -> Function | None:
        """Return a test as a question; None where it compares nothing."""
        test.body = [each for statement in test.body for each in self._visited(statement)]
        if not self._n_asked:
            return None
        _drop_unread(test)
        self._hide_expected(test)
        test.body = [ast.With([ast.withitem(_reporting("whole"))], test.body or [ast.Pass()])]
        return test

    def _visited(self, statement: ast.stmt) -> list[ast.stmt]:
        after = self.visit(statement)
        return after if isinstance(after, list) else [after]

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        self._n_asked += 1
        return [ast.Expr(report) for report in self._reports(node.test)]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:
        call = node.value
        name = _assertion(call)
        if isinstance(call, ast.Call) and name is not None:
            if name in ("assertTrue", "assertFalse") and call.args:
                return self.visit_Assert(ast.Assert(call.args[0]))
            report = self._of_assertion(name, call)
            if report is not None:
                self._n_asked += 1
                return ast.Expr(report)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_With(self, node: ast.With) -> ast.stmt:
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _RAISING:
                item.context_expr = _reporting("asking", *call.args[:1])
                self._n_asked += 1
        return self.generic_visit(node)  # type: ignore[return-value]

    def _of_assertion(self, name: str, call: ast.Call) -> ast.expr | None:
        """Return the report in the place of an assertion, by its name in `unittest`."""
        given = call.args
        if name in _EQUAL and len(given) >= 2:
            return _reporting("ask", *self._computed(given[:2]))
        if name in _COMPARED and len(given) >= 2:
            return self._comparison(given[0], _COMPARED[name](), given[1])
        if name == "assertIsNone" and given:
            return _reporting("ask", given[0])
        if name == "assertIsNotNone" and given:
            return _reporting("ask", _truth(ast.Compare(given[0], [ast.IsNot()], [ast.Constant(None)])))
        if name == "assertIsInstance" and len(given) >= 2:
            return _reporting("ask", ast.Call(ast.Name("isinstance", ast.Load()), given[:2], []))
        if name == "assertRaises" and len(given) >= 2:
            return ast.Call(ast.Attribute(ast.Name(ASK, ast.Load()), "raised", ast.Load()), given, call.keywords)
        return None

    def _comparison(self, one: ast.expr, operator: ast.cmpop, other: ast.expr) -> ast.expr:
        """Return the report of a comparison that is no equality: what it says of what the values hold, not what they say."""
        name = _OPERATORS.get(type(operator))
        if name is None:
            return _reporting("ask", _truth(ast.Compare(one, [operator], [other])))
        sides = [other, one] if name == "contains" else [one, other]
        return _reporting("compared", ast.Constant(name), *sides)

    def _yes_or_no(self, test: ast.expr) -> ast.expr:
        """Return the report of an expression that is asserted as it stands, or denied."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._yes_or_no(test.operand)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._comparison(test.left, test.ops[0], test.comparators[0])
        is_method = isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr in _METHODS
        if is_method and not self._names.is_constant(test.func.value):  # type: ignore[attr-defined]
            assert isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute)
            report = _reporting("called", test.func.value, ast.Constant(test.func.attr), *test.args)
            assert isinstance(report, ast.Call)
            report.keywords = test.keywords
            return report
        return _reporting("ask", _truth(test))

    def _reports(self, test: ast.expr) -> list[ast.expr]:
        """Return the reports in the place of an asserted expression."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return [each for part in test.values for each in self._reports(part)]
        pairs = list(_pairs(test))
        if pairs:
            return [_reporting("ask", *(each for pair in pairs for each in self._computed(list(pair))))]
        return [self._yes_or_no(test)]

    def _computed(self, sides: list[ast.expr]) -> list[ast.expr]:
        return [side for side in sides if not self._names.is_constant(side)] or sides

    def _hide_expected(self, test: Function) -> None:
        """Take the values of parameters away that nothing reads any more."""
        read = {node.id for statement in test.body for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        for decorator in test.decorator_list:
            names, rows = _parametrised(decorator)
            for row in rows:
                values = row.args if isinstance(row, ast.Call) else row.elts if isinstance(row, ast.Tuple | ast.List) else []
                for place, name in enumerate(names):
                    if name not in read and place < len(values):
                        values[place] = ast.Constant(None)


def _drop_unread(test: Function | ast.Module, elsewhere: frozenset[str] = frozenset()) -> None:
    """Take assignments of names away that nothing reads any more, as far as their values call nothing but constructors.
    `elsewhere`: names that other modules may read."""
    while True:
        read = elsewhere | {node.id for node in ast.walk(test) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        before = len(test.body)
        test.body = [node for node in test.body if not (
            isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id not in read and not _may_act(node.value))] or [ast.Pass()]
        if len(test.body) == before:
            return


def _may_act(value: ast.expr) -> bool:
    acting = (node for node in ast.walk(value) if isinstance(node, ast.Call | ast.Await | ast.Yield))
    return not all(isinstance(node, ast.Call) and _is_constructor(node.func) for node in acting)


def _is_constructor(called: ast.expr) -> bool:
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return name[:1].isupper() or name in _CONSTRUCTORS


def _reporting(name: str, *values: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name(ASK, ast.Load()), name, ast.Load()), list(values), [])


def _truth(value: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("bool", ast.Load()), [value], [])


class _Exchange(ast.NodeTransformer):
    """Exchanges letters in texts, and numbers, alike in all of a test."""

    def __init__(
        self, kept: frozenset[str], by_letters: int, by_number: int, only: object = None, by_digit: int = 0,
    ) -> None:
        self._kept, self._by_digit = kept, by_digit
        self._by_letters, self._by_number, self._only = by_letters, by_number, only

    def of(self, test: Function) -> Function:
        """Return the test with its literals exchanged."""
        test.body = [self.visit(statement) for statement in test.body]
        for decorator in test.decorator_list:
            _, rows = _parametrised(decorator)
            for place, row in enumerate(rows):
                rows[place] = self.visit(row)
        return test

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        value = node.value
        if self._only is not None and (type(value) is not type(self._only) or value != self._only):
            return node
        if isinstance(value, str) and value not in self._kept:
            return ast.Constant("".join(_turned(letter, self._by_letters, self._by_digit) for letter in value))
        if isinstance(value, bytes) and self._by_letters:
            return ast.Constant(bytes(map(ord, (_turned(chr(each), self._by_letters) for each in value))))
        if isinstance(value, int | float) and not isinstance(value, bool) and self._by_number:
            return ast.Constant(value + self._by_number)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        if node.arg not in ("encoding", "mode", "match", "timeout", "errors", "id"):
            node.value = self.visit(node.value)
        return node

    def visit_withitem(self, node: ast.withitem) -> ast.withitem:
        if not ast.unparse(node.context_expr).startswith(ASK):
            node.context_expr = self.visit(node.context_expr)
        return node


def _exchanges(test: Function) -> Iterator[_Exchange]:
    """Yield ways to exchange the literals of a test: all numbers, also in texts, all letters, both, then single ones."""
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    names |= {node.arg for node in ast.walk(test) if isinstance(node, ast.arg | ast.keyword) and node.arg}
    kept = frozenset(names | _MODES)
    yield _Exchange(kept, 0, 1, by_digit=1)
    yield _Exchange(kept, 1, 0)
    yield _Exchange(kept, 3, 1)
    yield _Exchange(kept, 0, 1)
    yield _Exchange(kept, 0, -1)
    values = {repr(node.value): node.value for node in ast.walk(test) if isinstance(node, ast.Constant)
              and isinstance(node.value, str | int | float) and not isinstance(node.value, bool) and node.value not in kept}
    for _, value in sorted(values.items())[:6]:
        yield _Exchange(kept, 2, 2, value)


def _turned(letter: str, by: int, by_digit: int = 0) -> str:
    """Return the letter so many places on in its alphabet, a digit so many on; what is neither stays."""
    if letter in "0123456789":
        return str((int(letter) + by_digit) % 10)
    for first in "aA":
        if ord(first) <= ord(letter) < ord(first) + 26:
            return chr(ord(first) + (ord(letter) - ord(first) + by) % 26)
    return letter
