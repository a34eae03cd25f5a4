"""The command `doctor`: does this machine have what Traceroom needs, and what is missing for the rest?

Checks the interpreter, the packages, disk and memory, the key of pseudonyms, the container engine, the model's endpoint, a
configuration file and a run's folder, each by using it. Does not check whether logs can be read: `sniff` does that.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer
from rich.markup import escape

from pipelines.commands.options import Json
from pipelines.screen import data, say
from warehouse.errors import GateFailed, TraceroomError

GIB = 2 ** 30
FREE_DISK, FREE_MEMORY = 2 * GIB, GIB
"""Bytes below which a run of a few thousand sessions may fail."""
EXTRAS = {"s3": "s3fs", "ray": "ray", "ducklake": "duckdb_extensions", "ui": "dagster_webserver", "gymnasium": "gymnasium"}
"""Optional extra -> the module that it brings."""
State = Literal["ok", "note", "failed"]
SIGNS: dict[State, str] = {"ok": "[green]✓[/]", "note": "[yellow]·[/]", "failed": "[bold red]✗[/]"}


class Diagnosis(NamedTuple):
    """What a check says."""

    check: str
    state: State
    """ok; note: something optional is not there; failed: Traceroom does not work so."""
    detail: str
    hint: str = ""


def doctor(
    out: Annotated[Path, typer.Option("--out", help="Output folder of a run, or where one will be.")] = Path("out"),
    config: Annotated[str | None, typer.Option(help="TOML file of a run, to check too.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Check this machine: interpreter, packages, disk, memory, key, container engine, model, configuration and warehouse.

    Exits 1 if something fails that every run needs; what is optional is a note.
    """
    checks: dict[str, Callable[[], Diagnosis]] = {
        "python": _python, "packages": _packages, "disk": lambda: _disk(out), "memory": _memory, "key": _key,
        "container engine": _engine, "model": _model, "extras": _extras, "configuration": lambda: _configuration(config),
        "warehouse": lambda: _warehouse(out)}
    diagnoses = [_diagnosed(name, check) for name, check in checks.items()]
    for each in diagnoses:
        hint = f"; {each.hint}" if each.hint else ""
        say(f"{SIGNS[each.state]} {each.check:<17} {escape(each.detail + hint)}")
    if json:
        data({"version": version("traceroom"), "checks": [each._asdict() for each in diagnoses]})
    if failed := [each.check for each in diagnoses if each.state == "failed"]:
        raise GateFailed(f"{len(failed)} of {len(diagnoses)} checks failed", ", ".join(failed), "see the hints above")


def _diagnosed(name: str, check: Callable[[], Diagnosis]) -> Diagnosis:
    try:
        return check()._replace(check=name)
    except TraceroomError as error:
        where = f"{error.where}: " if error.where else ""
        return Diagnosis(name, "failed", f"{where}{error.what}", error.hint)


def _python() -> Diagnosis:
    running = ".".join(map(str, sys.version_info[:3]))
    is_supported = (3, 11) <= sys.version_info[:2] <= (3, 13)
    hint = "" if is_supported else "use Python 3.11, 3.12 or 3.13"
    return Diagnosis("", "ok" if is_supported else "failed", f"Python {running}, Traceroom {version('traceroom')}", hint)


def _packages() -> Diagnosis:
    from packaging.requirements import Requirement  # dagster needs it

    needed = [Requirement(line) for line in requires("traceroom") or ()]
    unmet = [_unmet(each) for each in needed if each.marker is None]  # those of extras have one
    if any(unmet):
        return Diagnosis("", "failed", "; ".join(filter(None, unmet)), "install Traceroom again")
    return Diagnosis("", "ok", f"{len(unmet)} packages, DuckDB {version('duckdb')}")


def _unmet(requirement: Any) -> str:
    """Return what is wrong with a package, empty if nothing is."""
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        return f"{requirement.name} is not installed"
    is_met = requirement.specifier.contains(installed, prereleases=True)
    return "" if is_met else f"{requirement.name} {installed} is not {requirement.specifier}"


def _disk(out: Path) -> Diagnosis:
    folder = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    if not os.access(folder, os.W_OK):
        return Diagnosis("", "failed", f"{folder} cannot be written", "choose another --out")
    detail = f"{free / GIB:.1f} GiB free in {folder}"
    return Diagnosis("", "ok", detail) if free >= FREE_DISK else Diagnosis("", "failed", detail, "make room")


def _memory() -> Diagnosis:
    import psutil

    free = psutil.virtual_memory().available
    detail = f"{free / GIB:.1f} GiB available, {os.cpu_count()} processors"
    if free >= FREE_MEMORY:
        return Diagnosis("", "ok", detail)
    return Diagnosis("", "failed", detail, "end other programs: a run of thousands of sessions needs about 1 GiB")


def _key() -> Diagnosis:
    from pipelines.privacy.keys import KEY, KEY_FILE, owner_key

    folder = os.environ.get("XDG_CONFIG_HOME", "")
    path = (Path(folder) if folder.startswith("/") else Path.home() / ".config") / "traceroom" / "key"
    given = next((name for name in (KEY, KEY_FILE) if os.environ.get(name)), None)
    if given is None and not path.exists():
        return Diagnosis("", "note", f"there is none yet; the first run creates {path}",
                         f"set {KEY} where runs happen on several machines")
    owner_key(os.environ, say)
    return Diagnosis("", "ok", given or str(path))


def _engine() -> Diagnosis:
    from env_builder.image import engine

    try:
        client = engine()
    except TraceroomError as error:
        return Diagnosis("", "note", f"{error.what}; runs build no images", error.hint)
    return Diagnosis("", "ok", f"Docker {client.version().get('Version', '')}")


def _model() -> Diagnosis:
    from pipelines.resources import ask_from_environment

    ask = ask_from_environment()
    if ask is None:
        return Diagnosis("", "note", "none is configured; none is needed", "name one with TRACEROOM_MODEL, TRACEROOM_MODEL_URL")
    ask("Answer with the word ok.")
    return Diagnosis("", "ok", f"{os.environ['TRACEROOM_MODEL']} at {os.environ['TRACEROOM_MODEL_URL']} answers")


def _extras() -> Diagnosis:
    absent = [name for name, module in EXTRAS.items() if importlib.util.find_spec(module) is None]
    present = [name for name in EXTRAS if name not in absent]
    hint = f"install one with: pip install 'traceroom[{absent[0]}]'" if absent else ""
    return Diagnosis("", "note" if absent else "ok", "; ".join(_listed(present, absent)), hint)


def _listed(present: list[str], absent: list[str]) -> Iterator[str]:
    if present:
        yield f"installed: {', '.join(present)}"
    if absent:
        yield f"not installed: {', '.join(absent)}"


def _configuration(path: str | None) -> Diagnosis:
    from extractors import configuration

    if path is None:
        return Diagnosis("", "ok", "none was named; the defaults hold")
    configuration.load(path)
    return Diagnosis("", "ok", f"{path} is valid")


def _warehouse(out: Path) -> Diagnosis:
    from warehouse.catalogs import catalog_of
    from warehouse.store import Store

    path = out / "warehouse.duckdb"
    if not catalog_of(path).is_there():
        return Diagnosis("", "ok", f"there is none in {out} yet")
    with Store.published(path) as store:
        n_sessions, n_tasks = store.count("core.sessions"), store.count("mart.tasks")
    return Diagnosis("", "ok", f"{n_sessions:,} sessions and {n_tasks:,} tasks in {path}")
