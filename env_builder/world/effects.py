"""What tools do to the world, from what reads showed before and after them: reads, writes, and what a write leaves unchanged.

Two reads of one record (a document by its key, or the same question) with calls between them that name it: equal answers
speak for those calls, unequal ones against at least one of them. Where a tool's calls name all arguments of such a question at
times, only those calls are shown to keep it. Calls that were given something which only one of the two answers shows come
first. The fewest tools that explain all unequal answers are writes (greedy, the most often guilty first).

Answers alone tell whether a tool reports or merely confirms: whether they hold what the questions do not, whether the same
question has the same answer, whether the tool takes nothing but prose, whether it goes to an address outside; and whether it
calculates: the answer is the value of the expression in the one argument (runtime/arithmetic.py).

Only proof makes a read: answers that tell something and come again when the question is asked again in one world, or a
declaration. A tool that looks like a read without proof is a *presumed* read: the environment answers it like a read, and
rewards count it as a possible write; where no read was equal around its calls, the records that it names are uncertain after it
(`unseen`). Names and descriptions speak against a read, never for it. Calls outweigh words: a tool that takes one name and
tells the same of it again and again does no harm, whatever it is called.

Sees: what is read again; words. Does not see: a change that no call reads; what words mean; functions, units; a write that
repeats its answer and whose name and description say nothing of it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Literal, NamedTuple

from env_builder.runtime.joints import key_argument
from env_builder.runtime.programs import ACTING
from env_builder.runtime.relevance import leaves
from env_builder.runtime.texts import FORMATS, arithmetic_value
from env_builder.runtime.tool_parts import values_of
from env_builder.world.betweens import (
    MINIMUM_LOOKS,
    WITHOUT_ARGUMENTS,
    Between,
    Place,
    Sight,
    against_baseline,
    all_betweens,
)
from env_builder.world.calls import LoggedCall, calls_by_tool, order_of
from env_builder.world.computed import is_computed
from env_builder.world.documents import Documents
from env_builder.world.reaches import Unnamed, often_changed
from env_builder.world.statements import begin_with

MINIMUM_QUESTIONS = 3
"""Different expressions that must have been answered so: fewer may be chance."""


class Calculation(NamedTuple):
    """How a tool calculates."""

    argument: str
    styles: list[str]
    """Keys of `FORMATS`: every way of writing that gives all the answers."""


def calculation(calls: list[LoggedCall]) -> Calculation | None:
    """Return the calculation that gives every answer of these calls that is not a failure, or None."""
    questions = {call.key: call for call in calls if not call.failed}
    names = {tuple(call.arguments) for call in questions.values()}
    if len(questions) < MINIMUM_QUESTIONS or len(names) != 1 or len(next(iter(names))) != 1:
        return None
    (argument,) = next(iter(names))
    values = {key: _evaluated(call.arguments[argument]) for key, call in questions.items()}
    numbers = {key: value for key, value in values.items() if value is not None}
    if len(numbers) < len(questions) or len(set(numbers.values())) < MINIMUM_QUESTIONS:
        return None
    styles = [
        style for style, write in FORMATS.items()
        if all(write(value) == questions[key].content for key, value in numbers.items())]
    return Calculation(argument, styles) if styles else None


def _evaluated(text: object) -> int | float | None:
    try:
        return arithmetic_value(text) if isinstance(text, str) else None
    except ValueError:
        return None


MINIMUM_CALLS = 3
REPEATS = 0.5
"""Share of equal answers to the same question from which a tool counts as telling the same again (fresh ids never are)."""
NOVEL = 0.2
"""Share of answers that tell something new from which a tool counts as telling."""
MANY_WORDS = 12
"""Words of an answer that are neither the question's nor in all other answers, from which it tells something."""
PROSE_WORDS = 4
_WORD = re.compile(r"\w+")
_ADDRESS = re.compile(r"[^\s@,;]+@[^\s@,;]+\.\w+|\+\d[\d ()./-]{6,}\d|(?:https?://|www\.)\S+")


def prose(calls: list[LoggedCall]) -> bool:
    """Return whether it takes nothing but prose; what such a call does lies outside the world that tools show."""
    texts = [value for call in calls for value in call.arguments.values()]
    worded = sum(isinstance(text, str) and len(text.split()) >= PROSE_WORDS for text in texts)
    return len(calls) >= MINIMUM_CALLS and worded > len(texts) / 2


def addressed(calls: list[LoggedCall]) -> bool:
    """Return whether most calls go to an address outside (mail, telephone, web), and so take effect outside this world."""
    to = [any(isinstance(value, str) and _ADDRESS.fullmatch(value) for value in leaves(call.arguments)) for call in calls]
    return len(calls) >= MINIMUM_CALLS and 2 * sum(to) > len(to)


def repeats(calls: list[LoggedCall]) -> bool:
    """Return whether the tool answers the same question the same way."""
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    for call in calls:
        if not call.failed:
            answers[call.key][call.content] += 1
    n = sum(counts.total() - 1 for counts in answers.values())
    same = sum(counts.most_common(1)[0][1] - 1 for counts in answers.values())
    return n >= MINIMUM_CALLS and same >= REPEATS * n


def sorts(calls: list[LoggedCall]) -> bool:
    """Return whether it sorts each question into a kind by one of a few answers, each repeated, in words of its own.

    What confirms repeats what it was asked, or says the same of everything.
    """
    answers: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        if not call.failed and call.arguments:
            answers[call.content].add(call.key)
    kinds = [content for content, questions in answers.items() if len(questions) >= MINIMUM_CALLS]
    own = all(content and not any(word in key for word in _WORD.findall(content))
              for content, questions in answers.items() for key in questions)
    return len(kinds) > 1 and own and repeats(calls)


def novel(calls: list[LoggedCall]) -> bool:
    """Return whether most answers hold a word that is neither the question's nor in most other answers.

    Many words that are in some answers only tell as well (lists of the same records overlap), and so do many words where only
    one question was ever asked: what merely confirms is short. A tool without arguments tells if its answers
    differ. Answers without a word, such as an empty list, count for neither.
    """
    answers = {call.key: call.content for call in calls if not call.failed}
    if set(answers) <= {WITHOUT_ARGUMENTS}:
        contents = {call.content for call in calls if not call.failed}
        return len(contents) > 1 or any(len(_WORD.findall(content)) >= MANY_WORDS for content in contents)
    words_of = [(question, frozenset(_WORD.findall(content))) for question, content in sorted(answers.items())]
    words_of = [(question, words) for question, words in words_of if words]
    counts = Counter(word for _, words in words_of for word in words)
    new = sum(_tells(key, words, counts, len(words_of)) for key, words in words_of)
    return bool(words_of) and new >= NOVEL * len(words_of)


def _tells(question: str, words: frozenset[str], counts: Counter[str], n_questions: int) -> bool:
    n_own = 0
    for word in words:
        if counts[word] < max(2, n_questions) and word not in question:
            n_own += 1
            if n_own >= MANY_WORDS or counts[word] <= n_questions / 2:
                return True
    return False


Effect = Literal["read", "write", "pure", "constant", "outside", "unknown"]
CHANGES_RATE = 0.05
"""Share of changed reads from which a tool counts as writing (agents repeat writes that change nothing)."""
TELLING_RATE = 0.2
"""The same for a tool that tells something without showing the record changed: most such tools only look."""
KEEPS_RATE = 0.02
"""Share of changed reads (somebody outside the log acts too) up to which an act keeps what a tool shows."""
NEARLY_ALWAYS = 0.8
"""From this share of changed reads on an act is not said to keep what it stood beside, however much changes by itself."""


class Declared(NamedTuple):
    """What a tool's descriptor says of it."""

    hint: Effect | None = None
    """`read` if it is annotated as read-only, `unknown` if as not, None if it is not annotated."""
    description: str = ""


UNDECLARED = Declared()


class Effects(NamedTuple):
    """What the tools of one service do."""

    effect: dict[str, Effect]
    relation: dict[str, dict[str, str]]
    """Acting tool -> looking tool or class -> "keeps", "changes", "answers" (it changes what only its answers name) or
    "reaches" (it also changes what it does not name); absent: nothing was seen."""
    presumed: frozenset[str]
    """Tools that look like reads by their answers, without proof: simulated as such."""
    harmless: frozenset[str]
    """Those of them that also look so by their names or their place in sessions: one call more or less does no harm."""
    repeating: frozenset[str]
    """Tools that answered a question as before when it was asked again, with whatever was done between."""
    unseen: frozenset[str]
    """Presumed reads that show no document, never answered twice alike, and around whose calls nothing was read twice alike."""
    unclear: frozenset[str]
    """Tools that tell something, of which neither calls nor words say whether they read or change."""


PROVING_REPEATS = 2
"""Equal answers to a question asked again in one world that prove a read."""
PROVING_LOOKS = 3
"""Equal reads around its calls that prove a read together with one equal answer."""
SURE_REPEATS = 3
"""The same within sessions, where other answers differ: what the tool shows changes meanwhile."""
HARMLESS_REPEATS = 5
"""Equal answers to a question about one name, asked again, from which a tool does no harm whatever its name says."""
REFUSED_AGAIN = 2
"""Witnesses of a failure to do again what just worked, from which a tool is no read."""
CONTRAST_PAIRS = 4
"""Pairs of reads in a shared world with a tool between them from which it can be blamed for their differences."""
CONTRAST_CHANGED, CONTRAST_USUAL = 0.8, 0.2
"""Share of these that must differ, at least, and of the pairs without it that may, at most."""
PREPARING_SESSIONS = 5
"""Sessions with a tool from which they tell whether it prepares others."""
MOST_LAST = 0.1
"""Share of them in which a tool that prepares others is the last to be called, at most."""
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NAMESPACE = re.compile(r"^(?:[\w-]+(?:__|[.:]))+(?=[A-Za-z])")
"""What stands before the own name of a tool: the name of its server or group."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LOOKING = _words(
    "get list read show view find search look lookup fetch query check count describe browse display retrieve see return "
    "returns gets lists reads shows views finds searches looks fetches queries checks counts describes browses displays "
    "retrieves sees calculate calculates compute computes estimate estimates tell tells is has can could does are was what "
    "which who whether where when preview previews")
_CHANGING = _words(
    "add create make insert put set update modify change edit patch replace rename move upload write save delete remove "
    "drop clear erase purge cancel close open reopen void revoke reset restore undo archive reserve schedule reschedule "
    "assign unassign allocate transfer send notify reply submit buy purchase pay refund grant approve deny reject accept "
    "confirm enroll register unregister subscribe unsubscribe activate deactivate enable disable lock unlock block unblock "
    "suspend resume renew extend start stop restart pause redeem apply merge split unlink attach detach escalate rm mkdir "
    "mv touch push commit deploy publish waive rotate toggle switch reboot withdraw deposit donate reimburse unfollow unlike "
    "join leave append prepend paste swap adjust undo redo pop enqueue dequeue shuffle install "
    "uninstall connect disconnect mute unmute unpublish pin unpin hide unhide ban unban promote demote dismiss terminate "
    "abort retweet upvote downvote reassign rebook acknowledge resolve snooze postpone freeze unfreeze dispatch unload")
CHANGING_STATEMENTS = _CHANGING | {"mutation"}
_CHANGING_OR_NOUNS = _words(
    "book order file mail email message record log label tag flag mark link copy cp store post charge credit debit issue "
    "note exchange return invite forward echo pull sign turn like comment share mention follow claim release hold ship "
    "load fix bill vote star shift raise lower fund fill")
"""Verbs of changing that are nouns as well: they count where they stand first, unless the last word names a state."""
_VERBS = _LOOKING | _CHANGING | _CHANGING_OR_NOUNS
_PARTICLES = frozenset(("in", "out", "on", "off"))
"""Words that make another verb of the verb of looking before them: to check in."""
_STATES = _words(
    "status state history info information details detail summary balance list availability count record card profile")
_IS_CHANGED = re.compile(
    r"\b(?:is|are|gets?|will be|being)\s+(?:\w+ly\s+|also\s+)?(?:audited|logged|recorded|charged|billed|counted|noted|saved"
    r"|stored|updated|changed|created|deleted|removed|cancelled|sent|marked|reset|locked|reserved|booked)\b", re.IGNORECASE)


def _name_words(name: str) -> list[str]:
    """Return the words of a tool's own name; the group before it belongs to it if that has a verb of changing. Of a part of a
    tool, the last of the values that name it which has a verb."""
    values = values_of(name)
    verbs = [value for value in values if not _VERBS.isdisjoint(map(str.lower, _PARTS.findall(value)))]
    name = (verbs or values or [name])[-1]
    own = _PARTS.findall(_NAMESPACE.sub("", name))
    words = _PARTS.findall(name)
    return words if {word.lower() for word in words[:len(words) - len(own)]} & _CHANGING else own


def tells_of_a_change(name: str, description: str) -> bool:
    """Return whether name or description begins with a verb of changing, or the description says that something is changed.

    English alone.
    """
    return bool(_IS_CHANGED.search(description)) or any(
        _begins_with_a_change(words) for words in (_name_words(name), _WORD.findall(description)[:4]))


def tells_of_a_look(name: str, description: str) -> bool:
    """Return whether the name begins with a verb of looking or ends with a word for a state, or the description begins so."""
    words = [word.lower() for word in _name_words(name)]
    return (bool(words) and (words[0] in _LOOKING or words[-1] in _STATES)) or any(
        word.lower() in _LOOKING for word in _WORD.findall(description)[:1])


def _begins_with_a_change(words: list[str]) -> bool:
    words = [word.lower() for word in words]
    for place, word in enumerate(words):
        stems = {word, word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ies") + "y"}
        if word in _LOOKING:
            return word == "check" and not _PARTICLES.isdisjoint(words[place + 1:place + 2])
        if stems & _CHANGING or (place == 0 and stems & _CHANGING_OR_NOUNS and words[-1] not in _STATES):
            return True
    return False


def find(calls: list[LoggedCall], documents: Documents, shared: bool, declared: dict[str, Declared]) -> Effects:
    """Effects of one service's tools. `shared`: looks of all sessions are in one world; `declared`: by tool."""
    by_tool = calls_by_tool(calls)
    tools = frozenset(by_tool)
    tells = frozenset(tool for tool, mine in by_tool.items() if novel(mine))
    sight = Sight(documents, tells)
    in_session = list(all_betweens(calls, sight, tools, shared=False))
    looking = tells - documents.tools.keys()
    if not shared:  # only what lies in one session is said against a tool that tells: sessions differ in more than calls
        in_session += against_baseline(calls, sight, tools - looking)
    computed = _computed(by_tool, documents)
    fickle = _fickle(in_session) | computed
    in_session = [between for between in _without_steady(in_session) if between.tools and between.place not in fickle]
    creating = {tool for tool, documented in documents.tools.items() if documented.argument is None}
    showing = frozenset(tool for tool, documented in documents.tools.items() if documented.only_key)
    repeating = frozenset(tool for tool, mine in by_tool.items() if _repeats_of_one_name(mine, shared) >= HARMLESS_REPEATS)
    seldom = _seldom_beside_changes(in_session) & showing & repeating if shared else frozenset[str]()
    guilty = _guilty([between._replace(tools=between.tools - seldom) for between in in_session], looking, showing) | creating
    if shared:
        across = [between for between in all_betweens(calls, sight, tools, shared=True) if between.place not in computed]
        guilty |= _guilty_across(across, guilty, repeating)
    kept = Counter(tool for between in in_session if not between.changed and not between.unnamed for tool in between.tools)
    descriptors = {tool: _described(declared.get(tool, UNDECLARED), by_tool[tool]) for tool in sorted(tools)}
    alike = _answering_again(calls, guilty) | {tool for tool, mine in by_tool.items() if repeats(mine)}
    effect = {tool: _effect(by_tool[tool], tool in guilty, kept[tool], tool in alike, sight, descriptors[tool])
              for tool in sorted(tools)}
    effect |= {tool: "unknown" for tool in sorted(looking) if effect[tool] == "read" and descriptors[tool].hint != "read"
               and tells_of_a_change(tool, descriptors[tool].description)
               and equal_repeats(by_tool[tool], shared) < HARMLESS_REPEATS}  # who says so and does it twice says it twice
    effect |= {tool: "read" for tool in sorted(looking) if effect[tool] == "unknown" and descriptors[tool].hint != "unknown"
               and equal_repeats(by_tool[tool], shared=False) >= SURE_REPEATS
               and _is_proven(by_tool[tool], kept[tool], sight, descriptors[tool], shared)}
    effect |= {tool: "unknown" for tool in sorted(documents.tools) if effect[tool] == "read"
               and descriptors[tool].hint != "read" and tells_of_a_change(tool, descriptors[tool].description)
               and not equal_repeats(by_tool[tool], shared)}
    refused = _refused_again(calls, effect) - {tool for tool, each in descriptors.items() if each.hint == "read"}
    effect |= {tool: "unknown" for tool in refused if effect[tool] in ("read", "pure", "constant")}
    reads = {tool for tool, mine in by_tool.items()
             if effect[tool] == "read" and _is_proven(mine, kept[tool], sight, descriptors[tool], shared)}
    unproven = frozenset(tool for tool in tools if effect[tool] in ("read", "unknown")) - reads
    changing = {tool for tool in tools if effect[tool] == "write" or tells_of_a_change(tool, descriptors[tool].description)}
    preparing = _preparing(calls, changing)
    counting = frozenset(tool for tool in unproven if _counts(by_tool[tool]))
    effect |= dict.fromkeys(counting, "unknown")
    harmless = frozenset(tool for tool in unproven - counting - refused
                         if _seems_to_read(by_tool[tool], sight, descriptors[tool], tool in preparing, tool in repeating))
    presumed = harmless | frozenset(tool for tool in unproven if effect[tool] == "read")
    effect |= dict.fromkeys(harmless, "read")
    acting = frozenset(tool for tool in tools if effect[tool] in ACTING)
    betweens = [*all_betweens(calls, sight, acting, shared, listed=True),
                *(() if shared else against_baseline(calls, sight, acting))]
    relation = relation_of([between for between in betweens if between.place not in fickle])
    for tool in refused:
        relation.setdefault(tool, {})[tool] = "changes"
    _add_reaching(relation, acting, Unnamed(calls, sight, acting | presumed, shared))  # any may have done it
    again = frozenset(tool for tool, mine in by_tool.items() if equal_repeats(mine, shared))
    unseen = frozenset(tool for tool in presumed - again - documents.tools.keys() if not kept[tool])
    unclear = frozenset(tool for tool in (unproven & tells) - presumed - changing - guilty - counting - refused
                        if descriptors[tool].hint != "unknown")
    return Effects(effect, relation, presumed, harmless, again, unseen, unclear)


def _described(declared: Declared, mine: list[LoggedCall]) -> Declared:
    """Return what is declared of a tool; one that takes statements of which one begins with a change says so by itself."""
    changes = declared.hint is None and begin_with(mine, CHANGING_STATEMENTS)
    return declared._replace(hint="unknown") if changes else declared


def _fickle(betweens: list[Between]) -> set[str]:
    """Return the places whose reads differ with nothing done between."""
    counts = Counter(between.place for between in betweens if not between.tools)
    changed = Counter(between.place for between in betweens if not between.tools and between.changed)
    return {place for place, n in counts.items() if changed[place] >= max(2, CHANGES_RATE * n)}


def _computed(by_tool: Mapping[str, list[LoggedCall]], documents: Documents) -> set[str]:
    """Return the tools and classes whose answers follow from the questions alone: they tell of no state, nor of its change."""
    place_of = {tool: documents.tools[tool].entity_class if tool in documents.tools else tool for tool in by_tool}
    stateful = {place for tool, place in place_of.items() if (
        place in documents.classes and documents.classes[place].self_field is not None) or not is_computed(by_tool[tool])}
    return set(place_of.values()) - stateful


def _without_steady(betweens: list[Between]) -> list[Between]:
    """Return the pairs without blame for who asks again, of tools that never tell anything new with nothing else between."""
    alone = {between.own: Counter[bool]() for between in betweens}
    for between in betweens:
        if between.is_alone:
            alone[between.own][bool(between.changed)] += 1
    steady = {own for own, counts in alone.items() if own and counts[False] and not counts[True]}
    return [between._replace(tools=between.tools - {between.own})
            if between.own in steady and between.changed and not between.is_alone else between for between in betweens]


def _answering_again(calls: list[LoggedCall], guilty: set[str]) -> set[str]:
    """Return the tools that answer a question as before if it is asked again in the session, with none of `guilty` between."""
    last: dict[Place, str] = {}
    n, n_equal, session_id = Counter[str](), Counter[str](), ""
    for call in sorted(calls, key=lambda call: (call.session_id, call.position)):
        if call.session_id != session_id or call.tool in guilty:
            last, session_id = {}, call.session_id
        if call.failed or call.tool in guilty:
            continue
        question = (call.tool, call.key)
        n[call.tool] += question in last
        n_equal[call.tool] += last.get(question) == call.content
        last[question] = call.content
    return {tool for tool, times in n.items() if times >= MINIMUM_CALLS and n_equal[tool] >= REPEATS * times}


def _refused_again(calls: list[LoggedCall], effect: Mapping[str, Effect]) -> set[str]:
    """Return the tools that fail if they are asked again what just worked, with only reads between: they did something.

    One such failure may be an accident of the service; two of different witnesses, and more than equal answers, are not. Of
    the tools between, the fewest that explain all failures are to blame."""
    failing: list[tuple[LoggedCall, frozenset[str]]] = []
    n_equal = Counter[str]()
    for _, session in groupby(sorted(calls, key=lambda call: (call.session_id, call.position)),
                              key=lambda call: call.session_id):
        worked: dict[Place, tuple[str, frozenset[str]]] = {}
        for call in session:
            content, between = worked.get((call.tool, call.key), (None, frozenset[str]()))
            if content is not None and call.failed:
                failing.append((call, between | {call.tool}))
            n_equal[call.tool] += content == call.content and not call.failed
            worked = {question: (text, tools | {call.tool}) for question, (text, tools) in worked.items()
                      } if effect[call.tool] not in ACTING else {}
            if not call.failed:
                worked[call.tool, call.key] = call.content, frozenset()
    blamed: set[str] = set()
    for tool, n in _explaining([tools for _, tools in failing]):
        witnesses = {call.witness for call, _ in failing if call.tool == tool}
        if min(n, len(witnesses)) >= REFUSED_AGAIN and len(witnesses) > n_equal[tool]:
            blamed.add(tool)
    return blamed


def _explaining(causes: list[frozenset[str]]) -> Iterator[tuple[str, int]]:
    """Yield few tools of which each of the causes has one, with the number of causes that it explains."""
    while causes:
        n = Counter(tool for tools in causes for tool in tools)
        tool = min(n, key=lambda each: (-n[each], each))
        yield tool, n[tool]
        causes = [tools for tools in causes if tool not in tools]


def _counts(mine: list[LoggedCall]) -> bool:
    """Return whether the answer tells how often the tool was called in the session, whatever it was asked: then it keeps
    something of its calls. Sees: sessions with several calls that worked."""
    by_session: dict[str, list[LoggedCall]] = defaultdict(list)
    for call in sorted(mine, key=lambda call: (call.session_id, call.position)):
        if not call.failed:
            by_session[call.session_id].append(call)
    by_place: dict[int, list[LoggedCall]] = defaultdict(list)
    for calls in by_session.values():
        for place, call in enumerate(calls):
            by_place[place].append(call)
    several = {place: calls for place, calls in by_place.items() if len({call.key for call in calls}) >= MINIMUM_CALLS}
    contents = [{call.content for call in calls} for calls in several.values()]
    return len(contents) > 1 and all(len(each) == 1 for each in contents) and len(set.union(*contents)) == len(contents)


def _preparing(calls: list[LoggedCall], changing: set[str]) -> frozenset[str]:
    """Return the tools that are almost never the last call of a session in which others of `changing` are called."""
    sessions: dict[str, list[str]] = defaultdict(list)
    for call in calls:
        if not call.failed:
            sessions[call.session_id].append(call.tool)
    n_with, n_last = Counter[str](), Counter[str]()
    for tools in sessions.values():
        n_with.update(tool for tool in set(tools) if not changing.isdisjoint(set(tools) - {tool}))
        n_last[tools[-1]] += not changing.isdisjoint(set(tools) - {tools[-1]})
    return frozenset(tool for tool, n in n_with.items() if n >= PREPARING_SESSIONS and n_last[tool] <= MOST_LAST * n)


def _seems_to_read(mine: list[LoggedCall], sight: Sight, declared: Declared, prepares: bool, repeating: bool) -> bool:
    """Return whether a tool without proof looks like a read: it tells something, and tells it again and again, or its name
    says so, or others follow it."""
    tool = mine[0].tool
    if declared.hint == "unknown" or (not repeating and tells_of_a_change(tool, declared.description)):
        return False
    tells = tool in sight.telling or (tool in sight.documents.tools and sight.documents.tools[tool].only_key)
    return tells and (repeating or prepares or tells_of_a_look(tool, declared.description))


def _repeats_of_one_name(mine: list[LoggedCall], shared: bool) -> int:
    """Count equal answers to a question asked again, of a tool that takes one name. What is done twice rather fails."""
    return equal_repeats(mine, shared) if all(key_argument(call.arguments) for call in mine) else 0


def _is_proven(mine: list[LoggedCall], kept: int, sight: Sight, declared: Declared, shared: bool) -> bool:
    """Return whether a tool that looks like a read is surely one. `kept`: equal reads elsewhere around its calls."""
    if declared.hint == "read":
        return True
    tool = mine[0].tool
    if tells_of_a_change(tool, declared.description) or not (tool in sight.telling or tool in sight.documents.tools):
        return False
    if all(call.key == WITHOUT_ARGUMENTS for call in mine) and len({call.content for call in mine if not call.failed}) < 2:
        return False  # it may as well confirm
    n_equal = equal_repeats(mine, shared)
    return n_equal >= PROVING_REPEATS or (n_equal > 0 and kept >= PROVING_LOOKS)


def equal_repeats(mine: list[LoggedCall], shared: bool) -> int:
    """Count the answers that equal the one before to the same question in one world."""
    last: dict[Place, str] = {}
    n_equal = 0
    for call in sorted(mine, key=order_of) if shared else mine:
        if not call.failed:
            question = (call.key,) if shared else (call.session_id, call.key)
            n_equal += last.get(question) == call.content
            last[question] = call.content
    return n_equal


def _guilty(betweens: list[Between], telling: frozenset[str], showing: frozenset[str]) -> set[str]:
    """Return the fewest tools that explain the changed reads. `telling`: tools that tell something but show no document;
    `showing`: tools that take a key and show its document, the last to be blamed among equals."""
    n_between = Counter(tool for between in betweens for tool in between.tools)
    unexplained = [between.tools for between in betweens if between.changed]
    guilty: set[str] = set()
    while unexplained:
        counts = Counter(tool for tools in unexplained for tool in tools)
        blamed = {
            tool: n * n / (n_between[tool] + 2)  # how often it is guilty, times how much it explains; few looks weigh little
            for tool, n in sorted(counts.items())
            if n >= (TELLING_RATE if tool in telling else CHANGES_RATE) * n_between[tool]}
        if not blamed:
            break
        worst = max(blamed, key=lambda tool: (blamed[tool], tool not in showing))
        guilty.add(worst)
        unexplained = [tools for tools in unexplained if worst not in tools]
    return guilty


def _seldom_beside_changes(betweens: list[Between]) -> frozenset[str]:
    """Return the tools beside which reads seldom differ: in a shared world others may have done that meanwhile."""
    n = Counter(tool for between in betweens for tool in between.tools)
    n_changed = Counter(tool for between in betweens if between.changed for tool in between.tools)
    return frozenset(tool for tool in n if n_changed[tool] <= CONTRAST_USUAL * n[tool])


def _guilty_across(betweens: list[Between], guilty: set[str], repeating: frozenset[str]) -> set[str]:
    """Return further tools of a shared world without which what is read hardly ever changes, and with which it nearly always
    does. Others act there too, so one pair says nothing. `repeating`: tools that told the same again and again."""
    pairs = [between for between in betweens if between.tools.isdisjoint(guilty)]
    blamed: set[str] = set()
    while pairs:
        n, n_changed = Counter[str](), Counter[str]()
        for between in pairs:
            n.update(between.tools)
            n_changed.update(between.tools if between.changed else ())
        total = sum(bool(between.changed) for between in pairs)
        suspects = [
            (n_changed[tool], tool) for tool in sorted(n.keys() - repeating)
            if n[tool] >= CONTRAST_PAIRS and n_changed[tool] >= CONTRAST_CHANGED * n[tool]
            and total - n_changed[tool] <= CONTRAST_USUAL * (len(pairs) - n[tool])]
        if not suspects:
            break
        worst = max(suspects)[1]
        blamed.add(worst)
        pairs = [between for between in pairs if worst not in between.tools]
    return blamed


def _effect(mine: list[LoggedCall], guilty: bool, kept: int, again: bool, sight: Sight, declared: Declared) -> Effect:
    """Return what a tool seems to do. `again`: it answers the same question the same way."""
    tool, hint = mine[0].tool, declared.hint
    if guilty:
        return "write"
    documented = sight.documents.tools.get(tool)
    quiet = documented is None and tool not in sight.telling and kept >= MINIMUM_LOOKS
    if quiet and hint != "read" and addressed(mine):
        return "outside"
    if hint == "unknown":
        return "unknown"
    harmless = kept >= MINIMUM_LOOKS or hint == "read"
    if documented:  # what takes more than the key and was never seen to change anything is not proven harmless
        is_look = documented.only_key or (bool(documented.agrees) and (harmless or again))
        return "read" if is_look else "unknown"
    if calculation(mine):
        return "pure"
    if tool not in sight.telling:  # it only acknowledges: what it did may show nowhere
        alike = len({call.content for call in mine}) == 1
        if harmless and sorts(mine):
            return "read"
        return "constant" if alike and (hint == "read" or prose(mine)) else "unknown"
    return "read" if harmless or again else "unknown"


def relation_of(betweens: list[Between]) -> dict[str, dict[str, str]]:
    """Acting tool -> what looks -> keeps or changes, beyond what changes there by itself.

    What acts did alone counts first, then what they did among such as keep. An act that was never alone keeps where it stood
    among others between equal reads, unless the reads around it differed with none among them that is known to change such
    records.
    """
    relation: dict[str, dict[str, str]] = defaultdict(dict)
    for _ in range(2):
        for act, place, changes in _judged([between for between in betweens if len(between.tools) < 2]):
            relation[act].setdefault(place, "changes" if changes else "keeps")
        betweens = [between._replace(tools=frozenset(
            act for act in between.tools if relation.get(act, {}).get(between.place) != "keeps" or len(between.tools) == 1
        )) for between in betweens]
    changing = {(act, place) for act, places in relation.items() for place, how in places.items() if how == "changes"}
    together = [
        between for between in betweens
        if not between.changed or not any((act, between.place) in changing for act in between.tools)]
    for act, place, changes in _judged(together):
        if not changes:
            relation[act].setdefault(place, "keeps")
    return dict(relation)


def _add_reaching(relation: dict[str, dict[str, str]], acting: frozenset[str], unnamed: Unnamed) -> None:
    """Say of acting tools that they change what they do not name, or what nothing but their answers names."""
    for how, betweens in (("answers", unnamed.by_answers()), ("reaches", unnamed.at_all())):
        often = often_changed(betweens)
        for act, places in ((act, places) for act, places in relation_of(betweens).items() if act in acting):
            relation.setdefault(act, {}).update({
                place: how for place, does in places.items() if does == "changes" and (act, place) in often})


def _judged(betweens: list[Between]) -> Iterator[tuple[str, str, bool]]:
    """(act, place, does it change what is shown there) for all that were seen often enough."""
    n: Counter[tuple[str, str]] = Counter()
    changed: Counter[tuple[str, str, str]] = Counter()
    for between in betweens:
        for act in between.tools or ("",):
            n[act, between.place] += 1
            changed.update((act, between.place, name) for name in between.changed)
    for act, place in sorted(n):
        fields = sorted(name for who, where, name in changed if (who, where) == (act, place))
        drifts = [
            (changed[act, place, name] / n[act, place], changed["", place, name] / max(1, n["", place])) for name in fields]
        if act and any(rate > KEEPS_RATE + 2 * drift for rate, drift in drifts):
            yield act, place, True
        elif act and n[act, place] >= MINIMUM_LOOKS and all(rate < NEARLY_ALWAYS for rate, _ in drifts):
            yield act, place, False


