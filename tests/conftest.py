"""What tests share: the data folder, the Docker engine, and one run of the sample.

What a machine lacks skips a test with the reason; with TRACEROOM_CI=1 it fails it instead: there, nothing is lacking.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from filelock import FileLock
from hypothesis import settings

from env_builder import image
from tests.browser import browser as browser
from tests.command_line import called, process
from warehouse.errors import Unavailable

if TYPE_CHECKING:
    from tests.postgres import Postgres

LEFT_OUT = pytest.StashKey[int]()
"""How many slow tests were not asked for."""

# Machines are noisy: a slow example is no failure.
settings.register_profile("some", deadline=None, max_examples=15)
settings.register_profile("all", deadline=None, max_examples=40)
settings.load_profile("some")

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "tests" / "logs" / "airline"
traceroom = called
KEY = "the key of the tests, long enough"
"""Of pseudonyms, where a test sets no other."""


@pytest.fixture(scope="session", autouse=True)
def _key_of_the_tests() -> Iterator[None]:
    """Yield the key of pseudonyms: the same for all tests, and none is made in the folder of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACEROOM_KEY", KEY)
        yield


@pytest.fixture(autouse=True)
def _no_store_of_before() -> None:
    """fsspec keeps a connection to each store that was asked, whatever the environment says since."""
    if s3fs := sys.modules.get("s3fs"):
        s3fs.S3FileSystem.clear_instance_cache()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the slow tests too")
    parser.addoption("--passed-to", type=Path, metavar="FILE", help="write which tests passed to FILE")
    parser.addoption("--not-in", type=Path, metavar="FILE",
                     help="leave out the tests of FILE, but not those that now try more examples")


def pytest_configure(config: pytest.Config) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)   # a shell's background ignores it, and so would what tests begin
    if config.getoption("--all"):
        settings.load_profile("all")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Send tests that share a module's fixture to one worker, so that it is built once; deselect the slow ones without --all.

    The longest tests come first, in random order among themselves: one that starts last leaves the other cores idle.
    """
    for item in items:
        if isinstance(item, pytest.Function) and not item.get_closest_marker("xdist_group") and _shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    yield
    if getattr(config.option, "loadgroup", False):
        for item in items:
            show_group(item)
    for item in items:
        item.user_properties.append(("examples", _number_of_examples(item)))
    if passed := config.getoption("--not-in"):
        _deselect(config, items, set(passed.read_text("utf-8").splitlines()))
    items.sort(key=lambda item: (
        not item.get_closest_marker("timeout"), not item.get_closest_marker("slow"), _is_of_a_part(item)))
    if config.getoption("--all"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.stash[LEFT_OUT] = len(slow)
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if not item.get_closest_marker("slow")]


def _is_of_a_part(item: pytest.Item) -> bool:
    """Return whether a test calls a part of the product, which takes a tenth of the time of commands and runs."""
    return item.nodeid.startswith(("tests/extractors/", "tests/env_builder/"))


def _deselect(config: pytest.Config, items: list[pytest.Item], passed: set[str]) -> None:
    """Leave out tests that passed elsewhere. Tests of properties that now try more examples than there stay."""
    before = {nodeid: int(number) for nodeid, _, number in (line.rpartition("\t") for line in passed)}
    again = {item for item in items if _number_of_examples(item) <= before.get(item.nodeid, -1)}
    config.hook.pytest_deselected(items=[item for item in items if item in again])
    items[:] = [item for item in items if item not in again]


def _number_of_examples(item: pytest.Item) -> int:
    """Return how many examples a test of a property tries; 0 for any other test."""
    test = getattr(item, "obj", None)
    if not getattr(test, "is_hypothesis_test", False):
        return 0
    of_a_machine = getattr(getattr(test, "__self__", None), "settings", None)
    tried = getattr(test, "_hypothesis_internal_use_settings", of_a_machine) or settings.default
    assert tried
    return tried.max_examples


def show_group(item: pytest.Item) -> None:
    """Write a test's group at the end of its id, where the scheduler of pytest-xdist looks for it.

    pytest-xdist 3.8 writes it where pytest 9.2 no longer reads it, and deals the tests out as if they had no group
    (https://github.com/pytest-dev/pytest-xdist/issues/1386).
    """
    group = item.get_closest_marker("xdist_group")
    if group and not item.nodeid.endswith(f"@{group.args[0]}"):
        item._id = type(item._id).parse(f"{item.nodeid}@{group.args[0]}")


def _shares_a_fixture(item: pytest.Function) -> bool:
    """Return whether a test takes a fixture of its own file that is built once a module or session."""
    definitions = item._fixtureinfo.name2fixturedefs.values()
    return any(
        fixture.scope in ("module", "session", "package") and getattr(fixture.func, "__module__", "") == item.module.__name__
        for fixtures in definitions for fixture in fixtures)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over how many tests a worker deselected; each collects all, so any count is right."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass on how many tests this worker deselected."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many tests were left out, and write which passed where that was asked for."""
    if file := terminalreporter.config.getoption("--passed-to"):
        passed = {report.nodeid: dict(report.user_properties)["examples"]
                  for report in terminalreporter.stats.get("passed", []) if report.when == "call"}
        file.write_text("".join(f"{nodeid}\t{number}\n" for nodeid, number in sorted(passed.items())), "utf-8")
    if left_out := terminalreporter.config.stash.get(LEFT_OUT, 0):
        told = "1 slow test was" if left_out == 1 else f"{left_out} slow tests were"
        terminalreporter.write_line(f"{told} left out; --all runs what is slow too.")


def lacking(reason: str) -> NoReturn:
    """Skip the test, or fail it where nothing may be lacking."""
    if os.environ.get("TRACEROOM_CI") == "1":
        pytest.fail(f"{reason} (and TRACEROOM_CI=1 says that nothing may be lacking)", pytrace=False)
    pytest.skip(reason)


def once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that the first worker that asks for it makes, and all look into; look, do not touch."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with FileLock(shared / f"{name}.lock"):
        if not (shared / f"{name}.done").exists():
            shutil.rmtree(shared / name, ignore_errors=True)   # of who failed
            make(shared / name)
            (shared / f"{name}.done").touch()
    return shared / name


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of the real logs: TRACEROOM_DATA, which must then exist, else ../shared/data.

    Skips the test where the variable is unset and there is no such folder.
    """
    if named := os.environ.get("TRACEROOM_DATA"):
        if not Path(named).is_dir():
            pytest.fail(f"TRACEROOM_DATA names {named}, which is not a folder", pytrace=False)
        return Path(named)
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        lacking("the real logs are not here; name their folder in TRACEROOM_DATA")
    return folder


@pytest.fixture(scope="session")
def docker_engine() -> None:
    """Require a Docker engine that answers."""
    try:
        image.engine().close()
    except Unavailable as error:
        lacking(str(error))


@pytest.fixture(scope="session")
def base_image(docker_engine: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of a base image that is in the engine; made once, where it is not."""
    with FileLock(tmp_path_factory.getbasetemp().parent / "base_image.lock"):
        if not image.engine().images.list(image.LOCAL_BASE):
            try:
                image.make_base()
            except Unavailable as error:
                lacking(str(error))
    return image.LOCAL_BASE


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Yield a server of PostgreSQL of this worker's own; `postgres.database()` gives the address of a new, empty database.
    Tests that take it are marked `xdist_group("postgres")`, so that one worker starts one."""
    from tests.postgres import serving

    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def sample_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what `traceroom run` makes of the sample, without images; made once for all workers."""
    def make(out: Path) -> None:
        done = process("run", SAMPLE, "--out", out, "--no-image", cwd=Path("/"))
        assert done.returncode == 0, done.stderr

    return once(tmp_path_factory, "sample_run", make)


@pytest.fixture(scope="session")
def sample_environment(sample_run: Path) -> Path:
    """Directory of the sample's environment with the most tasks."""
    rooms = sorted((sample_run / "environments").iterdir(), key=lambda room: (room / "tasks.jsonl").stat().st_size)
    assert rooms, "the sample's run published no environment"
    return rooms[-1]
