"""Audit events of files: what was made, renamed, copied, changed or removed, as JSON lines of watchers and agents.

In: records with an operation on files, a path and a time: wrappers of inotify, osquery's `file_events`, Sysmon, others.
Out: a business event each, named `file create`, `file rename` …, with the path, where it went, hashes, size and the program.
Sees: who did it and when, fields inside `columns`, `EventData`, hashes, sizes, programs. Does not see: which of two events of a
rename belong together where the watcher writes both (`moved_from`, `moved_to`), what a file holds, other fields of a record.
"""

from __future__ import annotations

import re
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import first_of, json_text, number_of, object_of, text_of

_OPERATIONS = {
    "create": "create created creat in_create filecreate add added new",
    "rename": "rename renamed move moved mv filerename",
    "moved_from": "moved_from in_moved_from", "moved_to": "moved_to in_moved_to",
    "copy": "copy copied cp filecopy",
    "delete": "delete deleted unlink remove removed rm in_delete in_delete_self filedelete filedeletedetected rmdir",
    "modify": "modify modified in_modify updated write written in_close_write close_write filemodify changed overwrite",
    "read": "read open opened accessed in_open in_access fileread download downloaded",
    "attributes": "attrib in_attrib attributes_modified chmod chown setattr"}
_OF_WORD = {word: name for name, words in _OPERATIONS.items() for word in words.split()}
_WRITES = frozenset(("create", "rename", "moved_from", "moved_to", "copy", "delete", "modify"))
_SYSMON = {2: "attributes", 11: "create", 23: "delete", 26: "delete"}
_EVENT = ("op", "operation", "action", "event", "events", "eventtype", "eventname", "change", "changetype", "mask")
_PATH = ("path", "targetpath", "filepath", "targetfilename", "file", "filename", "src", "srcpath", "sourcepath", "oldpath",
         "from", "pathname")
_FOLDER = ("dir", "directory", "folder", "watch", "watched", "watchedpath", "path")
_NAME = ("file", "filename", "name")
_SIGNS = frozenset(("sha256", "sha1", "md5", "hash", "hashes", "size", "filesize", "inode", "process", "processname", "exe",
                    "executable", "image", "comm", "pid", "targetfilename"))
_OF_FILE = _SIGNS | {"mode", "mtime", "ctime", "gid", "filetype", "mimetype", "bytes", "oldsize", "newsize", "isdir"}
"""What says something of the file or the program; the rest is of whatever carried the record (a row's number, labels)."""
_TO = ("to", "dest", "destpath", "dst", "destination", "destinationpath", "newpath", "movedto", "renamedto", "targetpathnew")
_USER = ("user", "username", "account", "owner", "auid", "uid", "subjectusername")
_PROCESS = ("process", "processname", "exe", "executable", "image", "comm", "program", "app")
_TIME = ("at", "time", "timestamp", "ts", "utctime", "eventtime", "date", "datetime", "atime")
_SESSION = ("session", "sessionid", "ses")
_SHAPES = (re.compile(r"(/|~/|[A-Za-z]:[\\/]|\\\\|\./|file://)\S"), re.compile(r"[^\s/\\]+([/\\][^/\\]+)*\.\w{1,8}"))
_EXTENSION = re.compile(r"[^/\\]\.\w{1,8}$")
_NO_FILE = frozenset(("method", "status", "statuscode", "url", "messages", "role", "before", "after", "level", "message",
                      "xpath", "tool", "kind"))
"""What requests, changes of rows, clicks and lines of programs state, and events of files do not."""


def claims(head: Head) -> bool:
    """Return whether the first objects each name an operation, a path and a time, and one shows that it wrote a file."""
    first = [_facts(each) for each in head.objects] if head.is_json else []
    return bool(first) and all(map(_is_event, first)) and any(
        _operation(each) in _WRITES and (not _SIGNS.isdisjoint(each) or _EXTENSION.search(_path(each) or "")) for each in first)


def _is_event(facts: Row) -> bool:
    path = _path(facts)
    return path is not None and _operation(facts) is not None and any(each.match(path) for each in _SHAPES) and (
        microseconds(first_of(facts, _TIME)) is not None and _NO_FILE.isdisjoint(facts))


def _path(facts: Row) -> str | None:
    """Return the path; a watcher may write the folder and the name of the file apart."""
    folder, name = first_of(facts, _FOLDER), first_of(facts, _NAME)
    if isinstance(folder, str) and isinstance(name, str) and not {"/", "\\"}.intersection(name) and folder != name:
        return f"{folder.rstrip('/')}/{name}"
    path = first_of(facts, _PATH)
    return path if isinstance(path, str) else None


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One event a record."""
    facts = _facts(record.value)
    operation, path = _operation(facts), _path(facts)
    if operation is None or path is None:
        raise RejectedRecord("no_file_event", "the record names no operation and path of a file; complete or drop it")
    to = first_of(facts, _TO)
    stated: Row = {"operation": operation, "path": path, "to": to, "process": first_of(facts, _PROCESS)}
    taken = (_EVENT, _PATH, _TO, _USER, _PROCESS, _TIME, _SESSION)
    used = {next((name for name in names if facts.get(name) not in (None, "")), None) for names in taken}
    rest = {name: _sized(name, value) for name, value in facts.items()
            if name in _OF_FILE and name not in used and value not in (None, "")}
    emit.event(record, "business", tool=f"file {operation}", name=text_of(first_of(facts, _USER)),
               session_id=text_of(first_of(facts, _SESSION)), happened_at=microseconds(first_of(facts, _TIME)),
               service=emit.envelope.service({}),
               arguments=json_text({**{name: value for name, value in stated.items() if value is not None}, **rest}))


def _facts(value: Any) -> Row:
    """Return a record's fields by their names in small letters and digits, those of the object that holds the event first."""
    row = object_of(value)
    inner = next((each for name in ("columns", "EventData", "event_data") if (each := object_of(row.get(name)))), {})
    made: Row = {}
    for name, each in [*inner.items(), *row.items()]:
        if each is not inner:
            made.setdefault("".join(letter for letter in str(name).lower() if letter.isalnum()), each)
    return made


def _operation(facts: Row) -> str | None:
    """Return the operation in our word; None where no field names one of a file."""
    for name in _EVENT:
        value = facts.get(name)
        words = value if isinstance(value, list) else str(value).split("|") if isinstance(value, str) else []
        meant = [_OF_WORD.get(re.sub(r"[\s-]+", "_", str(word).strip().lower())) for word in words]
        if operation := next(filter(None, meant), None):
            return operation
    number = number_of(facts.get("eventid")) if "targetfilename" in facts else None
    return next((meaning for event_id, meaning in _SYSMON.items() if number == event_id), None)


def _sized(name: str, value: Any) -> Any:
    number = number_of(value) if name in ("size", "filesize", "bytes") else None
    return value if number is None or (isinstance(number, float) and not number.is_integer()) else int(number)


FORMAT = Format(name="file_audit", claims=claims, read=read, sample=sample("file_audit.jsonl"), routines=False,
                rank=58)
