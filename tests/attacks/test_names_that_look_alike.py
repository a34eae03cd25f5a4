"""Tools whose names look like others': letters of other scripts, invisible ones, other spellings; none is taken for the
recorded one."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from env_builder.runtime import Environment
from tests.attacks.report import Report
from tests.rooms import TASK, write_rewards, write_room

LIKE = {"o": "\u043e", "e": "\u0435", "p": "\u0440", "a": "\u0430", "d": "\u0501", "_": "\uff3f"}


def alike(name: str) -> list[str]:
    """Return names that look like a name."""
    swapped = [name.replace(letter, other, 1) for letter, other in LIKE.items() if letter in name]
    invisible = [name[:4] + sign + name[4:] for sign in ("\u200b", "\u200d", "\ufeff", "\u00ad", "\u2060", "\u034f", "\x00",
        "\u202e")]
    return [*swapped, *invisible, name.upper(), name.title(), f" {name}", f"{name} ", f"{name}\n", name.replace("_", "-"),
        name.replace("_", ""), f"/{name}",
            f"{name}()", unicodedata.normalize("NFKD", name).replace("o", "\uff4f"), f"functions.{name}", f"{name}\u0301",
            f"{name},{name}", name[:-1]]


def attack(folder: Path, share: float) -> Report:
    """Call each with the recorded arguments, and look at the world and the reward."""
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    problems, names = [], alike("open_door")
    for name in names:
        environment = Environment.load(room)
        environment.reset(TASK)
        environment.say("Which door?")
        result = environment.call(name, {"door": "7"})
        changed = environment.difference() if callable(environment.difference) else environment.difference
        problems += [f"{name!r} opens the door"] if changed.get("documents") else []
        problems += [f"{name!r} is answered: {result.content[:60]}"] if not result.is_error and result.tier != "unknown" else []
        environment.finish()
        problems += [f"{name!r} earns {environment.grade().reward}"] if environment.grade().reward else []
    return Report(len(names), tuple(problems))


def test_a_name_is_what_it_is_letter_by_letter(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
