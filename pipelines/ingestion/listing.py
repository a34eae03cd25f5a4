"""Which files a run reads: those of its settings, people's corrections and reviews of its results, and answers of real tools.

In: settings. Out: files in order, and decisions on the rejected ones. Sees names, sizes and times; opens none.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from extractors import configuration, inventory
from extractors.inventory import SourceFile
from pipelines.settings import Settings
from warehouse.errors import InputError

_CORRECTION, _REVIEW, _ANSWER = "correction", "review", "real_answer"
"""Names of the formats of what people write in the browser: the formats themselves are loaded when they are read."""


def discovered(settings: Settings) -> tuple[list[SourceFile], pl.DataFrame]:
    """Find the files that the settings name (else the configuration's sources), and decisions on the rejected ones. People's
    corrections and reviews of the run's results, and accepted answers, are read with the logs, whatever the configuration says.
    Raises InputError for a path that does not exist."""
    files, rejected = _logs(settings)
    for place, log_format in ((settings.corrections, _CORRECTION), (settings.reviews, _REVIEW),
                              (settings.answers, _ANSWER)):
        if place.exists():
            found, not_found = inventory.discover([place])
            source = configuration.Source(name=place.stem, format=log_format)
            own = [replace(file, relative=f"{source.name}/{file.relative}", source=source) for file in found]
            paths = {file.place for file in own}
            files, rejected = [*(file for file in files if file.place not in paths), *own], pl.concat([rejected, not_found])
    return files, rejected


def _logs(settings: Settings) -> tuple[list[SourceFile], pl.DataFrame]:
    config = configuration.load(settings.configuration) if settings.configuration else None
    return inventory.discover(settings.logs, settings.only, settings.without, config)


def something_to_read(settings: Settings) -> list[str]:
    """Return the options --include and --exclude that match no folder (`--exclude feedbak`), which may be typing errors. Raises
    InputError if the settings name no file at all: an inbox may be empty, what a person names may not."""
    files, unread = _logs(settings)
    if not files:
        why = f"all {unread.height} files are excluded or in a folder called truth" if unread.height else "it contains no file"
        raise InputError(
            f"there is nothing to read: {why}", ", ".join(settings.logs) or str(settings.configuration),
            "name files or folders of logs, or change --include and --exclude")
    paths = [*(each.relative for each in files), *unread["subject"]]
    folders = {folder for path in paths for folder in path.split("/")[:-1]}
    named = [*(("--include", name) for name in settings.only), *(("--exclude", name) for name in settings.without)]
    return [f"{option} {name}" for option, name in named if name not in folders]
