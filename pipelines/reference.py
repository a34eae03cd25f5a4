"""The reference pages, made from the code: commands, keys of the configuration, tables, entry points, variables.

    python -m pipelines.reference          writes docs/reference/*.md (also: just reference)

In: the command line, the models of the configuration and the tables, the installed entry points, the sources. Out: pages as
text (`pages`); a test holds docs/reference equal to them. Sees variables of the environment that the sources name in
`os.environ`; does not see those that libraries read.
"""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from extractors.configuration import Configuration
from pipelines.cli import app
from pipelines.commands.examples import example
from warehouse import records

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
_MADE = "<!-- made by `just reference` -->"
_PACKAGES = ("extractors", "env_builder", "pipelines", "warehouse")
GROUPS = {
    "traceroom.formats": "Log formats: `extractors.formats.Format`, a file in, events out "
                         "([formats.md](../formats.md#another-format))",
    "traceroom.signals": "Signals of success: `extractors.outcomes.signals.Signal`, a vote a session "
                         "([outcomes.md](../outcomes.md))",
    "traceroom.checks": "Kinds of checks: `env_builder.runtime.checks.kind.Kind`, one typed test of an "
                        "episode ([rewards.md](../rewards.md))",
    "traceroom.bindings": "Kinds of bindings: a function from what stands after `NAME:` to a binding, the real thing "
                          "as a tool's behaviour ([environment.md](../environment.md))",
    "traceroom.exports": "Consumers: `env_builder.exports.Exporter` or `RoomExporter` "
                         "([datasets.md](../datasets.md#another-form))",
}
"""What each group of entry points holds."""
VARIABLES = {
    "DAGSTER_HOME": "Folder of Dagster's instance",
    "DOCKER_HOST": "Where the engine of Docker listens, for images and rooms in containers",
    "OPENAI_API_KEY": "Key for an endpoint, where TRACEROOM_MODEL_KEY is not set",
    "PYTHONHASHSEED": "Python's own; a gate writes again under another one, which must change nothing",
    "RAY_ADDRESS": "Ray cluster for `rollout --on ray` and `TRACEROOM_ENGINE=ray`; without it a local one",
    "TRACEROOM_ENGINE": "where shards are worked on: `process`, `processes` (default), `ray`",
    "TRACEROOM_WAREHOUSE": "URL of a DuckLake in the place of the warehouse's file",
    "TRACEROOM_MEMORY": "what a stage may hold with its workers (`4GB`); past it the stage ends (docs/scale.md)",
    "TRACEROOM_WORKERS": "how many work on shards beside the process; one for each core but one",
    "ROOM_JOURNAL": "In a room's container: where the journal is written",
    "TOOLS_SOCKET": "In an agent's container: the socket that the room listens on",
    "TRACEROOM_ALERT_EMAIL": "Addresses that are told what failed, with commas between",
    "TRACEROOM_ALERT_FROM": "Who that mail is from; default traceroom@ this machine",
    "TRACEROOM_ALERT_SMTP": "Server that sends it: `smtp://[user:password@]host[:port]`, or `smtps://`",
    "TRACEROOM_ALERT_WEBHOOK": "Address that is told what failed, a JSON document by POST",
    "TRACEROOM_AUTOMATION": "`on`: Dagster's schedule and the sensor of the inbox are on from the beginning",
    "TRACEROOM_BASE_IMAGE": "Base of the images of rooms",
    "TRACEROOM_COMMAND": "How the command is called, for what a run says to do next; set by `./traceroom`",
    "TRACEROOM_CONFIG": "Configuration file of Dagster's runs",
    "TRACEROOM_DEBUG": "Set: errors come with their traceback",
    "TRACEROOM_FIRST_DAY": "First day of Dagster's daily partitions",
    "TRACEROOM_FRESH_BY": "Before when every table is to be made each day: a cron expression in UTC, by default 0 6 * * *",
    "TRACEROOM_IMAGE": "`off`: Dagster's runs build no images",
    "TRACEROOM_INBOX": "Folder or bucket that logs arrive in, for Dagster",
    "TRACEROOM_KEY": "The owner's key, that pseudonyms are made with: 16 random characters or more (docs/privacy.md)",
    "TRACEROOM_KEY_FILE": "File that holds it, where TRACEROOM_KEY is not set",
    "TRACEROOM_MODEL": "Model that is asked where the configuration says `ask = true`, and by `grade --ask`",
    "TRACEROOM_MODEL_KEY": "Key of its endpoint",
    "TRACEROOM_MODEL_URL": "Its endpoint, OpenAI-compatible: `http://HOST:PORT/v1`",
    "TRACEROOM_OPENENV_PYTHON": "Interpreter with OpenEnv's package, for `serve --openenv`",
    "TRACEROOM_OUT": "Folder that Dagster's runs write to",
    "TRACEROOM_OWNERS": "Whose Dagster's assets are: addresses and `team:NAME`, with commas between",
    "TRACEROOM_PAGES": "Address of Dagster's pages, for the link in an alert",
    "TRACEROOM_RETRY_SECONDS": "Seconds before each further try of a step after a fault that may pass; default 1,2",
    "TRACEROOM_RUN_TAGS": "Tags of every run of Dagster: `key=value`, with commas between",
    "TRACEROOM_SAMPLES": "`off`: no samples of rows in Dagster's database",
    "TRACEROOM_UI_TOKEN": "Token that writing in `ui` needs, 16 characters or more; where it is not set one is made each time",
    "HOME": "The user's folder, where XDG_CONFIG_HOME is not set",
    "XDG_CONFIG_HOME": "Where the owner's key is made, in place of `~/.config`",
    "XDG_CACHE_HOME": "Where caches lie, in place of `~/.cache`",
}
"""Variables of the environment that the sources name, and what each is for."""


def pages() -> dict[str, str]:
    """Name of each page, and its text."""
    made = {"commands": _commands(), "configuration": _configuration(), "tables": _tables(), "extensions": _extensions(),
            "variables": _variables()}
    return {f"{name}.md": "\n".join([f"# {name.capitalize()}", "", _MADE, "", *lines]).rstrip() + "\n"
            for name, lines in made.items()}


def _commands() -> Iterator[str]:
    group: Any = typer.main.get_command(app)
    context = group.context_class(group, info_name="traceroom")
    yield from (f"    {' '.join(('traceroom', *group.collect_usage_pieces(context)))}", "", _sentence(group.help), "")
    yield from _parameters(group, context)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        inner = command.context_class(command, info_name=name, parent=context)
        yield from (f"## {name}", "", f"    traceroom {name} {' '.join(command.collect_usage_pieces(inner))}", "",
                    _sentence(command.help), "")
        yield from _parameters(command, inner)
        if told := example(name):
            yield from ("Example:", "", f"    {told}", "")


def _parameters(command: Any, context: Any) -> Iterator[str]:
    rows = []
    for parameter in command.get_params(context):
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        is_option = parameter.param_type_name == "option"
        names = ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts)) if is_option else (
            f"`{str(parameter.name).upper()}`")
        rows.append(f"| {names} | {_sentence(getattr(parameter, 'help', None))} | {_default(parameter)} |")
    if rows:
        yield from ("| argument, option | says | default |", "|---|---|---|", *rows, "")


def _default(parameter: Any) -> str:
    shown, default = getattr(parameter, "show_default", None), parameter.default
    if isinstance(shown, str):
        return shown
    if parameter.required:
        return "has to be given"
    told = default is None or callable(default) or default is False or default in ((), [], "")
    return "–" if told else f"`{str(default).replace(str(ROOT), '.')}`"


def _configuration() -> Iterator[str]:
    yield from ("`traceroom run --config FILE.toml`; what the keys do: [configuration.md](../configuration.md).", "")
    yield from _section("", Configuration)


def _section(path: str, model: type[BaseModel]) -> Iterator[str]:
    inner, rows = [], []
    for name, field in model.model_fields.items():
        of = _model(field.annotation)
        if of is not None:
            mark = "[[{}]]" if get_origin(field.annotation) is list else "[{}]"
            inner.append((mark.format(f"{path}{name}"), of))
            continue
        default = field.get_default(call_default_factory=True)
        absent = default is PydanticUndefined
        told = "has to be given" if absent else "–" if default in (None, [], {}) else f"`{_toml(default)}`"
        rows.append(f"| `{name}` | {_kind(field.annotation)} | {told} | {_sentence(field.description)} |")
    yield from ("| key | value | default | says |", "|---|---|---|---|", *rows, "")
    for title, of in inner:
        yield from (f"## `{title}`", "", _sentence(of.__doc__), "")
        yield from _section(f"{title.strip('[]')}.", of)


def _model(hint: Any) -> type[BaseModel] | None:
    found = [each for each in (hint, *get_args(hint)) if isinstance(each, type) and issubclass(each, BaseModel)]
    return found[0] if found else None


def _kind(hint: Any) -> str:
    """What a value may be, in words."""
    origin, parts = get_origin(hint), [each for each in get_args(hint) if each is not type(None)]
    if origin is Literal:
        return " or ".join(f"`{_toml(each)}`" for each in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_kind, parts))
    if origin is Annotated:
        return _kind(parts[0])
    if origin is list:
        return f"list of {_kind(parts[0])}s"
    if origin is dict:
        return f"table of {_kind(parts[1])}s"
    return _WORDS.get(hint, str(getattr(hint, "__name__", hint)))


_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def _tables() -> Iterator[str]:
    yield from ("Of the warehouse (`OUT/warehouse.published.duckdb` while a run writes, else `OUT/warehouse.duckdb`). "
                "Columns are the fields of the record that a row is.", "")
    for table, record in sorted(tables().items()):
        says = _sentence(record.__doc__).replace(f" (`{table}`)", "")
        yield from (f"## `{table}`", "", says, "", "| column | type | holds |", "|---|---|---|")
        for name, kind in records.frame_schema(record).items():
            yield f"| `{name}` | `{kind}` | {_sentence(record.model_fields[name].description)} |"
        yield ""


def tables() -> dict[str, type[records.Record]]:
    """The record of each table, as the record's first sentence says it."""
    found = {}
    for record in vars(records).values():
        if isinstance(record, type) and issubclass(record, records.Record):
            named = re.search(r"[(]`((?:raw|core|mart)[.]\w+)`", record.__doc__ or "")
            found.update({named[1]: record} if named else {})
    return found


def _extensions() -> Iterator[str]:
    yield from ("What a package of your own adds: an entry point under `[project.entry-points.\"GROUP\"]` in its "
                "pyproject.toml.", "")
    for group, says in GROUPS.items():
        names = sorted({point.name for point in entry_points(group=group) if point.value.split(".")[0] in _PACKAGES})
        there = ", ".join(f"`{name}`" for name in names)
        yield from (f"## `{group}`", "", f"{says}.", "", f"Of ours there are: {there}." if names else "Ours need none.", "")


def _variables() -> Iterator[str]:
    yield from ("Variables of the environment that Traceroom reads.", "", "| variable | says | read in |", "|---|---|---|")
    for name, places in sorted(used_variables().items()):
        yield f"| `{name}` | {VARIABLES.get(name, '')} | {', '.join(f'`{place}`' for place in sorted(places))} |"


def used_variables() -> dict[str, set[str]]:
    """Names in `os.environ[…]`, `os.environ.get(…)`, `os.getenv(…)` and `envvar=…` of the sources, written there or as a
    constant of the module, and the files that hold them."""
    found: dict[str, set[str]] = {}
    for package in _PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in _names(ast.parse(path.read_text("utf-8"))):
                found.setdefault(name, set()).add(path.relative_to(ROOT).as_posix())
    return found


def _names(tree: ast.Module) -> Iterator[str]:
    constants = dict(_constants(tree))
    for node in ast.walk(tree):
        said: ast.expr | None = None
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("os.environ", "environ"):
            said = node.slice
        elif isinstance(node, ast.Call):
            asks = ast.unparse(node.func) in ("os.environ.get", "environ.get", "os.getenv", "os.environ.pop")
            named = next((each.value for each in node.keywords if each.arg == "envvar"), None)
            said = node.args[0] if asks and node.args else named
        if isinstance(said, ast.Constant) and isinstance(said.value, str):
            yield said.value
        elif isinstance(said, ast.Name) and said.id in constants:
            yield constants[said.id]


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names of a module that are texts, and the texts."""
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        name, value = node.targets[0], node.value
        names, values = (each.elts if isinstance(each, ast.Tuple) else [each] for each in (name, value))
        for one, text in zip(names, values, strict=False):
            if isinstance(one, ast.Name) and isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield one.id, text.value


def _sentence(text: str | None) -> str:
    """A docstring or help as one line of Markdown that a table can hold."""
    return re.sub(r"\s+", " ", text or "").strip().replace("|", "\\|")


def write() -> None:
    """Write the pages; pages that are no longer made go."""
    FOLDER.mkdir(exist_ok=True)
    for page in FOLDER.glob("*.md"):
        page.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    write()
