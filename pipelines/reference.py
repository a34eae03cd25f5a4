"""The reference pages, made from the code: commands, keys of the configuration, tables, entry points, variables; and what the
warehouse says of its tables and columns.

    python -m pipelines.reference          writes docs/reference/*.md and warehouse/comments.sql (also: just reference)

In: the command line, the models of the configuration and the tables, the installed entry points, the sources. Out: pages and
comments as text (`pages`, `comments`); a test compares the files with them. Finds environment variables that the sources name
in `os.environ`; does not find those that libraries read.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
import types
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from extractors.configuration import Configuration
from pipelines.cli import app
from pipelines.stages import STAGES
from warehouse import records

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
COMMENTS = ROOT / "warehouse" / "comments.sql"
_MADE = "<!-- made by `just reference` -->"
_PACKAGES = ("extractors", "env_builder", "pipelines", "warehouse")
GROUPS = {
    "traceroom.apps": "Products whose exports are read: `extractors.apps.CompanyApp`, files in, versions of fields out "
                      "([company.md](../company.md#another-app))",
    "traceroom.formats": "Log formats: `extractors.formats.Format`, a file in, events out "
                         "([formats.md](../formats.md#another-format))",
    "traceroom.sources": "Platforms that logs are pulled from: `extractors.sources.Platform` "
                         "([sources.md](../howto/sources.md#another-platform))",
    "traceroom.signals": "Signals of success: `extractors.outcomes.signals.Signal`, a vote per session "
                         "([outcomes.md](../outcomes.md))",
    "traceroom.checks": "Kinds of checks: `env_builder.runtime.checks.CheckKind`, one typed test of an "
                        "episode ([rewards.md](../rewards.md))",
    "traceroom.bindings": "Kinds of bindings: a function from the text after `NAME:` to a binding, a real system as a tool's "
                          "behaviour ([environment.md](../environment.md))",
    "traceroom.backends": "Kinds of apps: `env_builder.backends.AppBackend`, which writes an app's files and ships its runtime "
                          "([backends.md](../backends.md#the-protocol))",
    "traceroom.exports": "Consumers: `env_builder.exports.Exporter` or `RoomExporter` "
                         "([datasets.md](../datasets.md#another-export-format))",
}
"""What each group of entry points holds."""
VARIABLES = {
    "DAGSTER_HOME": "Folder of Dagster's instance",
    "DOCKER_HOST": "Address of the Docker engine, for images and environments in containers",
    "OPENAI_API_KEY": "Key for an endpoint, if TRACEROOM_MODEL_KEY is not set",
    "PATH": "Where a site's own application finds programs",
    "PYTHONHASHSEED": "Python's own; a gate writes again under another one, which must change nothing",
    "RAY_ADDRESS": "Ray cluster for `rollout --executor ray` and `TRACEROOM_ENGINE=ray`; without it a local one",
    "TRACEROOM_CHROMIUM": "Executable of Chromium for the second host of a site; without it that of the system (docs/sites.md)",
    "TRACEROOM_ENGINE": "Where shards are processed: `process`, `processes` (default), `ray`",
    "TRACEROOM_WAREHOUSE": "URL of a DuckLake to use instead of the warehouse's file",
    "TRACEROOM_MEMORY": "Memory limit of a stage with its workers (`4GB`); beyond it the stage ends (docs/scale.md)",
    "TRACEROOM_WORKERS": "Number of workers beside the process; default: one per core but one",
    "ROOM_JOURNAL": "In an environment's container: path of the journal",
    "TOOLS_FOLDER": "In an agent's container: folder where the files of the environment's apps lie (`/work`)",
    "TOOLS_SOCKET": "In an agent's container: socket that the environment listens on",
    "TRACEROOM_ADAPTERS": "In an agent's process: frameworks whose tool functions are replaced; set by `rollout --adapter`",
    "TRACEROOM_EPISODE_URL": "In an agent's process: address of its episode (docs/howto/agent.md); set by `rollout --agent`",
    "TRACEROOM_ALERT_EMAIL": "Addresses that receive alerts, separated by commas",
    "TRACEROOM_ALERT_FROM": "Sender of that mail; default traceroom@ this machine",
    "TRACEROOM_ALERT_SMTP": "Server that sends it: `smtp://[user:password@]host[:port]`, or `smtps://`",
    "TRACEROOM_ALERT_WEBHOOK": "URL that receives alerts, a JSON document by POST",
    "TRACEROOM_AUTOMATION": "`on`: Dagster's schedule and the inbox sensor start enabled",
    "TRACEROOM_ANSWERS": "Set in sandboxes: the file to which questions report",
    "TRACEROOM_ORDER": "Set in sandboxes: the seed of the order of tests",
    "TRACEROOM_BASE_IMAGE": "Base image of environments",
    "TRACEROOM_COMMAND": "Name of the command in the hints that a run prints; set by `./traceroom`",
    "TRACEROOM_CONFIG": "Configuration file of Dagster's runs",
    "TRACEROOM_DEBUG": "If set, errors come with their traceback",
    "TRACEROOM_FIRST_DAY": "First day of Dagster's daily partitions",
    "TRACEROOM_FRESH_BY": "When every table must be up to date each day: a cron expression in UTC, default 0 6 * * *",
    "TRACEROOM_IMAGE": "`off`: Dagster's runs build no images",
    "TRACEROOM_GRADE_TOKEN": "Token that graders need, for `serve --grade`; without it one is drawn and printed",
    "TRACEROOM_INBOX": "Folders or buckets that logs arrive in, for Dagster",
    "TRACEROOM_KEY": "Key of pseudonyms: 16 random characters or more (docs/privacy.md)",
    "TRACEROOM_KEY_FILE": "File that holds it, if TRACEROOM_KEY is not set",
    "TRACEROOM_MODEL": "Language model, used if the configuration has `ask = true`, and by `grade --ask`",
    "TRACEROOM_MODEL_KEY": "Key of its endpoint",
    "TRACEROOM_MODEL_URL": "Its endpoint, OpenAI-compatible: `http://HOST:PORT/v1`",
    "TRACEROOM_NIGHTLY": "When the nightly run begins, HH:MM in UTC; default 02:30",
    "TRACEROOM_OPENENV_PYTHON": "Interpreter with OpenEnv's package, for `serve --openenv`",
    "TRACEROOM_OUT": "Folder that Dagster's runs write to",
    "TRACEROOM_OWNERS": "Owners of Dagster's assets: addresses and `team:NAME`, separated by commas",
    "TRACEROOM_PULL": "Live sources that Dagster's nightly run pulls first: `on` for all, or names, separated by commas",
    "TRACEROOM_PAGES": "Address of Dagster's pages, for the link in an alert",
    "TRACEROOM_RECEIVE_TOKEN": "Token that exporters need, for `receive`, 16 characters or more",
    "TRACEROOM_RETRY_SECONDS": "Seconds before each retry of a step after a temporary fault; default 1,2",
    "TRACEROOM_RUN_TAGS": "Tags of every run of Dagster: `key=value`, separated by commas",
    "TRACEROOM_SAMPLES": "`off`: no samples of rows in Dagster's database",
    "TRACEROOM_SERVE_TOKENS": "Tokens of `serve`'s clients, separated by commas; beyond this machine one is drawn and printed "
                              "without it",
    "TRACEROOM_SERVE_TOKENS_FILE": "File of these tokens instead, one a line; read again when it has changed (docs/serving.md)",
    "TRACEROOM_UI_TOKEN": "Token for corrections in `ui`, 16 characters or more; by default a new one for each start",
    "HOME": "The user's folder, if XDG_CONFIG_HOME is not set",
    "XDG_CONFIG_HOME": "Folder in which the key is created, instead of `~/.config`",
    "XDG_CACHE_HOME": "Folder of caches, instead of `~/.cache`",
}
"""Environment variables that the sources name, and what each is for."""


def pages() -> dict[str, str]:
    """Return the text of each page, by its name."""
    return {f"{name}.md": "\n".join([f"# {name.capitalize()}", "", _MADE, "", *lines()]).rstrip() + "\n"
            for name, lines in PAGES.items()}


def _commands() -> Iterator[str]:
    group: Any = typer.main.get_command(app)
    context = group.context_class(group, info_name="traceroom")
    yield from (f"    {' '.join(('traceroom', *group.collect_usage_pieces(context)))}", "", _sentence(group.help), "")
    yield from _parameters(group, context)
    for name, command, inner in every_command(group, context):
        yield from (f"## {name}", "", f"    traceroom {name} {' '.join(command.collect_usage_pieces(inner))}", "",
                    _sentence(command.help), "")
        yield from _parameters(command, inner)
        yield from ("Example:", "", f"    {command.epilog.removeprefix('Example: ')}", "")


def every_command(group: Any, context: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield name, command and context of each command that is shown; of those in a group: GROUP COMMAND."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = command.context_class(command, info_name=name, parent=context)
        if hasattr(command, "list_commands"):
            yield from every_command(command, inner, f"{prefix}{name} ")
        elif not command.hidden:
            yield f"{prefix}{name}", command, inner


def _parameters(command: Any, context: Any) -> Iterator[str]:
    rows = []
    for parameter in command.get_params(context):
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        is_option = parameter.param_type_name == "option"
        names = ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts)) if is_option else (
            f"`{str(parameter.name).upper()}`")
        shown, default = getattr(parameter, "show_default", None), parameter.default
        is_unset = default is None or callable(default) or default is False or default in ((), [], "")
        if not isinstance(shown, str):
            shown = "required" if parameter.required else "–" if is_unset else f"`{str(default).replace(str(ROOT), '.')}`"
        rows.append(f"| {names} | {_sentence(getattr(parameter, 'help', None))} | {shown} |")
    if rows:
        yield from ("| argument, option | description | default |", "|---|---|---|", *rows, "")


def _configuration() -> Iterator[str]:
    yield from ("`traceroom run --config FILE.toml`; what the keys do: [configuration.md](../configuration.md).", "")
    yield from _section("", Configuration)


def _section(path: str, model: type[BaseModel]) -> Iterator[str]:
    inner, rows, described = [], [], _described(model)
    for name, field in model.model_fields.items():
        hint = field.annotation
        models = [each for each in (hint, *get_args(hint)) if isinstance(each, type) and issubclass(each, BaseModel)]
        if models:
            inner.append((f"[[{path}{name}]]" if get_origin(hint) is list else f"[{path}{name}]", models[0]))
            continue
        default = field.get_default(call_default_factory=True)
        absent = default is PydanticUndefined
        shown_default = "required" if absent else "–" if default in (None, [], {}) else f"`{_toml(default)}`"
        rows.append(f"| `{name}` | {_kind(field.annotation)} | {shown_default} | {_sentence(described.get(name))} |")
    yield from ("| key | value | default | description |", "|---|---|---|---|", *rows, "")
    for title, of in inner:
        yield from (f"## `{title}`", "", _sentence(of.__doc__), "")
        yield from _section(f"{title.strip('[]')}.", of)


def _kind(hint: Any) -> str:
    """Describe the values of a type, in words."""
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
    yield from ("Tables of the warehouse (`OUT/warehouse.published.duckdb` while a run writes, else `OUT/warehouse.duckdb`). "
                "Columns are the fields of the row's record.", "")
    for table, record in sorted(tables().items()):
        text, columns = _sentence(record.__doc__).replace(f" (`{table}`)", ""), _columns_of(record)
        yield from (f"## `{table}`", "", text, "", "| column | type | holds |", "|---|---|---|")
        for name, kind in records.frame_schema(record).items():
            yield f"| `{name}` | `{kind}` | {columns[name]} |"
        yield ""


def tables() -> dict[str, type[records.Record]]:
    """Return the record of each table, which the record's first sentence names."""
    by_table = {}
    for record in vars(records).values():
        if isinstance(record, type) and issubclass(record, records.Record):
            named = re.search(r"[(]`((?:raw|core|mart)[.]\w+)`", record.__doc__ or "")
            by_table.update({named[1]: record} if named else {})
    return by_table


INTERNAL_TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "raw.schema_version": ("Layout of this warehouse", {
        "version": "Number of the layout", "fingerprint": "Digest of the SQL that made the tables"}),
    "raw.stages": ("What each stage was last computed from", {
        "stage": "Name of the stage", "digest": "Digest of its inputs, settings and code",
        "versions": "JSON: table -> digest of its content", "seconds": "Time that it took", "counts": "JSON: what it counted",
        "done_at": "When it was computed"}),
    "raw.partitions": ("The same of each service's share of a stage that is computed service by service", {
        "stage": "Name of the stage", "service": "Name of the service", "digest": "Digest of the share's inputs",
        "decisions": "JSON: rows of mart.decisions that came with it"}),
    "raw.audits": ("What was played against each task, so that nothing is played again while what it depends on is unchanged", {
        "service": "Name of the service", "audit_id": "Digest of what was played", "code": "Digest of the code that played it",
        "audited": "Result, deflated JSON"}),
    "raw.cache": ("Results of functions of their arguments alone, and solutions with what they read", {
        "stage": "Name of the stage", "cache_id": "Digest of the arguments", "code": "Digest of the code",
        "value": "Result, deflated JSON"})}
"""Tables that hold how far a run is, which have no record: (what they hold, column -> what it holds)."""


COLUMNS = {
    "service": "Service that it belongs to", "session_id": "Id of the session, as the log has it",
    "source": "Name of the source that it was read from", "tool": "Name of the tool", "happened_at": "When it happened",
    "file_id": "Chunk of the log that it was read from (`raw.files`)", "kind": "What kind it is",
    "byte_offset": "Where the record begins in its unpacked file", "n_bytes": "Size in bytes",
    "record_id": "Record that it was read from (`raw.records`)",
    "line": "1-based line of its file, or element of a whole-file format",
    "description": "Description that the log declares", "latency_ms": "Milliseconds until the answer",
    "model": "Model that wrote it, as the log names it", "n_calls": "Number of tool calls",
    "is_error": "Whether the answer says that the call failed", "key": "Key of the row or entity",
    "task_id": "Id of the task", "split": "train, validation or held_out", "rate_low": "Lower end of the interval of `rate`",
    "family": "Id of the family of tasks", "n_tasks": "Number of tasks", "goal_id": "Id of the goal",
    "rubric_id": "Id of the rubric", "n_records": "Number of records of the chunk", "read_at": "When it was read",
    "path": "Path of the file", "started_at": "When its first event happened", "ended_at": "When its last event happened",
    "day": "UTC day (YYYY-MM-DD) of its first event", "n_messages": "Number of messages",
    "role": "Who speaks: system, user, assistant or tool", "call_id": "Id of the call, as the log has it",
    "requestor": "Who made the call: the agent, or the user", "answered_at": "When the answer came",
    "feedback_id": "Id of the rating", "name": "Name of the rating, as the log has it",
    "value": "Value of the rating, as the log has it", "correction_id": "Id of the correction",
    "author": "Who made the correction", "why": "Reason that the author gave", "review_id": "Id of the review",
    "reviewer": "Who reviewed the session", "is_right": "Whether the reviewer agrees that the session succeeded",
    "reason": "Reason that the reviewer gave", "change_id": "Id of the change", "table_name": "Table of the changed row",
    "operation": "insert, update or delete", "after": "JSON of the row after the change",
    "declared": "Whether the log declares the tool", "low": "Lower end of the interval of the probability",
    "side": "Whether the signal votes for success or for failure", "n_votes": "Number of sessions that it votes on",
    "condition_id": "Id of the condition", "segment_of": "Task whose sessions this one is a part of",
    "n_sessions": "Number of sessions", "difficulty_band": "How often sessions succeed: rarely, sometimes, often or mostly",
    "first_at": "When its first session began", "fact_id": "Id of the fact",
    "derivation": "How the fact is known: observed, or derived from calls", "observed_at": "When it was observed",
    "recorded_id": "Id of the recorded answer", "content": "Answer, byte for byte",
    "valid_from": "Instant from which it holds", "valid_to": "Instant until which it holds",
    "event_id": "Event that shows it (`core.events`)",
    "effect": "What a call does: read, write, pure, constant, outside or unknown",
    "n_support": "Number of calls that the program answers as recorded",
    "n_against": "Number of calls that the program answers otherwise", "slots": "JSON: slot -> value",
    "goal": "What the user wants, in words", "starts_at": "Instant at which the episode begins",
    "environment": "Name of the environment", "content_digest": "Digest of the environment's files",
    "rewards_digest": "Digest of the rewards' files", "image_id": "Id of the container image", "n_tools": "Number of tools",
    "n_rows": "Number of rows", "sha256": "SHA-256 of the file", "kept": "Whether the stage kept the subject"}
"""What a column of this name holds, where its record does not say more."""


def comments() -> str:
    """Return the SQL that writes into a warehouse what its tables and columns hold."""
    described = {table: (_first_sentence(record.__doc__ or ""), _columns_of(record)) for table, record in tables().items()}
    lines = ["-- What the tables and columns hold, made from warehouse/records.py by `just reference`."]
    for table, (text, columns) in sorted((described | INTERNAL_TABLES).items()):
        lines.append(f"comment on table {table} is {_literal(text)};")
        lines += (f"comment on column {table}.{name} is {_literal(column)};" for name, column in columns.items())
    return "\n".join(lines) + "\n"


def _columns_of(record: type[records.Record]) -> dict[str, str]:
    described = _described(record)
    return {name: _sentence(described.get(name)) or COLUMNS[name] for name in record.model_fields}


def _described(model: type[BaseModel]) -> dict[str, str]:
    """Return the text below each field of a model, of its bases too.

    Pydantic can read them (`use_attribute_docstrings`), but does so whenever a model is imported, for commands that show none:
    a third of the time that importing the records takes.
    """
    described: dict[str, str] = {}
    for each in reversed(model.__mro__[:model.__mro__.index(BaseModel)]):
        [made] = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(made, ast.ClassDef)
        for field, text in itertools.pairwise(made.body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    described[name] = inspect.cleandoc(words)
    return described


def _first_sentence(text: str) -> str:
    return re.sub(r" [(]`[\w.]+`[)]", "", _sentence(text)).partition(". ")[0].rstrip(".")


def _literal(text: str) -> str:
    quoted = text.replace("\\|", "|").replace("'", "''")
    return f"'{quoted}'"


def _stages() -> Iterator[str]:
    yield from ("What a run does, in order, as pipelines/stages.py declares it. Dagster has an asset for each table.", "",
                "| stage | does | tables | folders of OUT | reads the tables of | settings |", "|---|---|---|---|---|---|")
    for stage in STAGES:
        cells = ([stage.name], [stage.description], [f"`{name}`" for name in stage.table_names],
                 [f"`{name}`" for name in stage.outputs], stage.after, [f"`{name}`" for name in stage.reads])
        yield f"| {' | '.join(', '.join(cell) or '–' for cell in cells)} |"


def _extensions() -> Iterator[str]:
    yield from ("A package of your own adds an entry point under `[project.entry-points.\"GROUP\"]` in its "
                "pyproject.toml.", "")
    for group, text in GROUPS.items():
        names = sorted({point.name for point in entry_points(group=group) if point.value.split(".")[0] in _PACKAGES})
        built_in = ", ".join(f"`{name}`" for name in names)
        yield from (f"## `{group}`", "", f"{text}.", "", f"Built in: {built_in}." if names else "None is built in.", "")


def _variables() -> Iterator[str]:
    yield from ("Environment variables that Traceroom reads.", "", "| variable | description | read in |", "|---|---|---|")
    for name, paths in sorted(used_variables().items()):
        yield f"| `{name}` | {VARIABLES.get(name, '')} | {', '.join(f'`{path}`' for path in sorted(paths))} |"


_READING = ("environ", "getenv", "envvar")
"""Words of which a source has one where it reads a variable."""


def used_variables() -> dict[str, set[str]]:
    """Find names in `os.environ[…]`, `os.environ.get(…)`, `os.getenv(…)` and `envvar=…` of the sources, written there or as a
    constant of the module; each with its files."""
    variables: dict[str, set[str]] = {}
    for package in _PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text("utf-8")
            if not any(word in text for word in _READING):
                continue
            for name in _names(ast.parse(text)):
                variables.setdefault(name, set()).add(path.relative_to(ROOT).as_posix())
    return variables


def _names(tree: ast.Module) -> Iterator[str]:
    constants: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            names, values = (each.elts if isinstance(each, ast.Tuple) else [each]
                             for each in (statement.targets[0], statement.value))
            constants |= {one.id: text.value for one, text in zip(names, values, strict=False)
                          if isinstance(one, ast.Name) and isinstance(text, ast.Constant) and isinstance(text.value, str)}
    for node in ast.walk(tree):
        name_node: ast.expr | None = None
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("os.environ", "environ"):
            name_node = node.slice
        elif isinstance(node, ast.Call):
            is_read = ast.unparse(node.func) in ("os.environ.get", "environ.get", "os.getenv", "os.environ.pop")
            named = next((each.value for each in node.keywords if each.arg == "envvar"), None)
            name_node = node.args[0] if is_read and node.args else named
        if isinstance(name_node, ast.Constant) and isinstance(name_node.value, str):
            yield name_node.value
        elif isinstance(name_node, ast.Name) and name_node.id in constants:
            yield constants[name_node.id]


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "commands": _commands, "stages": _stages, "configuration": _configuration, "tables": _tables, "extensions": _extensions,
    "variables": _variables}
"""Name of a page -> what makes its lines."""


def _sentence(text: str | None) -> str:
    """Return a docstring or help as one line of Markdown that a table can hold."""
    return re.sub(r"\s+", " ", text or "").strip().replace("|", "\\|")


def write() -> None:
    """Write the pages, and delete pages that are no longer generated."""
    FOLDER.mkdir(exist_ok=True)
    for page in FOLDER.glob("*.md"):
        page.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text, "utf-8", newline="\n")
    COMMENTS.write_text(comments(), "utf-8", newline="\n")


if __name__ == "__main__":
    write()
