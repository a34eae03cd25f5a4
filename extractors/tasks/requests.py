"""Find what each session asked for, and which sessions ask for the same.

Input: sessions and turns. Output: one row a session that asked for something (`REQUESTS`), and decisions for the others.

Sees messages of role user; for runs of requests without messages, texts for people inside the arguments, and only those of
what the user filed if that opened the run. If a service's runs are opened by others, a run that nobody opened is no work for
its agents. Likeness is that of shared words, weighted by rarity; names of entities (words with digits) count more. If most
sessions begin with words that others used to the letter, apart from numbers and names (scripts, buttons, forms), only the
first words count and must be nearly equal. If most sessions ask in sentences of others among other words, these sentences
decide (`phrases.py`); otherwise people paraphrase, and all their words count. All sums are of whole numbers, so thread order
cannot change a result. Does not see: synonyms, negation, a goal in entirely different words; two goals of one person in nearly
the same words are taken for one."""

from __future__ import annotations

import heapq
from collections import defaultdict

import polars as pl

from extractors.tasks.arguments import opens_session
from extractors.tasks.phrases import requests_by_phrase
from extractors.tasks.words import document_words, is_identifier, masked
from warehouse.records import Decision, frame

REQUESTS = {
    "session_id": pl.String(), "service": pl.String(), "source": pl.String(), "identity": pl.String(),
    "started_at": pl.Datetime("us", "UTC"), "goal": pl.String(), "said": pl.String(), "spoken": pl.Boolean(),
    "worded": pl.Boolean()}
"""goal: the first substantive words; said: all words of the user; spoken: whether these are words of a conversation; worded:
whether they are anybody's words at all, and not the names of what was called."""
_SUBSTANTIVE = 4
"""A first message of fewer words is a greeting, and the goal goes on in the next one."""
_TEXT_FOR_PEOPLE = 3
"""A string in arguments with this many words, mostly letters, is a text that a person wrote."""
_CHOICE = 3
"""A text of more sessions than this is one of a list to choose from, where the session has a rarer one."""
_ASKED = 0.1
"""Share of a service's sessions that a user opened in the application, from which the others are nobody's request."""
_REJECTIONS = {
    "nobody_asked": "session {} is what somebody did for themselves: no other person opened it, as they opened others of its "
    "service; no action needed",
    "no_request": "session {} holds no words of a user and no request; nothing was asked that could be a task",
    "no_answer": "session {} ends with the user's words: no agent answered, no tool was called; "
    "look for the rest of it in the log"}


def find_requests(sessions: pl.DataFrame, turns: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One row of `REQUESTS` a session that asked for something and was answered, by session_id; decisions for the rest."""
    rows = _all_requests(sessions, turns)
    kept = rows.filter(pl.col("reason").is_null()).select(list(REQUESTS)).sort("session_id")
    rejected = rows.select("session_id", "reason").drop_nulls("reason").sort("session_id")
    return kept.cast(pl.Schema(REQUESTS)), frame(Decision, [
        Decision(stage="tasks", subject=session, kept=False, reason=reason, detail=_REJECTIONS[reason].format(session))
        for session, reason in rejected.iter_rows()])


def reject_goalless(sessions: pl.DataFrame, goals: pl.DataFrame) -> pl.DataFrame:
    """Decisions on sessions that have no goal, since nobody in them asked for anything: of a model's answer alone, for one."""
    without = sessions.join(goals, on="session_id", how="anti")["session_id"].sort()
    return frame(Decision, [Decision(stage="goals", subject=session, kept=False, reason="no_request",
                                     detail=_REJECTIONS["no_request"].format(session)) for session in without])


def stated_requests(sessions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """One row of `REQUESTS` a session that asked for something, answered or not, by session_id."""
    rows = _all_requests(sessions, turns).filter(pl.col("goal").is_not_null())
    return rows.select(list(REQUESTS)).sort("session_id").cast(pl.Schema(REQUESTS))


def _all_requests(sessions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    per_session = sessions.select("session_id", "service", "source", "identity", "started_at")
    spoken = (
        turns.filter((pl.col("kind") == "message") & (pl.col("role") == "user") & (pl.col("content").str.strip_chars() != ""))
        .sort("session_id", "position").with_columns(
            (pl.col("content").str.count_matches(r"[\p{L}\p{N}]+") >= _SUBSTANTIVE).cast(pl.Int32).alias("substantive"))
        .with_columns(pl.col("substantive").cum_sum().over("session_id").alias("n_before")))
    opening = (pl.col("n_before") - pl.col("substantive")) == 0
    answers = (pl.col("kind") == "message") & (pl.col("role") == "assistant") & (pl.col("content").str.strip_chars() != "")
    calls = pl.col("kind") == "call"
    words = spoken.group_by("session_id", maintain_order=True).agg(
        pl.col("content").filter(opening).str.join("\n").alias("goal"), pl.col("content").str.join("\n").alias("said"))
    activity = turns.group_by("session_id").agg(
        calls.sum().alias("n_calls"), answers.sum().alias("n_answers"),
        pl.col("tool").filter(calls).unique().sort().str.join(", ").replace("", None).alias("tools"))
    marked = turns.sort("session_id", "position").with_columns(opens_session().alias("opens"))
    asking = marked.filter("opens").select("session_id", pl.lit(True).alias("opened")).unique()
    quoted = (
        marked.filter(calls & pl.col("arguments").is_not_null() & (pl.col("opens") | ~pl.col("opens").any().over("session_id")))
        .select("session_id", pl.col("arguments").str.extract_all(r'"(?:[^"\\]|\\.)*"').alias("text")).explode("text")
        .drop_nulls("text").with_columns(pl.col("text").str.strip_chars('"')))
    written = pl.col("text").str.count_matches(r"\p{L}{2,}") >= _TEXT_FOR_PEOPLE
    spaced = pl.col("text").str.count_matches(r"\s") >= _TEXT_FOR_PEOPLE - 1
    texts = quoted.filter(written & spaced).with_columns(pl.col("session_id").n_unique().over("text").alias("n"))
    rare = pl.col("n") <= pl.max_horizontal(pl.lit(_CHOICE), pl.col("n").min().over("session_id"))
    texts = texts.filter(rare).group_by("session_id", maintain_order=True).agg(
        pl.col("text").unique(maintain_order=True).head(3).str.join("\n"))
    rows = (
        per_session.join(words, on="session_id", how="left").join(activity, on="session_id", how="left")
        .join(texts, on="session_id", how="left").join(asking, on="session_id", how="left")
        .with_columns(pl.col("n_calls", "n_answers").fill_null(0), pl.col("said").is_not_null().alias("spoken"))
        .with_columns(pl.any_horizontal(pl.col("said", "text").is_not_null()).alias("worded"))
        .with_columns(pl.coalesce("goal", "text", "tools").alias("goal"), pl.coalesce("said", "text", "tools").alias("said")))
    idle = (pl.col("n_calls") == 0) & (pl.col("n_answers") == 0)
    opened = pl.col("opened").fill_null(False)
    nobody = ~opened & ~pl.col("spoken") & (opened.mean().over("service") >= _ASKED)
    return rows.with_columns(
        pl.when(pl.col("goal").is_null()).then(pl.lit("no_request")).when(idle).then(pl.lit("no_answer"))
        .when(nobody).then(pl.lit("nobody_asked")).alias("reason"))


ONE = 1_000_000
"""Likeness 1.0 as a whole number."""
_FAINT = 0.04
"""Pairs less alike than this count as not alike at all."""


def weigh(counts: pl.DataFrame) -> pl.DataFrame:
    """Weigh words by TF-IDF with unit length per document (Salton and Buckley 1988, `ltc`), in whole thousandths.

    Takes columns document, word, n; gives document, word, weight. Words of a single document count too."""
    n_documents = counts["document"].n_unique()
    n_with_word = pl.len().over("word")
    weighed = counts.with_columns(((1.0 + pl.col("n").log()) * ((n_documents + 1.0) / n_with_word).log()).alias("weight"))
    length = pl.col("weight").pow(2).sum().sqrt().over("document")
    return weighed.select("document", "word", (pl.col("weight") / length * 1000).round().cast(pl.Int64).alias("weight"))


def pairs(weights: pl.DataFrame, most: int = 400) -> pl.DataFrame:
    """List documents that share words: columns a, b (a before b), likeness (whole number, `ONE`: the same).

    Ignores words of more than `most` documents: they say little and cost the square of their number."""
    shared = weights.filter((pl.len().over("word") > 1) & (pl.len().over("word") <= most))
    joined = shared.join(shared, on="word", suffix="_b").filter(pl.col("document") < pl.col("document_b"))
    return (
        joined.group_by(pl.col("document").alias("a"), pl.col("document_b").alias("b"))
        .agg((pl.col("weight") * pl.col("weight_b")).sum().alias("likeness")).filter(pl.col("likeness") >= int(_FAINT * ONE))
        .sort("a", "b"))


def group(documents: list[str], alike: pl.DataFrame, least: float, sizes: dict[str, int] | None = None) -> dict[str, str]:
    """Group documents by average linkage until no two groups are `least` alike: document -> its group's first document.

    `alike`: of `pairs`; other pairs are not alike. `sizes`: how many equal documents each stands for. First groups win ties."""
    members = {document: [document] for document in documents}
    weight = {document: (sizes or {}).get(document, 1) for document in documents}
    links: dict[str, dict[str, int]] = defaultdict(dict)
    heap: list[tuple[float, str, str]] = []
    for a, b, likeness in alike.select("a", "b", "likeness").iter_rows():
        links[a][b] = links[b][a] = likeness * weight[a] * weight[b]
        heap.append((-likeness / ONE, a, b))
    heapq.heapify(heap)
    while heap and -heap[0][0] >= least:
        score, a, b = heapq.heappop(heap)
        if a not in members or b not in members or -score != _average(links, weight, a, b):
            continue
        members[a] += members.pop(b)
        weight[a] += weight[b]
        for other, total in links.pop(b).items():
            links[other].pop(b, None)
            if other != a:
                links[a][other] = links[other][a] = links[a].get(other, 0) + total
        for other in links[a]:
            first, second = (a, other) if a < other else (other, a)
            heapq.heappush(heap, (-_average(links, weight, first, second), first, second))
    return {document: min(group) for group in members.values() for document in group}


def _average(links: dict[str, dict[str, int]], weight: dict[str, int], a: str, b: str) -> float:
    return links[a].get(b, 0) / (weight[a] * weight[b]) / ONE


_SCRIPTED = 0.5
"""Share of sessions whose first words, words with digits masked, others used too: from there on the service is scripted."""
_SAME_SCRIPT = 0.9
"""Average likeness from which on two scripted requests are one: a changed name makes another request."""
_SAME_REQUEST = 0.13
"""The same for paraphrased conversations: likeness is low, as all that was said is compared."""
_NAMES_COUNT = 4
"""A word that names an entity counts this many times more."""


def same_request(requests: pl.DataFrame) -> pl.DataFrame:
    """Group sessions of a service that asked for the same: columns session_id, request (id of the first session)."""
    parts = [
        _in_service(part.sort("session_id")) for _, part in requests.sort("service").group_by("service", maintain_order=True)]
    empty = pl.DataFrame(schema={"session_id": pl.String, "request": pl.String})
    return pl.concat([empty, *parts]).sort("session_id")


def _in_service(requests: pl.DataFrame) -> pl.DataFrame:
    templates = requests.select(masked(pl.col("goal").str.strip_chars()))["goal"]
    share = templates.is_duplicated().sum() / requests.height
    phrased = requests_by_phrase(requests.filter(pl.col("spoken"))) or {}
    if len(phrased) < share * requests.height or not phrased:  # whole openings of others say more than sentences in them
        return _by_words(requests, scripted=share > _SCRIPTED)
    by_phrase = pl.DataFrame({"session_id": list(phrased), "request": list(phrased.values())})
    alone = requests.join(by_phrase, on="session_id", how="anti").select("session_id", pl.col("session_id").alias("request"))
    return pl.concat([by_phrase, alone])  # who asks in no such sentence asks for nobody knows what


def _by_words(requests: pl.DataFrame, scripted: bool) -> pl.DataFrame:
    """Group requests by the likeness of their words."""
    text = "goal" if scripted else "said"
    documents = (
        requests.group_by(pl.col(text).str.strip_chars().alias("text"))
        .agg(pl.col("session_id").min().alias("document"), pl.len().alias("n")).sort("document"))
    words = document_words(documents)
    if scripted:   # no pairs of one template with other numbers or names: however long it is, they ask for other things
        filled = documents.select("document", masked(pl.col("text")).alias("template"))
        refilled = filled.join(filled, on="template", suffix="_b").select(
            pl.col("document").alias("a"), pl.col("document_b").alias("b"))
        alike = _with_extended(pairs(weigh(words)).join(refilled, on=["a", "b"], how="anti"), documents)
    else:   # no pairs in which both sides name entities, but none that the other names
        named = is_identifier(pl.col("word"))
        words = words.with_columns(pl.col("n") + pl.when(named).then(_NAMES_COUNT).otherwise(0))
        names = words.filter(is_identifier(pl.col("word")) & ~pl.col("word").str.contains(" ")).select("document", "word")
        naming = names["document"].unique()
        shared = (
            names.join(names, on="word", suffix="_b").filter(pl.col("document") < pl.col("document_b"))
            .select(pl.col("document").alias("a"), pl.col("document_b").alias("b")).unique()
            .with_columns(pl.lit(True).alias("shared")))
        both = pl.col("a").is_in(naming.implode()) & pl.col("b").is_in(naming.implode())
        alike = pairs(weigh(words)).join(shared, on=["a", "b"], how="left").filter(~both | pl.col("shared").is_not_null())
    sizes = dict(documents.select("document", "n").iter_rows())
    groups = group(documents["document"].to_list(), alike.sort("a", "b"), _SAME_SCRIPT if scripted else _SAME_REQUEST, sizes)
    of_text = documents.select("text", pl.col("document").replace_strict(groups, return_dtype=pl.String).alias("request"))
    stripped = requests.select("session_id", pl.col(text).str.strip_chars().alias("text"))
    return stripped.join(of_text, on="text").select("session_id", "request")


def _with_extended(alike: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Take a scripted text that begins with all of another one (a sentence was added) for the same as that."""
    ended = pl.col("text").str.to_lowercase().str.strip_chars_end(".!? ")
    text = documents.select("document", ended.alias("text")).sort("text", "document")
    follows = text.with_columns(pl.all().shift(1).name.suffix("_before")).filter(
        pl.col("text").str.starts_with(pl.col("text_before")))
    extended = follows.select(
        pl.min_horizontal("document", "document_before").alias("a"),
        pl.max_horizontal("document", "document_before").alias("b"), pl.lit(ONE, dtype=pl.Int64).alias("likeness"))
    return pl.concat([alike.join(extended, on=["a", "b"], how="anti"), extended])
