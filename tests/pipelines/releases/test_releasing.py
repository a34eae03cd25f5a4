"""From a build to a promoted release: the gates, approval, what differs, and the command line over it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest

from pipelines.releases.comparing import diff
from pipelines.releases.registry import Registry
from pipelines.releases.releasing import release
from pipelines.settings import Settings
from tests.pipelines.conftest import Traceroom
from tests.pipelines.releases.conftest import copied


@pytest.fixture(scope="module")
def build(run_once: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a build of twenty sessions with one release, promoted; look, do not touch."""
    out = copied(run_once[0], tmp_path_factory.mktemp("build") / "out")
    made = release(Settings(logs=(), out=str(out)), Registry(str(out / "releases")), "the first", "Ada")
    assert made.state == "promoted", [(each.gate, each.rows) for each in made.judged if each.red]
    return out


@pytest.fixture
def out(build: Path, tmp_path: Path) -> Path:
    """Return it, to break."""
    return Path(shutil.copytree(build, tmp_path / "out"))


def changed(out: Path, *statements: str) -> None:
    """Change the published copy of the warehouse by hand."""
    with duckdb.connect(str(out / "warehouse.published.duckdb")) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_build_becomes_a_release(build: Path, traceroom: Traceroom) -> None:
    again = traceroom("release", "--out", build, "--json")
    told = json.loads(again.stdout)
    assert again.returncode == 0 and told["state"] == "stands", again.stderr
    registry = Registry(str(build / "releases"))
    current = registry.current()
    assert told["release"] == current and len(registry.promotions()) == 1, "the same build again changes nothing"
    manifest, folder = registry.manifest(str(current)), build / "releases" / str(current)
    assert {part["kind"] for part in manifest["parts"]} >= {"environment", "rewards", "dataset", "unverified"}
    for name in ("environments", "rewards", "datasets", "unverified"):
        made = {path.relative_to(build): path.read_bytes() for path in (build / name).rglob("*") if path.is_file()}
        kept = {path.relative_to(folder): path.read_bytes() for path in (folder / name).rglob("*") if path.is_file()}
        assert made == kept and made, name
    assert manifest["figures"]["n_sessions"] == 20 and manifest["predecessor"] is None
    listed = traceroom("releases", "--out", build, "--verify", "--json")
    assert listed.returncode == 0 and json.loads(listed.stdout)[0]["wrong"] == []
    text = (folder / "manifest.json").read_text() + (folder / "files.jsonl").read_text()
    assert str(build) not in text and "/tmp" not in text, "no place of this machine"


@pytest.mark.slow
def test_equal_builds_are_one_release(build: Path, out: Path) -> None:
    shutil.rmtree(out / "releases")
    made = release(Settings(logs=(), out=str(out)), Registry(str(out / "releases")), "elsewhere", "Grace")
    assert made.release == Registry(str(build / "releases")).current()


def test_what_is_not_as_the_run_left_it_is_refused(out: Path, traceroom: Traceroom) -> None:
    registry = Registry(str(out / "releases"))
    before = registry.current()
    for pattern in ("environments/*/world.jsonl", "rewards/*/solutions.jsonl", "datasets/*/*.jsonl",
                    "unverified/*/tools.jsonl"):
        file = next(out.glob(pattern))
        content = file.read_bytes()
        file.write_bytes(content.replace(b"a", b"b", 1))
        done = traceroom("release", "--out", out, "--accept", "no_personal_data_is_published")
        file.write_bytes(content)
        assert done.returncode == 2 and "again: traceroom run" in done.stderr, (pattern, done.stderr)
    assert registry.current() == before and len(registry.ids()) == 1


@pytest.mark.slow
def test_approval_and_going_back(out: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    registry = Registry(str(out / "releases"))
    first = str(registry.current())
    (tmp_path / "told.toml").write_text("[release]\napproval = true\n[gates]\nmin_probability = 0.6\n")
    waits = traceroom("release", "--out", out, "--config", tmp_path / "told.toml", "--json")
    told = json.loads(waits.stdout)
    assert (told["state"], told["before"], registry.current()) == ("waiting", first, first), waits.stderr
    done = traceroom("release", "--out", out, "--approve", told["release"], "--why", "looked at", "--by", "Ada")
    assert done.returncode == 0 and registry.current() == told["release"]
    back = traceroom("release", "--out", out, "--approve", first[:9], "--why", "it was better")
    assert back.returncode == 0 and registry.current() == first, back.stderr
    assert [row["why"] for row in registry.promotions()] == ["the first", "looked at", "it was better"]
    found = traceroom("diff", first, told["release"], "--out", out, "--json")
    assert json.loads(found.stdout)["inputs"]["says"] == "other settings", found.stderr


@pytest.mark.parametrize("command", ["release", "releases", "gc", "diff a b", "yank r-1 --why x"])
def test_a_folder_that_is_not_there_is_not_made(command: str, tmp_path: Path, traceroom: Traceroom) -> None:
    done = traceroom(*command.split(), "--out", tmp_path / "nowhere")
    assert done.returncode == 2 and "nowhere: there is no such folder; make it with: traceroom run LOGS" in done.stderr
    assert not list(tmp_path.iterdir()), "not even a lock"


def test_approving_what_is_promoted_does_nothing(build: Path, traceroom: Traceroom) -> None:
    registry = Registry(str(build / "releases"))
    current, before = str(registry.current()), {path: path.stat().st_mtime_ns for path in build.rglob("*")}
    again = traceroom("release", "--out", build, "--approve", current, "--json")
    assert again.returncode == 0 and f"{current} is promoted already; nothing was done" in again.stderr
    assert json.loads(again.stdout) == {"release": current, "state": "stands", "before": current}
    assert before == {path: path.stat().st_mtime_ns for path in build.rglob("*")}, "nothing was written"


@pytest.mark.slow
def test_a_stale_release_is_not_approved(out: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    for bar in ("0.6", "0.7"):
        (tmp_path / "told.toml").write_text(f"[release]\napproval = true\n[gates]\nmin_probability = {bar}\n")
        assert traceroom("release", "--out", out, "--config", tmp_path / "told.toml").returncode == 0
    registry = Registry(str(out / "releases"))
    one, other = (each.release for each in registry.listed() if each.state == "waiting")
    assert traceroom("release", "--out", out, "--approve", one).returncode == 0
    refused = traceroom("release", "--out", out, "--approve", other)
    assert refused.returncode == 1 and f"{one} is promoted now" in refused.stderr
    assert registry.current() == one


def test_a_gate_can_be_accepted_by_name_alone(out: Path, traceroom: Traceroom) -> None:
    for name, code in (("no_record_vanishes", 2), ("no_such_gate", 2)):
        done = traceroom("release", "--out", out, "--accept", name)
        assert done.returncode == code and name in done.stderr


def test_a_release_carries_what_was_measured_against_the_real_service(out: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    registry = Registry(str(out / "releases"))
    before = str(registry.current())
    assert "transfer" not in registry.manifest(before)
    (name,) = (path.parent.name for path in (out / "environments").glob("*/manifest.json"))
    matrix = tmp_path / "matrix.jsonl"
    matrix.write_text("".join(json.dumps({"policy": policy, "task_id": "t", "place": place, "success": policy == "a"}) + "\n"
                              for policy in "ab" for place in ("environment", "real")))
    assert traceroom("transfer", out / "environments" / name, "--matrix", matrix).returncode == 0
    made = release(Settings(logs=(), out=str(out)), registry, "measured", "Ada")
    carried = registry.manifest(made.release)["transfer"][name]
    assert carried["spearman"] == 1 and carried["regret"] == 0 and carried["n_pairs"] == 2
    listed = traceroom("releases", "--out", out).stderr
    assert "transfer" in listed and "1.000" in listed
    changed = {row["name"]: (row["before"], row["after"]) for row in diff(registry, before, str(made.release))["figures"]}
    assert changed[f"transfer {name} spearman"] == (None, 1) and changed[f"transfer {name} n_pairs"] == (None, 2)
