"""The digest of the code that a stage runs: what other code computed is computed again.

In: modules. Out: a digest over their sources, those of every module of ours that they import (inside functions too), of the
entry points, modules and files next to them that they name in strings, of the data files of their folders, and over the
versions of the libraries that all these import, with what those stand on. What each module imports is cached in the user's
cache folder by its content, and the graph under the digest of all sources and installed packages: after a change only what
changed is parsed. Does not see: a name that is put together when the code runs, but for `env_builder.runtime`, which counts
as a whole; a library that was changed in place without another version.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

PACKAGES = ("extractors", "env_builder", "warehouse", "pipelines")
_COPIED = "env_builder/runtime/"
"""A package that goes into every environment as it is: a module that imports a part of it depends on all of it."""
_MOST_KEPT = 8
"""Graphs in the user's cache: checkouts and environments with other packages take turns."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_JOINS = ("joinpath", "with_name")
Graph = dict[str, list[str]]
"""Path of a source, or of a folder (with a `/` at its end) -> paths of the sources and folders that it depends on."""


class _CodeMap(NamedTuple):
    """What depends on what."""

    graph: Graph
    libraries: dict[str, list[str]]
    """Path of a source -> the libraries that it imports, with their versions."""


class _Mentions(NamedTuple):
    """What a module's text names."""

    modules: list[str]
    """Dotted names that it imports, ours and others'."""
    words: list[str]
    """Dotted names of ours and groups of entry points in its strings."""
    places: list[str]
    """Strings that may be files next to it: of a module that asks where it lies."""


@cache
def code_digest(*modules: str) -> str:
    """Digest of these modules' code with all that it imports; of the whole product where none is named."""
    sources = _sources()
    paths = closure(*modules) if modules else sorted(sources)
    libraries = _code_map().libraries
    parts = [*(f"{path}\0{sources[path]}" for path in paths),
             *sorted({library for path in paths for library in libraries.get(path, ())}), sys.implementation.cache_tag or ""]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def closure(*modules: str) -> list[str]:
    """List the paths of the files that these modules depend on, their own among them, sorted."""
    sources, graph = _sources(), _code_map().graph
    waiting = [path for module in modules for path in _paths_of(module, sources)]
    reached = set(waiting)
    while waiting:
        new = [path for path in graph.get(waiting.pop(), ()) if path not in reached]
        reached.update(new)
        waiting += new
    return sorted(path for path in reached if not path.endswith("/"))


@cache
def _sources() -> dict[str, str]:
    """Path of every source and data file -> its sha256."""
    return {path: hashlib.sha256(content).hexdigest()
            for package in PACKAGES for path, content in _walk(files(package), package)}


def _walk(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for child in sorted(folder.iterdir(), key=lambda each: each.name):
        if child.name.startswith(".") or child.name == "__pycache__":
            continue
        if child.is_dir():
            yield from _walk(child, f"{path}/{child.name}")
        elif not child.name.endswith(".pyc"):
            yield f"{path}/{child.name}", child.read_bytes()


@cache
def _installed() -> dict[str, int]:
    """Folder name of every installed package, with its version in it -> when its entry points were last written."""
    packages: dict[str, int] = {}
    for folder in map(Path, sys.path):
        with contextlib.suppress(OSError):
            for each in folder.iterdir():
                if each.name.endswith((".dist-info", ".egg-info")):
                    points = each / "entry_points.txt"
                    packages.setdefault(each.name, points.stat().st_mtime_ns if points.exists() else 0)
    return packages


@cache
def _code_map() -> _CodeMap:
    name = hashlib.sha256(json.dumps([_sources(), _installed()], sort_keys=True).encode()).hexdigest()
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "traceroom"
    kept = folder / f"imports-{name[:16]}.json"
    if (made := _read(kept)) is not None:
        return _CodeMap(*made)
    mentions = _all_mentions(folder / "modules.json")
    made = _CodeMap(_import_graph(_sources(), mentions), _libraries(mentions))
    _write(kept, made)
    with contextlib.suppress(OSError):
        for old in sorted(folder.glob("imports-*.json"), key=lambda path: -path.stat().st_mtime)[_MOST_KEPT:]:
            old.unlink(missing_ok=True)
    return made


def _read(path: Path) -> Any:
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text("utf-8"))
    return None


def _write(path: Path, value: object) -> None:
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.write_text(json.dumps(value), "utf-8")
        draft.replace(path)


def _all_mentions(kept: Path) -> dict[str, _Mentions]:
    """Return what each module names; a module that was parsed before with the same content is not parsed again."""
    own = _sources()["pipelines/running/code.py"]   # another version of this module may look for other names
    read_before = _read(kept) or {}
    before: dict[str, list[Any]] = read_before.get("modules", {}) if read_before.get("by") == own else {}
    now: dict[str, tuple[str, _Mentions]] = {}
    for path, sha256 in _sources().items():
        if path.endswith(".py"):
            was = before.get(path)
            package, _, rest = path.partition("/")
            now[path] = (sha256, _Mentions(*was[1]) if was and was[0] == sha256 else _mentions(
                ast.parse(files(package).joinpath(*rest.split("/")).read_bytes()), path))
    _write(kept, {"by": own, "modules": now})
    return {path: each for path, (_, each) in now.items()}


def _mentions(tree: ast.Module, path: str) -> _Mentions:
    """List what a module names."""
    parts = path.removesuffix(".py").split("/")
    modules, texts = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*parts[:len(parts) - node.level], *([node.module] if node.module else [])]) if node.level else (
                node.module or "")
            modules |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 100:
            texts.add(node.value)
    words = [text for text in texts if text.split(".")[0] in (*PACKAGES, "traceroom")]
    return _Mentions(sorted(modules), sorted(words), sorted(_places(tree, {"__file__", "files"})))


def _places(tree: ast.Module, asking: set[str]) -> set[str]:
    """Return the strings that are joined to where the module lies, or to a name of the module that was made of that."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
                isinstance(each, ast.Name) and each.id in asking for each in ast.walk(node.value)):
            asking = asking | {target.id for target in node.targets if isinstance(target, ast.Name)}
    joined = [list(ast.walk(node)) for node in ast.walk(tree) if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div))
              or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _JOINS)]
    return {each.value.strip("/") for nodes in joined if any(isinstance(each, ast.Name) and each.id in asking for each in nodes)
            for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)
            and _NAME.fullmatch(each.value.replace("/", ".").strip("."))}


def _import_graph(sources: Mapping[str, str], mentions: Mapping[str, _Mentions]) -> Graph:
    points = {group: [point.value for point in metadata.entry_points(group=group)] for group in metadata.entry_points().groups
              if group.startswith("traceroom.")}
    folders = _folders(sources)
    graph: Graph = {_COPIED: [path for path in sources if path.startswith(_COPIED)]}
    for path, named in mentions.items():
        words = [value.partition(":")[0] for word in named.words for value in (word, *points.get(word, ()))]
        to = {*_data_of(path, folders), *(each for name in {*named.modules, *words} for each in _paths_of(name, sources))}
        parts = path.split("/")[:-1]
        for n in range(len(parts), 0, -1):   # `Path(__file__).parent.parent / "folder"`
            for place in named.places:
                at = "/".join([*parts[:n], place])
                to |= {at} if at in sources else {f"{at}/"} if at in folders else set()
        graph[path] = sorted(to - {path})
        for folder in (each for each in to if each.endswith("/") and each not in graph):
            graph[folder] = [each for each in sources if each.startswith(folder)]
    return graph


def _folders(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Folder -> its files that are no modules, those of folders below it without any module among them."""
    with_modules = {path.rpartition("/")[0] for path in sources if path.endswith(".py")}
    data: dict[str, list[str]] = {folder: [] for folder in with_modules}
    for path in sources:
        folder = path.rpartition("/")[0]
        if not path.endswith(".py"):
            while folder and folder not in with_modules:
                data.setdefault(folder, []).append(path)
                folder = folder.rpartition("/")[0]
            data[folder].append(path)
    return data


def _data_of(path: str, folders: Mapping[str, list[str]]) -> list[str]:
    return folders[path.rpartition("/")[0]]


def _paths_of(name: str, sources: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths of a module's source and of the packages that it lies in; nothing for a name that is no module."""
    path = name.replace(".", "/")
    own = next((each for each in (f"{path}.py", f"{path}/__init__.py") if each in sources), None)
    if own is None:
        return
    parts = name.split(".")
    yield own
    yield from (each for n in range(1, len(parts)) if (each := f"{'/'.join(parts[:n])}/__init__.py") in sources)
    if own.startswith(_COPIED):
        yield _COPIED


def _libraries(mentions: Mapping[str, _Mentions]) -> dict[str, list[str]]:
    """Path of a module -> the libraries that it imports and what those stand on, with their versions."""
    owners = metadata.packages_distributions()
    closures: dict[str, list[str]] = {}
    libraries = {}
    for path, named in mentions.items():
        tops = {name.split(".")[0] for name in named.modules} - set(PACKAGES)
        each = {version for top in tops for owner in owners.get(top, ()) for version in _with_required(owner, closures)}
        if each:
            libraries[path] = sorted(each)
    return libraries


def _with_required(name: str, closures: dict[str, list[str]]) -> list[str]:
    """Return a library and all that it requires, with their versions; what is not installed is left out."""
    if name not in closures:
        versions, waiting, others = [], [name], set[str]()
        while waiting:
            each = waiting.pop()
            with contextlib.suppress(metadata.PackageNotFoundError):
                versions.append(f"{each}=={metadata.version(each)}")
                required = [row for row in metadata.requires(each) or () if "extra ==" not in row and "extra==" not in row]
                names = [match[0].lower().replace("_", "-") for row in required if (match := _NAME.match(row))]
                waiting += [other for other in names if other not in others]
                others.update(names)
        closures[name] = sorted(set(versions))
    return closures[name]
