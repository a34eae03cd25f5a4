"""Every gate can fail: a real build, broken on purpose, is held up, the rows are shown, and what was promoted stays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pytest
from dagster import AssetKey, materialize

from pipelines.dagster_assets.assets import days
from pipelines.dagster_assets.assets import release as release_asset
from pipelines.dagster_assets.assets import report as report_asset
from pipelines.dagster_assets.settings_resource import SettingsResource
from pipelines.quality import gates
from pipelines.releases.disclosing import disclosed, named
from pipelines.releases.registry import Registry, source
from pipelines.releases.releasing import make, refusal, registry_of, release
from pipelines.settings import Settings
from tests.pipelines.conftest import quiet
from tests.pipelines.releases.conftest import copied
from warehouse.store import Store

Harm = Callable[[Path], None]


@pytest.fixture(scope="module")
def whole(run_once: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a build of twenty sessions; look, do not touch."""
    return copied(run_once[0], tmp_path_factory.mktemp("whole") / "out")


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    """Return it, to break."""
    return Path(shutil.copytree(whole, tmp_path / "out"))


def harmed(*statements: str) -> Harm:
    """Return the published copy of the warehouse, changed by hand."""
    def harm(out: Path) -> None:
        with duckdb.connect(str(out / "warehouse.published.duckdb")) as connection:
            for statement in statements:
                connection.execute(statement)
    return harm


def solved_wrongly(out: Path) -> None:
    """Plant an attacker that got through, in the audit of one task."""
    file = next(out.glob("rewards/*/audit.jsonl"))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    play = next(play for play in rows[0]["plays"] if play["should"] == "fail")
    play["reward"] = 1.0
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def with_a_key(out: Path) -> None:
    file = next(out.glob("datasets/*/*.jsonl"))
    file.write_text(file.read_text() + json.dumps({"text": "the key is AKIA" + "QWERTYUIOPASDFGH"}) + "\n")


def told_apart(good: float, bad: float) -> Harm:
    """Every other session is known to be good; all have these probabilities, and there are as many as it takes to measure."""
    return harmed(
        "delete from core.feedback",
        *(statement for each in "bcdef" for statement in (
            f"insert into mart.outcomes select * replace (session_id || '{each}' as session_id) from mart.outcomes",
            f"update mart.tasks set session_ids = session_ids || list_transform(session_ids, s -> s || '{each}')")),
        "insert into core.feedback select 'f' || session_id, session_id, null, 'resolved', case when row_number() over ("
        "order by session_id) % 2 = 0 then 'yes' else 'no' end, 'main' from (select unnest(session_ids) as session_id "
        "from mart.tasks where task_id in (select subject from mart.decisions where stage = 'verify' and kept))",
        f"update mart.outcomes set blind = (select case when value = 'yes' then {good} else {bad} end from core.feedback f "
        "where f.session_id = outcomes.session_id)")


HARMS: dict[str, Harm] = {
    "no_session_vanishes": harmed(
        "delete from core.sessions where session_id in (select min(session_id) from core.sessions)"),
    "session_id_of_outcomes_resolves": harmed(
        "insert into mart.outcomes select * replace ('nobody' as session_id) from mart.outcomes limit 1"),
    "outcomes_are_calibrated": told_apart(good=0.1, bad=0.9),
    "tools_answer_as_logged": harmed("update mart.behaviours set fidelity = 0.1, abstains = 0.4 where tool in "
                                     "(select min(tool) from mart.behaviours)"),
    "audits_hold": solved_wrongly,
    "splits_do_not_leak": harmed(
        "insert into mart.tasks select * replace ('other' as task_id, 'held_out' as split) from mart.tasks "
        "where split = 'train' limit 1"),
    "no_secret_is_published": with_a_key,
    "digests_are_reproducible": harmed("update core.tools set description = 'another'"),
}


def judged(out: Path, *names: str) -> dict[str, gates.Judged]:
    """Return what the gates (these, or all) say of OUT as it is, whether or not it is what the run left."""
    settings = Settings(logs=(), out=str(out))
    with Store.published(settings.warehouse) as store:
        files = {path.relative_to(out).as_posix(): source(path) for name in ("environments", "datasets", "rewards")
                 for path in sorted((out / name).rglob("*")) if path.is_file()}
        build = gates.Build(store, settings, files, None, frozenset(), frozenset())
        return {each.gate: each for each in gates.judge(build, among=[
            gate for gate in gates.GATES if not names or gate.name in names])}


@pytest.mark.slow
@pytest.mark.parametrize("gate", sorted(HARMS))
def test_each_gate_finds_what_it_is_for(out: Path, gate: str) -> None:
    HARMS[gate](out)
    found = judged(out, gate)[gate]
    assert found.red and found.rows.height >= 1, found
    assert gate in str(refusal([found], None))


@pytest.mark.slow
def test_probabilities_that_tell_apart_and_say_nothing_are_not_calibrated(out: Path) -> None:
    told_apart(good=0.0002, bad=0.0001)(out)
    found = judged(out, "outcomes_are_calibrated")["outcomes_are_calibrated"]
    assert found.red and found.rows["auroc"].min() == 1.0


@pytest.mark.slow
def test_a_whole_build_passes_every_gate(whole: Path) -> None:
    found = judged(whole)
    assert not [(name, each.rows) for name, each in found.items() if each.red]
    assert {"no_record_vanishes", *HARMS, "logs_did_not_drift", "no_personal_data_is_published"} <= found.keys()


@pytest.mark.slow
def test_release_and_report_show_a_picture_a_table_and_figures(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(logs=(), out=str(out))
    told = {"settings": SettingsResource(document=settings.model_dump_json())}
    result = materialize(
        [report_asset, release_asset], partition_key=days.get_last_partition_key(), run_config=quiet(), resources=told)
    shown = {event.asset_key.path[0]: event.materialization.metadata for event in result.get_asset_materialization_events()}
    for asset, table in (("report", "funnel"), ("release", "gates")):
        assert str(shown[asset]["picture"].value).startswith("![") and "svg+xml;base64" in str(shown[asset]["picture"].value)
        assert str(shown[asset][table].value).count("\n") > 5, "a head, a rule, and a row for each"
    with Store.published(settings.warehouse) as store:
        assert shown["report"]["n_sessions"].value == store.count("core.sessions") == 20
    assert {name: shown["release"][name].value for name in ("n_leaks", "answered")}.keys() == {"n_leaks", "answered"}
    HARMS["tools_answer_as_logged"](out)
    monkeypatch.setenv("TRACEROOM_SAMPLES", "off")
    red = materialize([release_asset], partition_key=days.get_last_partition_key(), run_config=quiet(), raise_on_error=False,
                      resources=told)
    assert not red.success
    (check,) = [check for check in red.get_asset_check_evaluations() if check.check_name == "tools_answer_as_logged"]
    assert check.metadata["rows"].value == "kept out" and check.metadata["offenders"].value == 1


@pytest.mark.slow
def test_a_red_gate_leaves_what_was_promoted(out: Path) -> None:
    """The whole way in Dagster: yesterday's release, then a broken night."""
    settings = Settings(logs=(), out=str(out))
    registry = registry_of(settings)
    first = release(settings, registry, "yesterday")
    files = {path: path.read_bytes() for path in (out / "releases").rglob("*") if path.is_file() and path.name[0] != "."}
    HARMS["tools_answer_as_logged"](out)
    result = materialize(
        [release_asset], partition_key=days.get_last_partition_key(), run_config=quiet(), raise_on_error=False,
        resources={"settings": SettingsResource(document=settings.model_dump_json())})
    assert not result.success and not result.get_asset_materialization_events()
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert [name for name, check in checks.items() if not check.passed and check.severity.value == "ERROR"] == [
        "tools_answer_as_logged"]
    assert "0.54" in str(checks["tools_answer_as_logged"].metadata["rows"].value), "the rows that speak against it"
    assert checks["tools_answer_as_logged"].asset_key == AssetKey(["release"])
    assert registry.current() == first.release and registry.ids() == [first.release]
    assert files == {path: path.read_bytes() for path in files}, "not a byte of it changed"
    accepted = release(settings, registry, "looked at", accepted=["tools_answer_as_logged"])
    assert accepted.state == "promoted" and accepted.release
    told = registry.manifest(accepted.release)["gates"]["tools_answer_as_logged"]
    assert told == {"accepted": True, "level": "block", "n": 1}


@pytest.mark.slow
def test_a_night_takes_old_releases_away_as_configured(out: Path, tmp_path: Path) -> None:
    (tmp_path / "traceroom.toml").write_text("[release]\nkeep = 1\n", "utf-8")
    settings = Settings(logs=(), out=str(out), configuration=str(tmp_path / "traceroom.toml"))
    registry = registry_of(settings)
    first = release(settings, registry, "yesterday")
    harmed("insert into mart.decisions values ('drift', 'a tool', true, 'tool_appeared', 'It came.', null, null)")(out)
    result = materialize([release_asset], partition_key=days.get_last_partition_key(), run_config=quiet(), resources={
        "settings": SettingsResource(document=settings.model_dump_json())})
    (told,) = result.get_asset_materialization_events()
    assert told.materialization.metadata["n_collected"].value == 1
    assert registry.ids() == [registry.current()] != [first.release]


def test_new_drift_is_what_the_promoted_release_did_not_know(out: Path, tmp_path: Path) -> None:
    settings = Settings(logs=(), out=str(out))
    harmed("insert into mart.decisions values ('drift', 'a tool', true, 'tool_appeared', 'It came.', null, null)")(out)
    with Store.published(settings.warehouse) as store:
        for known, n in ((frozenset[tuple[str, str]](), 1), (frozenset({("a tool", "tool_appeared")}), 0)):
            build = gates.Build(store, settings, {}, None, known, frozenset())
            found = next(each for each in gates.judge(build) if each.gate == "logs_did_not_drift")
            assert found.rows.height == n and not found.red, "it warns where nobody configured more"
        draft = make(store, settings, None, tmp_path)
    assert "a tool" in draft.files["about/drift.jsonl"].path.read_text()


def test_forms_of_secrets_and_personal_data(tmp_path: Path) -> None:
    texts = {
        "private key": "-----BEGIN RSA PRIVATE KEY-----", "AWS": "AKIA" + "QWERTYUIOPASDFGH",
        "GitHub": "ghp_" + "a1B2" * 9, "signed token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "address with a password": "postgres://ada:lovelace@db/x", "e-mail address": "ada@analytical.engine.org",
        "payment card": "4111 1111 1111 1111", "bank account": "DE89 3704 0044 0532 0130 00",
        "social security number": "078-05-1120", "telephone number": "+44 20 7946 0958",
        "IPv6 address": "2001:db8:85a3::8a2e:370:7334"}
    clean = ["ada@example.com", "4111 1111 1111 1112", "DE89 3704 0044 0532 0130 01", "000-12-3456", "http://host:80/a@b",
             "order 1234567890123456", "sk-short", "0.4111111111111111", "2026-03-31T10:00:00"]
    (tmp_path / "clean.jsonl").write_text("\n".join(json.dumps({"says": text}) for text in clean))
    for name, text in texts.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"says": f"it is {text} indeed"}))
        pl.DataFrame({"steps": [[{"says": f"it is {text} indeed"}]]}).write_parquet(tmp_path / f"{name}.parquet")
    files = [(path.name, path) for path in tmp_path.iterdir()]
    found = [*disclosed(files, secret=True), *disclosed(files, secret=False)]
    assert sorted((row["path"], row["kind"]) for row in found) == sorted(
        (f"{name}.{end}", name) for name in texts for end in ("jsonl", "parquet"))
    assert not [row for row in found if texts[str(row["kind"])] in str(row["first"])], "a finding does not tell the secret"


@pytest.mark.parametrize("text", [
    "for zvonimir grubešić", "ZVONIMIR GRUBEŠIĆ!", "Grubešić, Zvonimir", "Zvonimir Grubesic", "id zvonimir_grubesic_7",
    "\"first_name\": \"Zvonimir\", \"last_name\": \"Grubešić\"", "?n=Zvonimir%20Grube%C5%A1i%C4%87",
    "\\ud83d\\ude00 Zvonimir Grube\\u0161i\\u0107"])
def test_a_name_that_is_left_is_personal_data_in_any_spelling(text: str, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(f'{{"said": "{text}"}}\n')
    (row,) = named([("one.jsonl", tmp_path / "one.jsonl")], frozenset({"zvonimir grubešić", "ann lee"}))
    assert row["n"] == 1
    assert named([("one.jsonl", tmp_path / "one.jsonl")], frozenset({"ann lee", "zvon grubešić", "wang jianguo"})) == []


def test_names_of_known_people_are_personal_data(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"says": "it was ZVONIMIR Grubešić, and joann leeds"}')
    pl.DataFrame({"says": ["昨天王建国来过"]}).write_parquet(tmp_path / "two.parquet")
    files = [(path.name, path) for path in tmp_path.iterdir()]
    rows = named(files, frozenset({"zvonimir grubešić", "ann lee", "王建国"}))
    assert [(row["path"], row["kind"], row["n"]) for row in rows] == [
        ("one.jsonl", "name of a person", 1), ("two.parquet", "name of a person", 1)]
    assert "zvonimir" not in str(rows) and named(files, frozenset()) == []


def test_a_registry_may_lie_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "told.toml").write_text('[release]\nregistry = "shelf"\n')
    told = Settings(logs=(), out="out", configuration=str(tmp_path / "told.toml"))
    assert registry_of(told).where == str(tmp_path / "shelf")
    assert registry_of(told, str(tmp_path / "x")).where == str(tmp_path / "x")
    assert Registry(str(tmp_path / "shelf")).current() is None
