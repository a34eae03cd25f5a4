"""Are families of sessions without a single call as good as the public baseline, TF-IDF with k-means?

`measure(talks)` makes sets of requests in the shapes of public intent logs (`first_hour_words_corpus`): a bank's near kinds,
few of them each, an assistant's many, a shop's with placeholders, a household in three languages. Sizes are unequal, words are
exchanged, misspelt and left out. From `human_desk` (folder `talks`, where it is given) come two more: the openings alone, and
the whole conversations without their calls, scored where people had one task. All are written as logs and mined as any log.

The baseline gets the true number of kinds. Its ARI is that of the best of three forms (TF-IDF as it is, 50 or 150 directions of
it), mean over seeds; scikit-learn's (`pip install traceroom[peers]`). `words_ari_margin`: our ARI minus that, on the worst set.
"""

from __future__ import annotations

import importlib.util
import json
import random
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from benchmarks import first_hour_words_corpus as corpus
from benchmarks.mining_scores import ari
from extractors.inventory import discover
from extractors.reading import read
from extractors.sessions import assemble
from extractors.tasks import goals_of

_SEEDS = range(3)
_DIRECTIONS = (0, 50, 150)
_FRAMED, _NEARLY, _ROUGH = 0.6, 0.12, 0.01
"""Shares: requests within a frame, words exchanged for a near one, words misspelt (and as many left out)."""
_OPENING = 4
"""Words that the message must have which says what somebody wants."""


class WordSet(NamedTuple):
    """Conversations without calls, by id: messages as (role, text), and the true kind of those that are scored."""

    talks: dict[str, list[tuple[str, str]]]
    kinds: dict[str, str]


def measure(talks: Path | None = None) -> dict[str, Any]:
    """Return words_ari_margin and, by set, its kinds and both ARIs."""
    if importlib.util.find_spec("sklearn") is None:
        raise SystemExit("the part words needs scikit-learn; hint: pip install 'traceroom[peers]'")
    sets = {}
    for name, words in _sets(talks):
        ids = sorted(words.kinds)
        true = [words.kinds[each] for each in ids]
        families = families_of(words)
        peers = _peers(["\n".join(text for role, text in words.talks[each] if role == "user") for each in ids], true)
        own = ari(true, [families.get(each, "none") for each in ids])
        sets[name] = {"n": len(ids), "n_kinds": len(set(true)), "n_families": len({families.get(each) for each in ids}),
                      "ari": round(own, 4), **peers, "margin": round(own - max(peers.values()), 4)}
    return {"words_ari_margin": min(each["margin"] for each in sets.values()), "words": sets}


def families_of(words: WordSet) -> dict[str, str]:
    """Write the conversations as a log, and mine it: session -> family."""
    with tempfile.TemporaryDirectory() as scratch:
        rows = [{"session_id": each, "messages": [{"role": role, "content": text} for role, text in talk]}
                for each, talk in words.talks.items()]
        Path(scratch, "talks.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        files, _ = discover([Path(scratch)])
        readings = [read(file) for file in files]
        made = assemble(pl.concat([r.events for r in readings]), pl.concat([r.declarations for r in readings]))
    effects = made.tools.select("service", "tool", pl.lit("write").alias("effect"))
    return dict(goals_of(made.sessions, made.turns, effects).select("session_id", "family").unique().iter_rows())


def requests(grammar: str, n: int, seed: int) -> WordSet:
    """Say `n` requests of a grammar; the k-th most frequent kind comes 1/√k as often as the first."""
    chance = random.Random(seed)
    kinds = [line.split(" / ") for line in re.sub(r" /\n {2}", " / ", grammar.strip()).splitlines()]
    chance.shuffle(kinds)
    talks, true = {}, {}
    for number in range(n):
        kind = chance.choices(range(len(kinds)), [(1 + place) ** -0.5 for place in range(len(kinds))])[0]
        text = _rough(_framed(chance.choice(kinds[kind]).strip(), chance, grammar is not corpus.HOME), chance)
        talks[f"s{number:05}"] = [("user", text), ("assistant", "I will see to it.")]
        true[f"s{number:05}"] = str(kind)
    return WordSet(talks, true)


def _sets(talks: Path | None) -> Iterator[tuple[str, WordSet]]:
    yield "bank", requests(corpus.BANK, 2000, 1)
    yield "bank_small", requests(corpus.BANK, 700, 2)
    yield "assistant", requests(corpus.ASSISTANT, 3000, 3)
    yield "shop", requests(corpus.SHOP, 2000, 4)
    yield "shop_small", requests(corpus.SHOP, 300, 5)
    yield "home", requests(corpus.HOME, 1000, 6)
    for seed in _SEEDS:
        yield f"bank_few_{seed}", requests(corpus.BANK, 300, 10 + seed)
        yield f"assistant_few_{seed}", requests(corpus.ASSISTANT, 500, 20 + seed)
        yield f"shop_few_{seed}", requests(corpus.SHOP, 130, 30 + seed)
        yield f"home_few_{seed}", requests(corpus.HOME, 120, 40 + seed)
    if talks is not None:
        whole = _talks(talks)
        openings = {each: next(((role, text) for role, text in talk if role == "user" and len(text.split()) >= _OPENING), None)
                    for each, talk in whole.talks.items() if each in whole.kinds}
        opened = {each: [opening, ("assistant", "I will see to it.")] for each, opening in openings.items() if opening}
        yield "desk_openings", WordSet(opened, {each: whole.kinds[each] for each in opened})
        yield "desk_talks", whole


def _talks(folder: Path) -> WordSet:
    truth = [json.loads(line) for line in (folder / "truth" / "sessions.jsonl").read_text().splitlines()]
    talks = {}
    for file in sorted((folder / "logs").iterdir()):
        for row in map(json.loads, file.read_text().splitlines()):
            said_words = [(each["role"], each["content"]) for each in row["messages"] if each.get("content")]
            talks[row["session_id"]] = [each for each in said_words if each[0] in {"user", "assistant"}]
    single = {row["session_id"]: row["tasks"][0] for row in truth if not row["multi_task"]}
    return WordSet(talks, {each: kind for each, kind in single.items() if any(role == "user" for role, _ in talks[each])})


def _framed(way: str, chance: random.Random, english: bool) -> str:
    """Choose among alternatives, fill the slots, put it into a frame: how somebody asks."""
    mark = way[0] if way[0] in "?!" else ""
    way = re.sub(r"\(([^()]*)\)", lambda match: chance.choice(match[1].split("|")), way[len(mark):])
    way = re.sub(r"(?<!\{)\{(\w+)\}(?!\})", lambda match: chance.choice(corpus.SLOTS[match[1]]), way).strip()
    if not english:
        return way
    framed = chance.choice(corpus.FRAMES[mark]).replace("{}", way) if chance.random() < _FRAMED else way
    return chance.choice(corpus.LEADS) + framed + chance.choice(corpus.TAILS)


def _rough(text: str, chance: random.Random) -> str:
    """Exchange, misspell and leave out some words."""
    words = []
    for word in text.split():
        draw = chance.random()
        if word in corpus.NEAR and draw < _NEARLY:
            words.append(corpus.NEAR[word])
        elif draw > 1 - _ROUGH and len(word) > _OPENING:
            at = chance.randrange(1, len(word) - 1)
            words.append(word[:at] + word[at + 1] + word[at] + word[at + 2:])
        elif not 1 - 2 * _ROUGH < draw <= 1 - _ROUGH:
            words.append(word)
    return " ".join(words) or text


def _peers(texts: Sequence[str], true: Sequence[str]) -> dict[str, float]:
    """ARI of k-means with the true number on TF-IDF, in each form; mean over seeds."""
    from sklearn.cluster import KMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    rows = TfidfVectorizer().fit_transform([text or "nothing" for text in texts])
    scores = {}
    for rank in _DIRECTIONS:
        own = []
        for seed in _SEEDS:
            reduced = TruncatedSVD(min(rank, min(rows.shape) - 1), random_state=seed) if rank else None
            points = normalize(reduced.fit_transform(rows)) if reduced else rows
            own.append(ari(true, KMeans(len(set(true)), n_init=3, random_state=seed).fit_predict(points).tolist()))
        scores[f"kmeans_{rank or 'all'}"] = round(sum(own) / len(own), 4)
    return scores
