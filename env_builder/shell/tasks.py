"""Turn a known change into a task: which tests tell its solution from what was there before.

In: the tree at which a session began, the known tests, the change that won. Out: the tests that fail before and pass after it
(fail-to-pass), those that pass in both (pass-to-pass), those that are not steady; or the reason why it is no task. Each side is
run three times: before is the start with the known tests, after is the same with the source part of the change.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from env_builder.runtime.workspace.sandbox import Changes
from env_builder.runtime.workspace.trees import Tree, changed

from .recipe import RepositoryRecipe
from .trials import TrialRun, Trials

N_RUNS = 3
_CHANGING = re.compile(r"0x[0-9a-fA-F]+|\d+\.\d+ ?s(?:econds)?\b")
"""What is another in each run: addresses, durations."""


class Candidate(NamedTuple):
    """What a task may be made of."""

    start: Tree
    """Without the known tests."""
    tests: Changes
    """The known tests with the files next to them, and those that are gone."""
    fix: Changes
    """The source part of the change."""
    configuration: Changes
    """The rest of the change: configuration and texts."""

    @property
    def before(self) -> Tree:
        """The start with the known tests."""
        return changed(self.start, self.tests)

    @property
    def after(self) -> Tree:
        """The start with the known tests and the fix."""
        return changed(self.before, self.fix)


class Separated(NamedTuple):
    """What the tests tell of a candidate."""

    reason: str
    """separates, or why it is no task: no_source_change, does_not_build, no_tests_separate, flaky, fix_needs_configuration."""
    detail: str
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    seconds: float = 0.0
    """Of the tests after the fix: the median run."""

    @property
    def is_task(self) -> bool:
        """Whether the tests separate."""
        return self.reason == "separates"


def separation(candidate: Candidate, recipe: RepositoryRecipe, trials: Trials) -> Separated:
    """Run a candidate's tests before and after the fix."""
    if not candidate.fix:
        return Separated("no_source_change", "The change that won changes no source; it is no task of code.")
    before, after = trials.of_all([candidate.before, candidate.after], recipe, N_RUNS)
    if not any(run.passed for run in after):
        return Separated("does_not_build", f"No test passes after the fix: {_last_words(after[0])}")
    fail_to_pass, pass_to_pass, flaky = compared(before, after)
    seconds = sorted(sum(run.seconds.values()) for run in after)[N_RUNS // 2]
    if fail_to_pass:
        detail = f"{len(fail_to_pass)} tests fail before and pass after; {len(pass_to_pass)} pass in both."
        return Separated("separates", detail, fail_to_pass, pass_to_pass, flaky, round(seconds, 2))
    if flaky:
        return Separated("flaky", f"Only tests that are not steady separate: {', '.join(flaky[:3])}.", flaky=flaky)
    if candidate.configuration:
        whole = trials.of_all([changed(candidate.after, candidate.configuration)], recipe, N_RUNS)[0]
        if compared(before, whole)[0]:
            return Separated("fix_needs_configuration", "The tests pass only with files of the change that are no source: "
                              + ", ".join(sorted(candidate.configuration)[:3]) + ".")
    return Separated("no_tests_separate", "No known test fails before the fix and passes after it.")


def compared(before: list[TrialRun], after: list[TrialRun]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the tests that fail (or are not there) in all runs before and pass in all after, that pass in all, and that change
    their outcome from run to run."""
    fail_to_pass: list[str] = []
    pass_to_pass: list[str] = []
    flaky: list[str] = []
    for test in sorted({test for run in (*before, *after) for test in run.outcomes}):
        n_before, n_after = (sum(test in run.passed for run in runs) for runs in (before, after))
        if 0 < n_before < len(before) or 0 < n_after < len(after):
            flaky.append(test)
        elif n_after == len(after):
            (pass_to_pass if n_before else fail_to_pass).append(test)
    return tuple(fail_to_pass), tuple(pass_to_pass), tuple(flaky)


def _last_words(run: TrialRun) -> str:
    if run.timed_out:
        return "its time was over."
    lines = [_CHANGING.sub("…", line) for line in run.messages.splitlines() if line.strip()]
    return (next((line for line in lines if line.startswith("E ")), lines[-1] if lines else f"exit code {run.code}"))[:300]
