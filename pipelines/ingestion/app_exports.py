"""Which files that no log format reads are exports of a company's apps, which the stage `apps` reads.

In: tasks of rejected files. Out: the same; where an app claims the file, its decision says so. An app tells its files by their
content and by the names beside them, so all files of a run are looked at together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from extractors.apps import ExportFile, claimed_files
from extractors.chunks import RejectedFile
from extractors.inventory import SourceFile
from pipelines.ingestion.readers import ReadTask

REASON = "read_by_app"
MAYBE = ("unknown_format", "not_a_log")
"""Reasons for which a file may still be an app's."""


def export_of(file: SourceFile) -> ExportFile:
    """Return a file with its content. Errors: OSError."""
    with file.open() as opened_file:
        return ExportFile(file.relative, opened_file.read())


def with_apps(tasks: Sequence[ReadTask], logs: Mapping[str, str]) -> Iterator[ReadTask]:
    """Yield the tasks, with another reason where an app reads the file. `logs`: relative path -> format of the run's other new
    files. Errors: OSError."""
    app_of = claimed_files([export_of(task.source_file) for task in tasks], logs) if tasks else {}
    for task in tasks:
        app, chunk = app_of.get(task.source_file.relative), task.chunk
        if app is not None and isinstance(chunk, RejectedFile):
            detail = f"is part of an export of {app}, which the stage apps reads; no action needed"
            yield task._replace(chunk=chunk._replace(reason=REASON, detail=detail))
        else:
            yield task
