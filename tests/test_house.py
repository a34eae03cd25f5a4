"""The laws of the house (docs/architecture.md), each held by a test that reads the sources."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.names import payload_names

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import house_docs  # noqa: E402
import house_source  # noqa: E402

pytestmark = pytest.mark.xdist_group("tests/test_house.py")
"""One worker reads all sources, and each of them once."""
PACKAGES = ("warehouse", "extractors", "env_builder", "pipelines")
RUNTIME = ROOT / "env_builder" / "runtime"
BELOW = {
    "warehouse": set[str](),
    "extractors": {"warehouse"},
    "env_builder": {"warehouse"},
    "pipelines": {"warehouse", "extractors", "env_builder"},
}
DOORS = {
    "duckdb": ("warehouse/",),
    "docker": ("env_builder/image/",),
    "openai": ("pipelines/resources.py", "extractors/sources/openai_stored.py",
               "env_builder/exports/adapters/lightning_room.py"),
    "dagster": ("pipelines/",),
    "typer": ("pipelines/",),
    "mcp": ("env_builder/exports/adapters/verifiers_taskset.py",),
    "openenv": ("pipelines/serving/openenv_app.py", "env_builder/openenv_package/"),
    "verifiers": ("env_builder/exports/adapters/",),
    "inspect_ai": ("env_builder/exports/adapters/",),
    "gymnasium": ("env_builder/gymnasium_env.py",),
    "altair": ("pipelines/reporting/",),
    "vl_convert": ("pipelines/reporting/",),
    "jinja2": ("pipelines/",),
    "ray": ("pipelines/running/engines/ray_tasks.py",),
    "obstore": ("extractors/buckets.py",),
    "selectolax": ("env_builder/site/parsing.py",),
    "playwright": ("env_builder/site/chromium.py",),
}
BOUNDARY = ("pipelines/cli.py",)
"""Where every error becomes a sentence: the only place that may catch them all."""
MAX_LINES, MAX_FUNCTION = 700, 60
"""Where a file or a function is certainly too long; a file holds one concept whole, and no class is cut to fit."""
LONG_FILES = {"warehouse/records.py": "every type that flows, each field with its sentence: a page to look things up in"}


def sources() -> tuple[Path, ...]:
    """Return every Python file of the four packages."""
    return house_source.sources(ROOT)


tree, nodes = house_source.tree, house_source.nodes


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Return (line, dotted name) of everything that a file imports, wherever it does."""
    return tuple((line, module) for line, module, _ in house_source.imports(path, ROOT))


def test_imports_run_down_and_wings_stay_apart() -> None:
    wrong = [
        f"{shown(path)}:{line} imports {name}"
        for path in sources() for line, name in imports(path)
        if (top := name.split(".")[0]) in BELOW
        and top != (own := path.relative_to(ROOT).parts[0]) and top not in BELOW[own]
    ]  # fmt: skip
    assert not wrong


def test_wings_take_types_errors_and_words_alone_from_the_warehouse() -> None:
    allowed = ("warehouse.records", "warehouse.errors", "warehouse.vocabulary")
    wrong = [
        f"{shown(path)}:{line} imports {name}"
        for path in sources() if path.relative_to(ROOT).parts[0] in ("extractors", "env_builder")
        for line, name in imports(path) if name.split(".")[0] == "warehouse" and name not in allowed
    ]  # fmt: skip
    assert not wrong


def test_no_circle_among_modules() -> None:
    """Imports inside functions count: a circle that shows only when they run is still one."""
    assert house_source.circles(ROOT) == []


@pytest.mark.parametrize("module", DOORS)
def test_one_door_per_outside_thing(module: str) -> None:
    doors = DOORS[module]
    wrong = [
        f"{shown(path)}:{line}" for path in sources() for line, name in imports(path)
        if name.split(".")[0] == module and not shown(path).startswith(doors)
    ]  # fmt: skip
    assert not wrong, f"{module} is for {', '.join(doors)} alone"


def test_the_runtime_imports_the_standard_library_and_itself() -> None:
    wrong = []
    for path in sorted(RUNTIME.rglob("*.py")):
        for node in nodes(path) if path.parent.name != "within" else ():   # plug-ins of runners that a workspace brings along
            if isinstance(node, ast.ImportFrom) and node.level:
                if node.level > len(path.relative_to(RUNTIME).parts):
                    wrong.append(f"{shown(path)}:{node.lineno} leaves the runtime")
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names = [name.name for name in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                wrong += [
                    f"{shown(path)}:{node.lineno} imports {name}"
                    for name in names if name.split(".")[0] not in sys.stdlib_module_names
                ]  # fmt: skip
    assert not wrong


def test_the_runtime_loads_where_nothing_is_installed(tmp_path: Path) -> None:
    (tmp_path / "runtime").symlink_to(RUNTIME)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import runtime; print(runtime.Environment.__name__)"
    done = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "Environment\n"), done.stderr


FORBIDDEN_CALLS = {"exec", "eval", "compile", "__import__"}
ALLOWED_CALLS = {"env_builder/runtime/__main__.py": {"__import__"}}  # its own package, by the name of its folder


def test_no_python_is_built_out_of_strings() -> None:
    wrong = [
        f"{shown(path)}:{node.lineno} calls {node.func.id}"
        for path in sources() for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        and node.func.id in FORBIDDEN_CALLS - ALLOWED_CALLS.get(shown(path), set())
    ]  # fmt: skip
    assert not wrong


def test_nothing_catches_everything_but_the_boundary() -> None:
    wrong = [
        f"{shown(path)}:{node.lineno}"
        for path in sources() if shown(path) not in BOUNDARY
        for node in nodes(path)
        if isinstance(node, ast.ExceptHandler) and not _raises_again(node)
        and (node.type is None or {"Exception", "BaseException"} & {
            name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)})
    ]  # fmt: skip
    assert not wrong


def _raises_again(handler: ast.ExceptHandler) -> bool:
    """Clean up and go on falling: nothing is caught."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_nothing_reads_a_truth() -> None:
    """The word may stand in a sentence, and as the name of the folder to leave; never as part of a path."""
    wrong = []
    for path in sources():
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for word in re.findall(r"\S*truth\S*", node.value):
                    if "/" in word.strip("`'\".,;:()/") or re.search(r"truth\.\w|\*", word):
                        wrong.append(f"{shown(path)}:{node.lineno} {word}")
    assert not wrong


def test_no_two_versions_of_a_page() -> None:
    """Pages hold no marks of a merge that nobody decided."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    assert [path.name for path in pages if re.search(r"^(<{7}|={7}|>{7})( |$)", path.read_text("utf-8"), re.MULTILINE)] == []


def test_no_left_overs() -> None:
    """Nothing is put off; a type error is silenced by its name alone."""
    marks = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b|type:\s*ignore(?!\[)|pragma:\s*no cover")
    wrong = [
        f"{shown(path)}:{number} {line.strip()}"
        for path in sources() for number, line in enumerate(path.read_text("utf-8").splitlines(), 1) if marks.search(line)
    ]
    assert not wrong


def test_modules_and_public_functions_say_what_they_do() -> None:
    wrong = []
    for path in sources():
        if path.read_text("utf-8").strip() and not ast.get_docstring(tree(path)):
            wrong.append(shown(path))
        for node in tree(path).body:
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if named and not node.name.startswith("_") and not ast.get_docstring(node):
                wrong.append(f"{shown(path)}:{node.lineno} {node.name}")
    assert not wrong


def test_files_and_functions_stay_small() -> None:
    wrong = []
    for path in sources():
        n_lines = len(path.read_text("utf-8").splitlines())
        if n_lines > MAX_LINES and shown(path) not in LONG_FILES:
            wrong.append(f"{shown(path)} has {n_lines} lines")
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                n_lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if n_lines > MAX_FUNCTION:
                    wrong.append(f"{shown(path)}:{node.lineno} {node.name} has {n_lines} lines")
    assert not wrong


def test_names_are_plain_words() -> None:
    """No identifier is a participle in the place of what it holds; a few are left to a library's own interface."""
    assert len(banned := house_source.banned_names(ROOT)) <= 20, "\n".join(banned)


def test_a_class_has_a_name_of_its_own() -> None:
    assert len(twice := house_source.class_names_twice(ROOT)) <= 15, twice


def test_the_root_of_pipelines_is_small() -> None:
    assert house_source.pipelines_root_modules(ROOT) <= 16


def test_pages_read_plainly() -> None:
    """Sentences are short, and words of our own stay out of the documentation."""
    measured = house_docs.measure_docs(ROOT / "docs")
    assert measured["words_a_sentence"] <= 20 and measured["words_a_sentence_p90"] <= 32, measured
    assert measured["banned_words_docs"] <= 20, measured


FIRST_PLAIN_COMMIT = "5f54573"
"""Commits after this one have a title of at most 72 characters, and a body."""


def test_commits_have_a_short_title_and_a_body() -> None:
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT)]
    known = subprocess.run([*git, "cat-file", "-e", FIRST_PLAIN_COMMIT], capture_output=True, check=False)
    if known.returncode:
        pytest.skip("no history here: a copy of the files, or a shallow clone")
    log = subprocess.run([*git, "log", "--no-merges", "--format=%h%x00%s%x00%b%x01", f"{FIRST_PLAIN_COMMIT}..HEAD"],
                         capture_output=True, text=True, check=True).stdout
    assert house_source.long_titles(log) == []


def test_a_long_title_and_a_missing_body_are_seen() -> None:
    log = "a1\0Short enough\0Why.\x01\nb2\0" + "x" * 73 + "\0Why.\x01\nc3\0No body\0\nCo-authored-by: A <a@b.c>\x01\n"
    assert [line[:2] for line in house_source.long_titles(log)] == ["b2", "c3"]


def test_files_are_called_after_what_they_hold() -> None:
    vague = {"utils", "util", "common", "helpers", "helper", "base", "manager", "misc"}
    assert not [shown(path) for path in sources() if vague & set(path.stem.split("_"))]


def test_the_schema_is_the_records(tmp_path: Path) -> None:
    """Every table holds one record: the same columns, in the same order, of the same types."""
    from warehouse import records
    from warehouse.schema import schema_text
    from warehouse.store import Store

    schemas = {
        name: dict(records.frame_schema(record)) for name, record in vars(records).items()
        if isinstance(record, type) and issubclass(record, records.Record) and record.model_fields
    }  # fmt: skip
    ours = {"raw.schema_version", "raw.stages", "raw.partitions", "raw.audits", "raw.cache"}
    names = set(re.findall(r"create table if not exists ([a-z_.]+)", schema_text())) - ours
    store = Store.open(tmp_path / "warehouse.duckdb")
    try:
        tables = {name: dict(store.table(name).schema) for name in names}
    finally:
        store.close()
    known = [list(columns.items()) for columns in schemas.values()]
    homeless = [name for name, columns in tables.items() if list(columns.items()) not in known]
    assert not homeless, "tables that are no record"
    assert len(tables) >= len(schemas) - 1, "a record without a table (only Check lives inside another)"


EXCEPTIONS: dict[str, str] = {
    "UserName": "a column of slack-mcp-server's answers; in the logs a column of a human desk",
    "run_config": "Dagster's own parameter; in the logs it belongs to an agent framework's envelope",
    "replace_all": "a polars string method; in the logs an argument of a coding agent's editor",
    "ValidationError": "pydantic's; in the logs it stands in a traceback",
    "message_id": "the id of an event in Segment's exports and in syslog; in the logs a line of somebody's code",
    "amount_refunded": "a field of Stripe's charges; in the logs what a refund tool gave back",
    "additionalProperties": "JSON Schema's own word; in the logs it stands in the tools' schemas",
    "anyOf": "JSON Schema's own word; in the logs it stands in the tools' schemas",
    "event_id": "the key of our own table of events; in the logs a calendar's entry",
    "read_file": "a tool of our own kind of app `files`, named as in MCP's reference server for file systems",
    "send_message": "a method of Python's smtplib; in the logs a tool of a messenger",
    "max_results": "a parameter of MLflow's client; in the logs one of a search",
    "order_by": "a parameter of MLflow's client; in the logs one of a search",
    "account_id": "a field of Jira's answers about people, as its public server shows them",
    "avatar_url": "a field of Jira's answers about people, as its public server shows them",
    "to_status": "a field of Jira's answers about transitions, as its public server shows them",
    "session_name": "our own function; in the logs a line of somebody's code that an agent read",
}
"""Names of a log's payload that the source may use all the same, each with its reason."""


@cache
def _words(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", path.read_text("utf-8", errors="replace")))


def _shipped() -> list[Path]:
    """Source, and the data files shipped with it."""
    kinds = {".py", ".sql", ".toml", ".json", ".jsonl", ".yaml", ".txt", ".csv", ".html", ".js"}
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.suffix in kinds]
    return [path for path in files if "__pycache__" not in path.parts]


@cache
def _format_terms() -> frozenset[str]:
    """Return the project's own list of names that log formats define."""
    lines = (ROOT / "tests" / "format_terms.txt").read_text("utf-8").splitlines()
    return frozenset(term for line in lines if (term := line.partition("#")[0].strip()))


OF_PRODUCTS = ("env_builder/runtime/office/", "env_builder/company/")
"""Where apps of public products are implemented: names of their public servers may stand there, and no others."""


@cache
def _public_names() -> frozenset[str]:
    """Return the words of the descriptors of public servers."""
    return frozenset().union(*(_words(path) for path in (ROOT / "env_builder/company/descriptors").glob("*.jsonl")))


def _no_domain_names(names: dict[str, str]) -> None:
    allowed = _format_terms() | EXCEPTIONS.keys()
    wrong = [
        f"{shown(path)}: {word} (a name in {names[word]})"
        for path in _shipped() for word in sorted(_words(path) & names.keys() - allowed - (
            _public_names() if shown(path).startswith(OF_PRODUCTS) else frozenset()))]
    assert not wrong, "the source has names of the logs that it was tried on:\n" + "\n".join(wrong)


def test_no_domain_names_of_the_sample() -> None:
    names = payload_names(ROOT / "tests" / "logs", None)
    assert len(names) > 50
    _no_domain_names(names)


def test_no_domain_names_of_the_real_logs(data: Path) -> None:
    names = payload_names(data, 150_000)
    assert len(names) > 100
    _no_domain_names(names)


@pytest.mark.slow
def test_no_domain_names_of_all_the_real_logs(data: Path) -> None:
    _no_domain_names(payload_names(data, None))
