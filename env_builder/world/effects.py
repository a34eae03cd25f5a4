"""What tools do to the world, from what was seen before and after them: reads, writes, and what a write leaves alone.

Two looks at one thing (a document by its key, or the same question asked again) with calls between them that name it:
equal looks speak for those calls, unequal ones against at least one of them; those that were given something which only one
of the two looks shows stand before the others. The fewest tools that explain all unequal looks are the ones that write
(greedy, the most often guilty first).
Sees: what is looked at again. Does not see: a change that nobody looks at. A tool that nothing speaks for or against is
`unknown`, unless it tells something new and tells it again when asked again. A declaration counts where nothing was seen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Literal, NamedTuple

from env_builder.runtime.answers import parse
from env_builder.runtime.lists import read
from env_builder.runtime.programs import ACTING
from env_builder.runtime.relevance import act_names, leaves, listed_in, names
from env_builder.world import arithmetic, telling
from env_builder.world.calls import Call
from env_builder.world.documents import Documents

Effect = Literal["read", "write", "pure", "constant", "outside", "unknown"]
CHANGES_RATE = 0.05
"""Share of changed looks from which a tool counts as writing (agents repeat writes that change nothing)."""
TELLING_RATE = 0.2
"""The same for a tool that tells something without showing the thing changed: most such tools only look."""
KEEPS_RATE = 0.02
"""Share of changed looks (somebody outside the log acts too) up to which an act keeps what a tool shows."""
NEARLY_ALWAYS = 0.8
"""From this share of changed looks on an act is not said to keep what it stood beside, however much changes by itself."""
MINIMUM_LOOKS = 3
NO_ARGUMENTS = "{}"

Place = tuple[str, ...]
"""(scope …, looking tool or class, key): something that can be looked at again."""


class Effects(NamedTuple):
    """What the tools of one service do."""

    effect: dict[str, Effect]
    relation: dict[str, dict[str, str]]
    """Acting tool -> looking tool or class -> "keeps" or "changes"; absent: nothing was seen."""

    @property
    def acting(self) -> frozenset[str]:
        """Tools that may change the world."""
        return frozenset(tool for tool, effect in self.effect.items() if effect in ACTING)


class Between(NamedTuple):
    """Two looks at one place, one after the other."""

    place: str
    unnamed: bool
    """Nothing names the place, so every call counts as between."""
    tools: frozenset[str]
    """Tools called between them that name the place; also the second look's own where it shows a document."""
    changed: frozenset[str]
    """Fields (of an answer that is no document: the empty name) that the looks differ in."""


class Sight(NamedTuple):
    """Which calls are looks: those that show a document, and those of tools that tell something."""

    documents: Documents
    telling: frozenset[str]

    def look(self, call: Call, scope: Place) -> tuple[Place | None, str]:
        """The place that the call looks at, and what it shows there."""
        seen = self.documents.seen_in(call)
        if seen:
            return (*scope, seen[0], seen[1]), seen[2]
        if call.failed or call.tool in self.documents.tools or call.tool not in self.telling:
            return None, ""
        return (*scope, call.tool, call.key), call.content

    def names_of(self, place: Place, call: Call) -> frozenset[str]:
        """Words that name the place; the empty word where nothing does."""
        if place[-2] in self.documents.classes:
            return self.documents.words(place[-2], place[-1])
        return names(call.arguments) or frozenset(("",))


def order_of(call: Call) -> tuple[float, str, int]:
    """Sort key of a call in a shared world: time where there is one, then session and position."""
    return (call.called_at.timestamp() if call.called_at else 0.0, call.session_id, call.position)


def find(calls: list[Call], documents: Documents, shared: bool, hints: dict[str, Effect]) -> Effects:
    """Effects of one service's tools. `shared`: looks of all sessions are in one world; `hints`: from declarations."""
    by_tool: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_tool[call.tool].append(call)
    tools = frozenset(by_tool)
    tells = frozenset(tool for tool, mine in by_tool.items() if telling.novel(mine))
    sight = Sight(documents, tells)
    in_session = list(_betweens(calls, sight, tools, shared=False))
    looking = tells - documents.tools.keys()
    if not shared:  # only what lies in one session is said against a tool that tells: sessions differ in more than calls
        in_session += _against_baseline(calls, sight, tools - looking)
    fickle = _fickle(in_session)
    in_session = [between for between in in_session if between.tools and between.place not in fickle]
    creating = {tool for tool, known in documents.tools.items() if known.argument is None}
    showing = frozenset(tool for tool, known in documents.tools.items() if known.only_key)
    guilty = _guilty(in_session, looking, showing) | creating
    kept = Counter(
        tool for between in in_session if not between.changed and not between.unnamed for tool in between.tools
    )
    effect = {tool: _effect(by_tool[tool], tool in guilty, kept[tool], sight, hints.get(tool)) for tool in sorted(tools)}
    acting = frozenset(tool for tool in tools if effect[tool] in ACTING)
    betweens = list(_betweens(calls, sight, acting, shared, listed=True))
    if not shared:
        betweens += _against_baseline(calls, sight, acting)
    return Effects(effect, relation_of([between for between in betweens if between.place not in fickle]))


def _fickle(betweens: list[Between]) -> set[str]:
    """Looking tools whose answers change with nothing in between: chance or the clock, not the world."""
    seen = Counter(between.place for between in betweens if not between.tools)
    changed = Counter(between.place for between in betweens if not between.tools and between.changed)
    return {place for place, n in seen.items() if changed[place] >= max(2, CHANGES_RATE * n)}


def _guilty(betweens: list[Between], telling: frozenset[str], showing: frozenset[str]) -> set[str]:
    """The fewest tools that explain the changed looks. `telling`: tools that tell something but show no document;
    `showing`: tools that take a key and show its document, the last to be blamed among equals."""
    seen = Counter(tool for between in betweens for tool in between.tools)
    left = [between.tools for between in betweens if between.changed]
    guilty: set[str] = set()
    while left:
        counts = Counter(tool for tools in left for tool in tools)
        blamed = {
            tool: n * n / (seen[tool] + 2)  # how often it is guilty, times how much it explains; few looks weigh little
            for tool, n in sorted(counts.items())
            if n >= (TELLING_RATE if tool in telling else CHANGES_RATE) * seen[tool]
        }
        if not blamed:
            break
        worst = max(blamed, key=lambda tool: (blamed[tool], tool not in showing))
        guilty.add(worst)
        left = [tools for tools in left if worst not in tools]
    return guilty


def _effect(mine: list[Call], guilty: bool, kept: int, sight: Sight, hint: Effect | None) -> Effect:
    """Effect of one tool from its own calls and what was seen around them."""
    tool = mine[0].tool
    if guilty:
        return "write"
    known = sight.documents.tools.get(tool)
    quiet = known is None and tool not in sight.telling and kept >= MINIMUM_LOOKS
    if quiet and hint != "read" and telling.addressed(mine):
        return "outside"
    if hint == "unknown":
        return "unknown"
    if known:  # what takes more than the key and was never seen to change anything is not proven harmless
        return "read" if known.only_key else "unknown"
    if arithmetic.find(mine):
        return "pure"
    harmless = kept >= MINIMUM_LOOKS or hint == "read"
    if tool not in sight.telling:  # it only acknowledges: what it did, if anything, must be seen elsewhere
        alike = len({call.content for call in mine}) == 1
        if harmless and telling.sorts(mine):
            return "read"
        return "constant" if alike and (harmless or telling.prose(mine)) else "unknown"
    tells = all(isinstance(call.parsed, list | dict) or call.failed or read(call.content) is not None for call in mine)
    return "read" if harmless or tells or telling.repeats(mine) else "unknown"


def relation_of(betweens: list[Between]) -> dict[str, dict[str, str]]:
    """Acting tool -> what looks -> keeps or changes, beyond what changes there by itself.

    What acts did alone counts first, then what they did among such as keep. An act that was never alone keeps where it stood
    among others between equal looks, unless the looks around it differed with none among them that is known to change such
    things.
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


def _differing(before: str, after: str) -> frozenset[str]:
    if before == after:
        return frozenset()
    one, other = parse(before), parse(after)
    if isinstance(one, dict) and isinstance(other, dict):
        absent = object()
        return frozenset(name for name in one.keys() | other.keys() if one.get(name, absent) != other.get(name, absent))
    return frozenset(("",))


def _betweens(
    calls: list[Call], sight: Sight, acting: frozenset[str], shared: bool, listed: bool = False
) -> Iterator[Between]:
    """All pairs of looks that follow each other at one place, and the acting tools between that name it. `listed`: where a
    look shows a list of objects, also those that name something in it."""
    ordered = sorted(calls, key=order_of) if shared else calls
    places = _places(ordered, sight, shared, listed)
    last: dict[Place, str] = {}
    since: dict[Place, dict[str, set[str]]] = defaultdict(dict)
    made: dict[Place, set[str]] = defaultdict(set)  # what answers since the last look named: who repeats it gives nothing
    for call in ordered:
        scope: Place = () if shared else (call.session_id,)
        place, content = sight.look(call, scope)
        if call.tool in acting and not call.failed:
            named = act_names(call.arguments, call.content)
            given = names(call.arguments)
            for linked in {linked for word in (*sorted(named), "") for linked in places.get((*scope, word), ())}:
                since[linked].setdefault(call.tool, set()).update(given - made[linked])
                made[linked] |= named - given
        if place is None:
            continue
        if place in last:
            since[place].pop(place[-2], None)
            if call.tool in acting and place[-2] in sight.documents.classes:
                since[place].setdefault(call.tool, set()).update(names(call.arguments))
            changed = _differing(last[place], content)
            tools = _givers(since[place], last[place], content) if changed else frozenset(since[place])
            yield Between(place[-2], place[-1] == NO_ARGUMENTS, tools, changed)
        last[place] = content
        since[place], made[place] = {}, set()


def _givers(acts: dict[str, set[str]], before: str, after: str) -> frozenset[str]:
    """Tools that were given something which only one of the two looks shows; all of them where none was. `acts`: what each
    tool was given."""
    if len(acts) > 1:
        one, other = _shown(before), _shown(after)
        givers = frozenset(tool for tool, given in acts.items() if any((word in one) != (word in other) for word in given))
        if givers:
            return givers
    return frozenset(acts)


def _shown(content: str) -> frozenset[str] | str:
    """Whole scalars of an answer that is JSON, else its text: to look for words in."""
    value = parse(content)
    return content if value is None else frozenset(map(str, leaves(value)))


def _against_baseline(calls: list[Call], sight: Sight, acting: frozenset[str]) -> list[Between]:
    """Where every session begins anew: a session's first look after acts, beside what others saw before any."""
    named: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(dict)
    looked: set[tuple[str, Place]] = set()
    fresh: dict[Place, Counter[str]] = defaultdict(Counter)
    later: list[tuple[Place, bool, dict[str, set[str]], str]] = []
    for call in calls:
        place, content = sight.look(call, ())
        if place is not None and (call.session_id, place) not in looked:
            looked.add((call.session_id, place))
            acts: dict[str, set[str]] = {}
            for word in sight.names_of(place, call):
                acts.update(named[call.session_id, word])
            acts.pop(call.tool, None)
            if acts:
                later.append((place, place[-1] == NO_ARGUMENTS, acts, content))
            else:
                fresh[place][content] += 1
        if call.tool in acting and not call.failed:
            given = names(call.arguments)
            for word in act_names(call.arguments, call.content) | {""}:
                before = named[call.session_id, word].get(call.tool, set[str]())
                named[call.session_id, word] = {**named[call.session_id, word], call.tool: before | given}
    found: list[Between] = []
    for place, unnamed, acts, content in later:
        # what was also seen with no act before is no sign of one (a wrapper or the clock altered it)
        if place in fresh and (content == fresh[place].most_common(1)[0][0] or content not in fresh[place]):
            usual = fresh[place].most_common(1)[0][0]
            changed = _differing(usual, content)
            tools = _givers(acts, usual, content) if changed else frozenset(acts)
            found.append(Between(place[-2], unnamed, tools, changed))
    return found


def _places(calls: list[Call], sight: Sight, shared: bool, listed: bool) -> dict[Place, set[Place]]:
    """(scope …, word) -> places that the word names; the empty word leads to places that nothing names."""
    places: dict[Place, set[Place]] = defaultdict(set)
    looked: Counter[Place] = Counter()
    shown: dict[Place, frozenset[str]] = defaultdict(frozenset)
    for call in calls:
        scope: Place = () if shared else (call.session_id,)
        place, content = sight.look(call, scope)
        if place is None:
            continue
        looked[place] += 1
        if listed and place[-2] not in sight.documents.classes:
            shown[place] |= listed_in(content)
        if looked[place] >= 2:  # only what is looked at again can speak
            for word in (sight.names_of(place, call) if looked[place] == 2 else frozenset[str]()) | shown[place]:
                places[(*scope, word)].add(place)
            shown[place] = frozenset()
    return places
