"""The small optional TOML file that describes sources (docs/configuration.md is its reference).

Without it sensible answers are found: one source `main`, services as the logs state them, what every session starts from as
the world shows it.
"""

from __future__ import annotations

import tomllib
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator

from extractors.formats.envelope import FIELDS
from extractors.formats.mapped import FIELDS as MAPPED_FIELDS
from extractors.formats.mapped import TABLES
from extractors.formats.mapped_words import KINDS, ROLES
from extractors.workspaces.mirrors import is_address
from warehouse.errors import InputError
from warehouse.vocabulary import SUCCEEDED_FROM

RUBRICS = "rubrics"
"""Folder of persons' checks beside the configuration file."""
INBOX = "inbox"
"""Folder beside the configuration file with a folder for each source that is pulled."""
Switch = Literal["on", "off"]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Pull(_Section):
    """The platform that a source's logs are pulled from, into the first of its `paths` (docs/howto/sources.md)."""

    platform: str
    """Name of the platform; `traceroom sources add` lists them."""
    url: str | None = None
    """Address of the platform; default: its own service."""
    project: str | None = None
    """Project, where the key alone does not decide it."""
    filter: dict[str, str] = Field(default_factory=dict)
    """Only records with these values."""
    options: dict[str, str] = Field(default_factory=dict)
    """Settings of this platform alone."""
    credentials: dict[str, str] = Field(default_factory=dict)
    """Variable of the platform -> where its value is: `env:NAME` or `file:PATH`; default: the environment."""
    since: str | None = None
    """First instant of the records (ISO 8601, UTC)."""
    until: str | None = None
    """Instant that they end before."""
    limit: int | None = Field(default=None, ge=1)
    """Records that one pull takes at most; the next one continues."""
    page_size: int = Field(default=100, ge=1)
    """Records in a page."""
    overlap_minutes: float = Field(default=60.0, ge=0)
    """What was pulled so shortly before the last window's end is listed again: what changed or came late is pulled."""
    settle_minutes: float = Field(default=10.0, ge=0)
    """Records younger than this wait for the next pull, so that a trace is complete."""

    @field_validator("since", "until")
    @classmethod
    def _instant(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                datetime.fromisoformat(value)
            except ValueError:
                raise ValueError(f"invalid instant {value!r} (expected such as 2026-03-31 or 2026-03-31T08:00:00Z)") from None
        return value

    @field_validator("credentials")
    @classmethod
    def _no_secrets(cls, value: dict[str, str]) -> dict[str, str]:
        for name, place in value.items():
            if not place.startswith(("env:", "file:")):
                raise ValueError(f"{name} must be env:NAME or file:PATH; the configuration holds no credentials")
        return value


class Source(_Section):
    """Where logs of one kind lie and how to read them."""

    name: str = "main"
    """Name of the source; part of the ids of its records."""
    paths: list[str] = Field(default_factory=list)
    """Files or folders, from the configuration file's folder; a log file belongs to the first source that holds it."""
    service: str | None = None
    """Service of everything in it, in place of what the records state."""
    format: str | None = None
    """Name of the format, where the content alone does not tell."""
    starts_from: Literal["reset", "shared"] | None = None
    """Whether every session starts from the same state (`reset`) or all work on one (`shared`); default: as found."""
    pull: Pull | None = None
    fields: dict[str, str] = Field(default_factory=dict)
    """Our field -> dotted path in the record; for the format `mapped` also `roles`, `kinds` and `says`, tables of words."""

    @field_validator("fields", mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        """Return the tables of words as fields of their own: `roles.bot` for `bot` in `roles`."""
        if not isinstance(value, dict):
            return value
        tables = {name: value[name] for name in TABLES if isinstance(value.get(name), dict)}
        words = {f"{name}.{word}": meant for name, table in tables.items() for word, meant in table.items()}
        return {**{name: path for name, path in value.items() if name not in tables}, **words}

    @field_validator("fields")
    @classmethod
    def _known_fields(cls, value: dict[str, str]) -> dict[str, str]:
        for name, meant in value.items():
            table, dot, word = name.partition(".")
            allowed: tuple[str, ...] = (*FIELDS, *MAPPED_FIELDS, *TABLES)
            if table not in allowed or (dot and table not in TABLES) or (table in TABLES and not word):
                raise ValueError(f"no field {name!r}; there are: {', '.join(allowed)}")
            meanings = {"roles": (meant, ROLES), "kinds": (meant, KINDS), "says": (word, ROLES)}
            if table in meanings and meanings[table][0] not in meanings[table][1]:
                raise ValueError(f"{meanings[table][0]!r} in {table!r} is none of: {', '.join(meanings[table][1])}")
        return value

    @model_validator(mode="before")
    @classmethod
    def _mapped(cls, value: Any) -> Any:
        """Set the format `mapped` if the fields map more than every format has."""
        fields = value.get("fields") if isinstance(value, dict) else None
        if isinstance(fields, dict) and value.get("format") is None and set(fields) - set(FIELDS):
            return {**value, "format": "mapped"}
        return value


class CodeRepository(_Section):
    """A git repository that sessions worked on (docs/howto/repositories.md)."""

    path: str
    """A bundle, a bare clone or a checkout, from the configuration file's folder; or an address on a server, that is cloned."""
    command: str | None = None
    """A command that runs its tests from its root and writes JUnit XML; default: pytest, with the packages of its metadata."""
    junit: str = "junit.xml"
    """File or folder of JUnit XML that the command writes."""
    setup: str | None = None
    """A command that runs before it, each time."""
    derived_commits: int = Field(default=4, ge=0)
    """How many commits that no session was about are tried as tasks, the latest; each takes up to six runs of its tests."""
    derived_hunks: int = Field(default=4, ge=0)
    """How many hunks of commits are turned back in the latest tree and tried as tasks; each takes up to three runs."""


class SessionRules(_Section):
    """How sessions are cut where the log names none."""

    gap_minutes: float = Field(default=30.0, gt=0)
    """A pause of one identity longer than this begins a new session."""


MIN_PRECISION = 0.9
"""Default of `[gates] min_precision`."""


class Gates(_Section):
    """What must hold for something to go on."""

    min_precision: float = Field(default=MIN_PRECISION, ge=0, le=1)
    """Least estimated probability that the end which a reward pays for is right; a task below it is not published."""

    min_probability: float = Field(default=SUCCEEDED_FROM, ge=0, le=1)
    """Least probability of success of a session that counts as good."""
    min_auroc: float | None = Field(default=None, ge=0, le=1)
    """A family whose known outcomes are told apart worse than this gets no reward (`extractors/outcomes/calibration.py`)."""
    max_ece: float | None = Field(default=None, ge=0, le=1)
    """A family whose probabilities of success are further off than this, on average, gets no reward."""


class Audit(_Section):
    """What is tried on each task before it is published, and what is taken for known of its sessions."""

    mutants: int = Field(default=1, ge=0)
    """Changes of the solution that are played, of each kind and write call, beside leaving a call out and making it twice."""
    bad_below: float = Field(default=0.1, ge=0, le=1)
    """A session with a smaller probability of success is known to be bad: a reward that lets it through is unverified."""
    good_from: float = Field(default=0.9, ge=0, le=1)
    """A session with at least this probability is known to be good: a reward that stops it is unverified."""


class EnvironmentFiles(_Section):
    """How environments are written."""

    shard_mb: float = Field(default=64.0, gt=0)
    """Megabytes above which a file of facts or recorded answers is split into shards that are no longer, each of a period."""


class OutcomeSources(_Section):
    """What is known of how sessions went."""

    reviews: list[str] = Field(default_factory=list)
    """Names of feedback in which somebody who looked at the session says how it went; it counts as known."""


class BehaviourSources(_Section):
    """What is known of what tools do, beside the log."""

    programs: str | None = None
    """Folder of programs that a person corrected, from the configuration file's folder: JSON files (docs/behaviour.md)."""
    ask: bool = False
    """Whether the model of TRACEROOM_MODEL writes programs for tools that are left without one."""


class Goals(_Section):
    """How what was asked for is told."""

    ask: bool = False
    """Whether the model of TRACEROOM_MODEL names families and words goals (docs/mining.md)."""


class RewardSources(_Section):
    """What rewards are made from, beside the sessions."""

    rubrics: str | None = None
    """Folder of checks that persons wrote, a TOML file a family, from the configuration file's folder; default: the folder
    `rubrics` beside it, where there is one (docs/configuration.md)."""
    ask: bool = False
    """Whether the model of TRACEROOM_MODEL reads policies for checks (docs/rewards.md)."""


class NewTasks(_Section):
    """Tasks whose solution nobody logged (docs/rewards.md)."""

    failures: bool = True
    """Whether sessions that went wrong become tasks, solved as good ones were."""
    per_family: int = Field(default=2, ge=0)
    """Instances about other entities that are made of each family at most; 0: none."""


Level = Literal["block", "warn", "off"]
"""What a gate does that found something: hold the release up, say so, or not look."""


class Release(_Section):
    """What is published, where, and what holds it up (docs/releases.md)."""

    registry: str | None = None
    """Where releases go: a folder, from the configuration file's folder, or `s3://bucket/prefix`; default: OUT/releases."""
    approval: bool = False
    """Whether a release waits until somebody promotes it: `traceroom release --approve ID`."""
    keep: int = Field(default=10, ge=1)
    """Promoted releases that `traceroom gc` keeps."""
    days: float = Field(default=7.0, ge=0)
    """Days that it keeps what was never promoted, and contents that no release has."""
    min_auroc: float = Field(default=0.5, ge=0, le=1)
    """Families with a reward must tell known good sessions from bad ones at least so well."""
    max_ece: float = Field(default=0.35, ge=0, le=1)
    """Their probabilities of success may be off by so much on average."""
    min_fidelity: float = Field(default=0.5, ge=0, le=1)
    """Share of its logged calls that a tool's program must answer as logged, or leave unknown."""
    drift: Level = "warn"
    """What new changes of what the logs are made of do."""
    leaks: Level = "block"
    """What entities on several sides of a split do."""
    secrets: Level = "block"
    """What keys, tokens and passwords in the files do."""
    personal_data: Level = "warn"
    """What addresses, cards, accounts and telephones in the files do; where privacy is on they block."""


Binding = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][\w.-]*:.+$")]
"""KIND:WHAT."""


class Company(_Section):
    """The world of a company."""

    window_days: int | None = Field(default=None, ge=1)
    """Days before the last change that an environment of a company reaches back; null: all."""
    goes_on: bool = False
    """Whether others' work goes on during episodes of people's work: a call takes a minute then."""


class Configuration(_Section):
    """The whole file."""

    privacy: Switch = "on"
    """Whether personal data and secrets are replaced before anything is stored."""
    privacy_policy: str | None = None
    """A TOML file that says which fields are what, and what is kept (docs/privacy.md); relative to this file."""
    sources: list[Source] = Field(default_factory=list)
    repositories: list[CodeRepository] = Field(default_factory=list)
    sessions: SessionRules = SessionRules()
    gates: Gates = Gates()
    audit: Audit = Audit()
    environments: EnvironmentFiles = EnvironmentFiles()
    outcomes: OutcomeSources = OutcomeSources()
    behaviour: BehaviourSources = BehaviourSources()
    goals: Goals = Goals()
    rewards: RewardSources = RewardSources()
    variants: NewTasks = NewTasks()
    release: Release = Release()
    company: Company = Company()
    bindings: dict[str, Binding] = Field(default_factory=dict)
    """Tool -> `KIND:WHAT`: the real service that answers in a rollout what is not on record (docs/environment.md)."""


def load(path: Path | str) -> Configuration:
    """Read a configuration file; its paths become absolute. Errors: `InputError` with file, key and hint."""
    path = Path(path)
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the configuration cannot be read ({error.strerror})", str(path),
                         "give the path of a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"the configuration is no TOML ({error})", str(path), "repair that place") from error
    try:
        configuration = Configuration.model_validate(value)
    except ValidationError as error:
        raise InputError(*_problem(error, str(path))) from error

    def absolute(name: str) -> str:
        return name if is_address(name) else str((path.parent / name).resolve())
    folder, registry = configuration.behaviour.programs, configuration.release.registry
    rubrics = configuration.rewards.rubrics or (RUBRICS if (path.parent / RUBRICS).is_dir() else None)
    return configuration.model_copy(update={
        "sources": [each.model_copy(update={"paths": list(map(absolute, each.paths or _inbox(each)))})
                    for each in configuration.sources],
        "repositories": [each.model_copy(update={"path": absolute(each.path)}) for each in configuration.repositories],
        "behaviour": configuration.behaviour.model_copy(update={"programs": absolute(folder)} if folder else {}),
        "rewards": configuration.rewards.model_copy(update={"rubrics": absolute(rubrics) if rubrics else None}),
        "release": configuration.release.model_copy(
            update={"registry": absolute(registry)} if registry and "://" not in registry else {})})


def _inbox(source: Source) -> list[str]:
    """Return the folder that a source is pulled into where it names none."""
    return [f"{INBOX}/{source.name}"] if source.pull else []


def _problem(error: ValidationError, place: str) -> tuple[str, str, str]:
    """Return what is wrong, where, and the hint."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "string_pattern_mismatch":
        return f"key '{key}': {first['input']!r} is not KIND:WHAT", place, (
            "name what to bind as docs/environment.md says: python:module:function, http:ADDRESS, mcp:ADDRESS, mcp:COMMAND")
    if first["type"] != "extra_forbidden":
        return f"key '{key}': {first['msg'].removeprefix('Value error, ')}", place, "correct its value"
    section: Any = Configuration
    if len(first["loc"]) > 1:
        name = str(first["loc"][0])
        lists: dict[str, Any] = {"sources": Source, "repositories": CodeRepository}
        section = lists[name] if name in lists else Configuration.model_fields[name].annotation
    return f"there is no key '{key}'", place, f"remove it, or use one of: {', '.join(section.model_fields)}"
