"""A run in which a model names what is asked for: switched on and off it touches one stage, and is asked once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.running.stage import carry_out, up_to_date
from pipelines.settings import Settings
from pipelines.stages import STAGES
from tests.endpoint import answering, worded
from warehouse.errors import InputError
from warehouse.store import Store

UP_TO_NAMES = STAGES[: [stage.name for stage in STAGES].index("outcomes")]


def carried_out(settings: Settings) -> set[str]:
    """Names of the stages that were computed; but for the first, which always looks."""
    return {report.stage for report in (carry_out(stage, settings) for stage in UP_TO_NAMES) if report.fresh} - {"extract"}


def named(settings: Settings) -> list[tuple[str, str, str | None]]:
    with Store.open(settings.warehouse) as store:
        return store.read("select family, name, written_by from mart.names order by all").rows()


@pytest.mark.slow
def test_the_switch_and_the_model_touch_the_names_alone(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACEROOM_MODEL", raising=False)
    plain = Settings(logs=(str(logs),), out=str(tmp_path / "out"), image=False)
    assert "names" in carried_out(plain) and carried_out(plain) == set()
    mined = named(plain)
    (tmp_path / "told.toml").write_text("[goals]\nask = true\n")
    told = plain.model_copy(update={"configuration": str(tmp_path / "told.toml")})
    with pytest.raises(InputError, match=r"told.toml: no model is configured to name goals"):
        told.checked()
    with answering(worded) as endpoint:
        monkeypatch.setenv("TRACEROOM_MODEL", "small")
        monkeypatch.setenv("TRACEROOM_MODEL_URL", endpoint.url)
        assert carried_out(told.checked()) == {"names"}
        n_asked = len(endpoint.asked)
        assert n_asked > 0 and {each["temperature"] for each in endpoint.asked} == {0}
        with_model = named(told)
        assert carried_out(told) == set()
        monkeypatch.setenv("TRACEROOM_MODEL", "large")
        assert carried_out(told) == {"names"} and len(endpoint.asked) == 2 * n_asked
        assert carried_out(plain) == {"names"} and named(plain) == mined
    monkeypatch.setenv("TRACEROOM_MODEL", "small")
    assert carried_out(told) == {"names"} and named(told) == with_model, "nobody is there any more, and nobody is needed"
    assert "small" in {writer for *_, writer in with_model} and with_model != mined
    with Store.open(told.warehouse) as store:
        assert up_to_date(store, UP_TO_NAMES, told) and not up_to_date(store, UP_TO_NAMES, plain)
        decisions = store.read("select subject, kept, reason from mart.decisions where stage = 'names' order by all")
    assert decisions.height == n_asked and "wording_taken" in decisions["reason"].to_list()
