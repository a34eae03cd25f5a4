"""Versions: what the exports of a company's apps say about the fields of its records over time.

In: the files of an export, as names and bytes. Out: `AppVersion`s, one for each value that a field took, and `UnreadPart`s,
one for each row or file that no version came from, with the reason. An app never opens files and has no clock.

How an instant is answered (`env_builder.runtime.company` does it): the versions of one field are sorted by `at`, then by
`sequence`, then by the order in which the app emitted them; the last one at or before the instant is the value. It is known
from `guessed_until` on, and a guess before: exports often hold the last state only. A record exists from its first version
on, except between `PRESENT` = false and `PRESENT` = true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from extractors.formats.instants import microseconds

BEGINNING = 0
"""`at` of what was so before the export's first record."""
NEVER_KNOWN = 2**62
"""`guessed_until` of a value whose time of change no record has: the last export shows it, and nothing says since when."""
PRESENT = "$present"
"""Field of a record's existence: false from its deletion on."""


class AppVersion(NamedTuple):
    """A value that a field of a record took at an instant."""

    entity_class: str
    """Kind of record, such as `jira_comment`; unique over all apps."""
    entity_id: str
    """The product's own id of the record."""
    field: str
    value: Any
    """JSON value. Instants are seconds since 1970 UTC; people are the product's own ids of accounts."""
    at: int
    """Microseconds since 1970 UTC from which the field has the value."""
    sequence: int = 0
    """The product's own number of the change, which orders changes of one instant."""
    actor: str | None = None
    """The product's own id of the account that made the change."""
    guessed_until: int = BEGINNING
    """Until this instant (microseconds) the value is a guess: the export shows it, but not since when."""
    record: str = ""
    """The source record: file, and what identifies the record in it."""


class UnreadPart(NamedTuple):
    """A file, or a row in it, that no version came from, and why."""

    path: str
    where: str
    """Line, index or id in the file; empty: the whole file."""
    reason: str
    """One word of the vocabulary of decisions, such as `bad_row`."""
    detail: str


class ExportFile(NamedTuple):
    """A file of an export."""

    path: str
    """Path below the folder of the exports, with `/`."""
    content: bytes

    at: int = BEGINNING
    """Of a file that another app's record brought along (an invitation in a mail): when it came, in microseconds."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def folder(self) -> str:
        """The path without its last part."""
        return self.path.rpartition("/")[0]

    def json(self) -> Any:
        """Return the content as a JSON value. Errors: ValueError."""
        return orjson.loads(self.content)

    def json_lines(self) -> list[Any]:
        """Return the JSON value of each line. Errors: ValueError."""
        return [orjson.loads(line) for line in self.content.splitlines() if line.strip()]


def first_value(file: ExportFile) -> Any:
    """Return the file's JSON value, the first line's of JSON lines; None where it is none."""
    try:
        return orjson.loads(file.content.partition(b"\n")[0]) if file.name.endswith(".jsonl") else file.json()
    except ValueError:
        return None


def first_row(file: ExportFile, *names: str) -> dict[str, Any]:
    """Return the first object of a JSON file: itself, or that of its list, or of the list under one of `names`."""
    value = first_value(file)
    if isinstance(value, dict):
        value = next((value[name] for name in names if isinstance(value.get(name), list)), value)
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, dict) else {}


AppRow = AppVersion | UnreadPart | ExportFile
"""What readers emit; a file goes to the app that claims it, if that one is asked later."""


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


@dataclass(frozen=True)
class CompanyApp:
    """A product whose exports can be read: an entry point of the group `traceroom.apps`."""

    name: str
    claims: Callable[[ExportFile, frozenset[str]], bool]
    """Whether a file belongs to an export of this app: by its content, and by the names of the files in its folder."""
    read: Callable[[list[ExportFile]], Iterator[AppRow]]
    """Versions, and unread parts, of all claimed files: one export often needs several of them."""
    rank: int = 50
    """Apps of a lower rank are asked first."""
    adopts: Callable[[ExportFile], bool] = lambda _: False
    """Whether a file that no app claims belongs to this one if claimed files are in its folder or below it: configuration."""
    formats: tuple[str, ...] = ()
    """Log formats whose files this app reads too: they are logs and exports at once."""
    advice: tuple[tuple[str, str, str], ...] = ()
    """(entity class, field, event stream): which stream of events would tell the history of a field that exports lack."""
    kinds: tuple[RecordKind, ...] = ()
    """The classes of records whose changes are acts of people; one that is not listed has words in every text."""


def epoch(at: int | None) -> float | None:
    """Return microseconds as seconds, the unit of instants in values."""
    return None if at is None else at / 1_000_000


def seconds_of(value: Any) -> float | None:
    """Return the instant that a product wrote, in seconds since 1970; None where it is none."""
    return epoch(microseconds(value))


def all_of(entity_class: str, entity_id: str, fields: Iterable[tuple[str, Any]], at: int, *, sequence: int = 0,
           actor: str | None = None, record: str = "") -> Iterator[AppVersion]:
    """Yield a version of each field, all of one instant: a record that was created."""
    for field, value in fields:
        yield AppVersion(entity_class, entity_id, field, value, at, sequence, actor, BEGINNING, record)


def named_accounts(entity_class: str, rows: list[dict[str, Any]]) -> Iterator[AppVersion]:
    """Yield a record for each account that rows name anywhere: `accountId`, or the `name` of a server's account."""
    accounts: dict[str, tuple[Any, Any]] = {}
    waiting: list[Any] = list(rows)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            key = value.get("accountId") or (value["name"] if is_server_account(value) else None)
            if isinstance(key, str):
                name, address = accounts.get(key, (None, None))
                accounts[key] = (value.get("displayName") or name, value.get("emailAddress") or value.get("email") or address)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    for account, (name, address) in sorted(accounts.items()):
        yield AppVersion(entity_class, account, "display_name", name, BEGINNING)
        yield AppVersion(entity_class, account, "email", address, BEGINNING)


def is_server_account(value: dict[str, Any]) -> bool:
    """Return whether an object is a person as Jira's server edition gives one: no `accountId`, a login under `name`."""
    return isinstance(value.get("name"), str) and isinstance(value.get("displayName"), str) and "accountId" not in value


def bad_row(file: ExportFile, where: str, error: Exception | str) -> UnreadPart:
    """Return the rejection of one row."""
    detail = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else error
    return UnreadPart(file.path, where, "bad_row", detail)
