"""Name families, and write goals as sentences, from the names of tools and the users' own words.

A kind that tools name is called by them. Another is called by the words that at least half of its goals share, in the order of
its most typical sentence; else by a tool that half of its stretches call; else by words that half of its goals share, first
such as others rarely have. So no name quotes one session. Sentences are the users' words without greetings, with the values of
slots marked. A person's correction of a family's name takes precedence, also in families of several kinds. Sees words of any
script that has spaces. Does not see meaning, values in another form, or whether a corrected name fits."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count, pairwise
from math import log
from typing import NamedTuple

import polars as pl

from extractors.privacy.letters import words_in
from extractors.tasks.branches import branch_ids
from extractors.tasks.words import masked, split_words
from warehouse.records import Decision, FamilyName, Memoize, Sentence, frame, recompute

LONGEST_NAME = 60
"""Characters of a name."""
_LOOKED_AT = 200
"""Goals of a kind, the most typical first, among whose first sentences its name is looked for."""
_EVEN, _LENGTH = 6, 0.75
"""What words tell of a kind is divided by their number and the one, to the power of the other: short texts before long ones."""
_USUAL = 0.1
"""Share of a kind's goals from which on a word is the name of no single entity."""
_SHARED = 0.5
"""Share of a kind's goals that hold each word of its name, or of its stretches that call the tool that names it."""
_RARER = 2.0
"""How much rarer such a word is in goals of other kinds."""
_MOST_WORDS = 3
"""Words of such a name."""
_TELLING = 4
"""Letters from which on a word may tell what a kind is about."""
_LEAST_TELLING = 2
"""Different telling words that make a sentence a name."""
_ALIKE = 5
"""Letters by which words are compared: forms of one word mostly begin alike."""
_LITTLE = words_in("""
    from with this that these those have your yours mine what when where which would could should about been them they then
    there were will also just only some more into does than after before because
    nicht eine einen einem einer meine meinen mein ihre habe haben hatte kann wurde auch noch aber oder wenn dass sind diese
    dieser dieses nach über pour avec dans vous votre nous mais plus suis être cette elle sont depuis
    para como pero este esta estos usted desde sobre della delle degli sono come questo questa dalla meus minha você pelo
    voor naar deze heeft hebben mijn""")
"""Words of four letters and more that say nothing of what is asked for; of the languages that are logged most."""
_OTHER = "other requests"
_OFTEN = 3
"""A short beginning of fewer goals than this is no greeting."""
_WORD = re.compile(r"[^\W_]+")


class NamedGoal(NamedTuple):
    """A goal as it is named."""

    goal_id: str
    words: str
    slots: dict[str, str | list[str]]
    distinct: list[str]
    """Its different words, numbers masked."""


class RequestKind(NamedTuple):
    """The goals of one kind."""

    service: str
    kind: str
    tools: tuple[str, ...]
    """Tools that name it; empty: its words do."""
    slots: dict[str, str]
    """Slot -> what it is called, of all its goals."""
    goals: list[NamedGoal]
    """Most typical first."""
    weights: Mapping[str, float]
    """Word -> how much it speaks of the kind."""
    usual: frozenset[str]
    """Words that many of its goals hold."""
    openings: frozenset[str]
    """Short beginnings that say nothing, of the whole service."""
    shared: Mapping[str, float] = {}
    """Beginning of a word -> share of the goals that hold such a word, if more than one does."""
    called: tuple[str, ...] = ()
    """Tools that at least half of its stretches call: those that write first, then the most frequent."""

    def words_of(self, goal: NamedGoal) -> str | None:
        """Return a goal's words in one line; None if they are but the tools that were called."""
        silent = self.tools and set(self.tools) <= set(goal.words.split(", "))
        return None if silent else cleaned(goal.words, self.openings)


class FamilyNames(NamedTuple):
    """What is called how."""

    families: pl.DataFrame
    """Frame of `FamilyName`, by service and family."""
    sentences: pl.DataFrame
    """Frame of `Sentence`, by goal_id."""


def names_of(
    goals: pl.DataFrame, tools: pl.DataFrame, calls: pl.DataFrame | None = None, memoize: Memoize = recompute,
) -> FamilyNames:
    """Name all families and goals by words and tools alone. `goals`: frame of `Goal`; `tools`: service, tool; `calls`:
    session_id, position, tool, effect; in any order."""
    taken: dict[str, set[str]] = defaultdict(set)
    named, sentences = {}, []
    called_by = tools_called(goals, calls) if calls is not None else {}
    for kind in kinds_in(goals, tools):
        kind = kind._replace(called=called_by.get(kind.kind, ()))
        name = _name(kind, taken[kind.service])
        named[kind.kind] = FamilyName(
            service=kind.service, family=kind.kind, kinds=[kind.kind], name=name, sentence=_typical(kind, name))
        sentences += [Sentence(goal_id=goal.goal_id, sentence=_sentence_of(kind, goal, name, memoize))
                      for goal in kind.goals]
    return FamilyNames(families_of(goals, named | _branches(goals, tools)), frame(Sentence, sentences).sort("goal_id"))


def is_branch(row: FamilyName) -> bool:
    """Whether a family has the goals of one kind that ended in other work than the kind's own (`branches`)."""
    return len(row.kinds) == 1 and row.kinds != [row.family]


def _branches(goals: pl.DataFrame, tools: pl.DataFrame) -> dict[str, FamilyName]:
    """Name the branches that are no kind: each by the tool that marks it."""
    single = goals.filter((pl.len().over("session_id") == 1) & ~pl.col("family").is_in(goals["kind"].unique().implode()))
    named: dict[str, FamilyName] = {}
    by_family = single.sort("service", "family", "goal_id").group_by("service", "family", maintain_order=True)
    for (service, family), own in by_family:
        label = own["asks"].mode().sort()[0]
        mark = next((tool for tool in tools.filter(pl.col("service") == service)["tool"].unique().sort()
                     if family in branch_ids(str(service), label, tool)), None)
        if mark is not None:
            kind = next(iter(kinds_in(own.with_columns(pl.lit(family).alias("kind"), pl.lit(mark).alias("asks")), tools)))
            named[str(family)] = FamilyName(service=str(service), family=str(family), kinds=[own["kind"].mode().sort()[0]],
                                            name=spoken(mark), sentence=_typical(kind, spoken(mark)))
    return named


def tools_called(goals: pl.DataFrame, calls: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return kind -> tools that at least half of its stretches call, those that write first."""
    n_goals = goals.group_by("kind").agg(pl.col("goal_id").n_unique().alias("n"))
    rows = (
        goals.select("kind", "goal_id", "session_id", "begins", "ends").join(calls, on="session_id")
        .filter(pl.col("position").is_between("begins", "ends"))
        .group_by("kind", "tool").agg(pl.col("goal_id").n_unique().alias("n_calling"), (pl.col("effect") == "write").any())
        .join(n_goals, on="kind").filter((pl.col("n_calling") >= _SHARED * pl.col("n")) & (pl.col("n_calling") > 1))
        .sort("kind", "effect", "n_calling", "tool", descending=[False, True, True, False]))
    named = rows.group_by("kind", maintain_order=True).agg("tool")
    return {kind: tuple(names) for kind, names in named.iter_rows()}


def kinds_in(goals: pl.DataFrame, tools: pl.DataFrame) -> list[RequestKind]:
    """Return the kinds of `goals`, by service and kind; arguments as in `names_of`."""
    tools_of_service = {
        service: set(names) for service, names in tools.group_by("service").agg(pl.col("tool").unique()).iter_rows()}
    rows = goals.sort("service", "kind", "goal_id").with_columns(
        split_words(masked(pl.col("goal"))).list.unique(maintain_order=True).alias("distinct"))
    by_service: dict[str, dict[tuple[str, str], list[NamedGoal]]] = defaultdict(lambda: defaultdict(list))
    for service, kind, label, goal_id, words, slots, distinct in rows.select(
            "service", "kind", "asks", "goal_id", "goal", "slots", "distinct").iter_rows():
        by_service[service][kind, label].append(NamedGoal(goal_id, words, json.loads(slots), distinct))
    return [
        kind for service, own in by_service.items() for kind in _of_service(service, own, tools_of_service.get(service, set()))]


def _of_service(service: str, by_kind: Mapping[tuple[str, str], list[NamedGoal]], tools: set[str]) -> Iterable[RequestKind]:
    openings = _openings(by_kind.values())
    whole = Counter(word for own in by_kind.values() for goal in own for word in goal.distinct)
    n_whole = sum(map(len, by_kind.values()))
    for (kind, label), own in by_kind.items():
        counts = Counter(word for goal in own for word in goal.distinct)
        weights = _weights(counts, len(own), whole, n_whole)
        usual = frozenset(word for word, n in counts.items() if n > max(_USUAL * len(own), 1))
        alike = Counter(begins for goal in own for begins in {word[:_ALIKE] for word in goal.distinct})
        shared = {begins: n / len(own) for begins, n in alike.items() if n > 1}
        ordered = sorted(own, key=lambda goal: (-_worth(goal.distinct, weights), goal.words, goal.goal_id))
        slots = called(sorted({slot for goal in own for slot in goal.slots}), label)
        yield RequestKind(service, kind, _named_by(label, tools), slots, ordered, weights, usual, openings, shared)


def _openings(kinds: Iterable[list[NamedGoal]]) -> frozenset[str]:
    """Short beginnings of goals of several kinds."""
    n_goals: Counter[str] = Counter()
    n_kinds: Counter[str] = Counter()
    for own in kinds:
        begins = Counter(opening_of(goal.words) for goal in own)
        n_goals.update(begins)
        n_kinds.update(begins.keys())
    return frozenset(begins for begins, n in n_goals.items() if begins and n >= _OFTEN and n_kinds[begins] > 1)


def _weights(own: Counter[str], n: int, whole: Counter[str], n_whole: int) -> dict[str, float]:
    """Word -> how much it speaks of the kind: its share there, times the logarithm of how much more frequent it is there."""
    if n == n_whole:
        return {word: times / n for word, times in own.items()}
    shares = {word: ((times + 0.5) / (n + 1), (whole[word] - times + 0.5) / (n_whole - n + 1)) for word, times in own.items()}
    return {word: inside * log(inside / outside) for word, (inside, outside) in shares.items() if inside > outside}


def _worth(words: Iterable[str], weights: Mapping[str, float]) -> float:
    typical = [weights.get(word, 0.0) for word in words]
    worth: float = sum(typical) / (len(typical) + _EVEN) ** _LENGTH
    return round(worth, 9)


def _named_by(label: str, tools: set[str]) -> tuple[str, ...]:
    """Return the tools that a label names one after another, empty where it says something else."""
    rest, names = label, []
    while rest:
        first = max((tool for tool in tools if rest == tool or rest.startswith(f"{tool} ")), key=len, default=None)
        if first is None:
            return ()
        names.append(first)
        rest = rest[len(first):].lstrip()
    return tuple(names)


def _name(kind: RequestKind, taken: set[str]) -> str:
    """Return its tools, or else the first name of what its goals share that names no other kind of the service."""
    if kind.tools:
        return " + ".join(map(spoken, kind.tools))
    for name in (*_shared_sentences(kind), *map(spoken, kind.called), _shared_words(kind), _common_words(kind)):
        if name and (short := shortened(name, LONGEST_NAME)) not in taken:
            taken.add(short)
            return short
    other = next(name for n in count(1) if (name := _OTHER if n == 1 else f"{_OTHER} ({n})") not in taken)
    taken.add(other)
    return other


def _shared_sentences(kind: RequestKind) -> Iterable[str]:
    """Yield first sentences of its goals without the words that fewer than half of the goals hold, the most typical first."""
    first_sentences = {piece for goal in kind.goals[:_LOOKED_AT] for piece in pieces_of(goal.words, kind.openings)[:1]}
    ranked = sorted((-_worth(sorted(set(_WORD.findall(piece.lower()))), kind.weights), len(piece), piece)
                    for piece in first_sentences)
    names = dict.fromkeys(_condensed(kind, piece) for *_, piece in ranked)
    yield from sorted((name for name in names if len(_telling(kind, name)) >= _LEAST_TELLING),
                      key=lambda name: (-len(_telling(kind, name)), len(name), name))


def _condensed(kind: RequestKind, piece: str) -> str:
    """Leave out of a sentence each word with a digit, and each that fewer than half of the goals hold."""
    words = [word for word in _TOKEN.findall(general(piece, kind.usual.__contains__))
             if kind.shared.get(word.lower()[:_ALIKE], 0.0) >= _SHARED and not _DIGITS.search(word)]
    while words and not _is_telling(kind, words[-1]):
        words.pop()
    return " ".join(words)


def _telling(kind: RequestKind, name: str) -> set[str]:
    return {word.lower()[:_ALIKE] for word in name.split() if _is_telling(kind, word)}


def _is_telling(kind: RequestKind, word: str) -> bool:
    return len(word) >= _TELLING and word.lower() not in _LITTLE and kind.weights.get(word.lower(), 0.0) > 0.0


def _shared_words(kind: RequestKind) -> str:
    """Return up to three words that speak most of the kind, of those that half of its goals hold."""
    telling = [word for word in kind.weights if _is_telling(kind, word) and word.isalpha()
               and (share := kind.shared.get(word[:_ALIKE], 0.0)) >= _SHARED and kind.weights[word] >= share * log(_RARER)]
    words = sorted(telling, key=lambda word: (-round(kind.weights[word], 9), word))
    forms: dict[str, str] = {}
    for word in words:
        forms.setdefault(word[:_ALIKE], word)
    return " ".join(list(forms.values())[:_MOST_WORDS])


def _common_words(kind: RequestKind) -> str:
    """Return up to two words that half of its goals hold, though others do too."""
    forms = Counter(word for goal in kind.goals for word in goal.distinct
                    if len(word) >= _TELLING and word.isalpha() and word not in _LITTLE
                    and kind.shared.get(word[:_ALIKE], 0.0) >= _SHARED)
    ordered = sorted(forms, key=lambda word: (-kind.shared[word[:_ALIKE]], -forms[word], word))
    return " ".join(list({word[:_ALIKE]: word for word in reversed(ordered)}.values())[::-1][:2])


def _typical(kind: RequestKind, name: str) -> str:
    words = kind.words_of(kind.goals[0])
    if words is None:
        return " ".join([name, *(f"{{{slot}}}" for slot in sorted(kind.slots.values()))])
    named = marked(words, kind.goals[0].slots, lambda slot, value: f"{{{kind.slots[slot]}}}")
    return general(named, kind.usual.__contains__)


def _sentence_of(kind: RequestKind, goal: NamedGoal, name: str, memoize: Memoize) -> str:
    """Return a goal's words with its slots marked; of a routine without words its name, and then its slots."""
    words = kind.words_of(goal)
    if words is not None:   # most of the time goes into patterns of values, of which each goal has its own
        parts = [words, [[slot, kind.slots.get(slot), values] for slot, values in sorted(goal.slots.items())]]
        sentence: str = memoize(parts, partial(
            marked, words, goal.slots, lambda slot, value: filled(kind.slots[slot], value)))
        return sentence
    return " ".join([name, *(filled(kind.slots[slot], value) for slot, value in sorted(goal.slots.items()))])


def families_of(goals: pl.DataFrame, named: Mapping[str, FamilyName]) -> pl.DataFrame:
    """Frame of `FamilyName`: `named`, kind -> what it is called, and families of several kinds by the names of these."""
    of_session = goals.sort("session_id", "place").group_by("service", "family", "session_id", maintain_order=True).agg(
        "kind", (pl.col("begins").n_unique() == 1).alias("together"))
    rows = dict(named)
    first = of_session.sort("service", "family", "session_id").unique("family", keep="first", maintain_order=True)
    for service, family, kinds, together in first.select("service", "family", "kind", "together").iter_rows():
        if family not in rows:
            own_kinds = kinds if together else list(dict.fromkeys(kinds))
            times = Counter(own_kinds)
            writers = {named[kind].written_by for kind in times}
            rows[family] = FamilyName(
                service=service, family=family, kinds=own_kinds,
                name=" + ".join(named[kind].name if n == 1 else f"{named[kind].name} ({n}×)" for kind, n in times.items()),
                sentence=" / ".join(named[kind].sentence for kind in times),
                written_by=writers.pop() if len(writers) == 1 else None)   # what it wrote of all kinds, it wrote of the family
    return frame(FamilyName, list(rows.values())).sort("service", "family")


SUBSTANTIVE = 4
"""An opening of fewer words than this may be a greeting."""
_GREETING = 3
"""A sentence of fewer words than this before others is one."""
LONGEST = 240
"""Characters of a sentence; longer words are cut where a sentence ends."""
_ENDS = (".", "!", "?", "…", "。", "！", "？")
_DANGLING = re.compile(r"(?i)[\s,]+(?:and|but|or|then|so)(?:\s+i)?[\s,]*$")
"""English words that led to another request, which was cut off as a goal of its own (`goals`)."""
_OPENING = re.compile(r"([^\W\d_][^,.!?…\n]*)[,.!?…\n]")
_PIECE = re.compile(r"(?<=[.!?…。！？])\s+|\s*\n+\s*")
_BEFORE, _AFTER = r"(?<![^\W_])[#@$]?", r"(?![^\W_])"
_NO_BRACES = str.maketrans("", "", "{}[]")
_NUMBERED = re.compile(r"\{(\w+?)_\d+\}")
_TOKEN = re.compile(r"\{[^{}]*\}|[#@$]?[^\W_](?:[\w@./:'’-]*\w)?")
_DIGITS = re.compile(r"\d")
_AGAIN = re.compile(r"…(?:[\s,]*…)+")
Slots = Mapping[str, str | Sequence[str]]
Mark = Callable[[str, str], str]
"""What stands in a text for (slot, its value)."""


def opening_of(words: str) -> str:
    """Return what a text begins with before its first comma or end of sentence, where that is short; empty where it is not."""
    first = _OPENING.match(words.lstrip())
    return first.group(1).lower() if first and len(_WORD.findall(first.group(1))) < SUBSTANTIVE else ""


def cleaned(words: str, openings: frozenset[str] = frozenset()) -> str:
    """Put words in one line without greetings (`openings`: of the service), repetitions, and the rest of a very long text."""
    pieces = pieces_of(words, openings)
    kept = pieces[0] if pieces else ""
    for piece in pieces[1:]:
        if len(kept) + len(piece) >= LONGEST:
            break
        kept += f". {piece}" if kept[-1].isalnum() else f" {piece}"
    return shortened(_DANGLING.sub("", kept), LONGEST)


def pieces_of(words: str, openings: frozenset[str] = frozenset()) -> list[str]:
    """Sentences of a text, without greetings before them and what the one before says already."""
    pieces = [" ".join(piece.split()) for piece in _PIECE.split(words.strip())]
    pieces = [piece for piece in pieces if piece]
    while len(pieces) > 1 and len(_WORD.findall(pieces[0])) < _GREETING:
        del pieces[0]
    sentences = [*pieces[:1], *(piece for before, piece in pairwise(pieces) if piece not in before)]
    while sentences and (begins := opening_of(sentences[0])) in openings and begins:
        rest = sentences[0][len(begins):].lstrip(" ,.!?…")
        if not (rest or sentences[1:]):
            break
        sentences[:1] = [rest] if rest else []
    return sentences


def shortened(text: str, most: int) -> str:
    """Cut a text after a word, to at most so many characters."""
    if len(text) <= most:
        return text
    cut = text[:most - 1]
    whole = cut.rsplit(" ", 1)[0] if " " in cut else cut
    return whole.rstrip(" ,;:.-([") + "…"


def marked(text: str, slots: Slots, mark: Mark) -> str:
    """Return the text with `mark(slot, value)` in the place of each value that stands in it, longer values first."""
    of_value = {value.strip(): name for name, values in sorted(slots.items(), reverse=True)
                for value in ([values] if isinstance(values, str) else values) if _tells(value.strip())}
    if text.isascii():   # most values do not stand in a text, and a pattern takes longer to compile than to search for
        of_value = {value: name for value, name in of_value.items() if not value.isascii() or value.lower() in text.lower()}
    if not of_value:
        return text
    longest_first = sorted(of_value, key=lambda value: (-len(value), value))
    spelled = "|".join(re.escape(value) if _short(value) else f"(?i:{re.escape(value)})" for value in longest_first)
    lowered = {value.lower(): name for value, name in of_value.items()}
    return re.sub(f"{_BEFORE}({spelled}){_AFTER}", lambda match: mark(lowered[match[1].lower()], match[0]), text)


def _short(value: str) -> bool:
    return len(value) < SUBSTANTIVE and not any(sign.isdigit() for sign in value)


def _tells(value: str) -> bool:
    """Is a value found in words that value, and not any little word?"""
    return bool(value) and (not _short(value) or any(sign.isupper() for sign in value))


def filled(name: str, value: str | Sequence[str] | None) -> str:
    """`[name: value]`, several values with commas; `[name]` where it is not known."""
    text = value if isinstance(value, str) else ", ".join(value or ())
    return f"[{name}: {' '.join(text.split())}]" if text else f"[{name}]"


def general(text: str, usual: Callable[[str], bool]) -> str:
    """Replace words with a digit, and capitalised ones inside a sentence that are not `usual`, by `…`; keep marks in braces."""
    def instead(match: re.Match[str]) -> str:
        word = match.group()
        if word.startswith("{"):
            return word
        first = text[:match.start()].rstrip(" '\"(")[-1:] in ("", *_ENDS)
        strange = _DIGITS.search(word) or (word[0].isupper() and not first and not usual(word.lower()))
        return "…" if strange else word

    return _AGAIN.sub("…", _TOKEN.sub(instead, text))


def called(slots: Sequence[str], label: str) -> dict[str, str]:
    """Name each slot by the end of its path that no other ends with; route parts lose their number where one has the name."""
    ends = Counter(slot.rsplit(".", 1)[-1] for slot in slots)
    parts = Counter(_NUMBERED.findall(label))
    numbered = {f"{name}_1": name for name, n in parts.items() if n == 1 and name not in ends}
    return {slot: numbered.get(end, end) if ends[end] == 1 else slot.translate(_NO_BRACES)
            for slot in slots for end in [slot.rsplit(".", 1)[-1]]}


_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ROUTE = re.compile(r"([A-Z]+) (/.*)")
_VARIES = re.compile(r"\{[^{}]*\}")
_VERBS = {"GET": ("list", "look up"), "HEAD": ("check", "check"), "POST": ("add", "update"), "PUT": ("set", "set"),
          "PATCH": ("change", "change"), "DELETE": ("delete", "delete")}
"""Method -> what it does to all entities of a kind, and to one."""
_ENVELOPE = re.compile(r"api|v\d+", re.IGNORECASE)
"""Parts of a path that name an interface and no entity."""


def spoken(tool: str) -> str:
    """Put a tool's name in words: `findOpenSlot` is `find open slot`, `PATCH /rooms/{rooms_1}/keys` is `rooms: change keys`."""
    route = _ROUTE.fullmatch(tool)
    if route is None:
        return _VARIES.sub("…", tool) if "/" in tool and " " in tool else worded(tool) or tool
    parts = [part for part in route[2].split("/") if part]
    things = [part for part in parts if not _VARIES.search(part)]
    things = [worded(part) for part in things if not _ENVELOPE.fullmatch(part)] or things
    if not things:
        return _VARIES.sub("…", tool)
    every, one = _VERBS.get(route[1], (route[1].lower(),) * 2)
    verb = one if _VARIES.search(parts[-1]) else "" if route[1] == "POST" and things[1:] else every
    return f"{things[0]}: {' '.join([verb, *things[1:]]).strip()}"


def asked_by(goal: str) -> str:
    """Put a goal that is a list of requests in words; return any other goal unchanged."""
    routes = goal.split(", ")
    return ", ".join(map(spoken, routes)) if all(map(_ROUTE.fullmatch, routes)) else goal


def worded(name: str) -> str:
    """Put the name of a field or tool in words: `orderId` is `order id`."""
    words = [word for part in re.split(r"[^0-9A-Za-z\u0080-\uffff]+", name) for word in _HUMPS.split(part) if word]
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in words)


STAGE = "names"
MOST_FAMILIES = 20
"""Families that a decision names."""


def renamed(goals: pl.DataFrame, names: FamilyNames, corrections: pl.DataFrame) -> tuple[FamilyNames, pl.DataFrame]:
    """(names, frame of `Decision`: what each correction of a family came to)."""
    by_family = {row["subject"]: row for row in corrections.sort("correction_id").to_dicts()}
    rows = {row["family"]: FamilyName(**row) for row in names.families.to_dicts()}
    kinds = {name: row for name, row in rows.items() if row.kinds == [name]}
    own = {name: row.model_copy(update={
        "name": " ".join(json.loads(by_family[name]["value"]).split()), "written_by": by_family[name]["author"]})
        for name, row in rows.items() if name in by_family}
    if own:
        together = {row["family"]: FamilyName(**row) for row in families_of(goals, kinds | {
            name: row for name, row in own.items() if name in kinds}).to_dicts()}
        touched = {name for name, row in rows.items() if own.keys() & set(row.kinds) and not is_branch(row)}
        rows |= {name: together[name] for name in touched if name in together} | own
    decisions = []
    for subject, correction in sorted(by_family.items()):
        reason, detail = "name_corrected", f"calls family {subject} {correction['value']}: {correction['why']}"
        if subject not in rows:
            families = ", ".join(sorted(rows)[:MOST_FAMILIES])
            reason, detail = "no_such_family", f"named family {subject!r}, which is not there; there are: {families}."
        decisions.append(Decision(stage=STAGE, subject=correction["correction_id"], kept=subject in rows, reason=reason,
                                  detail=f"{correction['author']} {detail}"))
    return names._replace(families=frame(FamilyName, list(rows.values())).sort("service", "family")), frame(Decision, decisions)
