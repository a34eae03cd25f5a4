"""Settings of a run: where the logs are, where results go, and which options are on.

One frozen record for the command line, the Dagster assets and the tests; it travels between processes as JSON.
"""

from __future__ import annotations

import getpass
import glob
import json
import os
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from extractors import objects
from extractors.workspaces.mirrors import fetched, is_address, mirror_folder
from warehouse import permissions
from warehouse.errors import InputError

if TYPE_CHECKING:
    from extractors.configuration import Configuration


class OutPath:
    """A path in OUT, as an attribute of the settings."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, settings: Settings, owner: type[Settings]) -> Path:
        """Return the path."""
        return Path(settings.out) / self.name


class Settings(BaseModel):
    """Settings of one run."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, ignored_types=(OutPath,))

    logs: tuple[str, ...]
    """Files, folders, globs and addresses (`s3://`, `gs://`, `az://`) to read; a folder is taken as it is, by content."""
    out: str
    """Folder of the warehouse, the environments, their rewards and the datasets."""
    only: tuple[str, ...] = ()
    """Names of the folders inside `logs` to read; empty: all."""
    without: tuple[str, ...] = ()
    """Names of the folders inside `logs` to skip."""
    configuration: str | None = None
    """A TOML file that describes the sources."""
    privacy: bool | None = None
    """Pseudonymise personal data before anything is stored; None: as the configuration says, by default on."""
    repositories: tuple[str, ...] = ()
    """Git repositories that sessions worked on, in addition to those of the configuration: bundles, bare clones, checkouts,
    addresses on a server."""
    image: bool = True
    """Build a container image of each environment, if an engine answers."""
    base_image: str | None = None
    """Base of the images, by reference; None: the default."""
    until: str | None = None
    """Last day (YYYY-MM-DD) whose files are taken; None: all. Files without a time are always taken."""

    warehouse_url: str | None = None
    """A DuckLake to use instead of the DuckDB file (warehouse/catalogs.py); None: as OUT remembers it."""
    since: str | None = None
    """First day (YYYY-MM-DD) of sessions to build from; None: all."""
    services: tuple[str, ...] = ()
    """Services to build; empty: all."""
    limit: int | None = None
    """Number of sessions at most, the newest; None: all."""
    ledger: str | None = None
    """Folder of another run, whose ledger of epochs is taken over where OUT has none yet."""

    warehouse = OutPath("warehouse.duckdb")
    """The DuckDB file, or the name under which OUT remembers a lake."""
    environments = OutPath("environments")
    """Folder of the published environments."""
    rewards = OutPath("rewards")
    """Folder of their rubrics and known solutions: the grader's side."""
    unverified = OutPath("unverified")
    """Folder of environments of tasks without a verified reward: to inspect and to play, not to train on."""
    datasets = OutPath("datasets")
    """Folder of the datasets."""
    corrections = OutPath("corrections")
    """Folder of people's corrections (docs/browser.md): read with the logs."""
    reviews = OutPath("reviews.jsonl")
    """File of people's reviews (docs/reviews.md): read with the logs."""
    answers = OutPath("answers.jsonl")
    """File of real tools' answers that people accepted (docs/howto/asking.md): read with the logs."""
    releases = OutPath("releases")
    """Folder of the releases, if the configuration names no other registry."""
    clones = OutPath(".repositories")
    """Clones of repositories on servers."""
    report = OutPath("report")
    """Folder of the report."""
    receipt = OutPath(".receipt.json")
    """The report of the last run, and a digest of all that it depends on (pipelines/running/receipt.py)."""

    @property
    def configured(self) -> Configuration:
        """The configuration file, or the default configuration. Raises InputError."""
        if self.configuration is None:
            return _read_configuration(None)
        path = Path(self.configuration)
        try:  # folders that it names by default are next to it, and count once they exist
            return _read_configuration(self.configuration, path.stat().st_mtime_ns, path.absolute().parent.stat().st_mtime_ns)
        except OSError:
            return _read_configuration(self.configuration)

    @property
    def repository_paths(self) -> tuple[str, ...]:
        """All repositories, each once; one on a server as its clone in OUT."""
        return tuple(dict.fromkeys(map(self.repository_path, self._repository_names)))

    @property
    def _repository_names(self) -> tuple[str, ...]:
        return (*self.repositories, *(each.path for each in self.configured.repositories))

    def repository_path(self, name: str) -> str:
        """Return where a repository is on this machine."""
        return str(mirror_folder(name, self.clones)) if is_address(name) else name

    def fetch_repositories(self, warn: Callable[[str], None]) -> None:
        """Bring the clones of repositories on servers up to date. InputError where one was never had; where its server does not
        answer today, `warn` gets a sentence and the last clone is used."""
        for address in filter(is_address, dict.fromkeys(self._repository_names)):
            try:
                fetched(address, self.clones)
            except InputError as error:
                if not Path(self.repository_path(address)).is_dir():
                    raise
                warn(f"{error}; what was had of it last is used")

    @property
    def repositories_text(self) -> str:
        """What the branches and tags of each repository stand for."""
        from extractors.workspaces.repository import Repository  # loads dulwich
        paths = filter(os.path.exists, self.repository_paths)   # a clone may not be there yet
        return json.dumps([[opened.name, opened.digest] for opened in map(Repository.open, paths)])

    @property
    def behaviour_text(self) -> str:
        """Other inputs of the tools' behaviour: the programs that people corrected, and the name of the model."""
        config = self.configured.behaviour
        return json.dumps([programs(config.programs), model_name() if config.ask else ""], sort_keys=True)

    @property
    def names_text(self) -> str:
        """The model that names families, empty without one."""
        return model_name() if self.configured.goals.ask else ""

    @property
    def rewards_text(self) -> str:
        """Other inputs of rewards: the checks that people wrote, and the name of the model."""
        config = self.configured.rewards
        return json.dumps([rubrics(config.rubrics), model_name() if config.ask else ""], sort_keys=True)

    def value_of(self, name: str) -> Any:
        """Return a setting by its name, or a `[section]` of the configuration file, as a JSON value."""
        if name.startswith("["):
            return self.configured.model_dump(mode="json")[name.strip("[]")]
        return getattr(self, name)

    def checked(self) -> Settings:
        """Return these settings if a run can begin with them. Raises InputError, Missing."""
        for path in self.logs:
            if not (Path(path).exists() or glob.has_magic(path) or objects.is_url(path)):
                raise InputError("there is no such file or folder", path, "give the path of your logs")
        if self.since is not None:
            try:
                is_day = date.fromisoformat(self.since).isoformat() == self.since
            except ValueError:
                is_day = False
            if not is_day:
                raise InputError(f"invalid date {self.since!r} (expected YYYY-MM-DD)", "--since", "write it as 2026-03-31")
        if self.ledger is not None and not Path(self.ledger).is_dir():
            raise InputError("there is no such folder", self.ledger, "give --ledger the --out of another run")
        if self.configuration:
            if not Path(self.configuration).is_file():
                raise InputError("there is no such file", self.configuration, "give --config the path of a TOML file")
            config = self.configured
            for asks, what in ((config.behaviour.ask, "write programs"), (config.goals.ask, "name goals"),
                               (config.rewards.ask, "read policies")):
                if asks and not model_name():
                    raise InputError(f"no model is configured to {what}", self.configuration,
                                     "set TRACEROOM_MODEL and TRACEROOM_MODEL_URL, or remove ask = true")
            programs(config.behaviour.programs)
            rubrics(config.rewards.rubrics)
        for path in self._repository_names:
            if not (is_address(path) or Path(path).exists()):
                raise InputError("there is no such repository", path,
                                 "give a bundle, a bare clone, a checkout or an address such as https://HOST/NAME.git")
        self.must_be_folder()
        from pipelines.running import engines  # loads DuckDB
        engines.refuse_unknown()
        self.record_warehouse_url()
        return self

    def withdraw_access(self) -> int:
        """Take what earlier versions wrote into OUT from everybody but its user; return how many files and folders that was."""
        names = {each.name for each in vars(Settings).values() if isinstance(each, OutPath)}
        stem = self.warehouse.stem
        return permissions.withdraw_access(
            path for path in Path(self.out).glob("*") if path.name in names or path.name.startswith(f"{stem}."))

    def must_be_folder(self) -> None:
        """Check that OUT is not a file or a device. Raises InputError."""
        if Path(self.out).exists() and not Path(self.out).is_dir():
            raise InputError("this is a file", self.out, "give --out a folder")

    def rename_old_folders(self) -> None:
        """Rename the folder that releases before 0.2 wrote under another name."""
        withheld = Path(self.out) / "withheld"
        if withheld.is_dir() and not self.unverified.exists():
            withheld.rename(self.unverified)

    def record_warehouse_url(self) -> None:
        """Record in OUT the lake that replaces its warehouse, once it has opened. Raises InputError, StoreError."""
        if self.warehouse_url:
            from warehouse import catalogs  # loads DuckDB
            catalogs.record_url(self.warehouse, self.warehouse_url)


@lru_cache(8)
def _read_configuration(path: str | None, *modified_ns: int) -> Configuration:
    """Read the configuration; once, for as long as the file and its folder are unchanged."""
    from extractors import configuration  # loads polars, which no command's --help needs
    return configuration.load(path) if path else configuration.Configuration()


def programs(folder: str | None) -> dict[str, str]:
    """Name -> text of the JSON files in a folder of programs. Raises InputError if it does not exist."""
    return _texts(folder, "programs", "behaviour", "**/*.json")


def rubrics(folder: str | None) -> dict[str, str]:
    """Name -> text of the TOML files in a folder of people's checks. Raises InputError if it does not exist."""
    return _texts(folder, "rubrics", "rewards", "*.toml")


def _texts(folder: str | None, key: str, section: str, pattern: str) -> dict[str, str]:
    if folder is None:
        return {}
    if not Path(folder).is_dir():
        raise InputError(f"there is no such folder of {key}", folder, f"correct {key} in [{section}], or create the folder")
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(Path(folder).glob(pattern))}


def model_name() -> str:
    """Return the name of the configured model, empty if there is none."""
    return os.environ.get("TRACEROOM_MODEL", "")


def account_name(otherwise: str) -> str:
    """Return the name of this machine's user, `otherwise` if the user has none (in a container)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return otherwise


def inboxes() -> tuple[str, ...]:
    """Return the folders and addresses (`s3://`, `gs://`, `az://`) that logs arrive in: TRACEROOM_INBOX, by commas."""
    return tuple(each.strip() for each in os.environ.get("TRACEROOM_INBOX", "inbox").split(",") if each.strip())


def from_environment() -> Settings:
    """Return the settings of Dagster's own runs: TRACEROOM_INBOX, TRACEROOM_OUT, TRACEROOM_CONFIG and others."""
    return Settings(
        logs=inboxes(), out=os.environ.get("TRACEROOM_OUT", "out"), configuration=os.environ.get("TRACEROOM_CONFIG") or None,
        image=os.environ.get("TRACEROOM_IMAGE", "on") != "off", base_image=os.environ.get("TRACEROOM_BASE_IMAGE") or None,
        warehouse_url=os.environ.get("TRACEROOM_WAREHOUSE") or None)
