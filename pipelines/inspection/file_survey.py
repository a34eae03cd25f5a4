"""What `sniff` shows of a folder, and the configuration of the mappings that it proposes.

In: a folder of logs. Out: a table (or JSON) of its groups of files; a TOML file with a source for each group with a mapping.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from extractors.field_uses import n_unread
from extractors.sniffing import Sniffed
from extractors.surveying import FileGroup, survey
from pipelines.screen import data, many, say, table
from warehouse.errors import InputError


def show(folder: Path, write: Path | None, json: bool) -> None:
    """Print what a folder holds; `write`: and write the mappings that are proposed for it."""
    surveyed = survey(folder)
    if write is not None:
        write_configuration(write, [(group.sniffed, _paths(folder, group)) for group in surveyed.groups])
    if json:
        data({"files": [_document(group) for group in surveyed.groups],
              "rejected": [each._asdict() for each in surveyed.rejected]})
        return
    n_files = sum(len(group.files) for group in surveyed.groups)
    table(f"{many(n_files, 'file')} in {many(len(surveyed.groups), 'group')} of one folder and format", [
        _row(group) for group in surveyed.groups], right=("files", "rows", "sessions"))
    if not all(group.is_whole for group in surveyed.groups):
        say("+: the beginning was read alone.\n")
    table(f"{many(len(surveyed.rejected), 'file')} that a run does not read", [
        {"file": each.name, "reason": each.reason} for each in surveyed.rejected])
    mapped = [group for group in surveyed.groups if group.sniffed.fields]
    command = os.environ.get("TRACEROOM_COMMAND", "traceroom")
    say(f"  {command} sniff FILE     show what each field of a file is read as, with an example of those that are not")
    if mapped and write is None:
        say(f"For {many(len(mapped), 'group')} a mapping is proposed; judge it before you use it:")
        say(f"  {command} sniff {escape(str(folder))} --write traceroom.toml     write the mappings for run --config")


def write_configuration(path: Path, proposals: Sequence[tuple[Sniffed, Sequence[Path]]]) -> None:
    """Write the proposed mappings to a new file, each with its files. Errors: `InputError` without any, or if it exists."""
    proposed = [(sniffed, paths) for sniffed, paths in proposals if sniffed.fields]
    if not proposed:
        formats = sorted({sniffed.format for sniffed, _ in proposals if sniffed.format})
        hint = f"run without --config reads {', '.join(formats)}" if formats else "add a format (docs/howto/log-format.md)"
        raise InputError("no mapping is proposed, so there is nothing to write", str(path), hint)
    folder = path.parent.resolve()
    text = "\n".join(sniffed.configuration([os.path.relpath(each.resolve(), folder) for each in paths])
                     for sniffed, paths in proposed)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError("the file exists already", str(path), "name a new file for --write") from error
    except OSError as error:
        raise InputError(f"the file cannot be written ({error.strerror})", str(path), "name a file elsewhere") from error
    say(f"{escape(str(path))}: {many(len(proposed), 'mapping')}, for run --config {escape(str(path))}\n")


def _paths(folder: Path, group: FileGroup) -> list[Path]:
    """Return the files of a group by their pattern, else one by one."""
    names = [file.relative for file in group.files] if group.pattern is None or len(group.files) == 1 else [group.pattern]
    return [folder / name for name in names]


def _row(group: FileGroup) -> dict[str, Any]:
    more, uses = "" if group.is_whole else "+", group.sniffed.uses
    not_read = f"{n_unread(uses)} of {many(len(uses), 'field')}" if uses else "all" if group.format == "unknown" else ""
    days = [f"{each:%Y-%m-%d}" for each in (group.first_at, group.last_at) if each is not None]
    return {"file": group.name, "files": len(group.files), "format": group.format,
            "rows": f"{group.n_rows:,}{more}", "sessions": f"{group.n_sessions:,}{more}",
            "period": " to ".join(dict.fromkeys(days)), "not read": not_read}


def _document(group: FileGroup) -> dict[str, Any]:
    sniffed = group.sniffed
    return {"name": group.name, "files": [file.relative for file in group.files], "format": group.format,
            "certainty": sniffed.certainty, "rows": group.n_rows, "sessions": group.n_sessions, "whole": group.is_whole,
            "from": group.first_at, "to": group.last_at,
            "not_read": [each.path for each in sniffed.uses if not each.read_as],
            "configuration": sniffed.snippet or None}
