"""Spans of a tracing platform, whatever it calls them, to the conversations they tell.

In: `PlatformSpan`s of one file: models asked, tools run, and what wraps them. Out: events of each session by
`extractors.formats.conversation`, links from traces to sessions, and a log event for each span that tells no part of one.
Sees: spans sent again (the last update counts), sessions that only one span of a trace states, wrappers that repeat their
inner span (it fills what the inner one lacks), tools logged as plain spans, conversations inside a tool (sessions of their
own, `<session>~<span>`), traces of which only the root was captured. Models that one trace asks side by side (an agent, a
critic, a title) are threads: those with the same instructions are one; with others they are, where their history goes on from
what a thread holds (a hand-off).
Does not see: agents without instructions, or with the same ones, side by side; that agents which one trace runs side by side
work on one task (each has a session of its own).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from extractors.formats import model_payloads as payloads
from extractors.formats.chat import message_part
from extractors.formats.conversation import NOT_CAPTURED, Execution, Generation, marks, milliseconds, tell
from extractors.formats.envelope import at
from extractors.formats.format import Emit, LogRecord, LogRecords, Row
from extractors.formats.history import Histories, Print, PromptHistory, is_telling, n_known, print_of
from extractors.formats.instants import microseconds
from extractors.formats.ratings import rate
from extractors.formats.sampling import counts
from extractors.formats.tool_list import declare_all
from extractors.formats.values import dumped, object_of, written

Key = tuple[str, str]
Kind = Literal["model", "tool", "other"]


@dataclass(slots=True)
class PlatformSpan:
    """A span as every platform knows it."""

    record: LogRecord
    trace_id: str
    span_id: str
    kind: Kind
    name: str | None = None
    parent_id: str | None = None
    session_id: str | None = None
    identity: str | None = None
    service: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    input: Any = None
    """What went in, as logged."""
    output: Any = None
    """What came out, as logged; None: not captured."""
    tools: Any = None
    """Tools that a model's request declares, where they stand outside what went in."""
    call_id: str | None = None
    model: str | None = None
    usage: Row | None = None
    is_error: bool | None = None
    problem: str | None = None
    """What the platform says went wrong."""
    updated_at: int | None = None
    trace_name: str | None = None
    rated: Row = field(default_factory=dict)
    """Fields that may hold ratings of the trace."""
    label: str | None = None
    """What the platform calls this kind of span."""
    message: str | None = None
    """The line that a span logged, where it is no part of a conversation."""
    attributes: Row = field(default_factory=dict)
    """What else is worth keeping of a span that tells no part of a conversation."""

    @property
    def key(self) -> Key:
        return (self.trace_id, self.span_id)

    @property
    def parent(self) -> Key:
        return (self.trace_id, self.parent_id or "")

    @property
    def order(self) -> tuple[int, int, str]:
        return (self.started_at or 0, -(self.ended_at or 0), self.span_id)


@dataclass(frozen=True)
class PlatformDialect:
    """Fields in which a platform's spans hold what all platforms log: of several, the first that holds something counts.

    A dotted name leads into an object. What needs more than a name is computed by the format that reads the platform.
    """

    trace_id: tuple[str, ...]
    span_id: tuple[str, ...]
    parent_id: tuple[str, ...]
    started_at: tuple[str, ...]
    ended_at: tuple[str, ...]
    kind: tuple[str, ...] = ()
    """What the platform calls this kind of span; it is the label too."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    """The platform's words for models and tools."""
    name: tuple[str, ...] = ()
    call_id: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    input: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    updated_at: tuple[str, ...] = ()


def span_of(record: LogRecord, row: Row, dialect: PlatformDialect, of_model: Callable[[], Row],
            **computed: Any) -> PlatformSpan:
    """Read a platform's row; `computed` comes before what the dialect names, `of_model` gives model and usage of a model's."""

    def first(names: tuple[str, ...]) -> Any:
        return next((value for name in names if (value := at(row, name)) not in (None, "", [], {})), None)

    word = first(dialect.kind)
    values: Row = {
        "trace_id": str(first(dialect.trace_id) or ""), "span_id": str(first(dialect.span_id) or record.record_id[:16]),
        "kind": dialect.kinds.get(word, "other") if isinstance(word, str) else "other", "label": written(word),
        **{name: written(first(getattr(dialect, name))) for name in ("name", "parent_id", "call_id", "identity")},
        **{name: first(getattr(dialect, name)) for name in ("input", "output")},
        **{name: microseconds(first(getattr(dialect, name))) for name in ("started_at", "ended_at", "updated_at")}}
    span = PlatformSpan(record=record, **{**values, **computed})
    if span.kind == "model":
        facts = of_model()
        span.model, span.usage = facts["model"], facts["usage"]
    return span


def alias(trace_id: str) -> str:
    """Name of the session of a trace that does not state it."""
    return f"trace:{trace_id}"


def link(emit: Emit, record: LogRecord, session_id: str, trace_id: str, linked: set[Key]) -> None:
    """Say once a file which session a trace belongs to."""
    if trace_id and (session_id, trace_id) not in linked and session_id != alias(trace_id):
        is_first = ("", trace_id) not in linked
        linked.update(((session_id, trace_id), ("", trace_id)))
        place = f"link/{trace_id}" if is_first else f"link/{trace_id}/{session_id}"  # a trace may name several
        emit.event(record, "link", place=place, session_id=session_id, value=alias(trace_id))


def into_trace(around: PlatformSpan, members: list[PlatformSpan]) -> list[PlatformSpan]:
    """Put the spans of a trace under the span that stands for it, where their own parent is not among them."""
    span_ids = {each.span_id for each in members}
    for each in members:
        each.parent_id = each.parent_id if each.parent_id in span_ids else around.span_id
    return [around, *members]


def _break_circles(spans: list[PlatformSpan], by_key: dict[Key, PlatformSpan]) -> None:
    """Take the parent away from the first span of each circle: a span is not around itself. `spans`: in order."""
    safe: set[Key] = set()
    for span in spans:
        path: dict[Key, None] = {}
        at: PlatformSpan | None = span
        while at is not None and at.key not in safe and at.key not in path:
            path[at.key] = None
            at = by_key.get(at.parent)
        if at is not None and at.key in path:
            circle = list(path)[list(path).index(at.key):]
            min((by_key[key] for key in circle), key=lambda each: each.order).parent_id = None
        safe.update(path)


def texts(facts: Row) -> str:
    """JSON object of the facts that say something."""
    return dumped({key: value for key, value in facts.items() if value not in (None, "", [], {})})


_SYSTEM = ("system", "developer")
_ROUGH = frozenset({"transcript", payloads.UNKNOWN})
_DEEPEST = 256
_HAS_ID = re.compile(r"\d{3}|[0-9a-f]{8}|[0-9A-F]{8}")


@dataclass(slots=True)
class ModelSpan:
    """A model's span with its payloads read."""

    span: PlatformSpan
    prompt: PromptHistory
    answers: list[list[Row]]
    is_around: bool = False
    """It is the root of a trace, in place of a model that was not captured."""

    @property
    def is_rough(self) -> bool:
        """Whether what was asked was not captured as messages."""
        return not self.prompt.n_parts or any(not _ROUGH.isdisjoint(part["lossy"]) for part in self.prompt.parts)

    @property
    def says(self) -> bool:
        return bool(self.prompt.n_parts or self.answers)

    @property
    def new(self) -> list[Row]:
        """What it adds to the history of the others."""
        return [*self.prompt.parts, *(part for each in self.answers for part in each)]

    @property
    def opening(self) -> tuple[Print, ...]:
        """Its instructions."""
        link = self.prompt
        while link.earlier is not None and link.first:
            link = link.earlier
        return tuple(print_of(part) for part in link.parts if part["kind"] == "message" and part.get("role") in _SYSTEM)


@dataclass(slots=True)
class ModelThread:
    """Models that went on from each other."""

    models: list[ModelSpan] = field(default_factory=list)
    prints: list[Print] = field(default_factory=list)
    """What they hold, each part once."""
    openings: set[tuple[Print, ...]] = field(default_factory=set)
    calls: set[object] = field(default_factory=set)
    tools: set[object] = field(default_factory=set)

    def take(self, model: ModelSpan, prints: list[Print]) -> None:
        """Go on with a model's span; `prints`: of what it was asked."""
        n_shared = n_known(self.prints, prints)
        answer = [part for part in model.answers[0] if part["kind"] != "reasoning"] if model.answers else []
        self.prints += [*prints[n_shared or 0:], *map(print_of, answer)]
        self.models.append(model)
        self.openings.add(model.opening)
        called = [part for part in model.new if part["kind"] == "call"]
        self.calls.update(part["call_id"] for part in called if part.get("call_id"))
        self.tools.update(part.get("tool") for part in called if not part.get("call_id"))

    def ran(self, tool: PlatformSpan) -> bool:
        return tool.call_id in self.calls or (tool.call_id is None and tool.name in self.tools)


def gone_on(threads: Iterable[ModelThread]) -> Iterator[tuple[str, PlatformSpan]]:
    """Yield, of traces without a session that continue all of another, the first trace and the span that went on."""
    ends_by_mark: dict[int, tuple[list[Print], str]] = {}
    for thread in sorted(threads, key=lambda each: each.models[0].span.order):
        first, begins = thread.models[0].span, thread.models[0].prompt.all_prints
        trace_id = first.trace_id
        for number, mark in enumerate(marks(begins), start=1):
            if mark in ends_by_mark and ends_by_mark[mark][0] == begins[:number]:
                trace_id = ends_by_mark[mark][1]
        if trace_id != first.trace_id:
            yield trace_id, first
        last = thread.models[-1]
        answer = last.answers[0] if last.answers else []
        ends = [*last.prompt.all_prints, *(print_of(each) for each in answer if each["kind"] != "reasoning")]
        if any(is_telling(each) for each in ends):
            ends_by_mark[marks(ends)[-1]] = (ends, trace_id)


def side_by_side(models: Iterable[ModelSpan]) -> list[ModelThread]:
    """Return the threads, the longest first; at least one, which may be empty."""
    ordered = sorted(models, key=lambda each: each.span.order)
    if len({each.opening for each in ordered if each.opening}) < 2:
        return [ModelThread(ordered)]
    threads: list[ModelThread] = []
    for model in ordered:
        prints = model.prompt.all_prints
        same = [each for each in threads if not model.opening or model.opening in each.openings]
        going_on = [each for each in threads if n_known(each.prints, prints) is not None]
        thread = next(iter([each for each in same if each in going_on] or going_on or same), None)
        if thread is None:
            thread = ModelThread()
            threads.append(thread)
        thread.take(model, prints)
    return sorted(threads, key=lambda each: -len(each.prints))


def read_spans(records: LogRecords, emit: Emit, spans_of: Callable[[LogRecord], Iterable[PlatformSpan]], reason: str,
               detail: str, links: set[Key] | None = None) -> None:
    """Tell the spans of all records, since files are not ordered; a record that gives nothing becomes a reject."""
    spans: list[PlatformSpan] = []
    for record in records:
        n_before = len(spans), len(emit.events)
        with emit.guarded(record):
            spans += list(spans_of(record))
            if (len(spans), len(emit.events)) == n_before:
                emit.reject(record, reason, detail)
    tell_all(spans, emit, links)


def tell_all(spans: Iterable[PlatformSpan], emit: Emit, links: set[Key] | None = None) -> None:
    """Emit what the spans of one file tell; `links`: what was linked already, as (session, trace)."""
    by_key: dict[Key, PlatformSpan] = {}   # each span once, as it was updated last
    for span in spans:
        before = by_key.get(span.key)
        if before is None or (span.updated_at or 0) >= (before.updated_at or 0):
            by_key[span.key], span = span, before or span
        if before is not None:
            emit.reject(span.record, "replaced_span", "the span came again, and as updated later it is taken; no action needed")
    stated: dict[str, str] = {}   # by trace, the session that its first span with one states
    for span in sorted(by_key.values(), key=lambda each: each.order):
        if span.session_id:
            stated.setdefault(span.trace_id, span.session_id)
    _name_services(by_key.values())
    sessions: dict[str, list[PlatformSpan]] = {}
    for span in by_key.values():
        sessions.setdefault(span.session_id or stated.get(span.trace_id) or alias(span.trace_id), []).append(span)
    links = set() if links is None else links
    declared_tools: dict[str | None, list[Any]] = {}
    nameless: list[ModelThread] = []
    for session_id, of_session in sessions.items():
        with emit.guarded(*{span.record.record_id: span.record for span in of_session}.values()):
            own = _PlatformSession(session_id, of_session, emit).tell()
            if own.models and session_id == alias(own.models[0].span.trace_id):
                nameless.append(own)
            for span in of_session:
                link(emit, span.record, session_id, span.trace_id, links)
                rate(emit, span.record, span.rated, session_id, call_id=span.span_id)
                tools = payloads.declared({"tools": span.tools} if span.tools else span.input) if span.kind == "model" else []
                if tools and tools not in declared_tools.setdefault(span.service, []):
                    declared_tools[span.service].append(tools)
                    declare_all(tools, emit, span.service)
    for trace_id, span in gone_on(nameless):
        link(emit, span.record, alias(trace_id), span.trace_id, links)


def _name_services(spans: Collection[PlatformSpan]) -> None:
    """Give spans without a service that of their trace; where none is stated, the name that all traces of the file have.

    A name with an id in it is one trace's own, and several names are those of operations: neither names a service.
    """
    by_trace: dict[str, set[str]] = {}
    for span in spans:
        by_trace.setdefault(span.trace_id, set()).update([span.service] if span.service else [])
    names = {span.trace_name for span in spans if span.trace_name}
    shared = next(iter(names)) if len(names) == 1 and not _HAS_ID.search(next(iter(names))) else None
    for span in spans:
        stated = by_trace[span.trace_id]
        span.service = span.service or (next(iter(stated)) if len(stated) == 1 else shared if not stated else None)


class _PlatformSession:
    """The spans of one session, and what became of each."""

    def __init__(self, session_id: str, spans: list[PlatformSpan], emit: Emit) -> None:
        self._session_id, self._emit = session_id, emit
        self._spans = sorted(spans, key=lambda each: each.order)
        self._by_key = {span.key: span for span in spans}
        _break_circles(self._spans, self._by_key)
        self._parents = {span.parent for span in spans}
        self._models: dict[Key, ModelSpan] = {}
        self._histories = Histories()

    def tell(self) -> ModelThread:
        """Emit the conversations, and log what is no part of them or went wrong; returns the session's own conversation."""
        self._models = {span.key: self._model(span) for span in self._spans if span.kind == "model"}
        self._unwrap()
        by_trace: dict[str, list[PlatformSpan]] = {}
        for span in self._spans:
            by_trace.setdefault(span.trace_id, []).append(span)
        for members in by_trace.values():
            self._take_root(members)
            self._take_instructions(members)
        # and plain spans without children that are named as a tool that a model called
        called = {part.get("tool") for each in self._models.values() for part in each.new if part["kind"] == "call"}
        tools = [span for span in self._spans if span.key not in self._models and (span.kind == "tool" or (
            span.kind == "other" and span.name in called and span.key not in self._parents))]
        n_before, own = len(self._emit.events), ModelThread()
        for name, thread, runs in self._conversations(tools):
            own = thread if name == self._session_id else own
            models = [each for each in thread.models if each.says] or thread.models
            last = max(models, key=lambda each: each.span.order, default=None)
            for each in thread.models:   # answers that were not captured, and that no later history tells
                if not each.answers and not each.span.problem and (each is last or models is thread.models):
                    each.answers = [[message_part("assistant", None, [NOT_CAPTURED])]]
            tell(name, [self._generation(each) for each in thread.models], [_execution(each) for each in runs], self._emit)
        record_ids = {row["record_id"] for row in self._emit.events[n_before:]}
        used = {span.key for span in tools} | {key for key, each in self._models.items() if each.answers}
        for span in self._spans:
            if span.key not in used or span.problem or span.record.record_id not in record_ids:
                facts, model = {"name": span.name, "error": span.problem, **span.attributes}, self._models.get(span.key)
                around = span.key in self._parents and not span.problem   # a span around others omits its content
                captured = {"input": span.input, "output": span.output}
                is_told = span.kind != "other" or (around and span.message is None) or (
                    span.input is None and span.output is None)
                self._emit.event(
                    span.record, "log", place=f"{span.span_id}/log", session_id=self._session_id, service=span.service,
                    happened_at=span.started_at, tool=span.label or span.kind, name=span.identity, model=span.model,
                    content=span.message if is_told else orjson.dumps(captured, default=str).decode(),
                    arguments=texts(facts), is_error=span.is_error, latency_ms=milliseconds(span.started_at, span.ended_at),
                    usage=span.usage if span.kind == "model" and not (model and model.answers) else None,
                    lossy=["input and output are left to the conversation"] if is_told and span.message is None else [])
        return own

    def _model(self, span: PlatformSpan) -> ModelSpan:
        given = [[payloads.noted(part) for part in each] for each in payloads.answer_parts(span.output)]
        if payloads.is_cut_off(span.output):
            given = [[message_part("assistant", written(span.output), ["truncated"])]]
        messages = payloads.listed(span.input)
        history = self._histories.of(span.kind, messages[1], payloads.of_message, messages[0],
                                     lambda: payloads.of_instructions(messages[0])) if messages else None
        if history is None and payloads.is_cut_off(span.input):
            self._emit.reject(span.record, "torn_content",
                              f"the input of span {span.span_id} was cut off by a limit on lengths; raise the limit")
            self._emit.event(   # what is left of it is no message
                span.record, "log", place=f"{span.span_id}/torn", session_id=self._session_id, happened_at=span.started_at,
                tool=span.label or span.kind, content=written(span.input), lossy=["truncated"])
        elif history is None:
            history = PromptHistory([payloads.noted(part) for part in payloads.prompt_parts(span.input)])
        instructions = payloads.instructed(span.output)
        if instructions and history is not None:
            parts = [part for _, part in history.beyond(0)]
            history = PromptHistory(parts if any(part.get("role") in _SYSTEM for part in parts) else [*instructions, *parts])
        if history is not None and any(part["kind"] == "result" and not part.get("call_id") for part in history.parts):
            history = PromptHistory(payloads.paired([dict(part) for _, part in history.beyond(0)]))
        return ModelSpan(span, history or PromptHistory([]), given)

    def _above(self, span: PlatformSpan) -> list[PlatformSpan]:
        """Return the spans around `span`, the nearest first."""
        spans: list[PlatformSpan] = []
        at = self._by_key.get(span.parent)
        while at is not None and len(spans) < _DEEPEST:
            spans.append(at)
            at = self._by_key.get(at.parent)
        return spans

    def _tool_around(self, span: PlatformSpan) -> Key | None:
        return next((each.key for each in self._above(span) if each.kind == "tool"), None)

    def _unwrap(self) -> None:
        """Drop a model's span around a model's span: it repeats the answer, and fills what the inner one lacks."""
        inside: dict[Key, list[ModelSpan]] = {}
        for model in self._models.values():
            for span in self._above(model.span):
                if span.kind == "tool":
                    break
                if span.key in self._models:
                    inside.setdefault(span.key, []).append(model)
        for key, inner in inside.items():
            around = self._models.pop(key)
            leaf = inner[0]
            if len(inner) == 1:
                if not leaf.prompt.n_parts or (leaf.is_rough and not around.is_rough):
                    leaf.prompt = around.prompt
                if not leaf.answers or _n_runs(leaf.answers[0]) < _n_runs((around.answers or [[]])[0]):
                    leaf.answers = around.answers
                leaf.span.usage = {**(around.span.usage or {}), **(leaf.span.usage or {})} or None
                leaf.span.model = leaf.span.model or around.span.model
            around.span.usage = None if counts(leaf.span.usage) else around.span.usage

    def _take_instructions(self, members: list[PlatformSpan]) -> None:
        """Give a trace's models the instructions, or the question, that its root states and none of them does."""
        outside = [self._models[span.key] for span in members if span.key in self._models and self._tool_around(span) is None]
        root = next((span for span in members if span.kind == "other" and self._tool_around(span) is None
                     and isinstance(payloads.loaded(span.input), dict)), None)
        if root is None or not outside or any(each.opening for each in outside):
            return
        prompt = PromptHistory(payloads.prompt_parts(root.input))
        instructions = [part for part in prompt.parts if part.get("role") in _SYSTEM]
        if not any(each.prompt.n_parts for each in outside):
            outside[0].prompt = prompt
        elif instructions:
            for each in outside:
                each.prompt = PromptHistory([*instructions, *(part for _, part in each.prompt.beyond(0))])

    def _take_root(self, members: list[PlatformSpan]) -> None:
        """Where no model's span of a trace was captured, or none as messages, its root tells the conversation."""
        outside = [self._models[span.key] for span in members if span.key in self._models and self._tool_around(span) is None]
        last = next((each for each in reversed(outside) if each.says), None)
        is_rough = last is None or any(each.is_rough for each in outside)
        is_whole = last is not None and (last.answers or last.span.problem)
        root = None if is_whole and not is_rough else next(
            (span for span in members if span.kind == "other" and (span.input is not None or span.output is not None)
             and self._tool_around(span) is None
             and (payloads.prompt_parts(span.input) or payloads.answer_parts(span.output))), None)
        if root is None:
            return
        has_messages = is_rough and isinstance(object_of(payloads.loaded(root.output)).get("messages"), list)
        state = payloads.prompt_parts(root.output) if has_messages else []
        if last is None or _n_runs(state) >= max(_n_runs([part for each in outside for part in each.new]), 1):
            for each in outside:
                del self._models[each.span.key]
            if _n_runs(state) or len(state) > 1:   # what came after the last question is the answer
                n_asked = max((i for i, part in enumerate(state) if part["kind"] == "result" or part.get("role") == "user"),
                              default=-1) + 1
                answers = [state[n_asked:]] if state[n_asked:] else []
                self._models[root.key] = ModelSpan(root, PromptHistory(state[:n_asked]), answers)
            else:
                self._models[root.key] = self._model(root)
            self._models[root.key].is_around = last is None
        elif not is_whole:
            last.answers = [[{**part, "lossy": [*part["lossy"], "answer as its trace says"]} for part in each]
                            for each in payloads.answer_parts(root.output)]

    def _conversations(self, tools: list[PlatformSpan]) -> Iterator[tuple[str, ModelThread, list[PlatformSpan]]]:
        """Yield the session's own conversation, then those that ran inside a tool."""
        groups: dict[Key | None, tuple[list[ModelSpan], list[PlatformSpan]]] = {None: ([], [])}
        for model in self._models.values():
            groups.setdefault(self._tool_around(model.span), ([], []))[0].append(model)
        for tool in tools:
            inside = self._tool_around(tool)
            groups[inside if inside in groups else None][1].append(tool)
        for key, (models, runs) in groups.items():
            name = self._session_id if key is None else f"{self._session_id}~{key[1][:16]}"
            own, *others = side_by_side(models)
            for thread in others:
                yield f"{name}~{thread.models[0].span.span_id[:16]}", thread, [each for each in runs if thread.ran(each)]
            yield name, own, [each for each in runs if not any(thread.ran(each) for thread in others)]

    def _generation(self, model: ModelSpan) -> Generation:
        span, parts = model.span, model.prompt.parts
        root = next(iter(self._above(span)[::-1]), span)
        last = max((i for i, part in enumerate(parts) if part["kind"] != "message" or part.get("role") == "assistant"),
                   default=-1)
        for part in parts[last + 1:]:   # it came in when the turn began, not when the model was asked
            if part.get("role") in ("user", *_SYSTEM):
                part.setdefault("happened_at", root.started_at or span.started_at)
        return Generation(*_place(span), prompt=model.prompt, answers=model.answers, model=span.model, usage=span.usage,
                          is_around=model.is_around)


def _n_runs(parts: list[Row]) -> int:
    return sum(part["kind"] in ("call", "result") for part in parts)


def _place(span: PlatformSpan) -> tuple[LogRecord, str, int | None, int | None, str | None, str | None]:
    return span.record, span.span_id, span.started_at, span.ended_at, span.service, span.identity


def _execution(span: PlatformSpan) -> Execution:
    output = payloads.result(span.output)
    content = output.get("content")
    return Execution(*_place(span), tool=span.name, call_id=span.call_id or output.get("call_id"),
                     arguments=payloads.arguments(span.input), result=span.problem if content is None else content,
                     is_error=span.is_error if span.is_error is not None else output.get("is_error"))
