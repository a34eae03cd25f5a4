"""The digest of the code that a stage runs: what other code computed is computed again.

In: modules. Out: a digest over their sources, those of every module of ours that they import (inside functions too), of the
entry points and modules that they name in strings, and of the data files next to them. The graph of imports is cached in the
user's cache folder under the digest of all sources. Does not see: changes in other packages.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

PACKAGES = ("extractors", "env_builder", "warehouse", "pipelines")
_DATA = (".sql", ".toml", ".json", ".txt", ".jinja", ".js", ".css", ".mjs", ".ini")
_COPIED = "env_builder.runtime"
"""A package that goes into every environment as it is: a module that imports a part of it depends on all of it."""
_MOST_KEPT = 8
"""Graphs in the user's cache: checkouts and environments with other packages take turns, and a graph takes seconds to make."""
Graph = dict[str, list[str]]
"""Path of a source -> paths of the sources that it depends on."""


@cache
def code_digest(*modules: str) -> str:
    """Digest of these modules' code with all that it imports; of the whole product where none is named."""
    sources = _sources()
    paths = closure(*modules) if modules else sorted(sources)
    return hashlib.sha256("".join(f"{path}\0{sources[path]}" for path in paths).encode()).hexdigest()


def closure(*modules: str) -> list[str]:
    """List the paths of the files that these modules depend on, their own among them, sorted."""
    sources, graph = _sources(), _graph()
    waiting = [path for module in modules for path in _paths_of(module, sources)]
    reached = set(waiting)
    while waiting:
        new = [path for path in graph.get(waiting.pop(), ()) if path not in reached]
        reached.update(new)
        waiting += new
    return sorted(reached)


@cache
def _sources() -> dict[str, str]:
    """Path of every source and data file -> its sha256."""
    return {path: hashlib.sha256(content).hexdigest()
            for package in PACKAGES for path, content in _walk(files(package), package)}


def _walk(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for child in sorted(folder.iterdir(), key=lambda each: each.name):
        if child.is_dir() and child.name != "__pycache__":
            yield from _walk(child, f"{path}/{child.name}")
        elif child.name.endswith((".py", *_DATA)):
            yield f"{path}/{child.name}", child.read_bytes()


@cache
def _graph() -> Graph:
    points = {group: [point.value for point in entry_points(group=group)] for group in sorted(entry_points().groups)
              if group.startswith("traceroom.")}
    name = hashlib.sha256(json.dumps([_sources(), points], sort_keys=True).encode()).hexdigest()
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "traceroom" / f"imports-{name[:16]}.json"
    with contextlib.suppress(OSError, ValueError):
        graph: Graph = json.loads(kept.read_text("utf-8"))
        return graph
    graph = _import_graph(_sources(), points)
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_name(f"{kept.name}.{os.getpid()}")
        draft.write_text(json.dumps(graph), "utf-8")
        draft.replace(kept)
        for old in sorted(kept.parent.glob("imports-*.json"), key=lambda path: -path.stat().st_mtime)[_MOST_KEPT:]:
            old.unlink(missing_ok=True)
    return graph


def _import_graph(sources: Mapping[str, str], points: Mapping[str, list[str]]) -> Graph:
    graph: Graph = {}
    for path in sources:
        if path.endswith(".py"):
            package, _, rest = path.partition("/")
            names = set(_named(ast.parse(files(package).joinpath(*rest.split("/")).read_bytes()), path, points))
            folder = path.rpartition("/")[0]
            data = {each for each in sources if each.rpartition("/")[0] == folder and not each.endswith(".py")}
            graph[path] = sorted({*data, *(each for name in names for each in _paths_of(name, sources))} - {path})
    return graph


def _named(tree: ast.Module, path: str, points: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the dotted names that a module imports or names in strings: modules, entry points, members of modules."""
    parts = path.removesuffix(".py").split("/")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*parts[:len(parts) - node.level], *([node.module] if node.module else [])]) if node.level else (
                node.module or "")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 100:
            yield from (value.partition(":")[0] for value in (node.value, *points.get(node.value, ()))
                        if value.split(".")[0] in PACKAGES)


def _paths_of(name: str, sources: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths of a module's source and of the packages that it lies in; nothing for a name that is no module."""
    path = name.replace(".", "/")
    own = next((each for each in (f"{path}.py", f"{path}/__init__.py") if each in sources), None)
    if own is None:
        return
    parts = name.split(".")
    yield own
    yield from (each for n in range(1, len(parts)) if (each := f"{'/'.join(parts[:n])}/__init__.py") in sources)
    if f"{name}.".startswith(f"{_COPIED}."):
        yield from (each for each in sources if each.startswith(f"{_COPIED.replace('.', '/')}/"))
