"""Both locks: whole, hashed, of no particular index, and what pyproject.toml asks for on every platform."""

from __future__ import annotations

import re
import tomllib
from itertools import product

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WANTED = {"requirements.lock": [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["build"]],
          "requirements-dev.lock": [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]}
"""Lock -> what of pyproject.toml it must hold: what commands need, and what the tests need too."""
HEAVY = {"psycopg2-binary", "dagster-postgres", "dagster-docker", "dagster-k8s", "duckdb-extensions", "s3fs", "obstore",
         "aiobotocore", "moto", "playwright", "pytest", "ray"}
"""What no newcomer needs for the first command."""
PLATFORMS = {
    "linux": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix"},
    "macos": {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64", "os_name": "posix"},
}


def text_of(lock: str) -> str:
    return (ROOT / lock).read_text("utf-8")


def locked(lock: str) -> list[tuple[Requirement, str]]:
    """Return each pinned requirement with the text of its hashes."""
    entries = re.findall(r"^(\S.*?)((?: \\\n    --hash=sha256:[0-9a-f]{64})*)$", text_of(lock), re.M)
    return [(Requirement(line.removesuffix(" \\")), hashes) for line, hashes in entries if not line.startswith("#")]


@pytest.mark.parametrize("lock", WANTED)
def test_everything_is_pinned_and_hashed_and_no_index_is_named(lock: str) -> None:
    pins = locked(lock)
    assert len(pins) > 50
    assert not [str(one) for one, hashes in pins if not hashes or [pin.operator for pin in one.specifier] != ["=="]]
    assert not re.findall(r"https?://\S+|--(?:index|extra-index|find-links|trusted-host)\S*", text_of(lock))


def test_the_first_lock_is_small_and_agrees_with_the_second() -> None:
    first, second = ({str(one) for one, _ in locked(lock)} for lock in WANTED)
    assert first < second, "the tests run with the versions that commands run with"
    assert not HEAVY & {canonicalize_name(Requirement(one).name) for one in first}
    assert len(first) <= 110


@pytest.mark.parametrize(("lock", "platform", "version"), list(product(WANTED, PLATFORMS, ("3.11", "3.12", "3.13"))))
def test_every_dependency_is_locked_for(lock: str, platform: str, version: str) -> None:
    environment = {
        "python_version": version, "python_full_version": f"{version}.0", "implementation_name": "cpython",
        "platform_python_implementation": "CPython", "extra": "", **PLATFORMS[platform],
    }  # fmt: skip
    pins = {
        canonicalize_name(one.name): next(iter(one.specifier)).version
        for one, _ in locked(lock) if one.marker is None or one.marker.evaluate(environment)
    }  # fmt: skip
    for one in map(Requirement, WANTED[lock]):
        assert one.specifier.contains(pins[canonicalize_name(one.name)]), one
