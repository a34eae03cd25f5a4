"""Add a source to a configuration file: a table at its end, and nothing else of the file changes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson

from extractors import configuration
from extractors.configuration import Source
from pipelines.durable_files import write_durably
from warehouse.errors import InputError

_HEAD = ("name", "paths", "service")


def add(config: Path, source: dict[str, Any]) -> Source:
    """Append a source to the file, which is made if it is missing, and return it as it will be read. Raises InputError; the
    file is then unchanged."""
    before = ""
    if config.exists():
        if any(each.name == source["name"] for each in configuration.load(config).sources):
            raise InputError(f"there is a source {source['name']!r} already", str(config), "choose another name")
        before = config.read_text("utf-8")
    text = before + ("\n" if before and not before.endswith("\n\n") else "") + _table(source)
    config.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=config.parent, prefix=".adding-") as folder:   # relative paths stay the same depth
        draft = Path(folder) / config.name
        draft.write_text(text, "utf-8")
        try:
            configuration.load(draft)
        except InputError as error:
            raise InputError(f"the source cannot be added ({error.what})", str(config),
                             "correct it; `sources = [...]` must be written as [[sources]]") from None
    write_durably(config, [text.encode()])
    return next(each for each in configuration.load(config).sources if each.name == source["name"])


def _table(source: dict[str, Any]) -> str:
    """Return the source in TOML."""
    lines = ["[[sources]]", *(f"{name} = {_value(source[name])}" for name in _HEAD if source.get(name))]
    plain = {name: value for name, value in source["pull"].items() if value and not isinstance(value, dict)}
    tables = {name: value for name, value in source["pull"].items() if value and isinstance(value, dict)}
    lines += ["", "[sources.pull]", *(f"{name} = {_value(value)}" for name, value in plain.items())]
    for name, table in tables.items():
        lines += ["", f"[sources.pull.{name}]", *(f"{_value(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """Return a text, a number or a list of them in TOML: JSON's notation is TOML's too."""
    return orjson.dumps(value).decode().replace("\x7f", "\\u007f")
