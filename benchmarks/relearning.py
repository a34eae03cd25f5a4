#!/usr/bin/env python3
"""Whether nights follow rules that change, and whether builds that cheat differ in score from those that do not.

    benchmarks/relearning.py [--rules NAME…] [--sizes 45,80,32] [--together 8] [--sampled 0.2] [--folder DIR]

The logs are those of a made-up service (relearning_service.py) over twelve days, with `--sizes` sessions on each of the first
nine, on the tenth, and on each day after. On the tenth, its rules (`--rules`: only these) become others. The first
`--together` days arrive at once, then each night brings a day, and `traceroom run` goes over all of it. After each night from
the ninth on, calls whose answer depends on a rule are put to an open room of the environment that was built, at the end of
that day; the room is given the true answers to all calls of a probe but the last, the last is held against the service itself,
in the field that the rule decides. Beside each of the last three nights stands a full fit: the same logs built into an empty
folder. All with `--privacy off`.

A rule counts as followed if no probe of it is answered wrongly, and half of them or more are answered. The last line on
stdout is one JSON object:

    learnt_before         rules that the ninth night's rooms follow as they were: what is not learnt cannot be relearnt
    planted_relearnt      rules followed after the night of the tenth day, as they are now; _11, _12: a night and two later
    full_fit_relearnt     the same of the full fit
    planted_unknown       rules without a wrong answer that night, of which fewer than half of the probes are answered
    planted_wrong         wrong answers to probes over the three nights; full_fit_wrong: of the full fits
    planted_wrong_more    probes answered wrongly by the nights' rooms, and not by the full fits'
    late_right            share of things whose last change arrived a day late that the eleventh night's rooms show as they are

Three cheats go through the same scorer; each is caught if it does not pass while the nights do. To pass is to follow as many
rules as the full fit, to answer no probe wrongly that it does not, and to show as many late changes.

    cheat_never_relearns      the ninth night's rooms once more after the tenth day
    cheat_samples_by_hash     after the tenth day, built from a share (`--sampled`) of sessions by their hash
    cheat_ignores_late_events after the eleventh day, built without the lines that arrived a day late

`rules` names for each rule its answers (right, wrong, unknown) before the change, after it, and by the full fit after it. A
wrong answer is one to the field that the rule decides; that the rest of the answer is right is not looked at.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fidelity_data import rooms
from fidelity_score import share
from nightly import Night, run, table
from relearning_service import DAY_OF_CHANGE, RULES, Day, Probe, Step, days, probes_of, seen

N_DAYS = 12
LATE = "late"
"""What stands in place of a rule in probes of late changes."""


class Score(NamedTuple):
    """How probes were answered."""

    outcomes: dict[str, list[str]]
    """Rule -> of each of its probes: right, wrong or unknown."""

    @property
    def followed(self) -> set[str]:
        """Rules without a wrong answer, of which half of the probes or more were answered."""
        return {rule for rule, own in self.rules if "wrong" not in own and 2 * own.count("right") >= len(own)}

    @property
    def unknown(self) -> set[str]:
        """Rules without a wrong answer that are not followed."""
        return {rule for rule, own in self.rules if "wrong" not in own} - self.followed

    @property
    def rules(self) -> list[tuple[str, list[str]]]:
        """Rules and their outcomes, without the late changes."""
        return [(rule, own) for rule, own in self.outcomes.items() if rule != LATE and own]

    @property
    def wrong(self) -> set[tuple[str, int]]:
        """Probes that were answered wrongly."""
        return {(rule, at) for rule, own in self.outcomes.items() for at, each in enumerate(own) if each == "wrong"}

    @property
    def n_late_right(self) -> int:
        """Late changes that are shown."""
        return self.outcomes.get(LATE, []).count("right")

    def passes(self, full: Score) -> bool:
        """Return whether this is as good as a full fit of all that is there."""
        return (len(self.followed) >= len(full.followed) and not self.wrong - full.wrong
                and self.n_late_right >= full.n_late_right)


def main() -> int:
    """Run the nights, the full fits and the cheats, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", nargs="+", choices=sorted(RULES), default=list(RULES))
    parser.add_argument("--sizes", default="45,80,32")
    parser.add_argument("--together", type=int, default=DAY_OF_CHANGE - 2)
    parser.add_argument("--sampled", type=float, default=0.2)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if not 1 <= given.together < DAY_OF_CHANGE:
        parser.error(f"--together is 1 to {DAY_OF_CHANGE - 1}")
    before, change, after = map(int, given.sizes.split(","))
    sizes = [before] * (DAY_OF_CHANGE - 1) + [change] + [after] * (N_DAYS - DAY_OF_CHANGE)
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        figures, rules = measured(list(days(sizes, given.rules)), given, Path(scratch))
    print(json.dumps({"benchmark": "relearning", "figures": figures | {"n_sessions_base": before * (DAY_OF_CHANGE - 1)},
                      "rules": rules}))
    return 0


def measured(happened: list[Day], given: argparse.Namespace, scratch: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the figures, and what became of each rule."""
    inbox, out, kept = scratch / "logs", scratch / "out", scratch / "kept"
    inbox.mkdir()
    runs: list[Night] = []
    grown: dict[int, Score] = {}
    full: dict[int, Score] = {}
    cheats: dict[str, tuple[Score, int]] = {}
    for day in happened:
        write(inbox / f"day-{day.number:02}.jsonl", [*day.late, *day.lines])
        if day.number < given.together:
            continue
        runs.append(run(f"day {day.number}", [inbox], out))
        if day.number < DAY_OF_CHANGE - 1:
            continue
        grown[day.number] = score(out, day, given.rules)
        if day.number == DAY_OF_CHANGE - 1:
            shutil.copytree(out, kept, ignore=shutil.ignore_patterns("datasets", "warehouse*"))
            continue
        runs.append(run(f"full {day.number}", [inbox], scratch / "full"))
        full[day.number] = score(scratch / "full", day, given.rules)
        shutil.rmtree(scratch / "full")
        if day.number == DAY_OF_CHANGE:
            cheats["never_relearns"] = score(kept, day, given.rules), day.number
            sampled = write_all(scratch / "sampled", happened[:day.number], given.sampled)
            runs.append(run("sampled", [sampled], scratch / "sampled-out"))
            cheats["samples_by_hash"] = score(scratch / "sampled-out", day, given.rules), day.number
        if day.number == DAY_OF_CHANGE + 1:
            without = write_all(scratch / "without", [each._replace(late=[]) for each in happened[:day.number]])
            runs.append(run("without late", [without], scratch / "without-out"))
            cheats["ignores_late_events"] = score(scratch / "without-out", day, given.rules), day.number
    table(runs)
    return figures_of(grown, full, cheats), {
        rule: {"before": Counter(grown[DAY_OF_CHANGE - 1].outcomes[rule]),
               "after": Counter(grown[DAY_OF_CHANGE].outcomes[rule]),
               "full_fit": Counter(full[DAY_OF_CHANGE].outcomes[rule])} for rule in given.rules}


def figures_of(
    grown: Mapping[int, Score], full: Mapping[int, Score], cheats: Mapping[str, tuple[Score, int]]
) -> dict[str, Any]:
    """Return what is printed. `grown`, `full`: scores by day; `cheats`: name -> (score, day)."""
    same_night, next_night = DAY_OF_CHANGE, DAY_OF_CHANGE + 1
    late = grown[next_night].outcomes.get(LATE, [])
    return {
        "n_rules": len(grown[same_night].rules), "learnt_before": len(grown[same_night - 1].followed),
        "planted_relearnt": len(grown[same_night].followed),
        **{f"planted_relearnt_{day}": len(own.followed) for day, own in grown.items() if day > same_night},
        **{"full_fit_relearnt" + (f"_{day}" if day > same_night else ""): len(own.followed) for day, own in full.items()},
        "planted_unknown": len(grown[same_night].unknown), "full_fit_unknown": len(full[same_night].unknown),
        "planted_wrong": sum(len(grown[day].wrong) for day in full),
        "full_fit_wrong": sum(len(own.wrong) for own in full.values()),
        "planted_wrong_more": sum(len(grown[day].wrong - full[day].wrong) for day in full),
        "n_probes": sum(len(own) for _, own in grown[same_night].rules),
        "late_right": share(late.count("right"), len(late)), "n_late": len(late),
        "passes": all(grown[day].passes(full[day]) for day in full),
        **{f"cheat_{name}": grown[day].passes(full[day]) and not own.passes(full[day]) for name, (own, day) in cheats.items()},
        **{f"{name}_relearnt": len(own.followed) for name, (own, _) in cheats.items()},
        **{f"{name}_wrong_more": len(own.wrong - full[day].wrong) for name, (own, day) in cheats.items()},
        "ignores_late_events_late_right": share(
            cheats["ignores_late_events"][0].n_late_right if "ignores_late_events" in cheats else 0, len(late))}


def score(out: Path, day: Day, rules: Iterable[str]) -> Score:
    """Put the probes of each rule to an open room at the end of the day; on the day after the change, late changes too."""
    by_rule: dict[str, list[Probe]] = {rule: [] for rule in rules}
    for probe in probes_of(day.engine, by_rule, day.late_pieces):
        by_rule[probe.rule].append(probe)
    if day.number == DAY_OF_CHANGE + 1:
        by_rule[LATE] = [Probe(LATE, [day.engine.call("piece", {"ticket": ticket})], None) for ticket in day.late_pieces]
    return Score({rule: played(out, probes, day.ends_at) for rule, probes in by_rule.items()})


def played(out: Path, probes: list[Probe], at: str) -> list[str]:
    """Return of each probe: right, wrong or unknown. The room is loaded for each rule: it has no answers to others."""
    room = next(iter(rooms(out).values()), None)
    outcomes = []
    for probe in probes:
        if room is None:
            outcomes.append("unknown")
            continue
        room.reset(None, at=at)
        for step in probe.steps[:-1]:
            room.call(step.tool, step.arguments)
            room.learn(step.tool, step.arguments, step.answer)
        outcomes.append(outcome(room.call(probe.steps[-1].tool, probe.steps[-1].arguments), probe.steps[-1], probe.field))
    return outcomes


def outcome(got: Any, step: Step, field: str | None) -> str:
    """Return how a room's answer stands to the true one, in the field that counts."""
    if got.tier == "unknown":
        return "unknown"
    return "right" if seen(got.content, field) == seen(step.answer, field) else "wrong"


def write(path: Path, lines: list[str]) -> None:
    """Write lines of a file."""
    path.write_text("".join(lines), "utf-8")


def write_all(folder: Path, happened: list[Day], part: float = 1.0) -> Path:
    """Write what arrived on these days: a file a day; `part`: only the sessions whose hash is below."""
    folder.mkdir()
    for day in happened:
        lines = [line for line in (*day.late, *day.lines) if placed(line) < part]
        write(folder / f"day-{day.number:02}.jsonl", lines)
    return folder


def placed(line: str) -> float:
    """Return a number from 0 to 1 by the hash of a line's session."""
    session_id = str(json.loads(line)["metadata"]["session_id"])
    return int(hashlib.sha256(session_id.encode()).hexdigest()[:8], 16) / 2**32


if __name__ == "__main__":
    sys.exit(main())
