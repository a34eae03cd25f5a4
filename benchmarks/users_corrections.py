"""Do scripted users correct themselves as often as people, and do they end with what they truly want?

In: talks of people of the later half, their scripts, the habits of the earlier half. Each user answers its own agent's words,
which it has never heard, once per seed of `SEEDS`. Out, of the arguments that people of the earlier half corrected:

contradicted             answers in which a wrong value comes first
contradicted_share       of the episodes in which an argument is told, those in which another value of it came first
contradicted_share_log   of the people who gave one of them, those who had given another one before
contradictions_end_true  share of those answers of which the last line has the record's value, and no other line before the
                         wrong one has it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from env_builder.corrections import corrections
from env_builder.runtime.habits import ALL, UserHabits, habits_of
from env_builder.runtime.user import ScriptedUser, UserProgress
from env_builder.users import Talk, holds

SEEDS = range(10)
CALM = UserHabits("", None, frozenset(), {}, False, False, 0.0)


def contradictions(
    talks: Mapping[str, Talk], rows: Mapping[str, dict[str, Any]], habits_rows: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the figures; shares are None where the habits have no corrections."""
    usual = {slot: [value.casefold() for value in row["values"]]
             for slot, row in habits_rows.get(ALL, {}).get("corrects", {}).items()}
    counts = Counter[str]()
    for name, talk in talks.items():
        own = corrections(talk, usual)
        counts.update(gave=len(own.gave & usual.keys()), corrected=sum(one.slot in usual for one in own.corrected))
        for seed in SEEDS if usual else ():
            habits = habits_of(habits_rows, ALL, seed, name)
            if habits is not None:
                counts += _episode(talk, rows[name], habits, usual)
    return {"contradicted": counts["contradicted"],
            "contradicted_share": _share(counts["contradicted"], counts["told"]),
            "contradicted_share_log": _share(counts["corrected"], counts["gave"]),
            "contradictions_end_true": _share(counts["true"], counts["contradicted"])}


def _episode(talk: Talk, row: dict[str, Any], habits: UserHabits, usual: Mapping[str, list[str]]) -> Counter[str]:
    """Count what the user of one episode tells, and contradicts."""
    counts = Counter[str]()
    for plain, reply, slots in _answers(talk, row, CALM._replace(seed=habits.seed, corrects=habits.corrects)):
        counts["told"] += len(slots & usual.keys())
        if plain != reply:
            first, last = (part.casefold() for part in (reply.split("\n")[0], reply.split("\n")[-1]))
            values = {value for slot in slots & usual.keys() for value in usual[slot] if holds(plain.casefold(), value)}
            counts.update(contradicted=1, true=any(holds(last, value) and not holds(first, value) for value in values))
    return counts


def _answers(talk: Talk, row: dict[str, Any], habits: UserHabits) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield each answer without and with the habit, with the arguments that its turns give first."""
    script = [one | {"heard": []} for one in row["script"]]
    user = ScriptedUser(row | {"script": script, "after": []}, [{"role": "user", "content": "\n".join(talk.opening)}])
    progress = UserProgress()
    for words in (words for heard in talk.heard for words in heard):
        before, (_, plain) = progress, user.reply(progress, words, CALM)
        progress, reply = user.reply(progress, words, habits)
        new = progress.spoken & ~before.spoken
        slots = frozenset(value for place, one in enumerate(script) if new >> place & 1
                          for kind, value in one["tells"] if kind == "argument")
        if plain is not None and reply is not None:
            yield plain, reply, slots


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
