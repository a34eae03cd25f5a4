"""Readers of the exports of a company's apps, and the registry that finds them: entry points of the group `traceroom.apps`.

In: all files of the exports. Out: versions (`extractors.apps.version`), and every file or row without one, with the reason.
A file belongs to the first app that claims it.
Does not see: files of log formats (`extractors.formats`), which the caller names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import NamedTuple

from extractors.apps.version import AppRow, AppVersion, CompanyApp, ExportFile, UnreadPart
from warehouse.errors import InputError
from warehouse.records import RecordKind

__all__ = ["AppReading", "AppVersion", "CompanyApp", "ExportFile", "UnreadPart", "installed_apps", "read_exports",
           "record_kinds"]
LogFormat = Callable[[ExportFile], str | UnreadPart]
"""File -> the name of the log format that reads it, or why none does."""
GROUP = "traceroom.apps"
ERRORS = (ValueError, KeyError, TypeError, AttributeError, IndexError)
"""What a file of another shape than its app expects raises."""


class AppReading(NamedTuple):
    """What the exports hold."""

    versions: list[AppVersion]
    """In the order in which they apply: by instant, then the product's own number."""
    unread: list[UnreadPart]
    app_of: dict[str, str]
    """Path of each claimed file -> app, or the log format that reads it."""


@cache
def installed_apps() -> tuple[CompanyApp, ...]:
    """Return all apps, in the order in which they are asked."""
    apps = []
    for point in sorted(set(entry_points(group=GROUP))):
        loaded = point.load()
        if not isinstance(loaded, CompanyApp):
            raise InputError("the entry point is no CompanyApp", f"{GROUP}: {point.name} = {point.value}",
                             "name an instance of extractors.apps.CompanyApp there")
        apps.append(loaded)
    return tuple(sorted(apps, key=lambda app: (app.rank, app.name)))


def record_kinds() -> dict[str, tuple[RecordKind, ...]]:
    """Return app -> how its kinds of records take part in work."""
    return {app.name: app.kinds for app in installed_apps()}


def claimed_files(files: Iterable[ExportFile], logs: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return path -> app of the files that apps claim or adopt. `logs`: path -> format of files that a log format reads."""
    apps, files = installed_apps(), sorted(files)
    readers = {ExportFile(path, b""): next((app for app in apps if name in app.formats), None) for path, name in logs.items()}
    app_of = _claims(files, apps, _siblings([*files, *readers]))
    read_too = {file.path: app for file, app in readers.items() if app is not None}
    adopted = _adoptions([*files, *readers], apps, app_of | read_too)
    paths = {file.path for file in files}
    return {path: app.name for path, app in (app_of | adopted).items() if path in paths}


def read_exports(files: Iterable[ExportFile], log_format: LogFormat | None = None,
                 apps: tuple[CompanyApp, ...] | None = None) -> AppReading:
    """Return the versions of all files; `log_format` names the log format of a file that no app claims."""
    apps = installed_apps() if apps is None else apps
    files = sorted(files)
    reading = AppReading([], [], {})
    claims = _claims(files, apps, _siblings(files))
    adoptions = _adoptions(files, apps, claims)
    by_app: dict[str, list[ExportFile]] = {app.name: [] for app in apps}
    for app_of in (claims, adoptions):
        for file in files:
            if file.path in app_of:
                by_app[app_of[file.path].name].append(file)
                reading.app_of[file.path] = app_of[file.path].name
    for file in files:
        if file.path not in reading.app_of:
            name = log_format(file) if log_format else None
            if isinstance(name, str):
                reading.app_of[file.path] = name
            else:
                reading.unread.append(name or UnreadPart(file.path, "", "no_reader", "no app and no log format reads it"))
    for index, app in enumerate(apps):
        _read_app(app, by_app, reading, apps[index + 1:])
    order = sorted(range(len(reading.versions)), key=lambda index: (*reading.versions[index][4:6], index))
    return reading._replace(versions=[reading.versions[index] for index in order])


def _siblings(files: Iterable[ExportFile]) -> dict[str, frozenset[str]]:
    """Return folder -> names of the files in it."""
    names: dict[str, set[str]] = {}
    for file in files:
        names.setdefault(file.folder, set()).add(file.name)
    return {folder: frozenset(each) for folder, each in names.items()}


def _claims(files: list[ExportFile], apps: tuple[CompanyApp, ...], siblings: dict[str, frozenset[str]]
            ) -> dict[str, CompanyApp]:
    claimants = {file.path: next((app for app in apps if app.claims(file, siblings[file.folder])), None) for file in files}
    return {path: app for path, app in claimants.items() if app is not None}


def _adoptions(files: list[ExportFile], apps: tuple[CompanyApp, ...], claims: dict[str, CompanyApp]) -> dict[str, CompanyApp]:
    """Return the files that no app claims, and that go with claimed ones."""
    claimed: dict[str, list[ExportFile]] = {}
    for file in files:
        if file.path in claims:
            claimed.setdefault(claims[file.path].name, []).append(file)
    adopted = {file.path: next((app for app in apps if app.adopts(file) and _is_beside(file, claimed.get(app.name, []))), None)
               for file in files if file.path not in claims}
    return {path: app for path, app in adopted.items() if app is not None}


def _is_beside(file: ExportFile, claimed: list[ExportFile]) -> bool:
    """Return whether a claimed file is in the file's folder, below it, or lists what is below its own."""
    below = f"{file.folder}/" if file.folder else ""
    return any(other.folder == file.folder or other.path.startswith(below)
               or file.path.startswith(f"{other.folder}/" if other.folder else "") for other in claimed)


def _read_app(app: CompanyApp, by_app: dict[str, list[ExportFile]], reading: AppReading,
              later: tuple[CompanyApp, ...]) -> None:
    """Read the files of one app; files inside them go to `later` apps."""
    rows: Iterable[AppRow] = app.read(by_app[app.name]) if by_app[app.name] else ()
    try:
        for row in rows:
            if isinstance(row, AppVersion):
                reading.versions.append(row)
            elif isinstance(row, UnreadPart):
                reading.unread.append(row)
            elif (other := next((each for each in later if each.claims(row, frozenset())), None)) is not None:
                by_app[other.name].append(row)
    except ERRORS as error:   # a shape that the app expects nowhere: what it read before stays
        files = by_app[app.name]
        detail = f"the app {app.name} stopped reading {len(files)} files: {type(error).__name__}: {error}"
        reading.unread.append(UnreadPart(files[0].path, "", "reader_stopped", detail))
