"""A pytest plug-in: a test of an agent runs once for each task of an environment, and fails where the reward is not earned.

    @pytest.mark.traceroom("out/environments/main", split="held_out")
    def test_the_agent_does_its_work(traceroom_episode):
        my_agent(traceroom_episode)        # .messages, .tools, .call(tool, arguments), .say(text), .finish()

The mark takes an environment folder and, by name, `split`, `tasks` (how many at most), `seed`, and `reward` (the least to pass,
1.0 by default). `--traceroom-save FILE` writes the rewards as a baseline, `--traceroom-baseline FILE` compares with one: the
run fails if they are surely worse, and tests below `reward` then only count there. A task without a reward is skipped: nobody
can say whether the agent did it. Environment and grader run in the process of the tests: for agents that you trust.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

MARK = "traceroom"
_REWARD = "traceroom_reward"
_REWARDS = pytest.StashKey[dict[str, list[float]]]()
"""Task -> rewards of this run, also of the workers of pytest-xdist."""


class AgentEpisode:
    """A task in which an agent acts: what it may see, and what it may do."""

    def __init__(self, environment: Any, task_id: str, seed: int, least: float) -> None:
        self._environment = environment
        self.task_id = task_id
        self.least = least
        observation = environment.reset(task_id, seed=seed)
        self.messages: list[dict[str, str]] = observation.messages
        """What the episode begins with: role and content."""
        self.tools: list[dict[str, Any]] = observation.tools
        """MCP descriptors: name, description, inputSchema."""

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call a tool; return its answer: `content`, `is_error`."""
        return self._environment.call(tool, arguments)

    def say(self, text: str) -> str | None:
        """Say something to the user; return the reply, None if there is none."""
        reply: str | None = self._environment.say(text)
        return reply

    def finish(self) -> None:
        """End the episode; the end of the test does so too."""
        if self._environment.ended is None:
            self._environment.finish()

    def grade(self) -> Any:
        """Return the grade of the finished episode: `reward`, `checks`."""
        self.finish()
        return self._environment.grade()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup(MARK, "agents on rebuilt tasks (Traceroom)")
    group.addoption("--traceroom-save", metavar="FILE", help="write the rewards by task to FILE, as a baseline")
    group.addoption("--traceroom-baseline", metavar="FILE", help="compare the rewards with those of FILE")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", f"{MARK}(environment, split=None, tasks=None, seed=0, reward=1.0): run the test once "
                                       "for each task of the environment")
    config.stash[_REWARDS] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a marked test once for each task."""
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None or "traceroom_episode" not in metafunc.fixturenames:
        return
    from env_builder.runtime import Environment

    options = dict(mark.kwargs)
    split, most, seed, least = (options.pop(name, default) for name, default in (
        ("split", None), ("tasks", None), ("seed", 0), ("reward", 1.0)))
    if options or len(mark.args) != 1:
        raise pytest.UsageError(f"@pytest.mark.{MARK} takes an environment folder, and split, tasks, seed and reward by name")
    path = Path(mark.args[0])
    if not (path / "manifest.json").is_file():
        raise pytest.UsageError(f"there is no environment {str(path)!r}; build one with: traceroom run LOGS --out OUT")
    environment = Environment.load(str(path))
    tasks = [task for task in environment.tasks if split in (None, task.split)][:most]
    metafunc.parametrize("traceroom_episode", [(environment, task.task_id, seed, least) for task in tasks], indirect=True,
                         ids=[task.task_id[:12] for task in tasks])


@pytest.fixture
def traceroom_episode(request: pytest.FixtureRequest) -> Iterator[AgentEpisode]:
    """Return the episode of a task, in an environment of its own."""
    if not hasattr(request, "param"):
        raise pytest.UsageError(f"a test with the fixture traceroom_episode needs @pytest.mark.{MARK}(ENVIRONMENT)")
    environment, task_id, seed, least = request.param
    yield AgentEpisode(environment.fork(), task_id, seed, least)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Grade the episode after the test's own assertions hold."""
    outcome = yield
    episode = pyfuncitem.funcargs.get("traceroom_episode")
    if isinstance(episode, AgentEpisode):
        grade = episode.grade()
        if grade.reward is None:
            pytest.skip("the task is unverified")
        pyfuncitem.user_properties.append((_REWARD, f"{episode.task_id} {grade.reward!r}"))
        if grade.reward < episode.least and not pyfuncitem.config.getoption("--traceroom-baseline"):
            failed = "; ".join(check.description for check in grade.checks if not check.passed)
            pytest.fail(f"the reward is {grade.reward:.3f}, below {episode.least:g}: {failed}", pytrace=False)
    return outcome


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the baseline, or compare with it; fail the run if the rewards are surely worse."""
    config = session.config
    rewards = {task_id: sorted(own) for task_id, own in sorted(config.stash[_REWARDS].items())}
    if hasattr(config, "workerinput") or not rewards:
        return
    from pipelines.rollouts.baselines import compare, read_baseline, write_baseline

    if path := config.getoption("--traceroom-save"):
        write_baseline(Path(path), rewards, {})
    path = config.getoption("--traceroom-baseline")
    if path and compare(rewards, read_baseline(Path(path))).is_worse(0.0):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the comparison."""
    if not (rewards := config.stash[_REWARDS]):
        return
    from pipelines.rollouts.baselines import compare, markdown, read_baseline

    path = config.getoption("--traceroom-baseline")
    terminalreporter.section("rewards")
    terminalreporter.write(markdown(compare(rewards, read_baseline(Path(path)) if path else None), {}))


class _Collector:
    """Takes the rewards out of the reports, which pytest-xdist brings from its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the reward of a test that has run."""
        for name, value in report.user_properties if report.when == "call" else ():
            if name == _REWARD:
                task_id, _, reward = str(value).rpartition(" ")
                self._config.stash[_REWARDS].setdefault(task_id, []).append(float(reward))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to collect rewards."""
    session.config.pluginmanager.register(_Collector(session.config), "traceroom-rewards")
