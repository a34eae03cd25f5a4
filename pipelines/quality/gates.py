"""Gates before a release: what must not be published, each with the rows that speak against it.

The rules of pipelines/quality/rules.py say whether the warehouse is complete; a release is impossible while one is broken. The
gates here are judgements over a whole build, and a person may accept one by name. Sees: the warehouse, OUT, and the
promoted release. Does not see: whether a bar is the right one for a service; `[release]` of the configuration sets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import polars as pl

from env_builder.runtime.files import rows_of
from pipelines.privacy import guard as privacy
from pipelines.quality import rules
from pipelines.releases.disclosing import disclosed, named
from pipelines.releases.registry import Source
from pipelines.running.code import code_digest
from pipelines.settings import Settings
from warehouse.store import Store

Level = Literal["block", "warn", "off"]


class Build(NamedTuple):
    """What is judged."""

    store: Store
    settings: Settings
    files: Mapping[str, Source]
    """Files that would be released, by their path in the release."""
    promoted: Mapping[str, Any] | None
    """Manifest of the promoted release."""
    drift: frozenset[tuple[str, str]]
    """Changes of the logs that it knew: (subject, reason)."""
    published_hashes: frozenset[str]
    """sha256 of its files."""

    def unjudged(self, gate: str) -> dict[str, Source]:
        """Files that this gate, by the same code, has not let into the promoted release without a word."""
        before = self.promoted or {}
        clean = before.get("code") == code_digest() and before.get("gates", {}).get(gate, {}).get("n") == 0
        return {path: each for path, each in self.files.items() if not (clean and each.sha256 in self.published_hashes)}


class Gate(NamedTuple):
    """Something that must hold of a build before it is published."""

    name: str
    description: str
    offenders: Callable[[Build], pl.DataFrame]
    level: Callable[[Build], Level] = lambda build: "block"
    acceptable: bool = True
    """May somebody accept what it found?"""


class Judged(NamedTuple):
    """What a gate found."""

    gate: str
    description: str
    level: Level
    rows: pl.DataFrame
    accepted: bool

    @property
    def red(self) -> bool:
        """Does it hold the release up?"""
        return self.level == "block" and self.rows.height > 0 and not self.accepted


def _of_rule(rule: rules.Rule) -> Gate:
    return Gate(rule.name, rule.description, lambda build: rules.offenders(build.store, rule), acceptable=False)


def _drifted(build: Build) -> pl.DataFrame:
    changes = build.store.read("select subject, reason, detail from mart.decisions where stage = 'drift' order by all")
    return changes.filter(pl.Series(
        [row not in build.drift for row in changes.select("subject", "reason").iter_rows()], dtype=pl.Boolean))


def _uncalibrated(build: Build) -> pl.DataFrame:
    """Families with a reward whose outcomes are further from what people said than the bars allow."""
    from extractors.outcomes.calibration import measure

    config = build.settings.configured
    rewarded = build.store.read(
        "select * from mart.tasks where task_id in (select subject from mart.decisions where stage = 'verify' and kept)")
    measures = measure(
        rewarded, build.store.table("mart.outcomes"), build.store.table("core.feedback"), config.outcomes.reviews)
    least = max(config.release.min_auroc, config.gates.min_auroc or 0.0)
    most = min(config.release.max_ece, 1.0 if config.gates.max_ece is None else config.gates.max_ece)
    rows = [each._asdict() for each in measures if not each.holds(least, most)]
    return pl.DataFrame(rows, infer_schema_length=None)


def _unlike(build: Build) -> pl.DataFrame:
    """Tools whose program gets more of the logged calls wrong than the bar allows."""
    return build.store.read(
        "select service, tool, n_support, fidelity, abstains, (1 - fidelity) * (1 - coalesce(abstains, 0)) as wrong "
        "from mart.behaviours "
        "where wrong > 1 - $bar order by wrong desc, service, tool", bar=build.settings.configured.release.min_fidelity)


def _unaudited(build: Build) -> pl.DataFrame:
    """Return published tasks whose audit lets something through that should fail, whose solution does not earn 1, or without
    one."""
    rows = []
    for name in build.store.table("mart.environments")["environment"]:
        folder = build.settings.rewards / name
        passes = json.loads((folder / "audit.json").read_text("utf-8"))["passes_above"]
        audits = {row["task_id"]: row["plays"] for row in rows_of(folder / "audit.jsonl")}
        for task in (row["task_id"] for row in rows_of(build.settings.environments / name / "tasks.jsonl")):
            plays = audits.get(task, [])
            if not any(play["kind"] == "solution" for play in plays):
                rows.append({"environment": name, "task_id": task, "player": "solution", "reward": None, "should": "pass"})
            rows += [
                {"environment": name, "task_id": task, "player": play["player"], "reward": play["reward"],
                 "should": play["should"]} for play in plays
                if (play["should"] == "fail" and (play["reward"] or 0.0) > passes)
                or (play["kind"] == "solution" and play["reward"] != 1.0)]
    return pl.DataFrame(rows, infer_schema_length=None)


def _leaking(build: Build) -> pl.DataFrame:
    """Services whose split leaks, sessions on two sides of one, and tasks made from another side's."""
    reports = build.store.read("select service, report from mart.leakage order by service").iter_rows()
    parsed = [(service, json.loads(report)) for service, report in reports]
    rows = [{"service": service, "what": f"{report['leaks']} records are in several splits"}
            for service, report in parsed if report.get("method") == "component" and report.get("leaks")]
    sessions = build.store.read(
        "select service, 'the session ' || s || ' stands in ' || string_agg(distinct split, ' and ' order by split) as what "
        "from (select service, split, unnest(session_ids) as s from mart.tasks) group by service, s "
        "having count(distinct split) > 1 order by all")
    made = build.store.read(
        "select v.service, 'the task ' || v.task_id || ' of ' || v.split || ' is made from one of ' || t.split as what "
        "from mart.variants v join mart.tasks t on v.derived_from = t.task_id "
        "where v.made_from = 'rebinding' and v.split != t.split order by all")
    return pl.concat([pl.DataFrame(rows, schema=sessions.schema), sessions, made])


def _disclosing(build: Build, secret: bool, name: str) -> pl.DataFrame:
    """Files that hold secrets or personal data; what ships with every environment is ours."""
    files = [(path, each.path) for path, each in build.unjudged(name).items() if "/runtime/" not in path]
    nobodys = frozenset[str]() if secret else privacy.pseudonyms_in(build.store)
    names = frozenset[str]() if secret else privacy.names_in(build.store)
    return pl.DataFrame([*disclosed(files, secret, nobodys), *named(files, names)], infer_schema_length=None)


def _changing(build: Build) -> pl.DataFrame:
    """Environments that another process, with another order of hashes, writes otherwise from the same tables."""
    if not any(path.startswith("environments/") for path in build.unjudged(_DIGESTS)):
        return pl.DataFrame()
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pipelines.releases.rewriting", build.settings.model_dump_json()], check=False,
        capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": seed})
    if done.returncode:
        return pl.DataFrame([{"environment": "all", "published": None, "again": (done.stderr or "no word").strip()[-200:]}])
    again: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    published = build.store.read("select environment, content_digest from mart.environments order by environment").iter_rows()
    rows = [{"environment": name, "published": digest, "again": again.get(name)}
            for name, digest in published if again.get(name) != digest]
    return pl.DataFrame(rows, schema={"environment": pl.String, "published": pl.String, "again": pl.String})


_SECRETS, _PERSONAL, _DIGESTS = "no_secret_is_published", "no_personal_data_is_published", "digests_are_reproducible"
GATES: tuple[Gate, ...] = (
    *map(_of_rule, rules.RULES),
    Gate("logs_did_not_drift", "Logs and rules of tools are what they were in the promoted release.", _drifted,
         lambda build: build.settings.configured.release.drift),
    Gate("outcomes_are_calibrated", "Probabilities of success tell successful sessions from failed ones as people did.",
         _uncalibrated),
    Gate("tools_answer_as_logged", "No tool's program gets more of its logged calls wrong than the bar allows.", _unlike),
    Gate("audits_hold", "Nothing that was played against a published reward got through, and its solution earns 1.",
         _unaudited, acceptable=False),
    Gate("splits_do_not_leak", "Nothing is in two splits.", _leaking,
         lambda build: build.settings.configured.release.leaks),
    Gate(_SECRETS, "No file holds a key, a token or a password.", lambda build: _disclosing(build, True, _SECRETS),
         lambda build: build.settings.configured.release.secrets),
    Gate(_PERSONAL, "No file holds an address, a number of a card, an account, a person or a telephone.",
         lambda build: _disclosing(build, False, _PERSONAL),
         lambda build: "block" if _is_private(build.store) else build.settings.configured.release.personal_data),
    Gate(_DIGESTS, "Another process writes the same environments from the same tables.", _changing, acceptable=False))


def _is_private(store: Store) -> bool:
    """Whether people were taken out of what OUT holds."""
    return privacy.held_policy(store) not in (None, privacy.OFF)


def judge(build: Build, accepted: Iterable[str] = (), among: Iterable[Gate] = GATES) -> list[Judged]:
    """Return what every gate finds, in order; those that are off are not asked."""
    names = set(accepted)
    judged = []
    for gate in among:
        level = gate.level(build)
        rows = gate.offenders(build) if level != "off" else pl.DataFrame()
        judged.append(Judged(gate.name, gate.description, level, rows, gate.acceptable and gate.name in names))
    return judged
