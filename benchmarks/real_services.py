"""The real services of the zoo, to run policies against: engines, sessions, verdicts. Nothing that builds imports this.

In: the file of the engines (`../shared/data/zoo/engine.py`), a service, a seed. Out: its logs, as the engine writes them, and
per session the service as it was when the session began. `Real.verdict` judges any episode as the engine judges its scripts:
end state, verification before the first write call, facts in the words, refusals in words with nothing done. What the engine
knows of its own scripts (who refused, who says that it is done) is read in the agent's sentences; `agreement` says how often
that gives the engine's verdict of its own scripts. It does not detect a refusal or a claim in words that no script of the
engine has, nor whether the reason of a refusal is the right one.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

Step = dict[str, Any]
DONE = re.compile(r"\bit is done\b|that it is done|\bI have done it\b", re.IGNORECASE)
GAVE_UP, CANNOT = "I can't sort this out here", "I can't do that: "
TOKEN = re.compile(r"tok_[0-9a-f]{12}")


class Start(NamedTuple):
    """A session of a service, as it began."""

    service: Any
    goals: list[Any]
    question: str | None
    """By which the agent asks who it is talking to."""
    verify: list[tuple[str, dict[str, Any]]]
    """The calls that verify the customer."""


def engines(path: Path) -> ModuleType:
    """Load the engines from their file."""
    spec = importlib.util.spec_from_file_location("real_engines", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file (hint: name data/zoo/engine.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules["real_engines"] = module   # its data classes look their module up
    spec.loader.exec_module(module)
    return module


def record(engine: ModuleType, name: str, folder: Path, seed: str, n_sessions: int | None = None) -> dict[str, Start]:
    """Let a service serve its sessions and write its logs into folder/data/NAME. Return session -> how it began."""
    service = next(each for each in engine.SERVICES if each.name == name)
    scripts, starts = engine.policies, []

    def noted(start: Any, goals: list[Any], ident: tuple[Any, Any, Any]) -> Iterable[Any]:
        starts.append(Start(start.fork(), goals, ident[0], ident[2]))
        return scripts(start, goals, ident)

    engine.policies = noted
    try:
        engine.make(service, str(folder), seed, n_sessions)
    finally:
        engine.policies = scripts
    ids = [json.loads(line)["session_id"] for line in (folder / "data" / name / "truth" / "sessions.jsonl").open()]
    return dict(zip(ids, starts, strict=True))


class Real:
    """An episode at a real service, from how a session began."""

    def __init__(self, engine: ModuleType, start: Start, service: Any = None) -> None:
        """Begin. `service`: the one that is called, if others call it too; else a fork of the service at the start."""
        self._engine, self._start = engine, start
        self._service = start.service.fork() if service is None else service
        self._steps: list[Step] = []

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool of the service and return its answer."""
        content, _ = self._service.call(tool, arguments)
        self.note_call(tool, arguments, str(content))
        return str(content)

    def note_call(self, tool: str, arguments: dict[str, Any], content: str) -> None:
        """Note a call that was made elsewhere."""
        self._steps.append({"tool": tool, "arguments": arguments, "result": content})

    def say(self, text: str) -> None:
        """Note what the agent says."""
        self._steps.append({"say": text})

    def verdict(self) -> list[str]:
        """Return what went wrong; an empty list is a success."""
        start, words = self._start, [step["say"] for step in self._steps if "say" in step]
        done = {number: True for number, goal in enumerate(start.goals) if self._claims(goal, words)}
        return list(self._engine.judge(
            start.service, start.verify, start.goals, self._service, " ".join(words), self._is_verified(), bool(start.question),
            done, self._refused(words)))

    def is_founded(self) -> bool:
        """Return whether all calls were made that the service's own agents make before they decline what is to be declined."""
        goals = [goal for goal in self._start.goals if goal.refuse]
        made = [(step["tool"], step["arguments"]) for step in self._steps if "tool" in step]
        needed = [*(self._start.verify if goals else ()), *(call for goal in goals for call in goal.look)]
        return all((tool, arguments) in made for tool, arguments in needed if "$token" not in arguments.values())

    def _refused(self, words: list[str]) -> dict[int, bool]:
        """Return the goals that the agent refuses: those whose reason it gives, and for each refusal with another reason, or
        none, the next one that is to be refused; where none is, all."""
        goals, refusals = self._start.goals, [text for text in words if self._is_refusal(text)]
        to_refuse = [number for number, goal in enumerate(goals) if goal.refuse]
        refused = {number for number in to_refuse for text in words if goals[number].refuse.lower() in text.lower()}
        reasons = [goals[number].refuse.lower() for number in to_refuse]
        n_others = sum(not any(reason in text.lower() for reason in reasons) for text in refusals)
        others = [number for number in to_refuse if number not in refused][:n_others]
        return dict.fromkeys([*refused, *others] if to_refuse else range(len(goals) if refusals else 0), True)

    def _is_refusal(self, text: str) -> bool:
        return any(part in text for part in (GAVE_UP, CANNOT, *(each.split("{0}")[0] for each in self._engine.REFUSALS)))

    def _claims(self, goal: Any, words: list[str]) -> bool:
        if not goal.refuse:
            return bool(goal.kind.endswith("taken back") and any(DONE.search(text) for text in words))
        done = goal.done.split("{")[0]
        is_others = any(done and each.done.startswith(done) for each in self._start.goals if not each.refuse)
        return any(DONE.search(text) or (done and not is_others and done in text) for text in words)

    def _is_verified(self) -> bool:
        """Whether the customer was asked, and all calls that verify were made, before the first write call."""
        start, before = self._start, list(self._before_first_write())
        asked = any(start.question and start.question in step.get("say", "") for step in before)
        token = "tok_none"
        made = [(step["tool"], step["arguments"]) for step in before if "tool" in step]
        for tool, arguments in start.verify:
            wanted = {name: token if value == "$token" else value for name, value in arguments.items()}
            if (tool, wanted) not in made:
                return False
            result = next(step["result"] for step in before if (step.get("tool"), step.get("arguments")) == (tool, wanted))
            token = next(iter(TOKEN.findall(result)), token)
        return asked

    def _before_first_write(self) -> Iterator[Step]:
        for step in self._steps:
            tool = self._service.tools.get(step.get("tool"))
            if tool is not None and tool.effect != "read" and step["tool"] not in {name for name, _ in self._start.verify}:
                return
            yield step


def agreement(engine: ModuleType, starts: dict[str, Start], policies: Iterable[dict[str, Any]]) -> tuple[int, int, list[str]]:
    """Return how many of the engine's scripts have the engine's own verdict here, of how many, and what the others are."""
    n_right, n_all, others = 0, 0, []
    for row in policies:
        real = Real(engine, starts[row["session_id"]])
        for step in row["steps"]:
            if "say" in step:
                real.say(step["say"])
            else:
                real.call(step["tool"], step["arguments"])
        is_right = (not real.verdict()) == row["truth"]
        n_right, n_all = n_right + is_right, n_all + 1
        if not is_right:
            others.append(f"{row['policy']}: {real.verdict()} for {row['wrong']}")
    return n_right, n_all, others
