"""Logs of CI jobs as GitHub Actions writes them: lines with a time, groups of commands, errors of steps.

In: a job's log. Out: one log event a file, `ci_job`: the commit that was checked out, the commands, how the job ended.

Sees `##[group]Run …`, `HEAD is now at`, `git log -1 --format=%H`, `Process completed with exit code`. Does not see what
commands printed (JUnit files hold the tests' outcomes), steps that were skipped, logs of other CI systems.
"""

from __future__ import annotations

import re

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import dumped
from warehouse.vocabulary import CI_JOB

_LINE = re.compile(r"\ufeff?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z) (.*)")
_MARK = re.compile(r"##\[(group|endgroup|error|warning|section|command|debug)\]")
_COMMAND = re.compile(r"##\[group\]Run (.+)")
_HEAD = re.compile(r"HEAD is now at ([0-9a-f]{7,40})")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ENDED = re.compile(r"##\[error\]Process completed with exit code (\d+)")


def claims(head: Head) -> bool:
    """Return whether the first lines have a time each, and one begins a group."""
    lines = [_LINE.match(line) for line in head.text]
    return head.layout == "text" and len(lines) > 1 and all(lines) and any(
        _MARK.match(match[2]) for match in lines if match is not None)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One log a record."""
    lines = [match for line in str(record.value).splitlines() if (match := _LINE.match(line)) is not None]
    if not lines:
        raise RejectedRecord("no_line", "the record has no line with a time; name another format")
    texts = [line[2] for line in lines]
    commits = [match[0] for text in texts if (match := _COMMIT.fullmatch(text.strip())) is not None]
    short = [match[1] for text in texts if (match := _HEAD.match(text)) is not None]
    codes = [int(match[1]) for text in texts if (match := _ENDED.match(text)) is not None]
    facts = {"commit": (commits or short or [None])[0], "exit_code": codes[0] if codes else 0,
             "commands": [match[1] for text in texts if (match := _COMMAND.match(text)) is not None]}
    began, ended = (microseconds(lines[at][1]) for at in (0, -1))
    emit.event(record, "log", tool=CI_JOB, arguments=dumped(facts), lossy=[], happened_at=began,
               latency_ms=(ended - began) / 1000 if began is not None and ended is not None else None,
               service=emit.envelope.service({}))


FORMAT = Format(name="job_log", claims=claims, read=read, sample=sample("job_log.log"), whole=True, rank=40)
