"""The settings of a run as a resource of Dagster, which the assets are given."""

from __future__ import annotations

from dagster import ConfigurableResource

from pipelines.settings import Settings, from_environment


class SettingsResource(ConfigurableResource[Settings]):
    """The settings of a run, as JSON; empty: from TRACEROOM_INBOX, TRACEROOM_OUT, TRACEROOM_CONFIG."""

    document: str = ""

    def settings(self) -> Settings:
        """Return the settings as a record."""
        return Settings.model_validate_json(self.document) if self.document else from_environment()
