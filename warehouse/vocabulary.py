"""One name for each notion that people meet on pages, in tables and on the command line, and the one threshold of success.

Every surface takes its words from here: pages their labels, tooltips and glossary (`/glossary`), queries their conditions. The
benchmark (`benchmarks/first_hour.py --part vocabulary`) reads all surfaces, and counts the names in use for each notion. Does
not see what a log itself calls things.
"""

from __future__ import annotations

from typing import NamedTuple

SUCCEEDED_FROM = 0.5
"""Probability of success from which on a session succeeded. `min_probability` of `[gates]` can ask more of a known solution."""
SUCCEEDED, FAILED, UNDECIDED = "succeeded", "failed", "undecided"
OUTCOMES = {
    SUCCEEDED: f"probability >= {SUCCEEDED_FROM}", FAILED: f"probability < {SUCCEEDED_FROM}", UNDECIDED: "probability is null"}
"""Outcome of a session -> its condition in SQL, over `mart.outcomes`."""
OUTCOME_SQL = f"case {' '.join(f'when {test} then {chr(39)}{name}{chr(39)}' for name, test in OUTCOMES.items())} end"
"""Outcome of a session as an expression in SQL."""


class Word(NamedTuple):
    """A notion with its only name."""

    name: str
    definition: str
    shown: str
    """Where it is used."""


TERMS = (
    Word(SUCCEEDED, "Of a session: its probability of success is at least 50 %, or a person said so. Of an episode: its reward "
         "is 1.", "sessions, families, tasks, rollouts; sessions.outcome, mart.tasks.succeeded_session_ids"),
    Word(FAILED, "Of a session: its probability of success is below 50 %, or a person said so. Of an episode: its reward is "
         "below 1.", "sessions, rollouts; sessions.outcome"),
    Word(UNDECIDED, "A session without a probability of success: no signal voted on it, and nobody reviewed it.",
         "sessions; sessions.outcome"),
    Word("rejected", "A row that a stage did not keep. mart.decisions holds the reason.",
         "the funnel, rejected rows; traceroom show --rejected; mart.decisions"),
    Word("published", "A task in OUT/environments: its reward passed the audit.",
         "tasks, environments; tasks.is_published; traceroom tasks"),
    Word("unverified", "A task in OUT/unverified: it can be played, but has no reward that passed the audit.",
         "tasks; OUT/unverified"),
    Word("split", "The part of the tasks that one belongs to: train, validation or held_out. Tasks that share a request are in "
         "one split.", "tasks, datasets; mart.tasks.split; --split"),
    Word("task", "A request to carry out in an environment, from a starting state, with a reward or without.",
         "tasks; mart.tasks; traceroom tasks"),
    Word("family", "Tasks whose sessions ask for the same work, about other records.",
         "families; mart.families; traceroom show --families"),
    Word("read", "The effect of a tool that changes nothing.", "tools; mart.behaviours.effect; behaviour.jsonl"),
    Word("write", "The effect of a tool that may change the world.", "tools; mart.behaviours.effect; behaviour.jsonl"))
"""All terms, in the order of the glossary."""
DEFINITIONS = {term.name: term.definition for term in TERMS}


def outcome_of(probability: float | None) -> str:
    """Return the outcome of a session, by its probability of success."""
    return UNDECIDED if probability is None else SUCCEEDED if probability >= SUCCEEDED_FROM else FAILED
CHECKOUT = "checkout"
"""`tool` of the log events that state a session's checkout; their content is a JSON object: folder, branch, commit."""
TEST_RUN, CI_JOB = "test_run", "ci_job"
"""`tool` of the log events of a file of test results, and of the log of a job of CI."""
