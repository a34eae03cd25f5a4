"""What a tree of a Python project says of how it is set up and tested, read without running any of it.

In: the files of a tree. Out: `Metadata`: requirements of the project and of its tests, those that may be needed, the folders in
which its modules lie, its scripts, the options of its test runner, files that only its build writes.

Sees pyproject.toml (PEP 621, PEP 735, Poetry, PDM, Hatch), setup.cfg, literals in setup.py, requirements files, Pipfile, tox,
nox, and commands of CI. Does not see what setup.py computes, lock files, packages named by address or path.
"""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from .literals import call_arguments, installed_in_sessions

Files = Mapping[str, bytes]
"""Path -> content."""
_TESTING = re.compile(r"(?:^|[-_/])(?:unit)?tests?(?:$|[-_.])|testing|pytest")
_DEVELOPING = re.compile(r"(?:^|[-_/])(?:dev(?:el|elop|elopment)?|ci|qa|check|lint|typing|types?|build|release|bench\w*|extra)"
                         r"(?:$|[-_.])")
_TEXTS = re.compile(r"docs?(?:$|[-_/.])|sphinx|mkdocs")
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(?=$|[<>=!~;(,\s])")
_REQUIREMENT_FILES = re.compile(r"(?:[\w.-]*requirements?[\w.-]*|requirements?/[\w./-]+)\.(?:txt|in)")
_CI = re.compile(r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.yml|\.travis\.yml"
                 r"|azure-pipelines[\w.-]*\.yml|\.circleci/config\.yml")
_RUNS_TESTS = re.compile(r"\b(?:pytest|py\.test|unittest|tox|nox|hatch|make test|coverage run)\b")
_INSTALL = re.compile(r"(?:uv )?pip[0-9.]* install ([^\n|&;]+)")
_BY_GROUP = re.compile(r"--(?:extra|group|with|only-group|extras)[ =]([\w,.-]+)")
_MATRIX = re.compile(r"python(?:-version|_version)?s?['\"]?:\s*"
                     r"(\[[^\]]*\]|(?:\s*-\s*['\"]?[\w.-]+['\"]?\n?)+|['\"]?3\.\d+['\"]?)", re.I)
_MINOR = re.compile(r"(?<![\d.])3\.(\d{1,2})(?![\d])")
_FACTOR = re.compile(r"([\w{},.!-]+):\s+(\S.*)")
_OPTION_WITH_VALUE = ("-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f",
                      "--find-links", "-t", "--target", "--python", "-p", "--group")


@dataclass(slots=True)
class Metadata:
    """What a tree says."""

    name: str | None = None
    version: str | None = None
    requires_python: str | None = None
    minors: tuple[int, ...] = ()
    """Minor versions of Python 3 that CI runs."""
    requirements: list[str] = field(default_factory=list)
    """PEP 508: of the project and of its tests, in the order in which they stand."""
    others: list[str] = field(default_factory=list)
    """Of other extras and groups: taken where a run shows that they are missing."""
    roots: tuple[str, ...] = ("",)
    """Folders in which modules of the project lie, "" for the tree itself."""
    entry_points: dict[str, dict[str, str]] = field(default_factory=dict)
    """Group -> name -> object; `console_scripts` are its commands."""
    runner: dict[str, str] = field(default_factory=dict)
    """Options of pytest's configuration, without `addopts`."""
    addopts: str = ""
    version_files: tuple[str, ...] = ()
    """Modules with the version that its build writes."""


def metadata_of(files: Files, minor: int) -> Metadata:
    """Return what a tree says, read for Python 3.`minor`."""
    return _TreeReader(files, minor).read()


def name_of(requirement: str) -> str | None:
    """Return the normalised name of the package that a requirement is for; None if it names an address or a path."""
    match = _NAME.match(requirement)
    rest = requirement[match.end():].lstrip() if match is not None else ""
    if match is None or rest.startswith("@") or "/" in match[0]:
        return None
    return re.sub(r"[-_.]+", "-", match[1]).lower()


class _TreeReader:
    """Reads one tree."""

    def __init__(self, files: Files, minor: int) -> None:
        self._files, self._minor = files, minor
        self._metadata = Metadata()
        self._extras: dict[str, list[str]] = {}
        self._wanted_extras: set[str] = set()
        """Extras and groups that tox or CI installs."""
        self._read_files: set[str] = set()

    def read(self) -> Metadata:
        """Return all that was read: what tests need first, then the rest as `others`."""
        result = self._metadata
        self._pyproject()
        self._setup_cfg()
        self._setup_py()
        self._pipfile()
        self._ini_of_runner()
        self._tox()
        self._ci()
        self._nox()
        files = [path for path in sorted(self._files) if _REQUIREMENT_FILES.fullmatch(path)]
        for path in sorted(files, key=lambda path: not _TESTING.search(path)):
            rows = self._requirement_file(path)
            is_for_tests = _TESTING.search(path) or not _DEVELOPING.search(path) or not any(map(_TESTING.search, files))
            (result.requirements if is_for_tests and not _TEXTS.search(path) else result.others).extend(rows)
        for extra, requirements in self._extras.items():
            wanted = extra.lower() in self._wanted_extras or self._is_for_tests(extra.lower())
            (result.requirements if wanted else result.others).extend(requirements)
        without = (None, name_of(result.name or ""))
        result.requirements, result.others = (
            [each for each in dict.fromkeys(map(_plain, rows)) if name_of(each) not in without]
            for rows in (result.requirements, result.others))
        result.roots = self._roots()
        return result

    def _is_for_tests(self, extra: str) -> bool:
        """Return whether an extra is what tests need: it is named so, or is for developers and none is named so."""
        has_tests = any(_TESTING.search(each.lower()) for each in self._extras)
        return not _TEXTS.search(extra) and bool(_TESTING.search(extra) or (not has_tests and _DEVELOPING.search(extra)))

    def _need(self, requirements: Iterable[str]) -> None:
        self._metadata.requirements += requirements

    def _text(self, path: str) -> str:
        return self._files.get(path, b"").decode("utf-8", "replace")

    def _pyproject(self) -> None:
        try:
            document: dict[str, Any] = tomllib.loads(self._text("pyproject.toml"))
        except tomllib.TOMLDecodeError:
            return
        metadata, project, tool = self._metadata, _table(document, "project"), _table(document, "tool")
        poetry = _table(tool, "poetry")
        metadata.name = _string(project.get("name") or poetry.get("name"))
        metadata.version = _string(project.get("version") or poetry.get("version"))
        metadata.requires_python = _string(project.get("requires-python") or _table(poetry, "dependencies").get("python"))
        self._need(_strings(project.get("dependencies")))
        for name, rows in _table(project, "optional-dependencies").items():
            self._extras.setdefault(name, []).extend(_strings(rows))
        groups = {**_table(document, "dependency-groups"), **_table(_table(tool, "pdm"), "dev-dependencies")}
        for name in groups:
            self._extras.setdefault(name, []).extend(_of_group(groups, name))
        if _strings(_table(tool, "uv").get("dev-dependencies")):
            self._extras.setdefault("dev", []).extend(_strings(_table(tool, "uv")["dev-dependencies"]))
        self._poetry(poetry)
        environments = _table(_table(tool, "hatch"), "envs")
        for name in environments:
            rows = [each for key in ("dependencies", "extra-dependencies")
                    for each in _strings(_table(environments, name).get(key))]
            self._extras.setdefault("test" if name == "default" else name, []).extend(rows)
        metadata.entry_points = {
            **{group: {name: each for name, each in rows.items() if isinstance(each, str)}
               for group, rows in _table(project, "entry-points").items() if isinstance(rows, dict)},
            "console_scripts": {name: each for name, each in {**_table(project, "scripts"), **_table(poetry, "scripts")}.items()
                                if isinstance(each, str)}}
        options = _table(_table(tool, "pytest"), "ini_options") or {
            key: each for key, each in _table(tool, "pytest").items() if key != "ini_options"}
        self._runner({name: "\n".join(map(str, each)) if isinstance(each, list) else str(each)
                      for name, each in options.items()},
                     shlex.join(map(str, options["addopts"])) if isinstance(options.get("addopts"), list) else None)
        legacy = _table(tool, "tox")
        if isinstance(legacy.get("legacy_tox_ini"), str):
            self._tox_text(legacy["legacy_tox_ini"])
        base = _table(legacy, "env_run_base")
        self._installed(_strings(base.get("deps")), _strings(base.get("extras")) + _strings(base.get("dependency_groups")))
        self._version_files(tool)

    def _poetry(self, poetry: dict[str, Any]) -> None:
        self._need(_of_poetry(_table(poetry, "dependencies"), with_optional=False))
        optional = _table(poetry, "dependencies")
        for name, rows in _table(poetry, "extras").items():
            self._extras.setdefault(name, []).extend(_of_poetry({each: optional.get(each, "*") for each in _strings(rows)}))
        groups = {"dev": {"dependencies": _table(poetry, "dev-dependencies")}, **_table(poetry, "group")}
        for name, group in groups.items():
            self._extras.setdefault(name, []).extend(_of_poetry(_table(group, "dependencies")))

    def _version_files(self, tool: dict[str, Any]) -> None:
        scm = _table(tool, "setuptools_scm")
        hatch = _table(_table(tool, "hatch"), "build")
        places = [scm.get("write_to"), scm.get("version_file"),
                  _table(_table(_table(hatch, "hooks"), "vcs"), "version-file").get("path")
                  or _table(_table(hatch, "hooks"), "vcs").get("version-file"),
                  _table(_table(tool, "pdm"), "version").get("write_to"),
                  _table(_table(tool, "versioningit"), "write").get("file")]
        self._metadata.version_files = tuple(dict.fromkeys(
            each for each in places if isinstance(each, str) and each.endswith(".py") and each not in self._files))

    def _setup_cfg(self) -> None:
        parsed = _ini(self._text("setup.cfg"))
        self._metadata.name = self._metadata.name or parsed.get("metadata", {}).get("name")
        version = parsed.get("metadata", {}).get("version")
        self._metadata.version = self._metadata.version or (version if version and ":" not in version else None)
        options = parsed.get("options", {})
        self._metadata.requires_python = self._metadata.requires_python or options.get("python_requires")
        self._need(_lines(options.get("install_requires", "")) + _lines(options.get("tests_require", "")))
        for name, rows in parsed.get("options.extras_require", {}).items():
            self._extras.setdefault(name, []).extend(_lines(rows))
        for group, rows in parsed.get("options.entry_points", {}).items():
            self._add_entry_points(group, _lines(rows))

    def _setup_py(self) -> None:
        arguments = call_arguments(self._text("setup.py"), "setup")
        metadata = self._metadata
        metadata.name = metadata.name or _string(arguments.get("name"))
        metadata.version = metadata.version or _string(arguments.get("version"))
        metadata.requires_python = metadata.requires_python or _string(arguments.get("python_requires"))
        self._need(_listed(arguments.get("install_requires")) + _listed(arguments.get("tests_require")))
        extras = arguments.get("extras_require")
        for name, rows in extras.items() if isinstance(extras, dict) else ():
            self._extras.setdefault(str(name), []).extend(_listed(rows))
        points = arguments.get("entry_points")
        for group, rows in points.items() if isinstance(points, dict) else ():
            self._add_entry_points(str(group), _listed(rows))
        if isinstance(points, str):
            for group, options in _ini(points).items():
                self._add_entry_points(group, [f"{name}={each}" for name, each in options.items()])

    def _add_entry_points(self, group: str, rows: Iterable[str]) -> None:
        for row in rows:
            name, equals, target = row.partition("=")
            if equals:
                self._metadata.entry_points.setdefault(group, {})[name.strip()] = target.strip()

    def _pipfile(self) -> None:
        try:
            document = tomllib.loads(self._text("Pipfile"))
        except tomllib.TOMLDecodeError:
            return
        for name in ("packages", "dev-packages"):
            self._need(_of_poetry(_table(document, name)))

    def _ini_of_runner(self) -> None:
        for path, section in (("pytest.ini", "pytest"), (".pytest.ini", "pytest"), ("tox.ini", "pytest"),
                              ("setup.cfg", "tool:pytest")):
            self._runner(_ini(self._text(path)).get(section, {}), None)

    def _runner(self, options: Mapping[str, str], addopts: str | None) -> None:
        """Take the first configuration of the runner that stands."""
        if options and not self._metadata.runner and not self._metadata.addopts:
            self._metadata.addopts = addopts if addopts is not None else options.get("addopts", "")
            self._metadata.runner = {name: each for name, each in options.items() if name != "addopts"}

    def _tox(self) -> None:
        self._tox_text(self._text("tox.ini"))
        self._tox_sections({name.removeprefix("tox:"): each for name, each in _ini(self._text("setup.cfg")).items()
                            if name.startswith("tox:")})

    def _tox_text(self, text: str) -> None:
        self._tox_sections(_ini(text))

    def _tox_sections(self, parsed: Mapping[str, Mapping[str, str]]) -> None:
        for name, section in parsed.items():
            if name == "testenv" or (name.startswith("testenv:") and "pytest" in section.get("commands", "")):
                rows = [text for line in _lines(section.get("deps", "")) if (text := self._of_factor(line)) is not None]
                extras = [text for line in _lines(section.get("extras", "").replace(",", "\n"))
                          if (text := self._of_factor(line)) is not None]
                self._installed(rows, extras + _lines(section.get("dependency_groups", "").replace(",", "\n")))

    def _of_factor(self, line: str) -> str | None:
        """Return what a line of tox holds for this Python; None where it is for others, which may be needed all the same."""
        match = _FACTOR.fullmatch(line)
        if match is None:
            return line
        factors = {factor for each in _braces(match[1]) for factor in [each]}
        mine = {f"py3{self._minor}", f"py3.{self._minor}", "py3", "py"}
        if factors & mine or all(each.startswith("!") and each[1:] not in mine for each in factors):
            return match[2]
        self._metadata.others.append(match[2])
        return None

    def _installed(self, arguments: Iterable[str], extras: Iterable[str]) -> None:
        """Take what an installer was given: requirements, files of them, extras of the project."""
        self._wanted_extras.update(each.strip().lower() for each in extras)
        rows = list(arguments)
        words = [word for row in rows for word in (_words(row) if row.startswith("-") else [row])]
        for at, word in enumerate(words):
            before = words[at - 1] if at else ""
            path = word[2:].strip() if word.startswith("-r") and len(word) > 2 else word
            if before in ("-r", "--requirement") or path is not word:
                self._need(self._requirement_file(path))
            elif before == "--group":
                self._wanted_extras.add(word.lower())
            elif before in _OPTION_WITH_VALUE or word.startswith("-"):
                continue
            elif match := re.fullmatch(r"(?:\.|\{toxinidir\}|[\w./-]*/)\[([\w,. -]+)\]", word):
                self._wanted_extras.update(each.strip().lower() for each in match[1].split(","))
            elif name_of(word) is not None and not word.endswith((".whl", ".gz", ".txt")) and not set("${") & set(word):
                self._need([word])

    def _ci(self) -> None:
        minors: set[int] = set()
        for path in sorted(self._files):
            text = self._text(path) if _CI.fullmatch(path) else ""
            if not _RUNS_TESTS.search(text):
                continue
            minors.update(int(minor) for each in _MATRIX.findall(text) for minor in _MINOR.findall(each))
            for line in _INSTALL.findall(text.replace("\\\n", " ")):
                words = [word.strip("\"'") for word in _words(line)]
                self._installed([" ".join(["--", *words])] if words else [], ())
            self._wanted_extras.update(name for each in _BY_GROUP.findall(text) for name in each.lower().split(","))
        self._metadata.minors = tuple(sorted(minors))

    def _nox(self) -> None:
        for arguments in installed_in_sessions(self._text("noxfile.py")):
            self._installed([" ".join(["--", *map(shlex.quote, arguments)])], ())

    def _requirement_file(self, path: str) -> list[str]:
        """Return the requirements of a file and of those it names, each file once."""
        path = str(PurePosixPath(path)).removeprefix("{toxinidir}/")
        if path in self._read_files or path not in self._files:
            return []
        self._read_files.add(path)
        rows = []
        for line in _lines(self._text(path).replace("\\\n", " ")):
            option, _, rest = line.partition(" ")
            if option in ("-r", "--requirement"):
                rows += self._requirement_file(str(PurePosixPath(path).parent / rest.strip()))
            elif not line.startswith("-"):
                rows.append(line.partition(" --")[0])
        return rows

    def _roots(self) -> tuple[str, ...]:
        """Return where modules lie: as the build says, else `src`, and the tree itself."""
        places: list[str] = []
        text = self._text("pyproject.toml") + self._text("setup.cfg") + self._text("setup.py")
        for pattern in (r"package[-_]dir\W+(?:=|:)?\s*\{?\s*['\"]?['\"]?\s*[:=]\s*['\"]?([\w./-]+)",
                        r"\bwhere\s*=\s*\[?\s*['\"]?([\w./-]+)", r"\bfrom\s*=\s*['\"]([\w./-]+)"):
            places += re.findall(pattern, text)
        places += ["src", "lib"]
        folders = {str(parent) for path in self._files if path.endswith(".py") for parent in PurePosixPath(path).parents}
        return (*dict.fromkeys(each.strip("./") for each in places if each.strip("./") in folders and each.strip("./")), "")


def _table(document: Any, name: str) -> dict[str, Any]:
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else {}


def _strings(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _listed(value: Any) -> list[str]:
    return _lines(value) if isinstance(value, str) else [each for each in value if isinstance(each, str)] if isinstance(
        value, list | tuple) else []


def _lines(text: str) -> list[str]:
    """Return lines without comments and white space."""
    lines = (re.sub(r"(?:^|\s)#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


def _plain(requirement: str) -> str:
    return re.sub(r"\s+", " ", requirement).strip().rstrip(",")


def _ini(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=", ":"))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except (configparser.Error, AttributeError):  # the second: a line that goes on an option without a value
        return {}
    return {name: {key: each or "" for key, each in parser[name].items()} for name in parser.sections()}


def _of_group(groups: Mapping[str, Any], name: str, depth: int = 0) -> Iterator[str]:
    """Yield the requirements of a dependency group and of those it includes."""
    rows = groups.get(name)
    for row in rows if isinstance(rows, list) and depth < 8 else ():
        if isinstance(row, str):
            yield row
        elif isinstance(row, dict) and isinstance(row.get("include-group"), str):
            yield from _of_group(groups, row["include-group"], depth + 1)


def _of_poetry(rows: Mapping[str, Any], with_optional: bool = True) -> list[str]:
    """Return requirements of Poetry or Pipenv as PEP 508."""
    requirements = []
    for name, row in rows.items():
        version = row.get("version", "*") if isinstance(row, dict) else row
        is_elsewhere = isinstance(row, dict) and {"path", "git", "url", "file"} & row.keys()
        is_optional = isinstance(row, dict) and row.get("optional") and not with_optional
        if name == "python" or is_elsewhere or is_optional or not isinstance(version, str):
            continue
        extras = ",".join(_strings(row.get("extras"))) if isinstance(row, dict) else ""
        marker = row.get("markers") if isinstance(row, dict) else None
        requirements.append(name + (f"[{extras}]" if extras else "") + caret(version) + (f"; {marker}" if marker else ""))
    return requirements


def caret(version: str) -> str:
    """Return a version of Poetry (`^1.2`, `~1.2`, `*`) as PEP 440."""
    parts = []
    for each in map(str.strip, version.split(",")):
        match = re.fullmatch(r"([\^~])(\d+(?:\.\d+)*)[\w.+-]*", each)
        if match is not None:
            numbers = [int(number) for number in match[2].split(".")]
            at = 0 if match[1] == "^" else min(1, len(numbers) - 1)
            at = next((place for place, number in enumerate(numbers) if number), len(numbers) - 1) if match[1] == "^" else at
            parts.append(f">={match[2]},<{'.'.join(map(str, [*numbers[:at], numbers[at] + 1]))}")
        elif each not in ("", "*"):
            parts.append(each if re.match(r"[<>=!~]", each) else f"=={each}")
    return ",".join(parts)


def _braces(text: str) -> list[str]:
    """Return what a factor of tox stands for: `py{310,311}` is two."""
    match = re.search(r"\{([^{}]*)\}", text)
    if match is None:
        return [each.strip() for each in text.split(",") if each.strip()]
    return [one for each in match[1].split(",") for one in _braces(text[:match.start()] + each.strip() + text[match.end():])]
