"""The scripted user of a many-turn task: what its session's user said, when it was said there.

In: the task's opening and `user` row, and what the agent says. Out: the user's words, or None, by the rules of
docs/environment.md. Nothing is invented: every answer is a turn of the script, a part of an earlier one, or one of the `STOCK`
words, which hold no facts (with a habit, a value of other people comes before the user's own and is taken back in the same
answer); what the user learnt from the agent alone is said only to an agent that says it. Sees: words, facts, shapes; question
marks and English words of request, confirmation, yes and no. Does not see: other languages' requests without a question mark,
irony, what a question means beyond its words. Text is only searched, never run and never a pattern.

A token is taken for a quarter of the characters that the agent wrote (words, names and arguments of calls) and was shown
(opening, answers, the user's words), each once. Not counted: what the agent thought, the descriptors of the tools, what a
model reads again at each step. A caller that runs the model reports its own count (`used`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .admission import well_formed
from .caching import cached
from .ends import same
from .habits import UserHabits
from .records import Task
from .stances import takes_back
from .words import Fact, facts_in

YES, NO, UNSURE, HEARD, LEAVES = "Yes.", "No.", "I don't know.", "OK.", "I'll leave it at that. Goodbye."
STOCK = (YES, NO, UNSURE, HEARD, LEAVES)
"""Words of the user that no session gives."""
COVER = 0.4
"""Share of a question's telling words, by weight, that must ask for what is told."""
WANTED = 0.6
"""Share of the words of a question for a yes that the user's own words must hold."""
OTHER = 100
"""Hundredths: weight of a word that does not ask for it."""
GONE = -1
OPENING = -1
"""Place of what was said before the agent's first move."""


class UserProgress(NamedTuple):
    """How far a user has come: all of it that changes."""

    spoken: int = 0
    """Which turns were said, a bit each."""
    idle: int = 0
    """Answers in a row that told nothing new; `GONE`: the user has left."""
    at: int = 0
    """How many of the recorded agent's words the agent has said, in order."""


class ScriptLine(NamedTuple):
    """One turn of the script."""

    text: str
    when: str
    """`asked`, `confirmed` (a yes or a no), `unasked`."""
    asks: Mapping[str, float]
    """Words that ask for it, with their weight."""
    tells: bool
    """Does it tell facts of the user's own?"""
    learnt: frozenset[Fact]
    """Facts in it that the agent had told the user."""
    slots: frozenset[str] = frozenset()
    """Arguments that it gives."""


class ScriptedUser:
    """The user of one task; immutable, so that forks share it and keep only their own progress."""

    __slots__ = (
        "_agrees", "_answers", "_before", "_eventful", "_familiar", "_full", "_index", "_learnt", "_lines",
        "_own", "_patience", "_places", "_shapes", "_wants", "events", "request")

    def __init__(self, row: Mapping[str, Any], opening: Sequence[Mapping[str, str]] = ()) -> None:
        turns, script = row["turns"], row.get("script")
        self._lines = tuple(
            ScriptLine(text, one["when"], one["asks"], bool(one["tells"]), _facts(one["learnt"]),
                       frozenset(value for kind, value in one["tells"] if kind == "argument"))
            for text, one in zip(turns, script or (), strict=script is not None))
        opening_words = [message["content"] for message in opening if message["role"] == "user"]
        self._before = ScriptLine("\n".join(opening_words), "asked", row.get("asks", {}), True, frozenset())
        self.request = self._before.text
        """What was said before the agent's first move."""
        self._answers = _answers(turns, script, row.get("after", ()))
        self._places: dict[str, list[int]] = {}
        for place, (text, _, _) in enumerate(self._answers):
            self._places.setdefault(text, []).append(place)
        self._wants = _facts(row.get("wants", ()))
        self._familiar = self._wants | _facts(row.get("seen", ()))
        self._shapes = {shape(fact) for fact in self._wants} - {None}
        self._index: dict[str, list[tuple[int, int]]] = {}
        for place, line in ((OPENING, self._before), *enumerate(self._lines)):
            for word, weight in line.asks.items():
                self._index.setdefault(word, []).append((place, round(100 * weight)))
        self._learnt = tuple(place for place, line in enumerate(self._lines) if line.learnt)
        heard = [words for one in script or () for words in one["heard"]]
        self._own = telling("\n".join([*opening_words, *turns, *heard]))
        self._agrees = self._own.union(row.get("agreed", ()))
        self._patience = row.get("patience")
        self._full = (1 << len(turns)) - 1
        self.events = tuple(row.get("events", ()))
        """What other people do (docs/environment.md)."""
        self._eventful = frozenset(event["turn"] for event in self.events if "turn" in event)

    def reply(self, progress: UserProgress, text: str, habits: UserHabits | None = None) -> tuple[UserProgress, str | None]:
        """How far the user has come then, and the answer to `text`; None where the user says nothing: it waits, or is done.

        `habits`: those of this episode's user, where recorded words do not settle the answer.
        """
        if progress.idle == GONE:
            return progress, None
        at, answers = progress.at, self._answers
        if not self._lines:  # a script that tells nothing but the words: in order, whatever is said
            if at >= len(answers):
                return progress, None
            return UserProgress(progress.spoken | answers[at][2], 0, at + 1), answers[at][1]
        if at < len(answers) and answers[at][0] == text:
            return UserProgress(progress.spoken | answers[at][2], 0, at + 1), answers[at][1]
        for place in self._places.get(text, ()):
            answer, bits = answers[place][1:]
            if place > at and bits and not progress.spoken & bits and self._follows(progress.spoken, bits):
                return UserProgress(progress.spoken | bits, 0, place + 1), answer
        return self._improvise(progress, text, habits)

    def _follows(self, spoken: int, bits: int) -> bool:
        """Was everything told that the script tells before these turns?"""
        before = (bits & -bits) - 1
        return all(spoken >> place & 1 or not line.tells for place, line in enumerate(self._lines) if before >> place & 1)

    def _improvise(self, progress: UserProgress, text: str, habits: UserHabits | None) -> tuple[UserProgress, str | None]:
        facts = stated(text)
        questions = question(text)
        asks_back = bool(questions) and confirms(questions) and not chooses(questions)
        wrong = self._wrong(facts, asks_back) if facts else frozenset()
        if wrong:
            texts = [self._before.text, *(line.text for place, line in enumerate(self._lines) if progress.spoken >> place & 1)]
            matches = (one for text in texts for one in sentences(text)
                     if any(shape(fact) in wrong and fact in self._wants for fact in stated(one)))
            return self._idle(progress, " ".join([NO, *list(dict.fromkeys(matches))[:1]]), habits)
        place = (self._elicited(progress.spoken, questions, facts, asks_back) if questions
                 else self._volunteered(progress.spoken))
        if place is not None:
            return self._tell(progress, place, habits)
        if not questions:
            return (progress, None) if progress.spoken == self._full else self._idle(progress, HEARD, habits)
        answer = self._again(progress.spoken, questions, facts, asks_back)
        if habits is not None and not facts and habits.strays(answer, *progress, text) and (
                place := self._volunteered(progress.spoken)) is not None:
            return self._tell(progress, place, habits)
        return self._idle(progress, answer, habits)

    def _tell(self, progress: UserProgress, place: int, habits: UserHabits | None) -> tuple[UserProgress, str]:
        """Return the turn, and with it the next one that this user tells without being asked."""
        spoken, text = progress.spoken | 1 << place, self._lines[place].text
        text = self._mistaken(progress, place, habits) if habits is not None and habits.corrects else text
        other = next((other for other, line in self._open_lines(spoken, frozenset()) if line.when == "asked" and line.slots
                      and line.slots <= habits.volunteers and other not in self._eventful), None) if habits else None
        if other is None:
            return UserProgress(spoken, 0, progress.at), text
        return UserProgress(spoken | 1 << other, 0, progress.at), f"{text}\n{self._lines[other].text}"

    def _mistaken(self, progress: UserProgress, place: int, habits: UserHabits) -> str:
        """Return the turn with a value that the user takes back at once; as it is where the record itself gives two."""
        line = self._lines[place]
        slots = frozenset(slot for slot in line.slots if sum(slot in one.slots for one in self._lines) == 1)
        if line.when != "asked" or line.learnt:
            return line.text
        own_words = "\n".join([self._before.text, *(one.text for one in self._lines)])
        text = habits.mistaken(line.text, slots, own_words, *progress)
        is_alike = granted(text) == granted(line.text) and takes_back(text) == takes_back(line.text)
        return text if is_alike else line.text

    def _wrong(self, facts: frozenset[Fact], asks_back: bool) -> frozenset[str]:
        """Shapes of the user's facts in whose place the text states others that nobody has ever seen."""
        shapes = {form for fact in facts - self._familiar if (form := shape(fact)) in self._shapes}
        if not shapes or asks_back:
            return frozenset(form for form in shapes if form)
        right = {shape(fact) for fact in facts & self._wants}
        return frozenset(form for form in shapes if form and form not in right and form != "date")

    def _elicited(self, spoken: int, questions: str, facts: frozenset[Fact], asks_back: bool) -> int | None:
        """Return the turn that the question asks for, of those not told; the next in order where it names nothing."""
        words = telling(questions)
        covers = self._covers(words)
        best, choice = COVER, None
        for place in sorted({*covers, *self._learnt}) if facts else sorted(covers):
            line = self._lines[place] if place >= 0 else None
            if line is None or spoken >> place & 1 or (line.when == "confirmed" and not asks_back) or (
                    line.learnt and line.learnt.isdisjoint(facts)):
                continue
            cover = 1.0 if line.learnt else covers[place]
            if cover > best or (choice is None and cover == best):
                best, choice = cover, place
        if choice is not None or covers.get(OPENING, 0.0) >= COVER:
            return choice
        if opens(questions):
            kinds = ("confirmed",) if asks_back else ("asked", "unasked")
            first = next((place for place, line in self._open_lines(spoken, facts)
                          if line.when in kinds and place not in self._eventful), None)
            return None if first is None or self._closes_early(spoken, first) else first
        if asks_back:
            if 2 * len(words & self._agrees) <= len(words) and (facts or agreeing(questions)):
                return None
            return next((place for place, line in self._open_lines(spoken, facts)
                         if line.when == "confirmed" and not line.tells), None)
        return None

    def _covers(self, words: frozenset[str]) -> dict[int, float]:
        """Of each line that words of the question ask for, their share of it by weight."""
        own: dict[int, int] = {}  # whole numbers, whose sum hangs on no order
        others: dict[int, int] = {}
        for word in words:
            for place, weight in self._index.get(word, ()):
                own[place] = own.get(place, 0) + weight
                others[place] = others.get(place, OTHER * len(words)) - OTHER
        return {place: weight / (weight + others[place]) for place, weight in own.items()}

    def _volunteered(self, spoken: int) -> int | None:
        """Return the turn that comes by itself: the first that is left of those that tell something or that nobody asks for.

        A turn that comes with events is said to an agent alone that asks for it, or that says just the recorded words.
        """
        place, line = next(((place, line) for place, line in self._open_lines(spoken, frozenset())
                            if line.tells or line.when == "unasked"), (0, None))
        return None if line is None or line.when != "unasked" or self._closes_early(spoken, place) else place

    def _closes_early(self, spoken: int, place: int) -> bool:
        """Is it the last turn, that tells nothing, while there is something left to say yes or no to?"""
        return place == len(self._lines) - 1 and not self._lines[place].tells and any(
            line.when == "confirmed" for _, line in self._open_lines(spoken, frozenset()))

    def _open_lines(self, spoken: int, facts: frozenset[Fact]) -> Iterable[tuple[int, ScriptLine]]:
        """Return the turns that may still be told to an agent that has just stated these facts."""
        return ((place, line) for place, line in enumerate(self._lines)
                if not spoken >> place & 1 and (not line.learnt or not line.learnt.isdisjoint(facts)))

    def _again(self, spoken: int, questions: str, facts: frozenset[Fact], asks_back: bool) -> str:
        """Return what to say to a question that no turn is left for."""
        words = telling(questions)
        if asks_back and not facts and not agreeing(questions):
            return YES
        if asks_back:
            wanted = len(words & self._own) >= WANTED * len(words) and (not facts or not facts.isdisjoint(self._wants))
            return YES if wanted else NO
        covers = self._covers(words)
        told_lines = ((cover, place) for place, cover in covers.items() if place == OPENING or (
            spoken >> place & 1 and self._lines[place].when == "asked"))
        best, place = max(told_lines, default=(0.0, OPENING))
        if best >= COVER:
            return (self._lines[place] if place >= 0 else self._before).text
        return NO if "else" in questions.lower() else UNSURE

    def _idle(self, progress: UserProgress, text: str, habits: UserHabits | None) -> tuple[UserProgress, str]:
        """Return an answer that tells nothing new; the last one where the user has had enough of it."""
        patience = habits.patience if habits is not None and habits.patience is not None else self._patience
        if patience is None or progress.idle + 1 < patience:
            return progress._replace(idle=progress.idle + 1), text
        last = self._lines[-1]
        closing = last.text if last.when == "unasked" and not last.tells and not last.learnt else LEAVES
        return progress._replace(idle=GONE), closing


def typed(habits: UserHabits, words: str, progress: UserProgress, heard: str) -> str:
    """Return the words as this user types them, where they state just the same."""
    written = habits.typed(words, *progress, heard)
    return written if agrees(words, written) and takes_back(words) == takes_back(written) else words


_ASKS = """\
You play the user of a service, in a conversation. Say the user's next words in your own: the same meaning, mood and language,
every number, date, name and id as it stands, nothing added and nothing left out. Reply with the words alone.

The agent said:
{heard}

The user's next words:
{words}
"""


def reworded(ask: Callable[[str], str], words: str, heard: str) -> str:
    """Return the words as a model says them, where it states just the same; else the words themselves."""
    answer = str(well_formed(ask(_ASKS.format(heard=heard, words=words)))).strip()
    return answer if agrees(words, answer) else words


def agrees(words: str, reworded: str) -> bool:
    """Return whether a paraphrase states just the facts, names, yes or no of the words that it stands for."""
    if not reworded.strip():
        return False
    return (facts_in(words) == facts_in(reworded) and stated(words) == stated(reworded)
            and set(_NUMBERS.findall(words.lower())) == set(_NUMBERS.findall(reworded.lower()))
            and granted(words) == granted(reworded) and names(reworded) <= _all(words) and names(words) <= _all(reworded))


def names(text: str) -> set[str]:
    """Return the words with a capital that begin no sentence."""
    return {name.casefold() for one in sentences(text) for word in one.split()[1:]
            if (name := word.strip(_MARKS))[:1].isupper() and name.partition("'")[0] != "I"}


def _all(text: str) -> set[str]:
    return {word.strip(_MARKS).casefold() for word in text.split()}


_NUMBERS = re.compile(
    r"\d+|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|half|twice|first|second|third|fourth|fifth"
    r"|sixth|seventh|eighth|ninth|tenth)\b")
_MARKS = ".,;:!?\"'()[]{}*_"


def _facts(pairs: Iterable[Sequence[str]]) -> frozenset[Fact]:
    return frozenset((kind, value) for kind, value in pairs)


def _answers(
    turns: Sequence[str], script: Sequence[Mapping[str, Any]] | None, after: Iterable[str]
) -> list[tuple[str, Any, int]]:
    """Return (the recorded agent's words, the answer to them or None, bits of the turns that it says), in order.

    What the user said before the agent said another word is one answer."""
    if script is None:
        return [("", text, 1 << place) for place, text in enumerate(turns)]
    answers: list[tuple[str, Any, int]] = []
    waiting, bits = [], 0  # what the user said before the agent said anything comes with the first answer, however late
    for place, (text, one) in enumerate(zip(turns, script, strict=True)):
        waiting.append(text)
        bits |= 1 << place
        if one["heard"]:
            answers += [(words, None, 0) for words in one["heard"][:-1]]
            answers.append((one["heard"][-1], "\n".join(waiting), bits))
        elif answers:
            answers[-1] = (answers[-1][0], "\n".join([answers[-1][1], *waiting]), answers[-1][2] | bits)
        else:
            continue
        waiting, bits = [], 0
    later = list(after)
    if waiting and later:
        answers.append((later.pop(0), "\n".join(waiting), bits))
    return answers + [(words, None, 0) for words in later]


LONGEST = 20_000
"""Characters of a text that are read."""
SHORTEST_WORD = 2

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_COUNT = re.compile(r"(?<![\w.,-])(\d{1,6})[ -]([^\W\d_]{3,})")
_ENDS = re.compile(r"[.?!](?=\s|$)|\n")
_REQUESTS = re.compile(
    r"\?|\b(?:please|provide|share|tell|need|confirm|specify|which|what|enter|choose|select|who|whom|whose|when|where|clarify|give"
    r"|know|verify)\b")
_DIGIT = re.compile(r"\d")
_PARTS = re.compile(r"[^\W_]+|[\W_]+")
_CONFIRMS = re.compile(
    r"yes ?/ ?no|\(y/n\)|\bconfirm\b|\bproceed\b|\bgo ahead\b|\b(?:is|are) (?:that|this|these|those|it|everything|all) "
    r"(?:right|correct|ok|okay|fine|accurate)|\bcorrect\?|\bright\?"
    r"|\b(?:shall|should|may|can) (?:i|we) (?!have|get|know|ask|see|help|assist|be|do)"
    r"|\b(?:would|do) you (?:like|want|wish|agree)\b|\bare you sure\b", re.IGNORECASE)
_CLAUSES = re.compile(r"[:;,\n]|(?<=[.?!]) ")
_CHOOSES = re.compile(r"\b(?:which|what|whose|where|when|who|how (?:many|much))\b", re.IGNORECASE)
_OPENS = re.compile(
    r"\bhow (?:can|may|could|else can) (?:i|we)\b|\bwhat (?:can|could|may|else)\b|\b(?:anything|something) (?:else|more)\b"
    r"|\bmore (?:about|information|details|context)\b", re.IGNORECASE)
_YES = re.compile(
    r"\W*(?:yes|yep|yeah|yup|ya|sure|ok|okay|correct|right|absolutely|definitely|of course|certainly|please do|go ahead"
    r"|confirmed|(?:that|this|it)(?:'s| is) (?:right|correct|fine|good)|sounds good|oui|ja|si|sí)\b", re.IGNORECASE)
_NO = re.compile(
    r"\W*(?:no|nope|nah|never ?mind|not|don'?t|do not|that'?s not|that is not|wrong|incorrect|nein|non)\b", re.IGNORECASE)
_STOPPED = """
a able about above after again ahead all also am an and any anyone anything are as ask assist assistance at available be
because been before being below but by can cannot certainly choose confirm correct could d dear detail details did do does
doing done down each else ensure enter feel few find first for free from further get give glad go going great had has have
having he hello help her here hers hi him his hold how however i if in inform information into is it its just kindly know let
like ll m may me might moment more most must my need needed no nor not now of off ok okay on once one only or other our out
over own please proceed provide re regarding right s same see select shall share she should so some something specify such
sure t tell than thank thanks that the their them then there these they this those through to today too under until up us use
using ve very want was we well were what when where whether which while who whom whose why will wish with within without would
yes yet you your yours
"""
_STOP = frozenset(_STOPPED.split())
"""Words that tell nothing of what is asked for."""


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, in order; a mark inside a word ends none."""
    ends = [0, *(match.end() for match in _ENDS.finditer(text, 0, LONGEST)), min(len(text), LONGEST)]
    return [match for begin, end in pairwise(ends) if (match := text[begin:end].strip())]


@cached(1024)
def telling(text: str) -> frozenset[str]:
    """Words of a text that may say what it is about, in small letters and without a plural's s."""
    return frozenset(_stem(word.replace("-", "")) for word in _WORD.findall(text[:LONGEST].lower())
                     if len(word) >= SHORTEST_WORD and word not in _STOP)


@cached(1024)
def question(text: str) -> str:
    """Return the sentences that ask for something, one a line; empty where there is none."""
    small = text[:LONGEST].lower()
    if len(small) != len(text[:LONGEST]):  # a letter that is two small ones
        small = text[:LONGEST]
    hits = [match.start() for match in _REQUESTS.finditer(small)]
    if not hits:
        return ""
    questions, begin, at = [], 0, 0
    for end in (*(match.end() for match in _ENDS.finditer(small)), len(small)):
        if at < len(hits) and hits[at] < end:
            questions.append(text[begin:end].strip())
            while at < len(hits) and hits[at] < end:
                at += 1
        begin = end
    return "\n".join(questions)


def confirms(questions: str) -> bool:
    """Return whether the question asks for a yes or a no."""
    return _CONFIRMS.search(questions) is not None


def agreeing(questions: str) -> frozenset[str]:
    """Telling words of the clauses that ask for a yes; none where they speak of nothing: shall I go ahead, are you sure."""
    return frozenset().union(*(telling(clause) for clause in _CLAUSES.split(questions) if _CONFIRMS.search(clause)))


def chooses(questions: str) -> bool:
    """Return whether it asks which, what, when …, so that neither a yes nor a no answers it."""
    return _CHOOSES.search(questions) is not None


def opens(questions: str) -> bool:
    """Return whether it leaves open what to say: how can I help, is there anything else …, or no telling word at all."""
    return not telling(questions) or _OPENS.search(questions) is not None


def granted(text: str) -> bool | None:
    """Return True where a user's text begins with a yes, False with a no, None with neither."""
    return True if _YES.match(text) else False if _NO.match(text) else None


@cached(1024)
def stated(text: str) -> frozenset[Fact]:
    """Facts of a text (`words.facts_in`), days without their year, and ("count", "2 bag") for counted nouns."""
    if not _DIGIT.search(text):
        return frozenset()
    counts = ((n, word.lower()) for n, word in _COUNT.findall(text[:LONGEST]))
    facts = ((kind, f"--{value[-5:]}" if kind == "date" else value) for kind, value in facts_in(text))
    return frozenset((*facts, *(("count", f"{int(n)} {_stem(word)}") for n, word in counts if word not in _STOP)))


def shape(fact: Fact) -> str | None:
    """Return what facts have in common that may be taken for each other: ids their form, counts what is counted; None: a
    number.
    """
    kind, value = fact
    if kind == "id":
        return "id " + "".join(_form(part) for part in _PARTS.findall(value))
    return f"count {value.partition(' ')[2]}" if kind == "count" else "date" if kind == "date" else None


def _form(part: str) -> str:
    head = part.rstrip("0123456789")
    if head.isalpha() and len(head) < len(part):
        return f"{head}{'9' * (len(part) - len(head))}"
    return part if not part.isalnum() else f"{'9' if part.isdigit() else 'a' if part.isalpha() else 'x'}{len(part)} "


def _stem(word: str) -> str:
    return word[:-1] if len(word) > SHORTEST_WORD and word.endswith("s") and not word.endswith("ss") else word


CHARACTERS = 4
"""Characters of a token, on average: English under the usual tokenizers of byte pairs."""
NOBODY = ScriptedUser({"turns": []})


class UserConversation:
    """The conversation of one episode; a fork shares the user and keeps its own progress."""

    __slots__ = ("_user", "habits", "n_chars", "progress")

    def events_since(self, spoken: int) -> list[Mapping[str, Any]]:
        """Return the events that come with the turns said since. `spoken`: the turns said before, a bit each."""
        new = self.progress.spoken & ~spoken
        return [event for event in self._user.events if "turn" in event and new >> event["turn"] & 1]

    def events_after(self, tool: str, arguments: Any) -> list[Mapping[str, Any]]:
        """Return the events that follow this call of the agent."""
        call = {"tool": tool, "arguments": arguments}
        return [event for event in self._user.events if same(event.get("after"), call)]

    def __init__(self, task: Task | None = None, user: ScriptedUser = NOBODY, habits: UserHabits | None = None) -> None:
        self._user, self.habits = user, habits
        self.progress = UserProgress()
        self.n_chars = sum(len(message["content"]) for message in task.opening) if task else 0
        """Characters that the agent wrote and was shown."""

    def fork(self) -> UserConversation:
        twin = object.__new__(UserConversation)
        twin._user, twin.progress, twin.n_chars, twin.habits = self._user, self.progress, self.n_chars, self.habits
        return twin

    def reply(self, text: str, reword: Callable[[str], str] | None, draw: Callable[[str, str, str], str | None] | None = None
              ) -> str | None:
        """Return the user's answer; None where the user waits, has no more to say or has left.

        `draw`: the words as another person words them; `reword`: a model, for the words that come of it.
        """
        before = self.progress
        self.progress, reply = self._user.reply(before, text, self.habits)
        if draw is not None and reply is not None:
            reply = draw(reply, text, self._user.request)
        if self.habits is not None and reply is not None:
            reply = typed(self.habits, reply, before, text)
        if reword is not None and reply is not None:
            reply = reworded(reword, reply, text)
        self.n_chars += len(text) + len(reply or "")
        return reply
