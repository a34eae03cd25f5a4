"""One episode that an agent plays: what its model answers, what its tools do, and what the user says.

In: requests to the model (`ask`), and calls of tools (`call`, `say`, `finish`), from several threads. Out: the episode,
recorded as the plain loop records it (pipelines/rollouts/player.py). The agent need not know of the user: where its model's
text goes to the user (`talk`), a text without calls is said, and the reply is the model's next message; the agent gets only the
answer after which there is nothing to reply. It never sees those messages, so each of its later requests gets them again, where
they belong. Calls of one answer are carried out in the answer's order, also where a framework makes them in parallel.

Sees: what goes through it. Does not see: calls that the agent answers itself, before it asks the model again.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, NamedTuple

from env_builder.runtime.briefing import DEPARTED, SILENCE
from env_builder.runtime.grading import lost
from env_builder.runtime.rubrics import ParsedRubric
from pipelines.rollouts.orders import Order
from pipelines.rollouts.player import Conversation, Seat
from pipelines.rollouts.policies import Named, Observation, Turn
from warehouse.errors import PolicyFailed, Refused, Unavailable

ORDER_S = 3.0
"""Seconds that a call waits for those before it in the model's answer."""
MOST_AFTER = 20
"""Requests to the model that get a last word after the episode has ended; later ones are refused."""
LAST_WORD = "The task has ended."
Row = dict[str, Any]


class ModelRequest(NamedTuple):
    """What an agent asks a model, whatever the protocol."""

    messages: list[Row]
    """Chat messages."""
    tools: list[Row]
    """Function tools, as chat completions have them."""
    fields: Row
    """Further fields of the chat completion that is asked for."""


class CallAnswer(NamedTuple):
    """What an agent gets for a call."""

    content: str
    is_error: bool


class _AnsweredCall:
    """A call in a model's answer, until the agent has made it."""

    def __init__(self, tool: str, arguments: Any, call_id: str, is_ours: bool) -> None:
        self.tool, self.arguments, self.call_id, self.is_ours = tool, arguments, call_id, is_ours
        self.is_taken = False
        """Has the agent begun it?"""
        self.is_done = False


class AgentTalk:
    """The state of an episode."""

    def __init__(self, order: Order, seat: Seat, conversation: Conversation, policy: Named, talk: str) -> None:
        self.order = order
        self.seat = seat
        self.conversation = conversation
        self.tools = {tool["name"]: tool for tool in seat.beginning["tools"]}
        self.aside: list[Row] = []
        """Requests to the model that are no turns: the agent's own business."""
        self.failure: PolicyFailed | None = None
        """Why the model did not answer."""
        self.note: str | None = None
        """Why it would not go on."""
        self.pruned: str | None = None
        self.rubric: ParsedRubric | None = None
        """For pruning."""
        self.most_refused: int | None = None
        self._policy = policy
        self._talk = talk
        self._is_opened = False
        self._n_turns = self._n_after = 0
        self._latest: tuple[list[Row], Row] | None = None
        """The messages of the latest turn's request, and its answer."""
        self._numbers = itertools.count(1)
        self._turns = threading.Lock()
        self._moves = threading.Condition()
        self._calls: list[_AnsweredCall] = []
        self._before: dict[str, list[Row]] = {}
        """Of an assistant's message (its first call's id, or its text): what was said before it, and the agent never saw."""
        self._after: dict[str, Row] = {}
        """Of a call's id: the user's words after the answers of its turn."""

    @property
    def speaks_by_tools(self) -> bool:
        """Whether the tools `say` and `finish` speak and end, not the model's text."""
        return self._talk == "tools" or (self._talk == "auto" and self._is_opened)

    def open_tools(self) -> None:
        """Note that the agent has opened the MCP endpoint."""
        self._is_opened = True

    def is_over(self) -> bool:
        """Whether nothing can happen any more."""
        with self._moves:
            return (self.pruned is not None or self.seat.ended() is not None
                    or (self.most_refused is not None and self.conversation.n_refused > self.most_refused))

    def ask(self, request: ModelRequest, is_retry: bool = False) -> Row:
        """Return the model's answer as a chat completion. `is_retry`: a client repeats a request whose answer it has not got.
        Raises PolicyFailed, Refused."""
        if not request.tools and self.tools:
            return self._ask_aside(request)
        with self._turns:
            if not (is_retry and self._latest is not None and self._latest[0] == request.messages):
                self._latest = (request.messages, self._last_word() if self.is_over() else self._take_turns(request))
            return self._latest[1]

    def call(self, tool: str, arguments: Any, call_id: str | None = None) -> CallAnswer:
        """Make a call in its turn, and return the answer. With the id of a call of the model's answer, its arguments are those
        that the model gave."""
        with self._moves:
            answered = self._taken(tool, arguments, call_id)
            deadline = time.monotonic() + ORDER_S
            while answered is not None and self._is_early(answered) and (rest := deadline - time.monotonic()) > 0:
                self._moves.wait(rest)
            try:
                return self._call(answered or _AnsweredCall(tool, arguments, call_id or "", tool in self.tools))
            finally:
                if answered is not None:
                    answered.is_done = True
                self._moves.notify_all()

    def say(self, text: str) -> str:
        """Say something to the user; return the reply, or why there is none."""
        with self._moves:
            reply = self.seat.recorder.say(text) if not self.is_over() else None
            self._prune()
            return reply if reply is not None else DEPARTED if self.seat.recorder.witness.user_left else SILENCE

    def finish(self) -> None:
        """End the episode: the agent is done."""
        with self._moves:
            self.seat.recorder.finish()

    def close(self) -> None:
        """Record the calls that the agent never made."""
        with self._moves:
            for call in self._calls:
                if not call.is_taken:
                    self._refuse(call, "the agent did not make this call")
            self._calls = []

    def _call(self, call: _AnsweredCall) -> CallAnswer:
        if self.is_over():
            return CallAnswer(f"The episode has ended ({self.seat.ended() or 'truncated'}).", True)
        error = None
        if call.tool not in self.tools:
            error = f"no tool {call.tool!r}; there are: {', '.join(sorted(self.tools))}"
        elif not isinstance(call.arguments, dict):
            error = "the arguments are no JSON object"
        if error is not None:
            self._refuse(call, error)
            return CallAnswer(error, True)
        result = self.seat.recorder.call(call.tool, call.arguments, call.call_id or None)
        self._prune()
        return CallAnswer(str(result.content), result.is_error)

    def _taken(self, tool: str, arguments: Any, call_id: str | None) -> _AnsweredCall | None:
        """Take the call of an answer that the agent makes now: that of the id, else the first one like it."""
        waiting = [call for call in self._calls if not call.is_taken and call.tool == tool]
        taken = next((call for call in waiting if call_id and call.call_id == call_id), None)
        if taken is None and waiting:
            taken = next((call for call in waiting if call.arguments == arguments), waiting[0])
            taken.arguments = arguments
        if taken is not None:
            taken.is_taken = True
        return taken

    def _is_early(self, call: _AnsweredCall) -> bool:
        """Return whether a call that stands before this one is not made yet."""
        for other in self._calls:
            if other is call:
                return False
            if other.is_ours and not other.is_done:
                return True
        return False

    def _refuse(self, call: _AnsweredCall, content: str) -> None:
        call.is_taken = call.is_done = True
        self.conversation.n_refused += call.is_ours
        self.seat.recorder.refuse(call.tool, call.arguments, call.call_id or None, content)

    def _prune(self) -> None:
        if self.rubric is not None and self.pruned is None:
            self.pruned = lost(self.rubric, self.seat.recorder.witness.episode())

    def _take_turns(self, request: ModelRequest) -> Row:
        """Ask the model, and again for as long as the user replies to a text."""
        with self._moves:
            self._settle(request.messages)
        messages, shown = self._with_unseen(request.messages), Turn()
        unseen: list[Row] = []
        while not self.is_over():
            turn = self._act(messages, request)
            if not turn.text and not turn.calls:
                break
            shown, reply = turn, self._record(turn, request)
            if turn.calls:
                self._note_unseen(turn, unseen, reply)
                return self._completed(turn)
            if self.speaks_by_tools:
                return self._completed(turn)
            spoken = [turn.as_message(), *([] if reply is None else [{"role": "user", "content": reply}])]
            messages, unseen = [*messages, *spoken], [*unseen, *spoken]
        if shown.text:  # the agent gets the last text: all before it, and no reply
            place = max(place for place, message in enumerate(unseen) if message["role"] == "assistant")
            self._before[shown.text] = unseen[:place]
        return self._completed(shown)

    def _act(self, messages: list[Row], request: ModelRequest) -> Turn:
        """Return the policy's next turn, with its calls by the names that the agent's request offers."""
        order = self.order
        fields = {**request.fields, **({"tools": request.tools} if request.tools else {})}
        tools = [each["function"] for each in request.tools]
        observation = Observation(order.task_id, order.seed, order.attempt, messages, tools, self._n_turns, fields)
        try:
            turn = self._answer(observation)
        except Refused as error:
            self.note = error.what
            if not self._n_turns:
                self.failure = PolicyFailed(error.what, error.where, error.hint)
            raise
        self._n_turns += 1
        if turn.recorded:  # written in the environment's own names: use those of this episode
            rewrite = self.seat.recorder.witness.carried
            turn = turn._replace(text=rewrite(turn.text), calls=tuple(
                call._replace(arguments=rewrite(call.arguments)) for call in turn.calls))
        offered = {own: name for name, own in self._own_names(request).items()}
        return turn._replace(calls=tuple(
            call._replace(tool=offered.get(call.tool, call.tool), call_id=call.call_id or f"call_{len(messages)}_{place}")
            for place, call in enumerate(turn.calls)))

    def _answer(self, observation: Observation) -> Turn:
        """Return the policy's answer, and note it if there is none."""
        try:
            return self._policy.act(observation)
        except PolicyFailed as error:
            self.failure = error
            raise

    def _record(self, turn: Turn, request: ModelRequest) -> str | None:
        """Record a turn, say its text, and expect its calls; return the user's reply."""
        with self._moves:
            if turn.text and self.speaks_by_tools:  # nobody hears it
                turn = turn._replace(reasoning="\n".join(filter(None, (turn.reasoning, turn.text))), text="")
            self.conversation.begin_turn(turn)
            reply = self.seat.recorder.say(turn.text) if turn.text else None
            self._prune()
            own = {name: name for name in self.tools} | self._own_names(request)
            self._calls = [call for call in self._calls if not call.is_done] + [
                _AnsweredCall(own.get(call.tool, call.tool), call.arguments, call.call_id or "", call.tool in own)
                for call in turn.calls]
            return reply

    def _own_names(self, request: ModelRequest) -> dict[str, str]:
        return own_names((tool["function"]["name"] for tool in request.tools), self.tools.keys())

    def _settle(self, messages: Sequence[Row]) -> None:
        """Record the calls that the agent has answered itself."""
        answers = {message.get("tool_call_id"): text_of(message) for message in messages if message["role"] == "tool"}
        for call in self._calls:
            if not call.is_taken and call.call_id in answers:
                self._refuse(call, answers[call.call_id])

    def _note_unseen(self, turn: Turn, unseen: list[Row], reply: str | None) -> None:
        last = turn.calls[-1].call_id or ""
        if unseen:
            self._before[turn.calls[0].call_id or ""] = unseen
        if reply is not None:
            self._after[last] = {"role": "user", "content": reply}

    def _with_unseen(self, messages: Sequence[Row]) -> list[Row]:
        """Return an agent's messages with those that it never saw, each where it was said."""
        return list(self._inserted(messages)) if self._before or self._after else list(messages)

    def _inserted(self, messages: Sequence[Row]) -> Iterator[Row]:
        waiting: Row | None = None
        used = set()
        for message in messages:
            if message["role"] != "tool" and waiting is not None:
                yield waiting
                waiting = None
            if message["role"] == "assistant":
                calls = message.get("tool_calls") or ()
                key = calls[0]["id"] if calls else text_of(message)
                if key not in used:
                    used.add(key)
                    yield from self._before.get(key, ())
                waiting = self._after.get(calls[-1]["id"]) if calls else None
            yield message
        if waiting is not None:
            yield waiting

    def _completed(self, turn: Turn) -> Row:
        """Return a turn as a chat completion with an id of its own: clients take answers with one id for parts of one."""
        document = completion(turn)
        return {**document, "id": f"{document['id']}-{next(self._numbers)}"}

    def _ask_aside(self, request: ModelRequest) -> Row:
        """Ask the model something that is no turn, such as a title: it offers no tool, so nobody can act on it."""
        with self._moves:
            self._n_after += self.is_over()
            if self._n_after > MOST_AFTER:
                raise Refused("the episode has ended", self.order.episode_id)
        observation = Observation(self.order.task_id, self.order.seed, self.order.attempt, request.messages, [], self._n_turns,
                                  request.fields)
        turn = self._answer(observation) if self._policy.is_model else Turn()
        with self._moves:
            self.aside.append({"model": turn.model, "usage": turn.usage})
        return self._completed(turn)

    def _last_word(self) -> Row:
        self._n_after += 1
        if self._n_after > MOST_AFTER:
            raise Refused("the episode has ended", self.order.episode_id)
        return self._completed(Turn(LAST_WORD))


def completion(turn: Turn) -> Row:
    """Return a turn as a chat completion: the endpoint's own fields, where there are, with the turn's message."""
    document = turn.document or {"id": "chatcmpl-episode", "object": "chat.completion", "created": 0}
    choice = (document.get("choices") or [{}])[0]
    message = {name: value for name, value in (choice.get("message") or {}).items() if value is not None}
    message |= turn.as_message()
    usage = turn.usage or {}
    counts = {name: usage.get(name) or 0 for name in ("prompt_tokens", "completion_tokens")}
    reason = choice.get("finish_reason")
    return {
        **document, "model": document.get("model") or "model",
        "usage": document.get("usage") or {**counts, "total_tokens": sum(counts.values())},
        "choices": [{**choice, "index": 0, "message": message,
                     "finish_reason": "tool_calls" if turn.calls else reason if reason == "length" else "stop"}]}


def text_of(message: Row) -> str:
    """Return what a chat message says."""
    content = message.get("content")
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(str(part.get("text", "")) for part in content)


def failed(error: Refused | Unavailable) -> int:
    """Return the HTTP status of an error of the model."""
    return 400 if isinstance(error, Refused) else 502


def own_names(offered: Iterable[str], tools: Set[str]) -> dict[str, str]:
    """Return the environment's tool behind each name that a request offers, without the agent's own tools. A tool has its own
    name, or if that is not offered, the first name that ends with it: frameworks put an MCP server's name before it."""
    names = list(offered)
    own = {name: name for name in names if name in tools}
    for tool in sorted(tools - own.keys(), key=lambda tool: (-len(tool), tool)):
        name = next((name for name in names if name not in own and name.endswith(f"_{tool}")), None)
        if name is not None:
            own[name] = tool
    return own


def json_object(text: Any) -> Row:
    """Return the object that arguments are; what is none stands under `arguments`, for protocols that allow nothing else."""
    try:
        value = json.loads(text) if isinstance(text, str) and text.strip() else text or {}
    except ValueError:
        value = text
    return value if isinstance(value, dict) else {"arguments": value}
