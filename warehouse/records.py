"""Every type that flows through Traceroom, and the polars schema of the table that holds many of it.

One record is a frozen pydantic model; many are a polars frame whose columns are the model's fields
(`frame_schema`). Values that have no fixed shape (arguments, rows of other people's databases) are
JSON text: key order and number format are part of what a policy sees, so they are kept as logged.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Literal, NamedTuple, Protocol, Union, get_args, get_origin, get_type_hints

import polars as pl
from pydantic import AliasChoices, BaseModel, ConfigDict, Field


def always(value: Any) -> bool:
    """Whether a value of another day counts, where the arguments are all that it follows from."""
    return True


class Memoize(Protocol):
    """(arguments, function of these alone) -> what it gives, or gave on another day. Both are JSON values: lists, no sets.

    `holds`: of a function that notes what else it reads, whether all of that is today as it was for such a value."""

    def __call__(self, arguments: object, make: Callable[[], Any], holds: Callable[[Any], bool] = always) -> Any:
        """Return the value."""


def recompute(arguments: object, make: Callable[[], Any], holds: Callable[[Any], bool] = always) -> Any:
    """Where nothing is remembered (`Memoize`): what the function gives."""
    return make()


class Record(BaseModel):
    """Base of all records: frozen, and an undeclared field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class File(Record):
    """A log file, or a chunk of a big one, that was read: a row of the ledger (`raw.files`)."""

    file_id: str
    """sha256 over source, the chunk before it and content, first 32 hex digits: the same bytes from the beginning of a file to
    the end of the chunk are the same chunk."""
    previous: str | None
    """Id of the chunk before it in its file; None: the file begins with it."""
    source: str
    """Name of the source the file belongs to (from the configuration, else `main`)."""
    path: str
    """Where it lay, for people; never part of an id or an export."""
    chunk: int
    """0-based number of the chunk in its file; 0 where the file is small."""
    byte_offset: int
    """Where the chunk begins in the unpacked file."""
    format: str
    """Name of the format module that read it."""
    n_bytes: int
    """Bytes of the chunk, unpacked."""
    n_records: int
    day: str | None
    """UTC day (YYYY-MM-DD) of its earliest record, None where nothing carries a time."""
    read_at: datetime
    settled: bool
    """Its records were distinguished from equal ones of other chunks (`pipelines.ingestion.settle`)."""


class FileLocation(Record):
    """What lies where, as a run last saw it (`raw.locations`); of clock and disk, never part of an id or an export."""

    path: str
    file_id: str
    """The chunk that ends the file."""
    n_bytes: int
    """Size of the whole file before it was read."""
    modified_ns: int
    """When it was last written, in nanoseconds since 1970: with its size it tells that nothing is new."""


class SealedSession(Record):
    """When a session was sealed: a row of the ledger of epochs (`raw.epochs`)."""

    session_id: str
    epoch: int
    """Number of the arrival of logs that it was first seen with, from 1; the first one ends when there are sessions enough."""


class SealedSide(Record):
    """What was decided of a sealed session, and stays (`raw.sides`)."""

    session_id: str
    service: str
    first_session_id: str
    """The session that its task is named after: of those that settled in it, the first."""
    component: str
    """First session of what is tied to it on its side, named so when it was sealed, or now."""
    split: str
    """train, validation, held_out; `tied_across_sides`: what it names is on several sides, so it is on none."""
    method: Literal["component", "family"]
    """By what its service was split then."""


class WordGroup(Record):
    """Which kind of request a sealed session taught, where words alone tell kinds (`raw.word_groups`)."""

    session_id: str
    word_group: str
    """The session that the kind is named after; empty: it taught none."""


class SealedAct(Record):
    """On which side of the split an act of a company's work stays (`raw.work_sides`)."""

    ref: str
    """Of the act (`core.work_events`)."""
    split: Split
    """That of its piece of work when it was sealed."""


class LearntProgram(Record):
    """What was learnt of a tool, and stands until its calls speak against it (`raw.programs`)."""

    service: str
    tool: str
    epoch: int
    """The latest epoch of the sessions that it was learnt from."""
    n_examples: int
    """Calls that it was learnt from."""
    grounds: str
    """Digest of what else it rests on."""
    learnt: str
    """JSON: the rules, with earlier versions and chosen parts where there are any."""
    n_against: int
    """Of these calls, those that it answers otherwise."""
    fidelity: float | None
    """That of `mart.behaviours` when it was learnt."""
    abstains: float | None
    """That of `mart.behaviours` when it was learnt."""
    cassette_fidelity: float | None
    """That of `mart.behaviours` when it was learnt."""
    cassette_abstains: float | None
    """That of `mart.behaviours` when it was learnt."""


class RawRecord(Record):
    """Pointer to the raw record behind events (`raw.records`): where it lies and what it was."""

    record_id: str
    """sha256 over source, the record's bytes and its ordinal among equal records of the file, first 32 hex digits; the same
    record of another file has the same id, and is left."""
    file_id: str
    line: int
    """1-based line (or element of a whole-file format)."""
    byte_offset: int
    n_bytes: int
    first_id: str | None = None
    """Id of the first of the file's equal records; None: it is the first."""
    reject_reason: str | None = None
    """Why its events are left: `duplicate_record`, `forgotten` (its id is then a hash with the owner's key); None: they are
    kept."""


class Quarantined(Record):
    """The bytes of a record that gave nothing (`raw.quarantine`)."""

    record_id: str
    file_id: str
    line: int
    byte_offset: int
    content: bytes
    """At most the first MiB."""


class PrivacyState(Record):
    """By which rules, and with which key, personal data was taken out (`raw.privacy`)."""

    policy: str
    """Version of the rules, with a digest of what a policy file adds."""
    key_check: str
    """Keyed hash of nothing: tells keys apart, and nothing of the key."""


class Person(Record):
    """Something that tells who somebody is (`raw.people`)."""

    person_id: str
    """Keyed hash of kind and value, first 32 hex digits."""
    kind: str
    sealed: bytes
    """JSON of kind and value, sealed with the owner's key (AES-SIV)."""


class NewPerson(Record):
    """A row of `raw.people` that comes from chunks whose records are not settled yet (`raw.new_people`); none after a run."""

    person_id: str
    """As in `raw.people`."""


class Declaration(Record):
    """A tool as a file declares it (`raw.declarations`): a tool list, or the `tools` of a request that a log kept."""

    declaration_id: str
    """sha256 over source, service, tool and what is declared."""
    file_id: str
    """First file that declared it so."""
    source: str
    service: str | None
    """Service that the file states or is named after; None: whatever service calls the tool."""
    tool: str
    description: str | None
    input_schema: str | None
    """JSON Schema as JSON text, None where the list gives a name alone."""
    annotations: str | None
    """MCP annotations as JSON text."""


class Forgotten(Record):
    """Something by which a person who was forgotten is told, as a hash with the owner's key (`raw.forgotten`)."""

    kind: Literal["key", "identifier", "session", "event"]
    """What was hashed; `key`: nothing but the key itself, to tell it from another one."""
    hash: str
    """HMAC-SHA-256, 64 hexadecimal digits."""
    form: str
    """Of an identifier: whether it is a word or a field's value, and its shape (so many letters, so many digits)."""


EventKind = Literal[
    "message", "reasoning", "call", "result", "request", "feedback", "outcome", "row_change", "business", "log", "link",
    "correction", "review", "page", "answer"]


class Event(Record):
    """What happened, typed, nothing inferred (`core.events`)."""

    event_id: str
    """The record's own id for the first event of a record; else sha256 over it and the event's place, first 32 hex digits."""
    record_id: str
    file_id: str
    source: str
    format: str
    """Name of the format module that read it."""
    service: str | None
    """Name of the service that the record itself states."""
    session_id: str | None
    """As in the log; or an alias (`trace:…`) that a link event of the source says the session of. Of a link: the session."""
    position: int | None
    """Index in the conversation (0-based, counted over messages, calls and results) where the record tells it. Of a row
    change: its place in the database's own log."""
    happened_at: datetime | None
    kind: EventKind
    role: str | None
    """Of a message: system, developer, user, assistant."""
    content: str | None
    """Text of a message, a result or a comment; parts are joined; None means not captured."""
    call_id: str | None
    """Id of the call; of a request: its own id; of a row change: its transaction; of feedback: the call, message or span that
    it is on (None: the session); of a correction: the id of what it corrects; of a review: the task; of an answer: the
    sequence of calls."""
    tool: str | None
    """Of a call, result or answer: the tool's name. Of a request or page: the method and raw path. Of a row change: the table.
    Of a business event: its name. Of a log line: its template. Of a correction: the kind of what it corrects."""
    arguments: str | None
    """Of a call or answer: JSON text as logged. Of a request or page: JSON object {"query": …, "body": …}. Of a row change: the
    key. Of a business event or a log line: JSON object of what it carries."""
    is_error: bool | None
    """Explicit error flag, None where the log does not say."""
    requestor: str | None
    """Who called the tool: assistant or user. Of a request: id of the agent's tool call that made it, where stated."""
    name: str | None
    """Of feedback and outcomes: what was asked or measured. Of a correction, review or answer: who says so. Of a row change:
    the operation (create, update, delete, snapshot). Of all others: identity of the user, clerk or connection, where one is
    stated."""
    value: str | None
    """Of feedback and outcomes: the answer as logged. Of a correction: JSON of what is right. Of a review: JSON {"right": …,
    "sampled": …}. Of an answer: JSON {"accepted": …, "as_of": …}. Of a link: the alias. Of a row change: JSON {"before": …,
    "after": …}. Of a request: JSON {"status": …, "body": …}. Of a page: JSON {"status": …, "location": …, "type": …, "size": …,
    "file": …, "body": …}."""
    latency_ms: float | None
    model: str | None
    usage: str | None
    """Of the first part of a model's answer: JSON object of token counts (input_tokens, output_tokens, cached_tokens …).
    Of the first message or call of it, where the log has them: prompt_token_ids, completion_token_ids, logprobs; of each of
    them sampling, an object of the parameters that it was drawn with (`extractors.formats.sampling`)."""
    lossy: str | None
    """JSON list of what could not be carried over from the record, None where nothing was lost."""


class Session(Record):
    """A conversation or a run of requests by one identity (`core.sessions`)."""

    session_id: str
    source: str
    service: str
    """Service of the session; `main` where no record states one."""
    started_at: datetime | None
    ended_at: datetime | None
    day: str | None
    n_messages: int
    n_calls: int
    identity: str | None
    """User, clerk or connection it belongs to, where the log says."""
    format: str
    """Format that it was taken from."""
    alike: str | None = None
    """First of the sessions that may be the same conversation, where that cannot be decided: they stay on one split."""
    other_session_ids: list[str] = []
    """Ids under which other logs tell the same conversation."""


class Turn(Record):
    """One step of a session in order (`core.turns`): a message, or a call with its result."""

    turn_id: str
    """event_id of the message or the call."""
    session_id: str
    service: str
    position: int
    """0-based, gapless within the session."""
    happened_at: datetime | None
    """When the message was written or the call was made."""
    kind: Literal["message", "call"]
    role: str | None
    content: str | None
    """Text of the message, or the tool's answer byte for byte; None: never answered."""
    call_id: str | None
    tool: str | None
    arguments: str | None
    """Canonical JSON object of the arguments (sorted keys); None where the logged text is no JSON object."""
    arguments_raw: str | None
    """The arguments as logged."""
    is_error: bool | None
    requestor: str | None
    answered_at: datetime | None
    result_id: str | None
    """event_id of the result."""
    latency_ms: float | None
    model: str | None


class Feedback(Record):
    """What a person said of a session afterwards (`core.feedback`)."""

    feedback_id: str
    session_id: str
    happened_at: datetime | None
    name: str
    value: str
    source: str


class Correction(Record):
    """What a person corrected (`core.corrections`): an event like any other, said of what a build made."""

    correction_id: str
    happened_at: datetime
    author: str
    why: str
    kind: Literal["outcome", "family", "check"]
    subject: str
    """Of an outcome: the session. Of a family: its id, or a kind's. Of a check: its id, or TASK/CHECK; of an added one
    TASK/NAME or FAMILY/NAME."""
    value: str
    """JSON text: `succeeded` or `failed`; a name; {"accepted", "role", "weight", "description", "parameters"}, with "kind" of
    an added check; null: as built."""
    stands: bool
    """No later one speaks of the same, and the session is there."""


class Review(Record):
    """A person's answer to "is this session's work right?" (`core.reviews`)."""

    review_id: str
    session_id: str
    happened_at: datetime | None
    reviewer: str
    is_right: bool
    reason: str
    task_id: str | None
    """Task that the session was reviewed for, where stated."""
    is_sampled: bool
    """The session was drawn at random from the published tasks."""
    stands: bool
    """It counts: the session is in a log, the reviewer gave no later review of it, and the reviewers agree."""


class RowChange(Record):
    """A row of a database that changed (`core.row_changes`)."""

    change_id: str
    source: str
    happened_at: datetime | None
    table_name: str
    operation: Literal["create", "update", "delete", "snapshot"]
    key: str | None
    before: str | None
    """JSON object, None where not logged."""
    after: str | None


class FieldValue(Record):
    """A value that a field of a record of an app took, as the app's export shows it (`core.versions`)."""

    position: int
    """Place in the order in which values apply, from 0."""
    entity_class: str
    """Kind of record, such as an issue or a message."""
    entity_id: str
    """The app's own id of the record."""
    field: str
    """Name of the field in its record."""
    value: str
    """JSON of the value."""
    changed_at: int
    """Microseconds since 1970 UTC from which the field has the value; 0: before the export's first record."""
    actor: str | None
    """The app's own id of the account that made the change."""
    guessed_until: int
    """Until this instant (microseconds) the value is a guess: the export shows it, but not since when."""
    record: str
    """The source record: file, and what identifies the record in it."""
    sequence: int
    """The product's own number of the change, which orders changes of one instant; 0: it gave none."""


class PersonAccount(Record):
    """An account of a person in an app of the company (`core.accounts`)."""

    address: str
    """Of the person."""
    entity_class: str
    """Kind of account: a class of records, or `login` at a code host."""
    account: str
    """The app's own id of the account."""


CREATED = "created"
"""How the verb of an act ends that makes a record."""


class RecordKind(NamedTuple):
    """How the records of a class take part in work."""

    name: str
    """The class."""
    texts: tuple[str, ...] = ()
    """Fields that hold words of people; of tables and files: what is new in them counts. A last `*` stands for any ending."""
    people: tuple[str, ...] = ()
    """Fields that hold accounts, one or several, whom a record is for."""
    place: str = ""
    """`class:{field}` of what it lies in (a channel, a project, a page); empty: nothing."""
    answers: str = ""
    """`class:{field}` of the record, or the thread, that it answers; empty: none."""
    follows: tuple[str, ...] = ()
    """Fields that follow from others and show no act by themselves: counters, times of changes."""
    part_of: str = ""
    """Class whose change at the same instant this one is a part of: the mailbox of a mail."""
    setting: bool = False
    """Whether it is what a company set up, not work: an account, a workflow."""


class ActChange(NamedTuple):
    """A field that took another value."""

    field: str
    before: Any
    """None: it had none."""
    after: Any

    @property
    def answered_by(self) -> list[str]:
        """The addresses under which alone values changed in an object by addresses: the guests who answered an invitation."""
        if not isinstance(self.before, dict) or not isinstance(self.after, dict) or set(self.before) != set(self.after):
            return []
        differ = [name for name in self.after if self.after[name] != self.before[name]]
        return differ if all("@" in name for name in differ) else []


class WorkEvent(NamedTuple):
    """An act in an app."""

    ref: str
    """`class:id#number`: unique, and stable as long as the export names the record so."""
    at: int
    """Microseconds since 1970 UTC."""
    record: tuple[str, str]
    """(class, id) of the record that changed."""
    verb: str
    """`class created`, `class gone`, or `class` and the fields that changed: what kind of act it is."""
    actor: str
    """Address of the person where one is known, else the product's own id of the account; empty: none is on record."""
    place: str
    """`class:id` of what the record lies in (a channel, a project, a page); empty: none."""
    thread: str
    """`class:id` of the record or thread that it answers or belongs to; its own where it begins one."""
    addressees: tuple[str, ...]
    """Addresses of the people whom the act is for, sorted."""
    texts: tuple[str, ...]
    """What is new in words: a message, the rows that a table got, the lines that a page got."""
    changes: tuple[ActChange, ...]
    """All fields that changed but those that follow from others."""
    source: str
    """The source record of the export."""


class WorkItem(NamedTuple):
    """A piece of work."""

    item_id: str
    """The ref of its first act: stable while that one belongs to it."""
    refs: tuple[str, ...]
    """Of its acts, by time."""
    probability: float
    """That its acts, and only they, are one piece of work."""
    kind: str = ""
    """Of work, by what is done in it; empty: not told."""
    success: float | None = None
    """Probability that it ended well; None: nothing tells."""
    reason: str = ""
    """Why it makes no task; empty: it may."""


class WorkEventRow(Record):
    """An act that an export of a company's app shows (`core.work_events`)."""

    position: int
    """Place in the order of time, from 0."""
    ref: str
    """`class:id#number`: unique, and stable as long as the export names the record so."""
    happened_at: datetime
    """When it was done."""
    entity_class: str
    """Kind of the record that changed."""
    entity_id: str
    """The app's own id of it."""
    verb: str
    """`class created`, `class gone`, or `class` and the fields that changed."""
    container: str
    """The channel, project, table or file in which it was done, else the class."""
    actor: str
    """Address of the person, else the account; empty: none is on record."""
    place: str
    """`class:id` of what the record lies in; empty: none."""
    thread: str
    """`class:id` of the record or thread that it answers or belongs to."""
    addressees: list[str]
    """Addresses of the people whom it is for."""
    texts: list[str]
    """What is new in words."""
    changes: str
    """JSON list of {"field", "before", "after"}."""
    record: str
    """The source record: file, and what identifies the record in it."""


class WorkItemRow(Record):
    """A piece of work that people did, over all apps (`mart.work_items`)."""

    work_item_id: str
    """The ref of its first act."""
    refs: list[str]
    """Of its acts, by time (`core.work_events`)."""
    kind: str
    """Of work, by what is done in it; empty: none."""
    probability: float
    """That its acts, and only they, are one piece of work."""
    success: float | None
    """Probability that it ended well; null: nothing tells, or it was still open."""
    opened_at: datetime
    """Of the first act."""
    closed_at: datetime
    """Of the last act."""
    reason: str
    """Why it can make no task; empty: it can."""
    slots: str
    """JSON object slot name -> value: what sets it apart in its kind."""
    votes: str
    """JSON list of {"signal", "vote" (-1..1), "detail"}: what speaks for its success, and against."""
    corrections: str
    """JSON list of {"position", "wrong", "right"}: values that were set wrong and then corrected."""


ASSUMED_ANSWER = "x-assumed-answer"
"""Keyword of a declared input schema: an example of an answer as text, which no log shows."""


class Tool(Record):
    """A tool of a service (`core.tools`)."""

    service: str
    tool: str
    description: str | None
    input_schema: str
    """JSON Schema as JSON text: declared, else inferred from the calls."""
    declared: bool
    annotations: str | None
    """MCP annotations as JSON text; a hint, not the truth."""
    n_calls: int


class Service(Record):
    """A service, and what its sessions begin with (`mart.services`)."""

    service: str
    starts_from: Literal["reset", "shared"]
    """reset: every session begins from the same world, or from one of its own; shared: all work on one."""
    decided_by: Literal["configuration", "writes", "first_answers"] | None
    """What says so: `starts_from` of a source, what writes left for later sessions, or how first answers change over time;
    None: nothing does, and what one session was told speaks for another only as far as sessions were told the same."""
    votes: str
    """JSON object: how many reads after another session's write speak for each; {} where the configuration says it."""
    worlds: str
    """JSON object where the sessions are of several worlds: `sessions` (how many of each), `alike` and `against` (questions
    that tell the world of their session as its other questions do, and that do not), `attribute` that tells them apart (null:
    none does), and for how many sessions it is `right`; else {}."""


class SessionWorld(Record):
    """Which world a session belongs to, of a service that has several (`mart.worlds`)."""

    session_id: str
    service: str
    world: str
    """Name under which the world's facts, answers and behaviours are stored, as if it were a service."""


class Leakage(Record):
    """What the splits of a service still share (`mart.leakage`)."""

    service: str
    report: str
    """JSON object (extractors/tasks/splits.py)."""


class Outcome(Record):
    """Whether a session succeeded (`mart.outcomes`)."""

    session_id: str
    probability: float | None
    """Probability of success in [0, 1]; None: abstained."""
    low: float | None = None
    high: float | None = None
    """95 % interval of the probability."""
    blind: float | None = None
    """The probability without what people said of the session afterwards: what it can be held against."""
    is_contested: bool = False
    """Whether a signal clearly speaks against it."""
    model: str = ""
    """Hash of the signals, weights and constants that it was made with."""
    signals: str
    """JSON list of {"name", "vote" (-1..1), "description", "evidence": [event ids]}, sorted by name."""


class SignalWorth(Record):
    """What one side of the votes of a group of signals was found to be worth (`mart.signals`)."""

    service: str
    """Kind of service; sessions without anybody's words are a kind apart."""
    signal: str
    """Group of signals that have one vote together."""
    side: Literal["for", "against"]
    n_votes: int
    coverage: float
    """Share of the sessions of the service that got it."""
    agreement: float
    """Share of its votes that the other groups agree with."""
    log_odds: float
    """What it adds to the log odds of success: below 0 it speaks against, whatever its side is called."""


class ConditionRow(Record):
    """A condition on which agents decline a family of requests, or a step that they take before it (`mart.conditions`)."""

    condition_id: str
    service: str
    """Kind of service: the first of those with nearly the same tools."""
    tool: str
    """Tool that does what is asked."""
    status: Literal["borne_out", "stated", "step"]
    """borne_out: agents decline on it beyond chance; stated: a sentence of the instructions names it, and the logs do not
    settle it; step: it comes before the tool in most sessions, and a sentence asks for it."""
    condition: str
    """The condition in words: fields of answers, each with a value or a bound."""
    field: str
    """What it is about: a field of an answer; of a step the tool that comes first, empty for words of the agent."""
    sentence: str
    """Sentence of the instructions that names it, empty where none does."""
    declined_session_ids: list[str]
    """Sessions that declined where it holds."""
    acted_session_ids: list[str]
    """Sessions that acted there."""


Split = Literal["train", "validation", "held_out"]
SPLITS: tuple[str, ...] = get_args(Split)
"""The splits, from the earliest to the latest."""
DifficultyBand = Literal["rarely", "sometimes", "often", "mostly"]
"""Rates of success below 20 %, 50 %, 80 %, and above: what goes well sometimes teaches most."""


class Task(Record):
    """Something that was asked for, at an instant, in a service (`mart.tasks`)."""

    task_id: str
    service: str
    family: str
    """Id of the family of the task."""
    slots: str
    """JSON object slot name -> value: what sets this task apart in its family."""
    goal: str
    """What was asked, in the user's own words."""
    session_ids: list[str]
    """Sessions that the task begins together with, as in the log, sorted."""
    segment_of: str | None
    derived_from: str | None
    """Task whose successful trajectory solves this one, which has no known success of its own (`mart.variants`)."""
    starts_at: datetime | None
    """Instant of the world that the task begins in; None: the world has no clock."""
    succeeded_session_ids: list[str]
    """Sessions that succeeded at it, best first."""
    split: Split
    difficulty: float | None
    """1 - mean probability of success over its sessions."""
    rate: float | None = None
    """How often it succeeds: Beta-Binomial, its own sessions and its family's; None: no session of it has a probability."""
    rate_low: float | None = None
    rate_high: float | None = None
    """Where the rate lies with 90 %."""
    difficulty_band: DifficultyBand | None = None
    """In which band the rate likely lies; None: it is unknown."""
    call_sequences: str = "[]"
    """JSON list of {calls, n_succeeded, n_sessions}: the distinct sequences of calls it was done by."""
    late_arguments: str = "[]"
    """JSON list of the arguments (`tool.path`) that the user states only later on."""
    reported_facts: str = "[]"
    """JSON list of {tool, path, value}: the facts from answers that every successful session reported to the user."""
    signature: str = "[]"
    """JSON list of {tool, effect, n_sessions, arguments}: what it changed or found out, and where each argument came from
    (extractors/tasks/details.py)."""


class Family(Record):
    """Tasks that ask for the same work (`mart.families`)."""

    family: str
    service: str
    asks: str
    """JSON list: what names the kinds of its goals, in order."""
    goal: str
    """What was asked in one of its best sessions, as an example."""
    n_sessions: int
    n_tasks: int
    n_succeeded: int
    """Sessions that succeeded."""
    rate: float | None
    """How often it succeeds; None: no session of it has a probability."""
    rate_low: float | None
    rate_high: float | None
    """Where the rate lies with 90 %."""
    difficulty_band: DifficultyBand | None
    first_at: datetime | None
    last_at: datetime | None
    """Beginnings of its first and last session."""
    signature: str
    """As of a task, over all its successful sessions."""


class Goal(Record):
    """One aim of a session, and the stretch of it that it took (`mart.goals`)."""

    goal_id: str
    session_id: str
    service: str
    place: int
    """0-based among the session's goals."""
    begins: int
    """Position of the turn that it begins with; goals asked in one breath begin together."""
    ends: int
    """Position after its last turn."""
    kind: str
    """Id of the family of this goal alone."""
    asks: str
    """What names the kind: the tool that does it, empty where they change nothing, or words of others like it."""
    family: str
    """Id of the family of all the session's goals."""
    goal: str
    """What was asked, in the user's own words."""
    slots: str
    """JSON object slot name -> value, or list of values: what each argument of the kind's tool should be, as the words ask."""
    continues: str | None = None
    """Id of the goal of an earlier session that it goes on with."""


class FamilyName(Record):
    """What a family is called (`mart.names`); a request that stands alone is a family too."""

    service: str
    family: str
    """Id of the family, or of the kind."""
    kinds: list[str]
    """Ids of the kinds of its goals, in order."""
    name: str
    """A few words: what one asks for."""
    sentence: str
    """What one asks for as a sentence, with `{slot}` where its tasks differ."""
    written_by: str | None = None
    """Model that wrote them, or person who corrected the name; None: made from users' words and the names of tools."""


class Sentence(Record):
    """A goal as one sentence to read (`mart.sentences`)."""

    goal_id: str
    sentence: str
    """What was asked, with each value of a slot marked: `[slot: value]`."""
    written_by: str | None = None
    """Model that worded it; None: the user's own words."""


Derivation = Literal["seen", "implied", "carried", "row_change"]


class Fact(Record):
    """What is known of the world over an interval (`mart.facts`)."""

    fact_id: str
    service: str
    entity_class: str
    """Name of the class of entities, made from the tools that speak of it."""
    key: str
    value: str
    """JSON text of the document as the tool showed it."""
    valid_from: datetime | None
    """None: since ever."""
    valid_to: datetime | None
    """Exclusive; None: for ever."""
    session_id: str | None
    """None: holds for all; else it is this session's own view."""
    derivation: Derivation
    observed_at: datetime | None
    event_id: str
    """Result or row change that it was read from."""


class Recorded(Record):
    """An answer that a tool really gave, and where it holds (`mart.recorded`)."""

    recorded_id: str
    service: str
    tool: str
    arguments: str
    """Canonical JSON object."""
    content: str
    is_error: bool
    valid_from: datetime | None
    valid_to: datetime | None
    session_id: str | None
    """None: holds for all; else only in tasks that begin together with this session."""
    after: str
    """JSON list of the write calls [[tool, canonical arguments], …] that it depends on, sorted."""
    effects: str
    """JSON list of {"class", "key", "value"} documents that the call left behind; [] for a read."""
    event_id: str


class Behaviour(Record):
    """What a tool does (`mart.behaviours`)."""

    service: str
    tool: str
    effect: Literal["read", "write", "pure", "constant", "outside", "unknown"]
    program: str
    """JSON text in the language of docs/behaviour.md."""
    n_support: int
    n_against: int
    fidelity: float | None
    """Of its logged calls that a program from the other half of the sessions answers: share exact.
    None: no program, or rules that search entities or rows, which are not measured so."""
    abstains: float | None
    """Share of these calls that the program does not answer. None: no program."""
    cassette_fidelity: float | None
    """Of the same calls that a cassette answers (the other half's latest answer to exactly this question): share exact.
    None: it answers none."""
    cassette_abstains: float | None
    """Share of these calls that were not asked in the other half. None: no call."""


class Check(Record):
    """One typed test of an episode, inside a rubric."""

    check_id: str
    kind: str
    role: Literal["gate", "score", "penalty", "shaping", "diagnostic"]
    description: str = Field(validation_alias=AliasChoices("description", "says"))
    """One sentence for a person; `says` in tables of earlier versions."""
    parameters: dict[str, Any]
    weight: float = 1.0
    provenance: dict[str, Any]
    """{"supporting": [session ids], "contrary": [session ids], "support": number of sessions, "confidence": probability,
    "events": {"supporting": [event ids], "contrary": [event ids]}} where it was mined; {"by": "person", …} where somebody says
    so (docs/rewards.md)."""


class Rubric(Record):
    """How a task is graded (`mart.rubrics`)."""

    rubric_id: str
    task_id: str
    service: str
    checks: str
    """JSON list of Check, sorted by check_id."""
    solution: str
    """JSON list of the successful episode's steps: {"tool", "arguments"} or {"say"}."""


class Variant(Record):
    """A task whose solution nobody logged (`mart.variants`): solved by trajectories of successful sessions."""

    task_id: str
    """Of a failure: the task's own (`mart.tasks`)."""
    service: str
    family: str
    slots: str
    goal: str
    session_ids: list[str]
    """Sessions that it begins together with; none where it was generated."""
    starts_at: datetime | None
    split: Split
    derived_from: str
    """Task whose successful trajectory solves it."""
    made_from: Literal["failure", "rebinding"]
    """failure: sessions that failed; rebinding: the words and the trajectory of another task, about other records."""
    opening: str
    """JSON list of {"role", "content"}."""
    script: str
    """JSON object: the task's `user` row (docs/environment.md)."""
    rubric_id: str
    checks: str
    """JSON list of Check, sorted by check_id."""
    solution: str
    """JSON list of steps, as in `Rubric`."""


class EnvironmentRow(Record):
    """A published environment (`mart.environments`)."""

    environment: str
    service: str
    content_digest: str
    rewards_digest: str
    image_id: str | None
    image_skip_reason: str | None
    """Why there is no image, where there is none."""
    n_tasks: int
    n_tools: int


class Dataset(Record):
    """A file of a dataset that was written (`mart.datasets`)."""

    path: str
    """Relative to the folder that a run writes."""
    kind: str
    """trajectories, sft, leakage …"""
    split: str | None
    """One of `SPLITS`; None: the file speaks of all."""
    n_rows: int
    n_bytes: int
    sha256: str


class CodeStart(Record):
    """Where a session of coding began (`mart.starts`)."""

    session_id: str
    repository: str
    """Its name: of the bundle or folder."""
    commit_id: str
    """The commit that was checked out."""
    how: str
    """said: its log or git's output names the commit; branch, time: the last commit of its branch, or of any, at that time;
    files: the latest one that fits what was read and edited."""
    rivals: list[str]
    """Other commits of that time that fit as well, the latest first."""
    dirty: str
    """JSON object of the files that were not as the commit has them: path -> text, null where it is not known."""


class CodeChangeRow(Record):
    """What became of the change that a session of coding made (`mart.code_changes`)."""

    session_id: str
    repository: str
    """Its name: of the bundle or folder."""
    pull_request: int | None
    """Its number."""
    state: str
    """Of the pull request: merged, closed or open; `none` if the session made no such request."""
    merge_commit: str | None
    """What it became on the main line."""
    reverted_by: str | None
    """The commit that took it back."""
    ci: str | None
    """How the last run of CI on the pull request's head ended."""
    winner: str | None
    """The commit that solved what the session was asked for."""
    won_by: str
    """itself: what the session made was merged and stayed; likeness: another change, about the same; nothing: none is known."""
    source_files: list[str]
    """Files of source that the winner changed."""
    test_files: list[str]
    """Files of tests that the winner changed."""
    success: float | None
    """Probability that the session solved what it was asked for, before its tests are run; null: it abstains."""
    evidence: list[str]
    """What the probability is made of; signs of cheating with the file that has them."""


class HostRecord(Record):
    """A pull request or an issue of a repository for some time, as events of its code host show it (`mart.host_records`)."""

    repository: str
    """Its name: of the bundle or folder."""
    kind: Literal["pull_request", "issue"]
    """What it is."""
    number: int
    """Its number."""
    valid_from: datetime
    """The event that showed it so."""
    valid_to: datetime | None
    """The next event that showed it otherwise; null: no event does."""
    value: str
    """JSON object: number, title, body, author, state, checks (results of CI), comments and reviews."""


class CodeRecipe(Record):
    """How the tests of a repository are run (`mart.recipes`)."""

    repository: str
    """Its name: of the bundle or folder."""
    recipe_id: str
    """Digest of the recipe."""
    recipe: str
    """JSON object: command, results, minor version of Python, packages with hashes, environment, files laid over each tree."""
    share: float | None
    """Of the outcomes that CI recorded on the main line: how many it reproduces; null where CI recorded none."""
    n_runs: int
    """Commits of the main line with which it was compared."""


class CodeTask(Record):
    """A task of code: a change to make, and the tests that tell (`mart.code_tasks`)."""

    task_id: str
    """Id of the task."""
    session_id: str | None
    """The session that was about it; None: it is derived, and no session was."""
    repository: str
    """Its name: of the bundle or folder."""
    recipe_id: str
    """The recipe with which its tests run (`mart.recipes`)."""
    start_commit: str
    """Where the session began; of a derived task, `base_commit`."""
    base_commit: str
    """Where the task begins: its tree, with the dirty files, without the known tests."""
    base: str
    """start: where the session began; parent: at the winner's parent, of a session's where the winner does not apply to its
    start; latest: at the latest commit of the main line."""
    dirty: str
    """JSON object of the files that are not as the commit has them: path -> text, null where it is not known. Of a hunk: the
    files in which it is turned back."""
    winner: str
    """The commit that solves it: the known fix and the known tests. Of a hunk: the commit that put it in; the files of
    `base_commit` solve it."""
    goal: str
    """The user's words, or those of the issue, pull request or message of a commit, without what gives the solution away."""
    script: list[str]
    """What the user said later, in order."""
    fail_to_pass: list[str]
    """Tests that fail in three runs before the fix and pass in three after it."""
    pass_to_pass: list[str]
    """Tests that pass in all of them."""
    flaky: list[str]
    """Tests that are not steady, which do not count."""
    test_files: list[str]
    """Known tests and the files next to them: to put in, or take out where the winner lacks them."""
    fix_files: list[str]
    """Files of source that the known fix changes."""
    derived_from: str
    """session: a session was about it; commit: another commit of the main line; hunk: a hunk of such a commit, turned back in
    the latest."""


class CodeRoomRow(Record):
    """The environment of a repository (`mart.code_rooms`)."""

    environment: str
    """Its name: of its folder."""
    repository: str
    """Its name: of the bundle or folder."""
    content_digest: str
    rewards_digest: str
    n_tasks: int


class CodeVerdict(Record):
    """What the verifier says of what a session of coding had left (`mart.code_verdicts`)."""

    task_id: str
    """The task that it was about."""
    session_id: str
    """The session."""
    resolved: bool | None
    """Whether the source that it had left solves the task; null: only tests tell, and it reaches for its judge."""
    forgeable: bool
    """Whether the verdict rests on tests alone, that code under test could forge."""
    detail: str
    """What failed or agreed."""


class SiteRoomRow(Record):
    """The environment of a web site (`mart.site_rooms`)."""

    environment: str
    """Its name: of its folder."""
    host: str
    """Of the site."""
    content_digest: str
    rewards_digest: str
    n_tasks: int


class CompanyRoomRow(Record):
    """An environment of the company whose exports were read (`mart.company_rooms`)."""

    environment: str
    """Its name: of its folder."""
    folder: str
    """Where it lies in the folder of the run: `environments`, or `unverified` for tasks without a verified reward."""
    content_digest: str
    rewards_digest: str | None
    """null: it has no rewards."""
    image_id: str | None
    """Of its image in the engine; null: none was made."""
    image_skip_reason: str | None
    """Why there is no image."""
    n_tasks: int
    n_tools: int


class WorkStepRow(Record):
    """A call of a demonstration: what a person did in a company's apps, in calls of their tools (`mart.work_steps`)."""

    episode_id: str
    """Of the person's calls in one stretch of a piece of work."""
    work_item_id: str
    """The piece of work (`mart.work_items`)."""
    person: str
    """Address of the person who acts."""
    part: int
    """Place of the stretch among the person's in the piece of work, from 0."""
    kind: str
    """Of work; empty: none."""
    success: float | None
    """Probability that the piece of work ended well."""
    task_id: str | None
    """Id of the task that is made of the stretch, published or not; null: none is."""
    split: Split
    """Of the piece of work: all of it is on one side."""
    goal: str
    """What was asked; empty: nothing on record, so the stretch is no episode of a dataset."""
    reaches: bool
    """Whether the calls of the whole piece of work, played again, reach its end on record."""
    gap: str | None
    """Why the person's calls are not all of what the person did; null: they are."""
    position: int
    """Place of the call in its episode, from 0."""
    happened_at: datetime
    """Instant of the desk at which the call is made: just before the act on record."""
    tool: str
    """Of the environment."""
    arguments: str
    """JSON object."""
    content: str
    """The environment's answer, as the person could have seen it then."""
    is_error: bool
    """Whether it refused the call."""
    tier: str
    """Of the answer (docs/environment.md)."""
    refs: list[str]
    """Acts that the call brings about (`core.work_events`); empty: it only looks."""
    lossy: list[str]
    """What is not as it was: `edited_later`, `doer_inferred`, `more_as_recorded` (docs/company.md)."""


class SiteWorkRow(Record):
    """What a person did on a site in one sitting, and how far it was what was asked for (`mart.site_work`)."""

    session_id: str
    """The page session: as the pages' file or headers name it."""
    host: str
    """Of the site."""
    person: str | None
    """Name of the person in all systems; null: nothing tells."""
    ask: str | None
    """The message that asked for it; null: none is on record."""
    asked_by: str | None
    """Who wrote that message."""
    kind: int | None
    """Number of the kind of work among those of the site; null: it is of no kind."""
    is_right: bool | None
    """Whether it did what was asked; null: nothing tells."""
    broken: list[str]
    """Laws of its kind that it breaks."""
    complaint: bool
    """Whether somebody complained."""
    task_id: str | None
    """The task that was made of it; null: none holds."""


class SiteStepRow(Record):
    """A call that does again what a person did on a site, in work that was right (`mart.site_steps`)."""

    session_id: str
    """The page session."""
    host: str
    """Of the site."""
    position: int
    """Place of the call in its session, from 0."""
    task_id: str
    """Id of the work's task, whether one was published or not."""
    split: Split
    """Of the task."""
    goal: str
    """What was asked, with what the environment's tasks say besides."""
    happened_at: datetime
    """When the person did it."""
    tool: str
    """Of the environment."""
    arguments: str
    """JSON object. Refs are those of this very play."""
    content: str
    """The environment's answer."""
    is_error: bool
    """Whether it refused the call."""
    tier: str
    """Of the answer (docs/environment.md)."""
    observation: str
    """The page as a snapshot shows it before the call."""
    candidates: str
    """JSON list of what could be acted on there: {"ref", "role", "name", "positive"}, the last one true of what the call acts
    on."""
    element: str | None
    """JSON object: what the person did it to, as an event of the user interface tells (xpath, tag, text …); null: none does."""


class WorkspaceStep(Record):
    """What a call saw or changed of a file, or ran (`mart.workspace_steps`)."""

    turn_id: str
    """The call (`core.turns`)."""
    place: int
    """Of the call's steps, from 0."""
    session_id: str
    position: int
    """Place of the call in its session."""
    kind: Literal["read", "edit", "run"]
    """read: lines that it showed; edit: what it changed; run: a command."""
    path: str | None
    """Path of the file, as the call has it."""
    first_line: int | None
    """Of lines: the number of the first, from 1; of inserted ones: of the line before."""
    before: str | None
    """Of an edit: the text that gave way."""
    text: str | None
    """Of lines seen: these; of an edit: the text that replaced it; of what ran: the command."""
    exit_code: int | None
    """Of what ran: 0 where it went well; null where the log does not tell."""


class Decision(Record):
    """What became of one entity at one stage (`mart.decisions`): nothing vanishes."""

    stage: str
    """extract, apps, work, sessions, starts, code_tasks, world, outcomes, tasks, rewards, variants, verify, environments,
    image, datasets."""
    subject: str
    """Id of the file, record, session, task or environment."""
    kept: bool
    reason: str
    """One snake_case word or two: `duplicate_session`, `no_known_success` …"""
    detail: str
    """One sentence: what, where, the hint."""
    file_id: str | None = None
    line: int | None = None


_POLARS: dict[object, pl.DataType] = {
    str: pl.String(), int: pl.Int64(), float: pl.Float64(), bool: pl.Boolean(), bytes: pl.Binary(),
    datetime: pl.Datetime("us", "UTC"), list[str]: pl.List(pl.String()),
}


@cache
def frame_schema(record: type[Record]) -> dict[str, pl.DataType]:
    """Columns of a frame of many `record`s, in field order."""
    return {name: _column(hint) for name, hint in get_type_hints(record).items() if name in record.model_fields}


def empty(record: type[Record]) -> pl.DataFrame:
    """Return a frame of no `record`s."""
    return _empty(record).clone()


@cache
def _empty(record: type[Record]) -> pl.DataFrame:
    """Return the same, made once: a copy takes a hundredth of the time."""
    return pl.DataFrame(schema=frame_schema(record))


def frame(record: type[Record], rows: list[Any]) -> pl.DataFrame:
    """Return a frame of `record` from records or plain dicts (not validated: for many)."""
    data = [row.model_dump() if isinstance(row, Record) else row for row in rows]
    return pl.DataFrame(data, schema=frame_schema(record), orient="row") if data else empty(record)


def _column(hint: Any) -> pl.DataType:
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is Literal:
        return pl.String()
    return _POLARS.get(hint, pl.String())


def drop_silent_flags(turns: pl.DataFrame) -> pl.DataFrame:
    """Clear `is_error` of services, or of all turns if there is no column `service`, that flag no call as failed.

    Many formats write the flag only if a call failed, or report that the transport worked. Where no call of a service is
    flagged as failed, a flag that says "no error" says nothing, and the answer's text decides. Does not see: a service whose
    tools really never failed; its answers are read as text too.
    """
    raised = pl.col("is_error").cast(pl.Boolean).any()
    if "service" in turns.columns:
        raised = raised.over("service")
    return turns.with_columns(pl.when(raised).then(pl.col("is_error")).alias("is_error"))


_OBJECT, _VALUE = r"^\s*\{", r"^\s*(?:\{|null\s*$|true\s*$|false\s*$|-?\d[\d.eE+-]*\s*$)"
_SENTENCE = r"^[^\s{\[\"'<(0-9-][^\n]*[^\S\n][^\n]*$"
"""Several words in one line: an id or a name of one word is an answer like any other."""
_LONGEST_SENTENCE = 200
_VALUES_SHARE = 0.5
"""Share of a tool's answers that are objects or values, from which on a sentence is a refusal."""
_WITH_FLAG = r'^\s*\{\s*"(?P<name>[^"]+)"\s*:\s*(?P<flag>true|false)\s*,\s*"(?P<next>[^"]+)"'
"""An object that begins with a truth value."""
_OUTCOME = r'^\s*\{\s*"status"\s*:\s*"(?P<status>[^"]+)"\s*,\s*"(?:reason|message|detail)"\s*:\s*"(?:[^"\\]|\\.)*"\s*\}\s*$'
"""An object of a status and the reason for it, and of nothing else."""
_STATUS = r'"status"\s*:\s*"([^"]+)"'
_AGREES = ("ok", "success", "succeeded", "accepted", "queued", "pending", "done", "completed", "created", "scheduled")
_ENVELOPE_TOOLS, _ENVELOPE_SHARE = 3, 0.9
"""Tools that must answer in a service's envelope, and the share of its answers in objects that must be in it."""


PART_OPENS, PART_CLOSES = "⟨", "⟩"


def part_name(tool: str, argument: str, value: str) -> str:
    """Return the name of what a tool does for one value of the argument that decides; `runtime.tool_parts` reads it.

    From the turns on, each such part is a tool by itself. Agents and trainers know the whole one alone (`whole_tool`)."""
    return f"{tool}{PART_OPENS}{argument}={value}{PART_CLOSES}"


def whole_tool(tool: pl.Expr) -> pl.Expr:
    """Return the names of tools as agents call them."""
    return tool.str.split(PART_OPENS).list.first()


def refusals_flagged(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the turns (kind, service, tool, content, is_error …) with flags that say something, and sentences as failures.

    Where no flag of a service says anything (`drop_silent_flags`), a tool that mostly answers with an object or a value (null,
    a number) and else with a sentence refuses so: most frameworks give an exception's text as the answer. Tools that answer
    with lists are left alone, as a sentence may say that there is nothing. Where few of its answers are objects, a sentence may
    be a text that it keeps: there it must occur twice in the service. The envelope of a service tells failures too, in any
    language: nearly all answers of several tools begin with one field that is true or false, and other fields follow a false
    one. A tool that mostly answers with records refuses by a status and a reason alone, if no record of the service has that
    status. Does not see: refusals among answers in sentences, and envelopes whose flag does not come first.
    """
    turns = drop_silent_flags(turns)
    tool = [name for name in ("service", "tool") if name in turns.columns]
    content = pl.when(pl.col("kind") == "call").then("content")
    n = content.is_not_null().sum().over(tool)
    is_valued = (content.str.contains(_VALUE).sum().over(tool) >= _VALUES_SHARE * n) & (
        content.str.contains(r"^\s*\[").sum().over(tool) == 0)
    is_sentence = content.str.contains(_SENTENCE) & (content.str.len_chars() <= _LONGEST_SENTENCE)
    has_objects = content.str.contains(_OBJECT).sum().over(tool) >= _VALUES_SHARE * n
    is_repeated = pl.len().over([*tool[:-1], "content"]) > 1
    refused = pl.col("is_error").is_null() & is_valued & is_sentence & (has_objects | is_repeated)
    soft = _refused_in_envelope(content, tool[:-1]) | _refused_by_status(content, tool)
    refused = refused | (pl.col("is_error").is_null() & soft)
    return turns.with_columns(pl.when(refused.fill_null(False)).then(True).otherwise("is_error").alias("is_error"))


def _refused_by_status(content: pl.Expr, tool: Sequence[str]) -> pl.Expr:
    """Return whether an answer is a status and a reason alone, where the tool mostly answers with records of other states."""
    status = content.str.extract(_OUTCOME).str.to_lowercase()
    is_record = content.str.contains(_OBJECT) & status.is_null()
    stated = pl.when(is_record).then(content.str.extract(_STATUS).str.to_lowercase())
    recorded = stated.drop_nulls().unique().implode()
    occurs = status.is_in(recorded.over(tool[:-1]) if len(tool) > 1 else recorded)
    mostly = is_record.sum().over(tool) >= _VALUES_SHARE * content.is_not_null().sum().over(tool)
    return status.is_not_null() & mostly & ~status.is_in(_AGREES) & ~occurs


def _refused_in_envelope(content: pl.Expr, service: Sequence[str]) -> pl.Expr:
    """Return whether an answer is in its service's envelope with the flag of a failure, after which other fields follow."""
    parts = content.str.extract_groups(_WITH_FLAG)
    name, flag, following = (parts.struct.field(each) for each in ("name", "flag", "next"))
    own = [*service, name]
    n_objects = content.str.contains(_OBJECT).sum().over(service) if service else content.str.contains(_OBJECT).sum()
    is_envelope = (pl.col("tool").n_unique().over(own) >= _ENVELOPE_TOOLS) & (pl.len().over(own) >= _ENVELOPE_SHARE * n_objects)
    is_apart = (flag == "true").sum().over([*own, following]) == 0
    return is_envelope & (flag == "false") & is_apart & ((flag == "true").sum().over(own) > 0)
