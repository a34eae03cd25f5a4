"""The published environments once more, from the same tables, in a process of its own: are their digests what they were?

In: the settings of a run as JSON, as the one argument. Out: {environment: content digest} as JSON, the last line of stdout.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from pipelines.building.environments import written_again
from pipelines.settings import Settings
from warehouse.store import Store


def main() -> None:
    """Write them to a folder that is thrown away."""
    settings = Settings.model_validate_json(sys.argv[1])
    with Store.published(settings.warehouse) as store, tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(json.dumps(written_again(store, settings, Path(folder)), sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
