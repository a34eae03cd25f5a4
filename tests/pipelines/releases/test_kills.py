"""A process that makes and promotes a release is killed before each of its steps: what is promoted is whole, and a second try
goes through."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
from pathlib import Path

import pytest

from pipelines.releases.registry import Registry, collect
from tests.pipelines.releases.conftest import put

_STEPS = ("replace", "rename", "link", "fsync", "mkdir", "unlink", "rmdir", "utime")


def killed_before(step: int) -> None:
    """From now on this process dies before its `step`-th change of the file system (0-based)."""
    counter = itertools.count()

    def wrapped(name: str) -> object:
        real = getattr(os, name)

        def call(*arguments: object, **named: object) -> object:
            if next(counter) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)
        return call

    for name in _STEPS:
        setattr(os, name, wrapped(name))


def night(registry: Registry, folder: Path, text: str) -> None:
    """Put a release, promote it, and collect."""
    release = put(registry, folder, {"environments/hall/tasks.jsonl": f"{text}\n", "rewards/hall/a": "same", "report/b": text})
    registry.promote(release, registry.current(), text)
    collect(registry, keep=1, days=0, now=4e9)


@pytest.mark.slow
def test_killed_at_any_point_what_is_promoted_is_whole(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    night(Registry(str(whole)), tmp_path, "first")
    before = Registry(str(whole)).current()
    ways = set()
    for step in itertools.count():
        registry = Registry(str(shutil.copytree(whole, tmp_path / "registry", symlinks=True)))
        child = os.fork()
        if child == 0:
            killed_before(step)
            night(registry, tmp_path, "second")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        current = registry.current()
        ways.add(current == before)
        assert current and list(registry.verify([current])) == [], f"killed before step {step}"
        assert [each.state for each in registry.listed() if each.release == current] == ["promoted"]
        night(registry, tmp_path, "second")
        again = registry.current()
        assert again and list(registry.verify(registry.ids())) == [], f"killed before step {step}, then again"
        assert registry.promotions()[-1]["to"] == again
        assert not list((tmp_path / "registry").glob(".draft*")), "what was half is gone"
        shutil.rmtree(tmp_path / "registry")
        if os.WIFEXITED(status):
            break
    assert step > 30 and ways == {True, False}, "it was killed before and after the swap"
