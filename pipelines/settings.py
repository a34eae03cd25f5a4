"""What a run is told: where the logs lie, where results go, and what is switched on.

One frozen record for the command line, the Dagster assets and the tests; it travels between processes as JSON.
"""

from __future__ import annotations

import glob
import json
import os
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from extractors import objects
from warehouse.errors import InputError

if TYPE_CHECKING:
    from extractors.configuration import Configuration


class Settings(BaseModel):
    """Settings of one run."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    logs: tuple[str, ...]
    """Files, folders, globs and `s3://` addresses to read; a folder is taken as it is, by content."""
    out: str
    """Folder of the warehouse, the environments, their rewards and the datasets."""
    only: tuple[str, ...] = ()
    """Names of the folders inside `logs` to read; empty: all."""
    without: tuple[str, ...] = ()
    """Names of the folders inside `logs` to leave."""
    configuration: str | None = None
    """A TOML file that describes the sources."""
    privacy: bool | None = None
    """Take personal data out before anything is stored; None: as the configuration says, on where it says nothing."""
    image: bool = True
    """Build a container image of each environment where an engine answers."""
    base_image: str | None = None
    """Base of the images, by reference; None: the default."""
    until: str | None = None
    """Last day (YYYY-MM-DD) whose files are taken; None: all. Files without a time are always taken."""

    warehouse_url: str | None = None
    """A lake that takes the place of the DuckDB file (warehouse/ducklake.py); None: as OUT says, which remembers it."""
    since: str | None = None
    """First day (YYYY-MM-DD) of sessions to build from; None: all."""
    services: tuple[str, ...] = ()
    """Services to build; empty: all."""
    limit: int | None = None
    """At most so many sessions, the newest; None: all."""

    @property
    def warehouse(self) -> Path:
        """The DuckDB file, or what a lake takes the place of."""
        return Path(self.out) / "warehouse.duckdb"

    @property
    def environments(self) -> Path:
        """Folder of the published environments."""
        return Path(self.out) / "environments"

    @property
    def rewards(self) -> Path:
        """Folder of their rubrics and known solutions: the grader's side."""
        return Path(self.out) / "rewards"

    @property
    def withheld(self) -> Path:
        """Folder of the rooms of tasks without a verified reward: to look at and to play in, not to train on."""
        return Path(self.out) / "withheld"

    @property
    def datasets(self) -> Path:
        """Folder of the datasets."""
        return Path(self.out) / "datasets"

    @property
    def corrections(self) -> Path:
        """Folder of what persons corrected (docs/browser.md): read with the logs."""
        return Path(self.out) / "corrections"

    @property
    def releases(self) -> Path:
        """Folder of the releases, where the configuration names no other registry."""
        return Path(self.out) / "releases"

    @property
    def report(self) -> Path:
        """Folder of the page on what was made of the logs."""
        return Path(self.out) / "report"

    @property
    def configured(self) -> Configuration:
        """The configuration file, or what stands where none is given. Raises InputError."""
        from extractors import configuration  # loads polars, which no command's --help needs
        return configuration.load(self.configuration) if self.configuration else configuration.Configuration()

    @property
    def behaviour_text(self) -> str:
        """What else the behaviour of tools is made from: the programs that people corrected, and the model that is asked."""
        told = self.configured.behaviour
        return json.dumps([programs(told.programs), model_name() if told.ask else ""], sort_keys=True)

    @property
    def names_text(self) -> str:
        """The model that names families, empty where none is asked."""
        return model_name() if self.configured.goals.ask else ""

    @property
    def rewards_text(self) -> str:
        """What else rewards are made from: checks that persons wrote, and the model that is asked."""
        told = self.configured.rewards
        return json.dumps([rubrics(told.rubrics), model_name() if told.ask else ""], sort_keys=True)

    def told(self, name: str) -> Any:
        """What a stage reads, as a JSON value: a setting by its name, or a `[section]` of the configuration file."""
        if name.startswith("["):
            return self.configured.model_dump(mode="json")[name.strip("[]")]
        return getattr(self, name)

    def checked(self) -> Settings:
        """These settings, after looking that a run can begin with them. Raises InputError, Missing."""
        for path in self.logs:
            if not (Path(path).exists() or glob.has_magic(path) or objects.is_url(path)):
                raise InputError("there is no such file or folder", path, "give the path of your logs")
        if self.since is not None and not _is_day(self.since):
            raise InputError("this is no day", f"--since {self.since}", "write it as 2026-03-31")
        if self.configuration and not Path(self.configuration).is_file():
            raise InputError("there is no such file", self.configuration, "give --config the path of a TOML file")
        if self.configuration:
            told = self.configured
            for asks, what in ((told.behaviour.ask, "write programs"), (told.goals.ask, "name goals"),
                               (told.rewards.ask, "read policies")):
                if asks and not model_name():
                    raise InputError(f"no model is configured to {what}", self.configuration,
                                     "set TRACEROOM_MODEL and TRACEROOM_MODEL_URL, or take ask = true away")
            programs(told.behaviour.programs)
            rubrics(told.rewards.rubrics)
        self.must_be_folder()
        from pipelines import engines  # loads DuckDB
        engines.refuse_unknown()
        self.remember()
        return self

    def must_be_folder(self) -> None:
        """Raises InputError where OUT is a file, or a device."""
        if Path(self.out).exists() and not Path(self.out).is_dir():
            raise InputError("this is a file", self.out, "give --out a folder")

    def remember(self) -> None:
        """Let OUT know the lake that takes the place of its warehouse, once it has opened. Raises InputError, StoreError."""
        if self.warehouse_url:
            from warehouse import catalogs  # loads DuckDB
            catalogs.remember(self.warehouse, self.warehouse_url)


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def programs(folder: str | None) -> dict[str, str]:
    """Name -> text of the JSON files in a folder of programs. Raises InputError where there is no such folder."""
    if folder is None:
        return {}
    if not Path(folder).is_dir():
        raise InputError("there is no such folder of programs", folder, "correct programs in [behaviour], or make it")
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(Path(folder).rglob("*.json"))}


def rubrics(folder: str | None) -> dict[str, str]:
    """Name -> text of the TOML files in a folder of persons' checks. Raises InputError where there is no such folder."""
    if folder is None:
        return {}
    if not Path(folder).is_dir():
        raise InputError("there is no such folder of rubrics", folder, "correct rubrics in [rewards], or make it")
    return {path.name: path.read_text("utf-8") for path in sorted(Path(folder).glob("*.toml"))}


def model_name() -> str:
    """Name of the configured model, empty where there is none."""
    return os.environ.get("TRACEROOM_MODEL", "")


def inboxes() -> tuple[str, ...]:
    """Folders and `s3://` addresses that logs arrive in: TRACEROOM_INBOX, with commas between."""
    return tuple(each.strip() for each in os.environ.get("TRACEROOM_INBOX", "inbox").split(",") if each.strip())


def from_environment() -> Settings:
    """Settings of the assets where Dagster runs them by itself: TRACEROOM_INBOX, TRACEROOM_OUT, TRACEROOM_CONFIG."""
    return Settings(
        logs=inboxes(), out=os.environ.get("TRACEROOM_OUT", "out"), configuration=os.environ.get("TRACEROOM_CONFIG") or None,
        image=os.environ.get("TRACEROOM_IMAGE", "on") != "off", base_image=os.environ.get("TRACEROOM_BASE_IMAGE") or None,
        warehouse_url=os.environ.get("TRACEROOM_WAREHOUSE") or None)
