"""Does a tool tell something, or does it merely confirm what it was asked to do? Found from its answers alone.

In: the calls of one tool. Out: whether its answers hold what the questions do not, whether the same question is answered
the same again, whether it takes nothing but prose, whether it goes to an address outside. Sees: words. Does not see: what
they mean.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from env_builder.runtime.relevance import leaves
from env_builder.world.calls import Call

MINIMUM_CALLS = 3
NO_ARGUMENTS = "{}"
REPEATS = 0.5
"""Share of equal answers to the same question from which a tool counts as telling the same again (fresh ids never are)."""
NOVEL = 0.2
"""Share of answers that tell something new from which a tool counts as telling."""
MANY_WORDS = 12
"""Words of an answer that are neither the question's nor in all other answers, from which it tells something."""
PROSE_WORDS = 4
_WORD = re.compile(r"\w+")
_ADDRESS = re.compile(r"[^\s@,;]+@[^\s@,;]+\.\w+|\+\d[\d ()./-]{6,}\d|(?:https?://|www\.)\S+")


def prose(calls: list[Call]) -> bool:
    """Does it take nothing but prose? What such a call does, if anything, lies outside the world that tools show."""
    texts = [value for call in calls for value in call.arguments.values()]
    worded = sum(isinstance(text, str) and len(text.split()) >= PROSE_WORDS for text in texts)
    return len(calls) >= MINIMUM_CALLS and worded > len(texts) / 2


def addressed(calls: list[Call]) -> bool:
    """Does it go to an address outside (mail, telephone, web) in most calls? Whoever lives there acts outside this world."""
    to = [any(isinstance(value, str) and _ADDRESS.fullmatch(value) for value in leaves(call.arguments)) for call in calls]
    return len(calls) >= MINIMUM_CALLS and 2 * sum(to) > len(to)


def repeats(calls: list[Call]) -> bool:
    """Does the tool answer the same question the same way?"""
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    for call in calls:
        if not call.failed:
            answers[call.key][call.content] += 1
    n = sum(counts.total() - 1 for counts in answers.values())
    same = sum(counts.most_common(1)[0][1] - 1 for counts in answers.values())
    return n >= MINIMUM_CALLS and same >= REPEATS * n


def sorts(calls: list[Call]) -> bool:
    """Does it tell by one of a few answers which kind each question is of, again and again the same, in words of its own?

    What confirms repeats what it was asked, or says the same of everything.
    """
    answers: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        if not call.failed and call.arguments:
            answers[call.content].add(call.key)
    kinds = [content for content, asked in answers.items() if len(asked) >= MINIMUM_CALLS]
    own = all(content and not any(word in key for word in _WORD.findall(content))
              for content, asked in answers.items() for key in asked)
    return len(kinds) > 1 and own and repeats(calls)


def novel(calls: list[Call]) -> bool:
    """Does it tell something: do most answers hold a word that is neither the question's nor in most other answers?

    Many words that are in some answers only tell as well (lists of the same things overlap), and so do many words where only
    one question was ever asked: what merely confirms is short. A tool without arguments tells whatever it answers.
    """
    answers = {call.key: call.content for call in calls if not call.failed}
    if set(answers) <= {NO_ARGUMENTS}:
        return bool(answers)
    found = [(question, frozenset(_WORD.findall(content))) for question, content in sorted(answers.items())]
    counts = Counter(word for _, words in found for word in words)
    new = sum(_tells(asked, words, counts, len(found)) for asked, words in found)
    return new >= NOVEL * len(found)


def _tells(asked: str, words: frozenset[str], counts: Counter[str], n_questions: int) -> bool:
    own = [counts[word] for word in words if word not in asked and counts[word] < max(2, n_questions)]
    return len(own) >= MANY_WORDS or any(n <= n_questions / 2 for n in own)
