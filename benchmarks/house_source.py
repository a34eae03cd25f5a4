"""Measures of the source, by its syntax trees: lines, names, imports. In: the folder of a checkout. Out: counts and lists.

Counts what stands in the four packages that are shipped. Does not see names that are made at run time, nor whether a name
that is allowed is a good one.
"""

from __future__ import annotations

import ast
import gc
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

PACKAGES = ("warehouse", "extractors", "env_builder", "pipelines")
BANNED = frozenset({
    "told", "said", "found", "known", "held", "left", "asked", "seen", "mend", "anew", "beside", "guise", "leaned", "swayed",
    "whoever"})
"""Words that no identifier may be: participles and words of our own, where the name should say what it holds."""


@cache
def sources(root: Path) -> tuple[Path, ...]:
    """Return every Python file of the shipped packages, sorted."""
    return tuple(sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")))


@contextmanager
def _all_kept() -> Iterator[None]:
    """Make many objects that stay, a million and a half nodes: the collector would go through them again and again, for three
    quarters of the time, and free none."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


@cache
def tree(path: Path) -> ast.Module:
    """Return a file's syntax tree."""
    with _all_kept():
        return ast.parse(path.read_text("utf-8"), str(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's syntax tree."""
    with _all_kept():
        return tuple(ast.walk(tree(path)))


def product_lines(root: Path) -> int:
    """Count the lines of all shipped Python; the linter holds them to the formatter's width."""
    return sum(path.read_text("utf-8").count("\n") for path in sources(root))


def banned_names(root: Path) -> list[str]:
    """List `file:line name` of every binding whose name, without underscores around it, is a banned word."""
    return [
        f"{path.relative_to(root).as_posix()}:{line} {name}"
        for path in sources(root) for line, name in _bindings(path) if name.strip("_").lower() in BANNED]


def _bindings(path: Path) -> list[tuple[int, str]]:
    """List each scope's names once: variables, arguments, attributes that are set, functions, classes."""
    bindings: list[tuple[int, str]] = []
    waiting: list[tuple[ast.AST, set[str]]] = [(tree(path), set())]
    while waiting:
        node, scope = waiting.pop()
        for child in ast.iter_child_nodes(node):
            name = _bound_by(child)
            if name and name not in scope:
                bindings.append((getattr(child, "lineno", 0), name))
                scope.add(name)
            inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            waiting.append((child, set() if inner else scope))
    return bindings


_NAMING: dict[type[ast.AST], str] = {
    ast.FunctionDef: "name", ast.AsyncFunctionDef: "name", ast.ClassDef: "name", ast.Name: "id", ast.Attribute: "attr",
    ast.arg: "arg", ast.ExceptHandler: "name", ast.MatchAs: "name", ast.MatchStar: "name", ast.alias: "asname"}
"""Kind of node -> its field with the name that it gives to something; a name or an attribute only where it is set."""


def _bound_by(node: ast.AST) -> str | None:
    """Return the name that a node gives to something."""
    field = _NAMING.get(type(node))
    is_set = isinstance(getattr(node, "ctx", None), ast.Store | None)
    return getattr(node, field) if field and is_set else None


def class_names_twice(root: Path) -> list[str]:
    """List the class names that more than one class of the product has."""
    names = Counter(node.name for path in sources(root) for node in nodes(path) if isinstance(node, ast.ClassDef))
    return sorted(name for name, count in names.items() if count > 1)


def helpers_with_one_caller(root: Path) -> int:
    """Count the private functions whose name their module uses once, in a call."""
    count = 0
    for path in sources(root):
        uses = Counter(getattr(node, "id", None) or getattr(node, "attr", None) for node in nodes(path)
                       if isinstance(node, ast.Name | ast.Attribute))
        called = {getattr(node.func, "id", None) or getattr(node.func, "attr", None) for node in nodes(path)
                  if isinstance(node, ast.Call)}
        count += sum(isinstance(node, ast.FunctionDef) and node.name.startswith("_") and not node.name.startswith("__")
                     and uses[node.name] == 1 and node.name in called for node in nodes(path))
    return count


def pipelines_root_modules(root: Path) -> int:
    """Count the modules in the root of `pipelines`, `__init__.py` among them."""
    return len(list((root / "pipelines").glob("*.py")))


def imports(path: Path, root: Path) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Yield (line, dotted module, names taken of it) of every import of a file, wherever it stands."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name, ()) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = path.relative_to(root).with_suffix("").parts[: -node.level] if node.level else ()
            module = ".".join([*parts, *([node.module] if node.module else [])])
            yield node.lineno, module, tuple(name.name for name in node.names)


def circles(root: Path) -> list[list[str]]:
    """List the groups of modules that import each other in a loop, counting imports inside functions too.

    A package's `__init__` counts as a module of its own; importing `package.module` counts as importing `module` alone.
    Groups are the strongly connected components of more than one module (Tarjan, 1972).
    """
    modules = {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in sources(root)}
    edges: dict[str, set[str]] = {}
    for module, path in modules.items():
        targets: set[str] = set()
        for _, base, names in imports(path, root):
            inner = {f"{base}.{name}" for name in names} & modules.keys()
            targets |= inner
            if base in modules and (not names or len(inner) < len(names)):
                targets.add(base)
        edges[module] = targets - {module}
    return _components(edges)


def _components(edges: dict[str, set[str]]) -> list[list[str]]:
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for target in sorted(edges[node]):
            if target not in order:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], order[target])
        if low[node] == order[node]:
            group = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(group) > 1:
                groups.append(sorted(group))

    for node in sorted(edges):
        if node not in order:
            visit(node)
    return sorted(groups)


def long_titles(log: str) -> list[str]:
    """List what is wrong with commits: a title over 72 characters, or no body. `log`: `%h%x00%s%x00%b%x01` of `git log`."""
    wrong = []
    for entry in filter(None, (each.strip("\n") for each in log.split("\x01"))):
        commit, title, body = entry.split("\0")
        if len(title) > 72:
            wrong.append(f"{commit} has a title of {len(title)} characters: {title}")
        if not re.sub(r"(?m)^[A-Z][a-z-]+-by: .*$", "", body).strip():
            wrong.append(f"{commit} has no body: {title}")
    return wrong
