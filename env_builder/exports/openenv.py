"""Environments as OpenEnv packages: what `openenv validate` takes, and a server.

In: a kit. Out: openenv.yaml, pyproject.toml, README.md, the package (`env_builder/openenv_package/`), a Dockerfile, the kit.
"""

from __future__ import annotations

import json
from pathlib import Path

from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.kit import PLAY, Kit, files_of, lay, module_name, pyproject, readme
from env_builder.image import DEFAULT_BASE
from warehouse.records import Decision, empty

VERSION = "0.10.0"
PACKAGE = Path(__file__).parent.parent / "openenv_package"
DOCKERFILE = """\
ARG BASE={python}
FROM ${{BASE}}
WORKDIR /app/env
COPY server/requirements.txt /app/requirements.txt
RUN pip install --no-cache-dir -r /app/requirements.txt
COPY . /app/env
RUN chmod -R a-w,go-rwx /app/env && chown -R 10001:10001 /app/env
USER 10001:10001
EXPOSE 8000
CMD ["uvicorn", "server.app:app", "--host", "0.0.0.0", "--port", "8000"]
"""
RUN = """\
    pip install openenv=={version}
    openenv validate .
    uvicorn server.app:app --port 8000        # then: openenv validate --url http://127.0.0.1:8000

A WebSocket session is an episode; a step that ends it has the reward. In a container: `docker build -f server/Dockerfile .`
"""


def _write(out: Path, kit: Kit) -> Exported:
    package = module_name(kit)
    documents = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in files_of(PACKAGE)}
    manifest = {
        "spec_version": 1, "name": package, "version": "0.1.0", "type": "space", "runtime": "fastapi", "app": "server.app:app",
        "port": 8000, "validation": {
            "reward": {"range": [0.0, 1.0], "oracle_tolerance": 0.0, "floor_margin": 0.5},
            "resources": {"cpu": 1.0, "memory_mb": 1024, "disk_mb": 1024, "episode_timeout_s": 3600.0},
            "network": {"mode": "no-network"},
            "capabilities": {
                "verifier": {"kind": "reward_channel"}, "task_api": True, "declared_task_count": kit.figures["n_tasks"],
                "declared_tools": [tool["name"] for tool in kit.tools]},
            "types": {"tags": ["tools", "conversation"]}}}
    documents |= {
        "openenv.yaml": json.dumps(manifest, indent=1, ensure_ascii=False) + "\n",  # JSON is YAML
        "pyproject.toml": pyproject(
            kit, f"openenv-{package}", f"openenv=={VERSION}", f'.sources]\n"" = {json.dumps(package)}',
            scripts=f"\n[project.scripts]\nserver = {json.dumps(f'{package}.server.app:main')}\n"),
        "README.md": readme(kit, "OpenEnv", RUN.format(version=VERSION)),
        "server/requirements.txt": f"openenv=={VERSION}\n",
        "server/Dockerfile": DOCKERFILE.format(python=DEFAULT_BASE)}
    return Exported(lay(kit, out, [PLAY], documents), empty(Decision))


EXPORTER = RoomExporter("openenv", _write)
