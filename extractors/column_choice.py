"""Choose which column of a file is which of our fields: by name and shape, each column once, the surest first.

A column gets points for the words of its name (`WORDS`) and the shape of its values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from extractors.columns import RecordColumn
from extractors.formats.mapped_words import kind_of, role_of

_WORK = ("call", "result")
_SAID_AT_LEAST = 2.0
_ERROR_WORDS = frozenset(("error", "err", "exception", "failure", "fault"))
_TOKENS = frozenset(("token", "tokens"))


WORDS = {name: tuple(words.split()) for name, words in {
    "session_id": "session conversation conv chat thread dialog dialogue ticket case visit interaction correlation sid cid "
                  "convo room channel episode trace run journey talk discussion encounter",
    "time": "time timestamp ts at date datetime when created sent occurred started start began begin received logged instant "
            "posted opened moment epoch clock",
    "ended": "end ended finish finished completed closed stop stopped done",
    "identity": "user customer client member account caller visitor person employee uid email contact requester operator actor "
                "principal subscriber owner who by clerk buyer shopper guest patron username login mail phone",
    "position": "seq sequence index idx turn position order ordinal step number pos",
    "unique_id": "id uuid guid key ref",
    "service": "service app application bot product deployment skill assistant system component",
    "role": "role speaker sender from author who party direction participant side origin source actor by type sent voice is",
    "kind": "kind type event action category what step entry op",
    "content": "content text message body utterance msg said line reply words transcript says speech txt prompt response "
               "answer say",
    "tool": "tool function fn func action operation command procedure skill plugin api name capability method called invoked",
    "arguments": "arguments args arg params parameters param input inputs kwargs payload given data in parameterss request "
                 "options query with passed",
    "result": "result results output outputs response returned return answer reply out observation outcome got gave returns",
    "call_id": "call invocation correlation id ref request tooluse use span",
    "error": "error err failed failure exception status outcome fault problem errored iserror state verdict",
    "fine": "ok success succeeded successful passed fine",
    "latency": "latency duration elapsed took ms millis milliseconds seconds secs runtime time dur",
    "model": "model llm engine",
    "input_tokens": "input prompt in",
    "output_tokens": "output completion out",
    "status": "status code rc answered statuscode result outcome",
    "request_id": "request req rid id correlation trace",
    "query": "query params search qs querystring",
    "body": "body payload request data sent input given",
    "response": "response reply answer answered returned output result got received",
    "rating": "rating score stars thumb thumbs csat nps satisfaction helpful verdict vote grade feedback liked",
    "event": "event activity action name what step operation type happened",
    "payload": "payload properties data attributes details context params extra fields",
    "user_says": "question prompt query user customer human ask asked request input instruction utterance",
    "assistant_says": "answer response completion reply assistant bot output ai agent generation model",
    "system_says": "system instructions instruction preamble",
}.items()}
"""Words that name our fields."""


def named(name: str, column: RecordColumn) -> float:
    """How much a column's name says that it is this field: 4 for that very word, 3 for its last word, less for another one."""
    words = WORDS[name]
    if column.words and column.words[-1] in words:
        return 4.0 if len(column.words) == 1 else 3.0
    if any(word in words for word in column.words):
        return 2.5 if name in ("session_id", "identity", "call_id") else 2.0
    if any(word in words for word in column.outer_words[-1:]):
        return 2.0 if name in ("session_id", "identity") else 1.0
    return 0.0


_TOOL_WORDS = frozenset(("tool", "function", "call", "called", "invoke", "invoked", "action", "skill", "plugin", "api"))


def _tells_of_tools(word: str) -> bool:
    return not _TOOL_WORDS.isdisjoint(re.split(r"[^a-z]+", word.lower()))


def role_free(column: RecordColumn) -> bool:
    """Whether the values are no words for roles."""
    return column.role_share < 0.5


def session_shape(column: RecordColumn) -> float:
    """Points of a column as the id of sessions."""
    points = 1.0 if column.words[-1:] and column.words[-1] in ("id", "ref", "key", "no", "number", "uuid", "code") else 0.0
    if column.is_outer:   # what holds a list of messages alone is named by its id
        return points + 1.2 + (2.0 if points and len(column.words) == 1 and column.path.count(".") == 1 else 0.0)
    if len(column.values) < 4:
        return points
    if not column.repeats:
        return points - 3.0
    return points + (1.0 if len(column.counts) > 1 else 0.0)


def says_end(column: RecordColumn) -> bool:
    """Whether the name speaks of an end."""
    return bool(set(column.words) & set(WORDS["ended"]))


def in_seconds(column: RecordColumn) -> bool:
    """Whether a duration is in seconds, by its name, else by its size."""
    words = set(column.words)
    if words & {"ms", "millis", "milliseconds"}:
        return False
    if words & {"s", "sec", "secs", "seconds"}:
        return True
    return column.mean < 100 and column.share(lambda each: "." in str(each)) > 0.5


class ColumnChoice:
    """Columns of which some are taken."""

    def __init__(self, columns: list[RecordColumn]) -> None:
        self.columns = columns
        self.taken: set[str] = set()
        self._work: set[int] | None = None
        """Items that tell of tools; None: not known yet."""

    def take(self, *columns: RecordColumn) -> None:
        self.taken |= {column.path for column in columns}

    def free(self) -> Iterable[RecordColumn]:
        return (column for column in self.columns if column.path not in self.taken)

    def best(self, name: str, test: Callable[[RecordColumn], bool], least: float = 1.0,
             shape: Callable[[RecordColumn], float] = lambda column: 0.0, inner: bool = True) -> RecordColumn | None:
        """Take the free column that passes and whose name, with the points of `shape`, says most; at least `least`."""
        scored = [(named(name, column) + shape(column) - 0.1 * column.depth, -number, column)
                  for number, column in enumerate(self.free())
                  if not (inner and column.is_outer) and test(column)
                  and not any(path.startswith(f"{column.path}.") for path in self.taken)]
        points, _, chosen = max(scored, key=lambda each: each[:2], default=(least, 0, None))
        if chosen is None or points < least:
            return None
        self.take(chosen)
        return chosen

    def chosen(self, name: str) -> RecordColumn | None:
        return self.best(name, **_RULES[name])

    def path(self, name: str) -> str | None:
        return None if (column := self.chosen(name)) is None else column.path

    def position(self, session: str | None) -> str | None:
        """Path of the place in the session: whole numbers, none twice in one."""
        sessions = next((column.by_item for column in self.columns if column.path == session), {})

        def could(column: RecordColumn) -> bool:
            if column.presence < 1 or column.share(lambda each: str(each).isdecimal()) < 1:
                return False
            pairs = {(str(sessions.get(number)), str(each)) for number, each in column.by_item.items()}
            return len(pairs) == len(column.values)

        return None if (column := self.best("position", could, least=3.0)) is None else column.path

    def kind(self) -> RecordColumn | None:
        def could(column: RecordColumn) -> bool:
            if not column.is_text or column.presence < 0.8 or not 2 <= len(column.counts) <= 25 or not column.repeats:
                return False
            kinds = {kind_of(word, {}) for word in column.counts}
            return not kinds.isdisjoint(_WORK) or (column.kind_share >= 0.5 and len(kinds) > 1) or any(
                map(_tells_of_tools, column.counts))
        chosen = self.best("kind", could, least=1.0)
        if chosen is not None:
            kinds = {number: kind_of(str(word), {}) for number, word in chosen.by_item.items()}
            self._work = {number for number, word in chosen.by_item.items() if kinds[number] in _WORK or (
                kinds[number] is None and _tells_of_tools(str(word)))}
        return chosen

    def is_beside(self, column: RecordColumn, items: set[int]) -> bool:
        """Whether it belongs to what tells of tools, which `items` do."""
        if self._work is None:
            return bool(set(column.by_item) & items)
        return len(self._work & set(column.by_item)) * 2 >= len(column.by_item)

    def role(self, kind: RecordColumn | None) -> RecordColumn | None:
        def could(column: RecordColumn) -> bool:
            if column.presence < 0.3 or len(column.counts) > 8 or column.mean_words > 2:
                return False
            if column.is_flag:
                return any(role_of(word, {}) in ("user", "assistant") for word in column.words)
            roles = {role_of(word, {}) for word in column.counts} - {None}
            if column.is_text and column.role_share >= 0.5 and (len(roles) > 1 or column.presence > 0.9):
                return True
            return column.is_text and len(column.counts) >= 2 and column.repeats and named("role", column) >= 2 and \
                not column.is_status and column.words[-1:] not in (("type",), ("source",), ("is",)) and column.is_names
        return self.best("role", could, shape=lambda column: 3 * column.role_share) or kind

    def content(self) -> str | None:
        """Paths of what is said: the longest text, and text of other names in records without it."""
        def could(column: RecordColumn) -> bool:
            if column.is_objects or column.is_time or column.is_flag or (self._work and self._work >= set(column.by_item)):
                return False
            return column.is_text or column.is_parts
        chosen = self.best("content", could, least=0.8, shape=lambda column: (
            min(column.mean_words / 4, 1.5) if column.mean_words >= 1.5 else -1.0))
        return None if chosen is None else self.with_others("content", chosen, could)

    def with_others(self, name: str, chosen: RecordColumn, could: Callable[[RecordColumn], bool]) -> str:
        """Return the path, and those of columns of that name that only records without it have."""
        paths, covered = [chosen.path], set(chosen.by_item)
        for column in list(self.free()):
            if not column.is_outer and could(column) and named(name, column) >= 2 and not covered & set(column.by_item):
                paths.append(column.path)
                covered |= set(column.by_item)
                self.take(column)
        return "|".join(paths)

    def says(self) -> dict[str, str]:
        """Return what each side says, where one record holds both."""
        fields: dict[str, str] = {}
        for role in ("user", "assistant", "system"):
            column = self.best(f"{role}_says", lambda each: each.is_text and each.mean_words >= _SAID_AT_LEAST and
                               not each.is_objects and not each.is_time, least=2.0)
            if column is not None:
                fields[role] = column.path
        if "user" in fields and "assistant" in fields:
            return {role: fields[role] for role in ("system", "user", "assistant") if role in fields}
        self.taken -= set(fields.values())
        return {}

    def tool(self, is_call: bool = False) -> RecordColumn | None:
        def could(column: RecordColumn) -> bool:
            if column.is_methods or column.is_targets or column.is_status or column.is_time or "model" in column.words:
                return False
            return column.is_names and role_free(column) and len(column.counts) <= max(3, 0.9 * len(column.values))
        return self.best("tool", could, least=1.0 if is_call else 2.0)

    def take_whole(self, name: str, chosen: RecordColumn, could: Callable[[RecordColumn], bool]) -> str:
        """Return what `with_others` does, and mark the columns inside these objects as used."""
        paths = self.with_others(name, chosen, could)
        for path in paths.split("|"):
            self.take_inside(path)
        return paths

    def take_inside(self, path: str) -> None:
        """Mark the columns inside objects that are taken as a whole as used."""
        self.taken |= {column.path for column in self.columns if column.path.startswith(f"{path}.")}

    def metrics(self) -> dict[str, str]:
        fields = {}
        latency = self.chosen("latency")
        if latency is not None:
            fields["latency_s" if in_seconds(latency) else "latency_ms"] = latency.path
        for name in ("model", "input_tokens", "output_tokens"):
            if (path := self.path(name)) is not None:
                fields[name] = path
        return fields

_RULES: dict[str, dict[str, Any]] = {
    "session_id": {"test": lambda column: column.is_scalar_id and column.presence >= 0.6 and role_free(column), "least": 2.5,
                   "inner": False, "shape": session_shape},
    "time": {"test": lambda column: column.is_time and column.presence >= 0.5 and not says_end(column), "inner": False,
             "shape": lambda column: 1.0 - column.is_outer},
    "unique_id": {"test": lambda column: column.is_scalar_id and column.presence == 1 and not column.repeats},
    "ended": {"test": lambda column: column.is_time and says_end(column)},
    "identity": {"test": lambda column: column.presence >= 0.3 and column.is_short and role_free(column)
                 and not column.is_time, "inner": False, "least": 2.0},
    "service": {"test": lambda column: column.presence >= 0.8 and column.is_names and column.repeats
                and len(column.counts) <= 10 and role_free(column), "inner": False, "least": 3.0},
    "rating": {"test": lambda column: column.is_number or column.is_flag or len(column.counts) <= 6, "least": 2.0},
    "event": {"test": lambda column: column.is_text and column.presence >= 0.9 and column.mean_words <= 5 and not column.is_time
              and role_free(column) and (column.repeats or len(column.values) < 5), "least": 2.0},
    "payload": {"test": lambda column: column.is_objects, "least": 2.0},
    "fine": {"test": lambda column: column.is_flag, "least": 2.0},
    "error": {"test": lambda column: column.is_status or column.is_flag or not _ERROR_WORDS.isdisjoint(column.words),
              "least": 2.0},
    "status": {"test": lambda column: column.is_http_status, "least": 0.0},
    "request_id": {"test": lambda column: column.is_scalar_id and len(column.counts) == len(column.values), "least": 2.0},
    "latency": {"test": lambda column: column.is_number and not column.is_time and column.mean < 1e8
                and not set(WORDS["latency"]).isdisjoint(column.words) and {*column.words} != {"time"}
                and _TOKENS.isdisjoint(column.words)},
    "model": {"test": lambda column: column.is_text and column.mean_words <= 2 and "model" in column.words[-2:]},
    "input_tokens": {"test": lambda column: column.is_number and not _TOKENS.isdisjoint((*column.words, *column.outer_words))},
}
"""Arguments of `ColumnChoice.best` for each field."""
_RULES["output_tokens"] = _RULES["input_tokens"]


def call_fields(choice: ColumnChoice, kind: RecordColumn | None, tool: RecordColumn | None = None) -> dict[str, str]:
    """Tool, arguments, result, error and id of calls; nothing where there are neither arguments nor results."""
    before = set(choice.taken)
    tool = tool or choice.tool()
    if tool is None:
        return {}
    items = set(tool.by_item)

    def could_be_arguments(column: RecordColumn) -> bool:
        return column.is_objects and choice.is_beside(column, items) and role_free(column)

    def answers(column: RecordColumn) -> bool:
        return choice.is_beside(column, items) and role_free(column) and not (
            column.is_time or column.is_status or column.is_flag or column.is_methods)

    def could_be_call_id(column: RecordColumn) -> bool:
        """Whether the values are ids on rows of tools, each at most on a few rows."""
        if not column.is_scalar_id or not choice.is_beside(column, items):
            return False
        rows = items & set(column.by_item)
        counts = [column.counts[value] for row in rows if (value := str(column.by_item[row])) in column.counts]
        return bool(counts) and max(counts) <= 2 and len(rows) >= 0.5 * len(items)
    fields = {"tool": tool.path}
    given = choice.best("arguments", could_be_arguments)
    if given is not None:
        fields["arguments"] = choice.take_whole("arguments", given, lambda column: column.is_objects)
    call_id = choice.best("call_id", could_be_call_id, least=2.0, shape=lambda column: float(
        not {"call", "tool", "invocation"}.isdisjoint((*column.words, *column.outer_words))))
    if call_id is not None:
        fields["call_id"] = _with_matching(choice, call_id)
    answer = choice.best("result", answers, least=2.0)
    if answer is not None:
        fields["result"] = choice.take_whole("result", answer, answers)
    if kind is None and not fields.keys() & {"arguments", "result"}:
        choice.taken = before
        return {}
    fine = choice.path("fine")
    error = f"!{fine}" if fine is not None else choice.path("error")
    return {**fields, **({"error": error} if error else {})}


def _with_matching(choice: ColumnChoice, call_id: RecordColumn) -> str:
    """Return the path of a call's id, and of the field that a result says it under."""
    call_ids = set(call_id.counts)
    for column in list(choice.free()):
        is_apart = column.is_scalar_id and not set(column.by_item) & set(call_id.by_item)
        if is_apart and column.values and set(column.counts) <= call_ids:
            choice.take(column)
            return f"{call_id.path}|{column.path}"
    return call_id.path


def request_fields(choice: ColumnChoice) -> dict[str, str | None]:
    """Status, query, body, response and id."""
    status = choice.path("status")
    fields: dict[str, str | None] = {"status": status}
    holder = (status or "").rpartition(".")[0]
    answer_body = choice.best(   # what stands in one object with the status
        "body", lambda column: bool(holder) and column.path.rpartition(".")[0] == holder and column.is_objects, least=0.0)

    def could(column: RecordColumn) -> bool:
        is_value = column.is_objects or column.share(lambda each: isinstance(each, (dict, list))) > 0
        return is_value and not column.is_outer
    for name in ("query", "body", "response"):
        chosen = answer_body if name == "response" and answer_body is not None else choice.best(name, could, least=2.0)
        if chosen is not None:
            fields[name] = chosen.path
            choice.take_inside(chosen.path)
    fields["request_id"] = choice.path("request_id")
    return fields
