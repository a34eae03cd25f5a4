"""Spans of a tracing platform, whatever it calls them, to the conversations they tell.

In: `PlatformSpan`s of one file: models asked, tools run, and what wraps them. Out: events of each session by
`extractors.formats.conversation`, links from traces to sessions, and a log event for each span that tells no part of one.
Sees: spans sent again (the last update counts), sessions that only one span of a trace states, wrappers that repeat their
inner span (it fills what the inner one lacks), tools logged as plain spans, conversations inside a tool (sessions of their
own, `<session>~<span>`), traces of which only the root was captured.
Does not see: that agents which one trace runs side by side work on one thing; each has a session of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from extractors.formats.conversation import NOT_CAPTURED, Execution, Generation, tell
from extractors.formats.format import Emit, Row
from extractors.formats.history import Histories, History
from extractors.formats.message_parts import loaded, message, paired, written
from extractors.formats.model_payloads import (
    answers,
    asked,
    declared,
    instructed,
    is_cut_off,
    listed,
    noted,
    of_instructions,
    of_message,
)
from extractors.formats.platform_spans import Key, PlatformSpan, alias, by_session, latest, link, texts
from extractors.formats.platform_threads import SYSTEM, Model, Thread, gone_on, side_by_side
from extractors.formats.sampling import counts, joined
from extractors.formats.tool_list import declare_all
from extractors.formats.tool_payloads import arguments, result

_DEEPEST = 256


def tell_all(spans: Iterable[PlatformSpan], emit: Emit, links: set[Key] | None = None) -> None:
    """Emit what the spans of one file tell; `links`: what was linked already, as (session, trace)."""
    members = latest(spans, emit)
    links = set() if links is None else links
    seen: dict[str | None, list[Any]] = {}
    nameless: list[Thread] = []
    for session_id, of_session in by_session(members).items():
        with emit.guarded(*{span.record.record_id: span.record for span in of_session}.values()):
            own = _Session(session_id, of_session, emit).tell()
            if own.models and session_id == alias(own.models[0].span.trace_id):
                nameless.append(own)
            for span in of_session:
                link(emit, span.record, session_id, span.trace_id, links)
                if span.kind == "model":
                    _declare(span, seen, emit)
    for trace_id, span in gone_on(nameless):
        link(emit, span.record, alias(trace_id), span.trace_id, links)


def _declare(span: PlatformSpan, seen: dict[str | None, list[Any]], emit: Emit) -> None:
    tools = declared({"tools": span.tools} if span.tools else span.asked)
    if tools and tools not in seen.setdefault(span.service, []):
        seen[span.service].append(tools)
        declare_all(tools, emit, span.service)


class _Session:
    """The spans of one session, and what became of each."""

    def __init__(self, session_id: str, spans: list[PlatformSpan], emit: Emit) -> None:
        self._session_id, self._emit = session_id, emit
        self._spans = sorted(spans, key=lambda each: each.order)
        self._by_key = {span.key: span for span in spans}
        self._parents = {span.parent for span in spans}
        self._models: dict[Key, Model] = {}
        self._histories = Histories()

    def tell(self) -> Thread:
        """Emit the conversations, then a log event for every span that tells no part of them or went wrong. Returns the
        session's own conversation.
        """
        self._models = {span.key: self._model(span) for span in self._spans if span.kind == "model"}
        self._unwrap()
        by_trace: dict[str, list[PlatformSpan]] = {}
        for span in self._spans:
            by_trace.setdefault(span.trace_id, []).append(span)
        for members in by_trace.values():
            self._take_root(members)
        tools = self._tools()
        n_before, own = len(self._emit.events), Thread()
        for name, thread, runs in self._conversations(tools):
            own = thread if name == self._session_id else own
            _mark_uncaptured(thread.models)
            tell(name, [self._generation(each) for each in thread.models], [_execution(each) for each in runs], self._emit)
        told = {row["record_id"] for row in self._emit.events[n_before:]}
        used = {span.key for span in tools} | {key for key, each in self._models.items() if each.answers}
        for span in self._spans:
            if span.key not in used or span.problem or span.record.record_id not in told:
                self._log(span)
        return own

    def _model(self, span: PlatformSpan) -> Model:
        given = [[noted(part) for part in each] for each in answers(span.answered)]
        if is_cut_off(span.answered):
            given = [[message("assistant", written(span.answered), ["truncated"])]]
        held = listed(span.asked)
        found = self._histories.of(span.kind, held[1], of_message, held[0], lambda: of_instructions(held[0])) if held else None
        if found is None and is_cut_off(span.asked):
            self._torn(span)
        elif found is None:
            found = History([noted(part) for part in asked(span.asked)])
        instructions = instructed(span.answered)
        if instructions and found is not None:
            parts = [part for _, part in found.beyond(0)]
            found = History(parts if any(part.get("role") in SYSTEM for part in parts) else [*instructions, *parts])
        if found is not None and any(part["kind"] == "result" and not part.get("call_id") for part in found.parts):
            found = History(paired([dict(part) for _, part in found.beyond(0)]))
        return Model(span, found or History([]), given)

    def _torn(self, span: PlatformSpan) -> None:
        """Keep what is left of an input that was cut off: it is no message."""
        self._emit.reject(span.record, "torn_content", f"the input of span {span.span_id} was cut off by a limit on lengths; "
                          "raise the limit")
        self._emit.event(span.record, "log", place=f"{span.span_id}/torn", session_id=self._session_id,
                         happened_at=span.started_at, tool=span.label or span.kind, content=written(span.asked),
                         lossy=["truncated"])

    def _above(self, span: PlatformSpan) -> list[PlatformSpan]:
        """The spans around `span`, the nearest first."""
        found: list[PlatformSpan] = []
        at = self._by_key.get(span.parent)
        while at is not None and len(found) < _DEEPEST:
            found.append(at)
            at = self._by_key.get(at.parent)
        return found

    def _tool_around(self, span: PlatformSpan) -> Key | None:
        return next((each.key for each in self._above(span) if each.kind == "tool"), None)

    def _unwrap(self) -> None:
        """A model's span around a model's span is the same answer told twice: the inner one counts."""
        inside: dict[Key, list[Model]] = {}
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
                _fill(leaf, around)
            around.span.usage = None if counts(leaf.span.usage) else around.span.usage

    def _take_root(self, members: list[PlatformSpan]) -> None:
        """Where no model's span of a trace was captured, or none as messages, its root tells the conversation."""
        outside = [self._models[span.key] for span in members
                   if span.key in self._models and self._tool_around(span) is None]
        last = next((each for each in reversed(outside) if each.says), None)
        is_rough = last is None or any(each.is_rough for each in outside)
        is_whole = last is not None and (last.answers or last.span.problem)
        root = None if is_whole and not is_rough else next(
            (span for span in members if span.kind == "other" and (span.asked is not None or span.answered is not None)
             and self._tool_around(span) is None and (asked(span.asked) or answers(span.answered))), None)
        if root is None:
            return
        state = asked(root.answered) if is_rough and _has_messages(root.answered) else []
        if last is None or _n_runs(state) >= max(_n_runs([part for each in outside for part in each.new]), 1):
            for each in outside:
                del self._models[each.span.key]
            self._models[root.key] = _of_state(root, state) if _n_runs(state) or len(state) > 1 else self._model(root)
        elif not is_whole:
            last.answers = [[{**part, "lossy": [*part["lossy"], "answer as its trace says"]} for part in each]
                            for each in answers(root.answered)]

    def _tools(self) -> list[PlatformSpan]:
        """Spans of tools, and plain spans without children that are named as a tool that a model called."""
        called = {part.get("tool") for each in self._models.values() for part in each.new if part["kind"] == "call"}
        return [span for span in self._spans if span.key not in self._models and (span.kind == "tool" or (
            span.kind == "other" and span.name in called and span.key not in self._parents))]

    def _conversations(self, tools: list[PlatformSpan]) -> Iterator[tuple[str, Thread, list[PlatformSpan]]]:
        """The session's own conversation, then those that ran inside a tool."""
        groups: dict[Key | None, tuple[list[Model], list[PlatformSpan]]] = {None: ([], [])}
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

    def _generation(self, model: Model) -> Generation:
        span, parts = model.span, model.asked.parts
        root = next(iter(self._above(span)[::-1]), span)
        last = max((i for i, part in enumerate(parts) if part["kind"] != "message" or part.get("role") == "assistant"),
                   default=-1)
        for part in parts[last + 1:]:   # it came in when the turn began, not when the model was asked
            if part.get("role") in ("user", *SYSTEM):
                part.setdefault("happened_at", root.started_at or span.started_at)
        return Generation(record=span.record, span_id=span.span_id, started_at=span.started_at, ended_at=span.ended_at,
                          service=span.service, identity=span.identity, asked=model.asked, answers=model.answers,
                          model=span.model, usage=span.usage)

    def _log(self, span: PlatformSpan) -> None:
        """What a span says that tells no part of a conversation; one around others leaves its content to them."""
        facts, model = {"name": span.name, "error": span.problem, **span.attributes}, self._models.get(span.key)
        around = span.key in self._parents and not span.problem
        told = span.kind != "other" or (around and span.said is None) or (span.asked is None and span.answered is None)
        content = span.said if told else orjson.dumps({"input": span.asked, "output": span.answered}, default=str).decode()
        self._emit.event(
            span.record, "log", place=f"{span.span_id}/log", session_id=self._session_id, service=span.service,
            happened_at=span.started_at, tool=span.label or span.kind, name=span.identity, content=content,
            arguments=texts(facts),
            is_error=span.is_error, model=span.model, latency_ms=_latency_ms(span),
            usage=span.usage if span.kind == "model" and not (model and model.answers) else None,
            lossy=["input and output are left to the conversation"] if told and span.said is None else [])


def _mark_uncaptured(models: list[Model]) -> None:
    """Say of answers that were not captured that they were not, where no later history tells them."""
    told_of = [each for each in models if each.says] or models
    last = max(told_of, key=lambda each: each.span.order, default=None)
    for each in models:
        if not each.answers and not each.span.problem and (each is last or told_of is models):
            each.answers = [[message("assistant", None, [NOT_CAPTURED])]]


def _fill(inner: Model, around: Model) -> None:
    """Take from a wrapper what the span inside it lacks."""
    if not inner.asked.n_parts or (inner.is_rough and not around.is_rough):
        inner.asked = around.asked
    if _n_runs([part for each in inner.answers[:1] for part in each]) < _n_runs(
            [part for each in around.answers[:1] for part in each]) or not inner.answers:
        inner.answers = around.answers
    inner.span.usage = joined(inner.span.usage, around.span.usage)
    inner.span.model = inner.span.model or around.span.model


def _of_state(root: PlatformSpan, state: list[Row]) -> Model:
    """The conversation that a state with all messages tells: what came after the last question is the answer."""
    last = max((i for i, part in enumerate(state) if part["kind"] == "result" or part.get("role") == "user"), default=-1)
    return Model(root, History(state[:last + 1]), [state[last + 1:]] if state[last + 1:] else [])


def _has_messages(value: Any) -> bool:
    inner = loaded(value)
    return isinstance(inner, dict) and isinstance(inner.get("messages"), list)


def _n_runs(parts: list[Row]) -> int:
    return sum(part["kind"] in ("call", "result") for part in parts)


def _execution(span: PlatformSpan) -> Execution:
    found = result(span.answered)
    flag = span.is_error if span.is_error is not None else found.get("is_error")
    content = found.get("content")
    return Execution(record=span.record, span_id=span.span_id, started_at=span.started_at, ended_at=span.ended_at,
                     service=span.service, identity=span.identity, tool=span.name, call_id=span.call_id or found.get("call_id"),
                     arguments=arguments(span.asked), result=span.problem if content is None else content, is_error=flag)


def _latency_ms(span: PlatformSpan) -> float | None:
    return None if span.started_at is None or span.ended_at is None else (span.ended_at - span.started_at) / 1000
