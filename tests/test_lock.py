"""requirements.lock: whole, hashed, of no particular index, and what pyproject.toml asks for on every platform."""

from __future__ import annotations

import re
import tomllib
from itertools import product

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT

TEXT = (ROOT / "requirements.lock").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ENTRIES = re.findall(r"^(\S.*?)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$", TEXT, re.M)
LOCKED = [(Requirement(line.removesuffix(" \\")), hashes) for line, hashes in ENTRIES if not line.startswith("#")]
PLATFORMS = {
    "linux": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix"},
    "macos": {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64", "os_name": "posix"},
}


def test_everything_is_pinned_and_hashed_and_no_index_is_named() -> None:
    assert len(LOCKED) > 50
    assert not [str(one) for one, hashes in LOCKED if not hashes or [pin.operator for pin in one.specifier] != ["=="]]
    assert not re.findall(r"https?://\S+|--(?:index|extra-index|find-links|trusted-host)\S*", TEXT)


@pytest.mark.parametrize(("platform", "version"), list(product(PLATFORMS, ("3.11", "3.12", "3.13"))))
def test_every_dependency_is_locked_for(platform: str, version: str) -> None:
    environment = {
        "python_version": version, "python_full_version": f"{version}.0", "implementation_name": "cpython",
        "platform_python_implementation": "CPython", "extra": "", **PLATFORMS[platform],
    }  # fmt: skip
    pins = {
        canonicalize_name(one.name): next(iter(one.specifier)).version
        for one, _ in LOCKED if one.marker is None or one.marker.evaluate(environment)
    }  # fmt: skip
    wanted = [Requirement(line) for line in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"])]
    assert wanted
    for one in wanted:
        assert one.specifier.contains(pins[canonicalize_name(one.name)]), one
