"""What goes in and out of an environment: small frozen records, standard library only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

Tier = Literal["recorded", "derived", "induced", "bound", "model", "assumed", "unknown", "real"]
Ended = Literal["terminated", "truncated"]


class Limits(NamedTuple):
    """When an episode is truncated."""

    steps: int
    """Calls and words of the agent, together."""
    seconds: float
    """Wall time since reset."""
    tokens: int | None = None
    """What the agent wrote and was shown, together (user.py); None: no limit."""


class Task(NamedTuple):
    """What to do, and where it begins."""

    task_id: str
    session_ids: tuple[str, ...]
    """Sessions of the log that the task begins together with."""
    split: str
    limits: Limits
    family: str
    goal: str
    starts_at: str | None
    opening: tuple[dict[str, str], ...]
    """Messages before the agent's first move: {"role", "content"}."""
    user: dict[str, Any]
    """The user's script (user.py), as its row gives it."""
    slots: dict[str, Any]
    segment_of: str | None = None
    derived_from: str | None = None
    prefix: tuple[dict[str, Any], ...] = ()
    """Steps that were made before the agent's first move, as a known solution has them (docs/environment.md)."""
    acting_for: str | None = None
    """Whom the agent works for, in apps where somebody has to act; None: the sessions tell."""

    @property
    def user_turns(self) -> tuple[str, ...]:
        """What the user says after the opening, in order."""
        return tuple(self.user["turns"])


class Observation(NamedTuple):
    """What the agent sees at reset."""

    messages: list[dict[str, Any]]
    """{"role", "content"}; calls that were made before the agent's first move, and their answers, as OpenAI has them."""
    tools: list[dict[str, Any]]
    """MCP tool descriptors."""
    limits: Limits | None


class Result(NamedTuple):
    """A tool's answer."""

    content: str
    """The text a policy would see, byte for byte."""
    is_error: bool
    tier: Tier


class ToolAnswer(NamedTuple):
    """What a rule gives back."""

    content: str
    is_error: bool
    tier: Tier
    documents: tuple[tuple[tuple[str, str], str], ...] = ()
    """((class, key), JSON text) of entities that the call leaves behind."""


class Episode(NamedTuple):
    """An episode as the grader sees it, after replaying its journal on its own copy of the world."""

    journal: tuple[dict[str, Any], ...]
    """Rows as docs/environment.md defines them, contents as the grader's own replay gave them."""
    difference: dict[str, Any]
    """{"documents": {"class/key": text or None}, "write_calls": [[tool, canonical arguments], …]}"""
    unknown_writes: tuple[dict[str, Any], ...]
    """Rows answered `unknown` by tools that may write."""
    writes: frozenset[str]
    """Names of the tools that may change the world."""
    look: Callable[[str], tuple[str | None, str | None]] | None = None
    """JSON text of the document "class/key" at the episode's beginning and at its end, None where it is not known."""
    attempts: tuple[dict[str, Any], ...] = ()
    """Those of `unknown_writes` that name only what exists: they may well have worked."""
    verified: Callable[[int], Any] | None = None
    """By a seed, what the apps' own verifiers say of the end (`AppState.verified`)."""
    received: tuple[tuple[str, str | None], ...] = ()
    """(path, origin) of every file that one app handed to another, in order."""
    last_changes: Callable[[], dict[str, int]] | None = None
    """Gives by document the place in the journal of the step that changed it last."""
    first_changes: Callable[[], dict[str, int]] | None = None
    """Gives by document the place in the journal of the step that changed it first."""
    presumed_reads: frozenset[str] = frozenset()
    """Those of `writes` that were called and seem to read, without proof, or of which nothing tells whether they do: whether
    such a call changed something is unknown."""


class CheckVerdict(NamedTuple):
    """What one check says of one episode."""

    check_id: str
    kind: str
    role: str
    weight: float
    passed: bool | None
    """None: nobody can say."""
    description: str
    evidence: Any
    """What was found: JSON value."""


class Grade(NamedTuple):
    """Reward of an episode, with its reasons."""

    reward: float | None
    """In [0, 1], or [-1, 1] in the mode `train`; None: unscored."""
    judged: tuple[tuple[Any, Any], ...] = ()
    """Each check of the rubric with what it found (rubrics.py, checks/kind.py)."""

    @property
    def checks(self) -> tuple[CheckVerdict, ...]:
        return tuple(
            CheckVerdict(
                check.check_id, check.kind, check.role, check.weight, result.passed, check.description, result.evidence
            )
            for check, result in self.judged
        )

    @property
    def tally(self) -> str:
        """How many of the checks passed, in words: 120/183 checks passed."""
        passed = [check.passed for check in self.checks]
        unscored = passed.count(None)
        return f"{passed.count(True)}/{len(passed)} checks passed" + (f", {unscored} unscored" if unscored else "")

    def __str__(self) -> str:
        return f"reward {'none' if self.reward is None else f'{self.reward:g}'}, {self.tally}"
