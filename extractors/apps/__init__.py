"""Readers of the exports of a company's apps, and the registry that finds them: entry points of the group `traceroom.apps`.

In: all files of the exports. Out: versions (`extractors.apps.version`), and every file or row without one, with the reason.
A file belongs to the first app that claims it.
Does not see: files of log formats (`extractors.formats`), which the caller names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import entry_points
from typing import NamedTuple

from extractors.apps.version import AppRow, AppVersion, CompanyApp, ExportFile, UnreadPart
from warehouse.errors import InputError

__all__ = ["AppReading", "AppVersion", "CompanyApp", "ExportFile", "UnreadPart", "installed_apps", "read_exports"]
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


def read_exports(files: Iterable[ExportFile], log_format: LogFormat | None = None,
                 apps: tuple[CompanyApp, ...] | None = None) -> AppReading:
    """Return the versions of all files; `log_format` names the log format of a file that no app claims."""
    apps = installed_apps() if apps is None else apps
    files = sorted(files)
    names: dict[str, set[str]] = {}
    for file in files:
        names.setdefault(file.folder, set()).add(file.name)
    siblings = {folder: frozenset(each) for folder, each in names.items()}
    by_app: dict[str, list[ExportFile]] = {app.name: [] for app in apps}
    reading = AppReading([], [], {})
    others = []
    for file in files:
        app = next((app for app in apps if app.claims(file, siblings[file.folder])), None)
        if app is None:
            others.append(file)
            continue
        by_app[app.name].append(file)
        reading.app_of[file.path] = app.name
    for file in others:
        app = next((app for app in apps if app.adopts(file) and _is_beside(file, by_app[app.name])), None)
        if app is not None:
            by_app[app.name].append(file)
        name = app.name if app is not None else log_format(file) if log_format else None
        if isinstance(name, str):
            reading.app_of[file.path] = name
        else:
            reading.unread.append(name or UnreadPart(file.path, "", "no_reader", "no app and no log format reads this file"))
    for index, app in enumerate(apps):
        _read_app(app, by_app, reading, apps[index + 1:])
    order = sorted(range(len(reading.versions)), key=lambda index: (*reading.versions[index][4:6], index))
    return reading._replace(versions=[reading.versions[index] for index in order])


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
