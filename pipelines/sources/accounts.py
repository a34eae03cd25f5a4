"""From a configured source to an account: the address, the project, and credentials from the environment or from files.

Credentials are never stored and never shown. What is missing or misspelt is one sentence with the source's name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from extractors import configuration, objects, sources
from extractors.configuration import Pull, Source
from extractors.sources import Account, Platform
from warehouse.errors import InputError, Missing


def pulled_sources(config: str, names: tuple[str, ...] = ()) -> list[Source]:
    """Return the configuration's sources that are pulled: those called `names`, else all. Raises InputError, Missing."""
    every = [source for source in configuration.load(config).sources if source.pull]
    for name in names:
        if name not in {source.name for source in every}:
            raise Missing.named("source", name, [source.name for source in every], "add it: traceroom sources add")
    return [source for source in every if not names or source.name in names]


def folder_of(source: Source) -> Path:
    """Return the folder that a source is pulled into. Raises InputError."""
    place = source.paths[0]
    if objects.is_url(place):
        raise InputError("a source can be pulled into a folder alone", f"source {source.name!r}: {place}",
                         "name a folder first in its paths")
    return Path(place)


def account_of(source: Source) -> tuple[Platform, Account]:
    """Return the platform of a source, and the account there. Raises InputError, Missing."""
    pull = source.pull or Pull(platform="")
    platform = sources.named(pull.platform)
    where = f"source {source.name!r}"
    url = pull.url or platform.url
    if url is None:
        raise InputError(f"{platform.title} needs an address", where, 'set url = "https://…" in [sources.pull]')
    if platform.needs_project and not pull.project:
        raise InputError(f"{platform.title} needs a project ({platform.project})", where,
                         'set project = "…" in [sources.pull]')
    for kind, given, allowed in (("filter", pull.filter, platform.filters), ("option", pull.options, platform.options),
                                 ("credential", pull.credentials, platform.credentials)):
        for name in given:
            if name not in allowed:
                raise Missing.named(f"{kind} of {platform.title}", name, allowed, where)
    secrets = {}
    for name in platform.credentials:
        value = _credential(pull.credentials.get(name, f"env:{name}"), where, name)
        if value:
            secrets[name] = value
        elif name not in platform.optional:
            raise InputError(f"{platform.title} needs {name} ({platform.credentials[name]})", where,
                             f"set the variable {name}, or name a file in [sources.pull.credentials]")
    return platform, Account(source.name, url, pull.project, pull.filter, pull.options, secrets)


def _credential(place: str, where: str, name: str, environment: Mapping[str, str] = os.environ) -> str:
    kind, _, rest = place.partition(":")
    if kind == "env":
        return environment.get(rest, "").strip()
    try:
        return Path(rest).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the file of {name} cannot be read ({getattr(error, 'strerror', None) or 'no text'})",
                         f"{where}: {rest}", "give the path of a text file that this user may read") from None
