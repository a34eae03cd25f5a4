"""What two good sessions never write the same way: free text, and details that everybody makes up.

In: turns, which sessions belong to one task, which tools read. Out: a `FreeText` a service.
Sees: how long an argument's values are; whether they stood in what users said or tools answered before; whether sessions of one
task agree on them. An argument counts as free where its values are long on average, or where most are the agent's own and the
sessions of one task mostly disagree on them. It *quotes* where its values are some words of the user: another text that holds
the same words is as right. Does not see: free text that no argument gives, numbers (a number that is worked out is the
agent's own too, and right or wrong), and a service whose tasks were all done once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from env_builder.runtime.clock import read as read_instant
from env_builder.world.calls import LoggedCall, ReadCalls, calls_of, read_call
from env_builder.world.effects import CHANGING_STATEMENTS, tells_of_a_change
from env_builder.world.statements import Argument, first_word, statements

FREE_TEXT_WORDS = 8
"""Mean number of words from which an argument's values count as free text: longer than a name or an address."""
OWN = 0.5
"""Share of the values that neither user nor tools gave before, from which an argument is the agent's to word."""
AGREE = 0.5
"""Mean share of pairs of sessions of one task that give the same value, below which they disagree."""
FEWEST_TASKS = 3
"""Tasks that were done more than once, from which sessions can be said to disagree."""

FEWEST_QUOTES, QUOTED, LONG_WORD = 5, 0.8, 3
"""Values of an argument, the share of them that quote the user, and the letters of a word that counts, from which the argument
says what the user said."""
FEWEST_NONCES, NONCES, SHORTEST_NONCE = 5, 0.9, 8
"""Calls with an argument, the share of them with a word of their own, and its characters, from which it takes nonces."""
_WORD = re.compile(r"[^\W\d_]+")
_SEGMENT = re.compile(r"[^\s/:?&=#,;|\"'{}\[\]()]+")
"""A part of a text that may name something by itself: of an address, a path, a key of several names."""

Difference = dict[str, Any]


class FreeText(NamedTuple):
    """Where a service's tools take free text: what two good sessions never write the same way."""

    ignored_arguments: dict[str, list[str]]
    """Tool -> arguments that are free text."""
    ignored_tools: list[str]
    """Tools that take nothing but free text: notes and hand-overs."""
    looks: frozenset[str] = frozenset()
    """Tools that seem to read, also by name or by their place: a further look does no harm, as far as anybody knows."""
    presumed: frozenset[str] = frozenset()
    """These, and tools that are simulated as reads but may write, unless their names tell of a change."""

    quoted: Mapping[str, list[str]] = {}
    """Tool -> arguments, ignored too, that say in other words what the user said: what they quote is a check of its own."""
    statements: frozenset[Argument] = frozenset()
    """Arguments that take statements of a formal language."""

    def parameters(self, differences: Iterable[Difference]) -> dict[str, Any]:
        """Return the part that speaks of the tools in `differences`, as parameters of a check."""
        tools = {tool for difference in differences for tool, _ in difference.get("write_calls", ())}
        ignored_tools = sorted({*self.ignored_tools, *self.looks})
        ignored_arguments = {
            tool: names for tool, names in self.ignored_arguments.items() if tool in tools and tool not in ignored_tools
        }
        parts: dict[str, Any] = {"ignored_arguments": ignored_arguments, "ignored_tools": ignored_tools}
        return {name: part for name, part in parts.items() if part}


def takes_no_change(calls: Iterable[LoggedCall], free: FreeText) -> bool:
    """Return whether all calls of a session take statements of which none begins with a change."""
    own = [[value for name, value in call.arguments.items() if (call.tool, name) in free.statements]
           for call in calls if not call.failed]
    return bool(own) and all(own) and not any(
        first_word(str(value)) in CHANGING_STATEMENTS for values in own for value in values)


def free_text(
    turns: pl.DataFrame, tasks: pl.DataFrame, effects: pl.DataFrame, read: ReadCalls = read_call
) -> dict[str, FreeText]:
    """Where each service's tools take free text, by service."""
    task_of = dict(tasks.select("task_id", "session_ids").explode("session_ids").select("session_ids", "task_id").iter_rows())
    reads = tools_by_service(effects.filter(pl.col("counted") == "read"))
    unproven = effects.filter(pl.col("effect") != "read")
    looks, presumed = (tools_by_service(unproven.filter(pl.col(name) == "read")) for name in ("counted", "presumed"))
    by_service: dict[str, FreeText] = {}
    for (name,), own in sorted(turns.group_by("service")):
        service, calls = str(name), calls_of(own.filter(pl.col("kind") == "call"), read)
        lengths: dict[Argument, list[int]] = {}
        for call in calls:
            for argument, value in call.arguments.items():
                words = len(value.split()) if isinstance(value, str) else 0
                lengths.setdefault((call.tool, argument), []).append(words)
        formal = frozenset(statements(calls))
        free = {where for where, words in lengths.items() if sum(words) >= FREE_TEXT_WORDS * len(words)} - formal
        ignored_tools = {tool for tool, _ in free if not any(t == tool and (t, n) not in free for t, n in lengths)}
        acts = [call for call in calls if call.tool not in reads.get(service, ()) and not call.failed]
        ignored = (free | _made_up(acts, own, task_of) | _nonces(acts, own)) - formal
        quoted = _quoted(acts, own) - ignored - formal
        harmless = looks.get(service, frozenset())
        seeming = harmless | {tool for tool in presumed.get(service, ()) if not tells_of_a_change(tool, "")}
        by_service[service] = FreeText(
            _by_tool(ignored | quoted), sorted(ignored_tools), harmless, seeming, _by_tool(quoted), formal)
    return by_service


def _by_tool(arguments: Iterable[Argument]) -> dict[str, list[str]]:
    by_tool: dict[str, list[str]] = {}
    for tool, argument in sorted(arguments):
        by_tool.setdefault(tool, []).append(argument)
    return by_tool


def _quoted(acts: list[LoggedCall], turns: pl.DataFrame) -> set[Argument]:
    """Return the arguments that nearly always take several words, said by the user and shown by no answer; two words with a
    number name something."""
    spoken, shown = _texts_before(turns, pl.col("role") == "user"), _texts_before(turns, pl.col("kind") == "call")
    quotes: dict[Argument, list[bool]] = {}
    for call in acts:
        for argument, value in call.arguments.items():
            plain = str(value).casefold()
            words = [word for word in _WORD.findall(plain) if len(word) >= LONG_WORD]
            fewest = 3 if any(map(str.isdigit, plain)) else 1
            is_quote = isinstance(value, str) and len(words) >= fewest and len(plain.split()) > 1
            if is_quote:
                user_words = " ".join(text for at, text in spoken.get(call.session_id, ()) if at < call.position)
                is_quote = sum(word in user_words for word in words) >= OWN * len(words) and not any(
                    plain in text for at, text in shown.get(call.session_id, ()) if at < call.position)
            quotes.setdefault((call.tool, argument), []).append(is_quote)
    return {where for where, own in quotes.items() if len(own) >= FEWEST_QUOTES and sum(own) >= QUOTED * len(own)}


def _texts_before(turns: pl.DataFrame, which: pl.Expr) -> dict[str, list[tuple[int, str]]]:
    """Return (position, text in small letters) of these turns by session, in order."""
    texts: dict[str, list[tuple[int, str]]] = {}
    rows = turns.filter(which.fill_null(False) & pl.col("content").is_not_null()).sort("session_id", "position")
    for session_id, position, text in rows.select("session_id", "position", "content").iter_rows():
        texts.setdefault(session_id, []).append((position, text.casefold()))
    return texts


def tools_by_service(effects: pl.DataFrame) -> dict[str, frozenset[str]]:
    """Service -> its tools."""
    return {service: frozenset(tools) for service, tools in effects.group_by("service").agg("tool").iter_rows()}


def _made_up(acts: list[LoggedCall], turns: pl.DataFrame, task_of: dict[str, str]) -> set[Argument]:
    """Arguments whose values are mostly the agent's own, and mostly others in each session of a task."""
    n_own: dict[Argument, list[bool]] = {}
    by_task: dict[Argument, dict[str, dict[str, str]]] = {}
    # what was said and answered in a session: all but the agent's own words
    before = _texts_before(turns, (pl.col("kind") == "call") | (pl.col("role") != "assistant").fill_null(True))
    for call in acts:
        for argument, value in call.arguments.items():
            if isinstance(value, str) and value:
                where = (call.tool, argument)
                plain = value.casefold()
                texts = [text for at, text in before.get(call.session_id, ()) if at < call.position]
                given = any(plain in text for text in texts) or names_shown(plain, " ".join(texts))
                n_own.setdefault(where, []).append(not given)
                task = task_of.get(call.session_id, call.session_id)
                by_task.setdefault(where, {}).setdefault(task, {})[call.session_id] = value
    return {where for where, own in n_own.items() if sum(own) >= OWN * len(own) and _disagree(by_task[where])}


def is_nonce(text: str) -> bool:
    """Return whether a text may be a key that somebody drew: one long word with a digit that is no instant, as an instant is
    worked out and right or wrong."""
    return len(text) >= SHORTEST_NONCE and len(text.split()) == 1 and any(map(str.isdigit, text)) and read_instant(text) is None


def names_shown(value: str, texts: str) -> bool:
    """Return whether a value of several names without a space (a path) has one with a digit that stands in the texts alone."""
    names = [name for name in _SEGMENT.findall(value) if any(map(str.isdigit, name))] if len(value.split()) == 1 else []
    return bool(names) and value not in names and not set(names).isdisjoint(
        name.strip(".!") for name in _SEGMENT.findall(texts))


def _nonces(acts: list[LoggedCall], turns: pl.DataFrame) -> set[Argument]:
    """Return the arguments that nearly always take one word of its own, which is in no message and in no answer of its session:
    keys against repeats and the like, no instants."""
    texts = _texts_before(turns, pl.col("kind").is_in(["message", "call"]))
    shown = {session: "\n".join(text for _, text in own) for session, own in texts.items()}
    values: dict[Argument, list[tuple[str, bool]]] = {}
    for call in acts:
        for argument, value in call.arguments.items():
            text = value if isinstance(value, str) else ""
            plain, texts_of = text.casefold(), shown.get(call.session_id, "")
            is_own = is_nonce(text) and plain not in texts_of and not names_shown(plain, texts_of)
            values.setdefault((call.tool, argument), []).append((plain, is_own))
    return {where for where, own in values.items() if len(own) >= FEWEST_NONCES
            and sum(is_own for _, is_own in own) >= NONCES * len(own) and len({text for text, _ in own}) >= NONCES * len(own)}


def _disagree(by_task: dict[str, dict[str, str]]) -> bool:
    """Do sessions of one task mostly give different values? Each task counts the same, and so does each session."""
    shares = []
    for values in by_task.values():
        n = len(values)
        alike = sum(times * (times - 1) for times in Counter(values.values()).values())
        shares += [alike / (n * (n - 1))] if n > 1 else []
    return len(shares) >= FEWEST_TASKS and sum(shares) < AGREE * len(shares)
