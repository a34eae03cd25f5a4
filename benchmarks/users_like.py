#!/usr/bin/env python3
"""Can the scripted user's words be told from what people said?

    benchmarks/users_like.py DATA [--sessions N] [--out OUT]       e.g. ../shared/data/human_desk

The users of the later half of the sessions are scripted from what they have to tell, without what their own agents said, and
answer those agents' words, so that they must improvise; once in the runtime's own words, once with the perturbation `wordings`,
and once with `habits` too (without patience: what went well is not mined here). Both are mined from the earlier half alone: no
word of the people who are scripted is in them. A logistic
regression on TF-IDF of words and of runs of three characters, and on length, learns to tell the scripted turns from what the
same people said. It is cross-validated by person (a session each, where the log names nobody): no person is in both parts.

user_auc          area under its curve, all turns; .5: they cannot be told apart; `_off`: in the runtime's own words; `_habits`
improvised_auc    the same, of the scripted turns that repeat no turn of the person (case and full stops apart), against all
                  that people said; `_off`, `_habits`
next_act_habits   share of answers of the person's act (benchmarks/users.py); `_off`: without habits
improvised_share  of the scripted turns; drawn_share: of those, in words that were drawn
copied_share      of the scripted turns that repeat turns of the person's: these cannot be told apart, so read
                  `improvised_auc` beside `user_auc`; `_habits`
contradicted…     benchmarks/users_corrections.py; contradictions_end_true is 1, or it fails
facts_kept        share of drawn turns that state no fact but those of the words that they replace, or of what the user came
                  for, which it repeats where people did not say that they don't know (1, or it fails)

With --out, a run's OUT (of any log):

solutions_paid        share of known solutions of its published tasks that earn all with both switches on, in two draws each, of
                      `n_solutions`
ends_well_difference  share of sessions of its tasks that end well when the log's agents talk to the user with both switches on,
                      minus the log's share (`ends_well_log`), with a 95 % interval (`benchmarks/users_ends.py`); `_off`: off

The table goes to stderr, the last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.users import as_it_came, halves, sessions_of  # noqa: E402 (a script of its own, from anywhere)
from benchmarks.users_corrections import contradictions  # noqa: E402
from benchmarks.users_ends import ends  # noqa: E402
from env_builder.habits import habits  # noqa: E402
from env_builder.runtime import Environment  # noqa: E402
from env_builder.runtime.canonical import canonical  # noqa: E402
from env_builder.runtime.habits import ALL, habits_of  # noqa: E402
from env_builder.runtime.user import NO, UNSURE, ScriptedUser, UserProgress, stated, typed  # noqa: E402
from env_builder.runtime.wordings import Wordings  # noqa: E402
from env_builder.users import Talk, learn, user_rows  # noqa: E402
from env_builder.wordings import wordings  # noqa: E402

N_FEATURES, FOLDS, EPOCHS, RATE = 1 << 15, 5, 4, 0.5
DRAWN_SEEDS = 1, 2
Turn = tuple[str, str]
"""Person, and words."""


class Played(NamedTuple):
    """What scripted users said."""

    turns: list[Turn]
    improvised: list[Turn]
    """Those that are no turn of the person's."""
    drawn: list[tuple[str, str, str]]
    """(words, the drawn ones, what the user came for), of the turns whose words were drawn."""


def main() -> int:
    """Mine, play and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sessions", type=int, default=1000, help="at most so many sessions are played")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    earlier, later = halves(sessions_of(options.data.resolve()))
    bank = wordings(scripts_of(user_rows(earlier)), {})
    chosen = dict(sorted(later.items())[:options.sessions])
    rows = user_rows(chosen, learn(earlier.values()))
    fitted_habits = habits(earlier, {}, {}, earlier.keys())
    figures = measured(chosen, rows, bank, fitted_habits)
    figures |= contradictions(chosen, rows, fitted_habits)
    figures |= {"n_sessions": len(chosen), "n_wordings": sum(map(len, bank.values()))}
    figures |= {**solved(options.out), **ends(options.out, options.sessions)} if options.out else {}
    for name, value in figures.items():
        print(f"{name:28} {value!s:>10}", file=sys.stderr)
    print(json.dumps({"benchmark": "users_like", "data": options.data.resolve().name, "figures": figures}))
    return 0 if {figures["facts_kept"], figures["contradictions_end_true"]} <= {None, 1.0} else 1


def scripts_of(rows: dict[str, dict[str, Any]]) -> pl.DataFrame:
    """Return the scripts as `users.scripts` gives them."""
    return pl.DataFrame({"task_id": list(rows), "script": [canonical(row) for row in rows.values()]})


def measured(talks: dict[str, Talk], rows: dict[str, dict[str, Any]], bank: dict[str, Any],
             habits_rows: dict[str, Any]) -> dict[str, Any]:
    """Return all figures."""
    real = [(name, text) for name, talk in talks.items() for text in (*talk.opening, *talk.turns)]
    off, on = played(talks, rows, None), played(talks, rows, Wordings(bank))
    both = played(talks, rows, Wordings(bank), habits_rows)
    drawn = [*on.drawn, *both.drawn]
    return {
        "user_auc": auc(on.turns, real), "user_auc_off": auc(off.turns, real), "user_auc_habits": auc(both.turns, real),
        "improvised_auc": auc(on.improvised, real), "improvised_auc_off": auc(off.improvised, real),
        "improvised_auc_habits": auc(both.improvised, real),
        "copied_share_habits": share(len(both.turns) - len(both.improvised), len(both.turns)),
        "next_act_off": next_act(talks, rows, {}), "next_act_habits": next_act(talks, rows, habits_rows),
        "improvised_share": share(len(off.improvised), len(off.turns)), "drawn_share": share(len(on.drawn), len(on.turns)),
        "copied_share": share(len(on.turns) - len(on.improvised), len(on.turns)),
        "facts_kept": share(sum(_keeps_facts(*each) for each in drawn), len(drawn)),
        "n_turns": len(on.turns), "n_real": len(real)}


def next_act(talks: dict[str, Talk], rows: dict[str, dict[str, Any]], habits_rows: Mapping[str, Any]) -> float | None:
    """Return the share of answers of the person's act, as `benchmarks/users.py` counts it."""
    counts, acts = Counter[str](), Counter[str]()
    for name, talk in talks.items():
        unheard = rows[name] | {"script": [one | {"heard": []} for one in rows[name]["script"]], "after": [], "patience": None}
        user = ScriptedUser(unheard, [{"role": "user", "content": "\n".join(talk.opening)}])
        counts += as_it_came(user, talk, rows[name], acts, habits_of(habits_rows, ALL, 0, name))
    return share(counts["acts"], sum(acts.values()))


def played(
    talks: dict[str, Talk], rows: dict[str, dict[str, Any]], bank: Wordings | None, habits_rows: Mapping[str, Any] | None = None
) -> Played:
    """Let the scripted users answer their agents' words, which they have never heard."""
    found = Played([], [], [])
    for name, talk in talks.items():
        unheard = rows[name] | {"script": [one | {"heard": []} for one in rows[name]["script"]], "after": []}
        request = "\n".join(talk.opening)
        user = ScriptedUser(unheard, [{"role": "user", "content": request}])
        own, progress = {_plain(line) for text in (*talk.opening, *talk.turns) for line in text.split("\n")}, UserProgress()
        own_habits = habits_of(habits_rows or {}, ALL, 0, name)
        for step, words in enumerate(words for heard in talk.heard for words in heard):
            before = progress
            progress, reply = user.reply(progress, words, own_habits)
            if reply is None:
                continue
            drawn = bank.reworded(reply, words, request, random.Random(canonical([name, step, reply]))) if bank else reply
            if drawn is None:
                continue
            if drawn != reply:
                found.drawn.append((reply, drawn, request))
            drawn = typed(own_habits, drawn, before, words) if own_habits else drawn
            found.turns.append((name, drawn))
            if not own.issuperset(map(_plain, drawn.split("\n"))):
                found.improvised.append((name, drawn))
    return found


def solved(out: Path) -> dict[str, Any]:
    """Play the known solutions of published tasks with both switches on; return the share that earns all."""
    rewards = []
    for path in sorted((out / "environments").iterdir()):
        environment = Environment.load(path)
        for line in (out / "rewards" / path.name / "solutions.jsonl").read_text("utf-8").splitlines():
            solution = json.loads(line)
            for seed in DRAWN_SEEDS:
                environment.reset(solution["task_id"], seed=seed, perturbations=("habits", "wordings"))
                for step in solution["steps"]:
                    if "say" in step:
                        environment.say(step["say"])
                    else:
                        environment.call(step["tool"], step["arguments"])
                environment.finish()
                rewards.append(environment.grade().reward)
    return {"solutions_paid": share(sum(reward == 1.0 for reward in rewards), len(rewards)),
            "n_solutions": len(rewards) // len(DRAWN_SEEDS)}


def _plain(line: str) -> str:
    return " ".join(line.casefold().split()).rstrip(".")


def _keeps_facts(words: str, drawn: str, request: str) -> bool:
    return stated(drawn) == stated(words) or (words in (NO, UNSURE) and stated(drawn) <= stated(request))


def auc(scripted: list[Turn], real: list[Turn]) -> float | None:
    """Return the area under the curve of a classifier of turns, of held-out persons; the mean rank of the scripted ones."""
    if not scripted or not real:
        return None
    people = sorted({person for person, _ in (*scripted, *real)})
    fold_of = {person: zlib.crc32(person.encode()) % FOLDS for person in people}
    turns = [*((*turn, 1) for turn in scripted), *((*turn, 0) for turn in real)]
    scores, labels = [], []
    for fold in range(FOLDS):
        train = [(text, label) for person, text, label in turns if fold_of[person] != fold]
        test = [(text, label) for person, text, label in turns if fold_of[person] == fold]
        score = fitted(train)
        scores += [score(text) for text, _ in test]
        labels += [label for _, label in test]
    return area(np.array(scores), np.array(labels))


def area(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Return how often a scripted turn has the higher score; equal ones count half."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    n_one = int(labels.sum())
    return round(float((ranks[labels == 1].sum() - n_one * (n_one + 1) / 2) / (n_one * (len(labels) - n_one))), 4)


def fitted(train: list[tuple[str, int]]) -> Callable[[str], float]:
    """Fit a logistic regression, both classes weighing alike (AdaGrad; Duchi, Hazan, Singer 2011)."""
    n_of = Counter(feature for text, _ in train for feature in set(features(text)))
    idf = np.array([np.log((1 + len(train)) / (1 + n_of[feature])) + 1 for feature in range(N_FEATURES)])
    weights, squares = np.zeros(N_FEATURES), np.full(N_FEATURES, 1e-2)
    balance = [0.5 * len(train) / max(1, sum(label == each for _, label in train)) for each in (0, 1)]
    rows = [(*vector(text, idf), label) for text, label in train]
    order = np.random.default_rng(0)
    for _ in range(EPOCHS):
        for place in order.permutation(len(rows)):
            indices, values, label = rows[place]
            slope = balance[label] * (label - 1 / (1 + np.exp(-float(weights[indices] @ values)))) * values
            squares[indices] += slope**2
            weights[indices] += RATE * slope / np.sqrt(squares[indices])

    def score(text: str) -> float:
        indices, values = vector(text, idf)
        return float(weights[indices] @ values)

    return score


def vector(text: str, idf: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (features, TF-IDF of length 1)."""
    counts = Counter(features(text))
    indices = np.fromiter(counts, np.int64)
    values = np.fromiter(counts.values(), np.float64) * idf[indices]
    return indices, values / np.linalg.norm(values)


def features(text: str) -> list[int]:
    """Return the hashed words, runs of three characters, and the length."""
    small = text.lower()
    parts = [*(f"w {word}" for word in re.findall(r"\w+|[^\w\s]", small)), *(f"W {word}" for word in re.findall(r"\w+", text)),
             *(f"c {small[at:at + 3]}" for at in range(max(1, len(small) - 2))), f"n {min(20, len(text) // 5)}"]
    return [zlib.crc32(part.encode()) % N_FEATURES for part in parts]


def share(part: int, whole: int) -> float | None:
    """Return a share, None of nothing."""
    return round(part / whole, 4) if whole else None


if __name__ == "__main__":
    sys.exit(main())
