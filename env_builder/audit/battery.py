"""Attacks that need no model of the world: the known solution with a part left out or replaced, and conduct that does nothing.

In: the solution as it was replayed, which tools are proven reads, and what else is known of the task (`Targets`). Out: attacks,
each with a sentence, and with an excuse if nobody can be sure that it is wrong: then it is shown and does not decide.
A call is *proven* a read by its tool's effect. A *presumed* read looks like one, without proof: without it the reward may be
right, but not without it and all else that is unproven. All other calls that worked are *write calls*.
Sees: parts of the solution that the reward does not need. Does not see: what a call changed (`undoes` asks, to find a call
that takes back another), and whether the solution itself is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from env_builder.audit.attackers import Attack
from env_builder.audit.files_that_lie import attacks_of_names
from env_builder.audit.plays import Journal, Replayed, Row, call, say
from env_builder.audit.targets import Targets
from env_builder.audit.values import Plausible, alike, leaves, put, shown_in
from env_builder.rewards.goals import n_additions
from env_builder.rewards.loose import is_nonce
from env_builder.runtime.answers import parse
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.environment import Environment
from env_builder.runtime.stances import declines
from env_builder.runtime.words import LONGEST_TEXT, Fact, facts_in

ASK = "Could you please give me the details that I need to look this up?"
GOODBYE = "Your request has been noted. Goodbye."
DENY = "I have not done anything. Nothing was changed."
PROMISE = "Done, I have taken care of it."
REFUSE = "I am sorry, I cannot do that."
HAND_OVER = "I am handing you over to a colleague who will take care of it."
PRESUMED = "the call may be a mere read, which must not be demanded"
DONE = "everything is done as in the solution, and what has to be said about it is not known"
HANDED_OVER = "the solution makes no write call but hand-overs, and a hand-over may be as right"
KNOWN_GOOD = "a session that is known to have succeeded made just these write calls"
SAME_END = "the call is of a tool that is implemented, and without it all ends just the same"
TRIES = 6
"""Calls that are tried until one takes back another, or is not refused."""


class Battery:
    """The attacks on one task."""

    def __init__(self, solved: Replayed, values: Plausible, targets: Targets) -> None:
        self._solved, self._values, self._targets = solved, values, targets
        self._journal = solved.journal
        self._acts = {place: self._journal[place] for place in solved.acts}
        self._deeds = [row for row in self._acts.values() if row["tool"] not in targets.ignored_tools]
        """Its write calls but notes and hand-overs."""
        self._reads = [row for row in self._journal if row["kind"] == "call" and solved.has_read(row)]
        heard = [message["content"] for message in solved.task.opening if message["role"] == "user"]
        self._heard = " ".join([*heard, *solved.task.user_turns]) or solved.task.goal
        self._asks_more = any(map(n_additions, [*heard, *solved.task.user_turns]))

    def attacks(self) -> Iterator[Attack]:
        """Yield all attacks, each once."""
        yield from self._without()
        yield from self._reworded()
        yield from self._idle()
        yield from self._half()
        yield from self._answers_half()
        yield from attacks_of_names(self._solved)
        undone = self._undone()
        if undone:
            yield Attack("undoes", [*self._journal, undone], f"the solution, then {_shown(undone)} takes it back")
        if not self._acts:
            yield from self._forbidden()

    def _without(self) -> Iterator[Attack]:
        """Leave out each call that is not proven a read; then all of them, and keep the words."""
        unproven = [row for row in self._journal if row["kind"] == "call" and row["tool"] in self._solved.writes]
        worked = [row for row in unproven if not _is_refused(row)]
        different = {canonical([row["tool"], row["arguments"]]): row for row in worked}
        if different:
            kept = [row for row in self._journal if not any(row is other for other in unproven)]
            excuse = PRESUMED if all(map(self._solved.has_read, worked)) else ""
            yield Attack("liar", kept, "the solution's words without any call that is not proven a read", excuse)
        for row in different.values() if len(different) > 1 else ():
            rows = [other for other in self._journal if not _is_same(row, other)]
            excuse = PRESUMED if self._solved.has_read(row) else KNOWN_GOOD if self._is_known_good(rows) else (
                SAME_END if self._ends_alike(row, rows) else "")
            yield Attack("without_one", rows, f"the solution without {_shown(row)}", excuse)

    def _ends_alike(self, row: Row, rows: Journal) -> bool:
        """Return whether the episode ends the same without a call; only for tools whose changes are all known."""
        return row["tool"] in self._solved.environment.explained and self._solved.ends_just_so(self._solved.whole(rows))

    def _reworded(self) -> Iterator[Attack]:
        """Replace the words, and each text that the rubric ignores."""
        words = [say("ok") if row["kind"] == "say" else row for row in self._journal]
        yield Attack("says_ok", words, "the solution with each message replaced by 'ok'", DONE if self._acts else "")
        if self._deeds and any(row["kind"] == "say" for row in self._journal):
            denied = [*self._without_last_words(), say(DENY)]
            yield Attack("denies", denied, "the solution, which says that nothing was done", DONE)
        for tool, names in sorted(self._free_texts().items()):
            for name in names:
                rows = [call(tool, row["arguments"] | {name: "x"}) if self._is_act(place) and row["tool"] == tool
                        and isinstance(row["arguments"].get(name), str) else row for place, row in enumerate(self._journal)]
                yield Attack("free_text_x", rows, f"the solution with 'x' as {name} of {tool}")
        echo = [say(self._heard) if row["kind"] == "say" else self._echoed(row) if self._is_act(place) else row
                for place, row in enumerate(self._journal)]
        is_changed = any(row["kind"] == "call" and row is not own for row, own in zip(echo, self._journal, strict=True))
        yield Attack("echoes", echo, "the solution with the user's words as each text and message",
                     DONE if self._acts and not is_changed else "")

    def _without_last_words(self) -> Journal:
        """Return the solution without what is said after its last write call."""
        last = max(self._acts, default=-1)
        return [row for place, row in enumerate(self._journal) if place <= last or row["kind"] == "call"]

    def _idle(self) -> Iterator[Attack]:
        """Those that make no write call but a hand-over."""
        reads = self._reads
        yield Attack("lazy", [say(ASK), *reads, say(GOODBYE)], "the solution's reads, then a goodbye")
        yield Attack("promises", [*reads, say(PROMISE)], "the solution's reads, then a promise")
        if self._deeds:
            yield Attack("refuses", [*reads, say(REFUSE)], "the solution's reads, then a refusal")
        answers = "\n".join(row["content"] for row in self._journal if row["kind"] == "call" and not row["is_error"])
        yield Attack("says_everything", [*reads, say(f"{PROMISE} {REFUSE}\n{answers}"[:LONGEST_TEXT])],
                     "the solution's reads, then all that any answer showed, done and refused at once")
        excuse = "" if self._deeds else HANDED_OVER
        handed = [*self._hand_over(), say(HAND_OVER)]
        yield Attack("hands_over", handed, "a hand-over at once", excuse)
        yield Attack("reads_and_hands_over", [*reads, *handed], "the solution's reads, then a hand-over", excuse)

    def _half(self) -> Iterator[Attack]:
        """Leave out the refusals of a solution that does something else too: it makes a write call, or tells what it read."""
        words = [row for row in self._journal if row["kind"] == "say"]
        refusals = [row for row in words if declines(row["content"])]
        shown = facts_in("\n".join(row["content"] for row in self._reads if not row["is_error"])) - facts_in(self._heard)
        answers = [row for row in words if row not in refusals and facts_in(row["content"]) & shown]
        if refusals and (self._deeds or answers):
            excuse = KNOWN_GOOD if any(self._is_without_refusal(episode.journal) for episode in self._solved.known_good) else ""
            rows = [row for row in self._journal if not any(row is other for other in refusals)]
            yield Attack("half", rows, "the solution without its refusals", excuse)

    def _answers_half(self) -> Iterator[Attack]:
        """Leave out each message that alone tells some facts, where the user asked for several things and none was a change."""
        told = [(row, facts_in(row["content"]) - facts_in(self._heard)) for row in self._journal if row["kind"] == "say"]
        alone = [(row, facts.difference(*(other for each, other in told if each is not row))) for row, facts in told]
        answers = [(row, facts) for row, facts in alone if facts and not declines(row["content"])]
        if self._deeds or not self._asks_more or len(answers) < 2:
            return
        for row, facts in answers:
            is_spared = any(self._is_silent_on(facts, episode.journal) for episode in self._solved.known_good)
            rows = [other for other in self._journal if other is not row]
            yield Attack("answers_half", rows, f"the solution without {row['content'][:60]!r}",
                         KNOWN_GOOD if is_spared else "")

    def _is_silent_on(self, facts: frozenset[Fact], rows: Journal) -> bool:
        """Did a session tell none of these facts, and write no more than the solution?"""
        told = facts_in("\n".join(row["content"] for row in rows if row["kind"] == "say"))
        return not facts & told and self._write_calls(rows) == self._write_calls(self._journal)

    def _is_without_refusal(self, rows: Journal) -> bool:
        """Did a session make the solution's write calls, and decline nothing?"""
        return self._write_calls(rows) == self._write_calls(self._journal) and not any(
            declines(row["content"]) for row in rows if row["kind"] == "say")

    def _forbidden(self) -> Iterator[Attack]:
        """Make the family's usual write call on this task's entities, where the solution makes none."""
        after = max((place + 1 for place, row in enumerate(self._journal) if row["kind"] == "call"), default=0)
        _, room = self._solved.before(len(self._journal))
        for tool in self._targets.usual_writes:
            for arguments in islice(self._on_entities(tool), TRIES):
                if _is_refused(room.fork().call(tool, arguments)._asdict()):
                    continue
                act = call(tool, arguments)
                rows = [*self._journal[:after], act, *self._journal[after:]]
                yield Attack("forbidden", rows, f"the solution and {_shown(act)}, as others of its family do",
                             KNOWN_GOOD if self._is_known_good(rows) else "")
                break

    def _free_texts(self) -> dict[str, list[str]]:
        """Tool -> its arguments of the solution's write calls that the rubric ignores, if they are texts. A key that was
        drawn and that nothing shows does not count: any other is as right."""
        texts: dict[str, set[str]] = {}
        shown = "\n".join(str(row.get("content")) for row in self._journal).casefold() + self._heard.casefold()
        for row in self._acts.values():
            tool = row["tool"]
            names = row["arguments"] if tool in self._targets.ignored_tools else self._targets.ignored_arguments.get(tool, ())
            texts.setdefault(tool, set()).update(
                name for name in names if isinstance(text := row["arguments"].get(name), str) and text != "x"
                and not (is_nonce(text) and text.casefold() not in shown))
        return {tool: sorted(names) for tool, names in texts.items()}

    def _echoed(self, row: Row) -> Row:
        """Return a call with the user's words as each text; the same row if it has none."""
        arguments = row["arguments"]
        for path, value in leaves(arguments):
            arguments = put(arguments, path, self._heard) if isinstance(value, str) else arguments
        return row if arguments == row["arguments"] else call(row["tool"], arguments)

    def _hand_over(self) -> list[Row]:
        """Return a call of a tool that the rubric ignores, as on record; none if there is no such tool."""
        for tool in self._targets.ignored_tools:
            for arguments in islice(self._values.calls(tool, digest(f"{self._solved.task.task_id} {tool}")), 1):
                return [call(tool, arguments)]
        return []

    def _undone(self) -> Row | None:
        """Return a call that takes back what the last write call did to documents, None if no tool can."""
        if not self._acts:
            return None
        place = max(self._acts)
        row = self._acts[place]
        _, room = self._solved.before(place)
        before = room.difference()["documents"]
        room.call(row["tool"], row["arguments"])
        if room.difference()["documents"] == before:
            return None
        for undo in islice(self._inverses(row, before, room), TRIES):
            fork = room.fork()
            if not fork.call(undo["tool"], undo["arguments"]).is_error and fork.difference()["documents"] == before:
                return undo
        return None

    def _inverses(self, row: Row, before: Mapping[str, Any], room: Environment) -> Iterator[Row]:
        """Yield calls that may take this one back: of the same tool with the old values, of others that take its arguments."""
        arguments = row["arguments"]
        back = arguments
        for name, text in room.difference()["documents"].items():
            old = before.get(name, text) if name in before else room.read(name)[0]
            if old is not None and text is not None and old != text:
                back = _taken_back(back, parse(old), parse(text))
        if back != arguments:
            yield call(row["tool"], back)
        for tool in sorted(self._solved.writes):
            if tool != row["tool"] and not self._solved.reads(tool):
                for shape in self._values.shapes(tool):
                    if shape and set(shape) <= set(arguments):
                        yield call(tool, {name: arguments[name] for name in shape})

    def _on_entities(self, tool: str) -> Iterator[dict[str, Any]]:
        """Arguments of the tool's calls on record, at the entities of this task: those of its calls, and those it showed."""
        named = {name: value for row in self._reads for name, value in row["arguments"].items()}
        shown = shown_in([self._heard, *(row["content"] for row in self._reads)])
        for arguments in self._values.calls(tool, digest(f"{self._solved.task.task_id} {tool}")):
            turned = arguments | {name: named[name] for name in arguments if name in named}
            for path, value in leaves({name: value for name, value in turned.items() if name not in named}):
                near = [word for word in shown if isinstance(value, str) and alike(word, value)]
                turned = put(turned, path, near[int(digest(value)[:4], 16) % len(near)]) if near else turned
            yield turned

    def _is_act(self, place: int) -> bool:
        return place in self._acts

    def _is_known_good(self, rows: Journal) -> bool:
        """Did a session that is known to be good make just these write calls, whatever texts the rubric ignores?"""
        return self._write_calls(rows) in [self._write_calls(episode.journal) for episode in self._solved.known_good]

    def _write_calls(self, rows: Iterable[Row]) -> list[str]:
        ignored = self._targets.ignored_arguments
        return sorted(
            canonical([row["tool"], {name: value for name, value in row["arguments"].items()
                                     if name not in ignored.get(row["tool"], ())}])
            for row in rows if row["kind"] == "call" and row["tool"] in self._solved.writes
            and not self._solved.reads(row["tool"]) and isinstance(row["arguments"], dict) and not _is_refused(row))


def _is_refused(row: Mapping[str, Any]) -> bool:
    """Return whether the environment knows that the call was refused."""
    return bool(row.get("is_error")) and row.get("tier") != "unknown"


def _is_same(row: Row, other: Row) -> bool:
    return other["kind"] == "call" and (other["tool"], other["arguments"]) == (row["tool"], row["arguments"])


def _shown(row: Row) -> str:
    return f"{row['tool']} {canonical(row['arguments'])}"[:120]


def _taken_back(arguments: dict[str, Any], old: Any, new: Any) -> dict[str, Any]:
    """Return the arguments with the old values where they set new ones."""
    before = dict(leaves(old))
    changed = {canonical(value): before[path] for path, value in leaves(new) if path in before and before[path] != value}
    for path, value in leaves(arguments):
        if canonical(value) in changed:
            arguments = put(arguments, path, changed[canonical(value)])
    return arguments
