"""MLflow: traces of an experiment with their spans and assessments, by its client (page tokens in order of time).

Sees: whole traces. Does not see: artifacts behind a trace, assessments that come after the overlap.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from extractors.sources.faults import StatusFault, client, translated
from extractors.sources.platform import Account, Identity, Platform, Query, RecordStream, SourcePage, SourceRecord
from extractors.sources.times import instant_of
from warehouse.errors import InputError

_MOST = 500
_STATUS = re.compile(r"error code (\d{3})|too many (\d{3}) error")


def _identify(record: SourceRecord) -> Identity:
    info = record["info"]
    trace_id = str(info["trace_id"])
    return Identity(trace_id, trace_id, instant_of(info.get("request_time")))


class MlflowConnection:
    """An experiment of MLflow."""

    streams = (RecordStream("traces", _identify),)

    def __init__(self, account: Account) -> None:
        mlflow = client("mlflow", "MLflow", "mlflow")
        self._account = account
        self._fault = mlflow.exceptions.MlflowException
        os.environ.update(account.secrets)   # the client reads them there
        self._client = mlflow.MlflowClient(tracking_uri=account.url)
        self._experiment_id = ""

    def describe(self) -> str:
        """Return the experiment's name."""
        with self._translated():
            return str(self._client.get_experiment(self._find_experiment()).name)

    def _find_experiment(self) -> str:
        project = self._account.project or ""
        if not self._experiment_id and project.isdecimal():
            self._experiment_id = project
        if not self._experiment_id:
            experiment = self._client.get_experiment_by_name(project)
            if experiment is None:
                raise InputError(f"there is no experiment {project!r}", f"source {self._account.source!r}",
                                 "check its name, or give its id")
            self._experiment_id = str(experiment.experiment_id)
        return self._experiment_id

    @contextmanager
    def _translated(self) -> Iterator[None]:
        with translated(self._account, StatusFault, OSError):
            try:
                yield
            except self._fault as error:
                stated = _STATUS.search(str(error))
                status = int(stated[1] or stated[2]) if stated else _status(error)
                raise StatusFault(str(error), status) from None

    def fetch(self, query: Query) -> SourcePage:
        """Return a page of traces."""
        parts = [f"timestamp_ms < {int(query.until.timestamp() * 1000)}"]
        if query.since:
            parts.append(f"timestamp_ms >= {int(query.since.timestamp() * 1000)}")
        if given := self._account.filter.get("filter"):
            parts.append(given)
        with self._translated():
            traces = self._client.search_traces(
                locations=[self._find_experiment()], filter_string=" AND ".join(parts), order_by=["timestamp_ms ASC"],
                max_results=min(query.page_size, _MOST), page_token=(query.cursor or {}).get("token"))
        following = traces.token or None
        return SourcePage([each.to_dict() for each in traces], {"token": following} if following else None, not following)


def _status(error: Exception) -> int | None:
    """Return the status that MLflow gives its own code for an error."""
    status = getattr(error, "get_http_status_code", lambda: None)()
    return status if isinstance(status, int) else None


PLATFORM = Platform(
    name="mlflow", title="MLflow", connect=MlflowConnection, project="name or id of the experiment", needs_project=True,
    credentials={"MLFLOW_TRACKING_TOKEN": "token", "MLFLOW_TRACKING_USERNAME": "user, with a password",
                 "MLFLOW_TRACKING_PASSWORD": "password"},
    optional=frozenset({"MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"}),
    filters={"filter": "a condition in MLflow's language of searches"})
