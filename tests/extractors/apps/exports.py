"""Small exports of made-up companies, and the world that is read from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from env_builder.runtime.company import CompanyState, CompanyWorld
from extractors.apps import AppReading, CompanyApp, ExportFile, read_exports
from extractors.formats.instants import microseconds

NAMES = ("calendar", "confluence", "directory", "drive", "git", "github", "jira", "mail", "rows", "slack")


def all_apps() -> tuple[CompanyApp, ...]:
    """Return the apps of this repository in the order in which they are asked."""
    apps = [import_module(f"extractors.apps.{name}").APP for name in NAMES]
    return tuple(sorted(apps, key=lambda app: (app.rank, app.name)))


def read_files(files: Mapping[str, Any]) -> AppReading:
    """Return what files hold: bytes, or values that are written as JSON."""
    exports = [ExportFile(path, content if isinstance(content, bytes) else json.dumps(content).encode())
               for path, content in files.items()]
    return read_exports(exports, apps=all_apps())


def at(text: str) -> int:
    """Return an instant in microseconds."""
    instant = microseconds(text)
    assert instant is not None
    return instant


def state_of(files: Mapping[str, Any], instant: str) -> CompanyState:
    """Return the state of an instant; every file must be read whole."""
    reading = read_files(files)
    assert reading.unread == []
    return CompanyWorld(reading.versions).at(at(instant))
