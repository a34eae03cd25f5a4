"""A Harbor environment of plain Docker, for machines without the compose plugin: build, run without a network, exec, copy.

HARBOR_BASE names another base to build on, where no registry is reached. Harbor calls it by `-e harbor_docker:LocalDocker`.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities


class LocalDocker(BaseEnvironment):
    """One container, without compose."""

    container = ""

    @staticmethod
    def type() -> str:
        """Its name."""
        return "plain-docker"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """It has no network at all."""
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        if not (self.environment_dir / "Dockerfile").is_file():
            raise FileNotFoundError(self.environment_dir / "Dockerfile")

    async def start(self, force_build: bool) -> None:
        """Build and run."""
        image = f"traceroom-harbor-{uuid.uuid4().hex[:12]}"
        base = ["--build-arg", f"BASE={os.environ['HARBOR_BASE']}"] if "HARBOR_BASE" in os.environ else []
        await self._must("docker", "build", "-q", *base, "-t", image, str(self.environment_dir))
        self.container = image
        await self._must("docker", "run", "-d", "--network", "none", "--name", image, image, "sleep", "infinity")
        await self.exec("mkdir -p /logs/agent /logs/verifier /logs/artifacts /solution && chmod 777 /logs/*", user="root")

    async def stop(self, delete: bool) -> None:
        """Remove the container and its image."""
        await self._sh("docker", "rm", "-f", self.container)
        await self._sh("docker", "rmi", self.container)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy in."""
        await self.exec(f"mkdir -p {Path(target_path).parent}", user="root")
        await self._must("docker", "cp", str(source_path), f"{self.container}:{target_path}")

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy in."""
        await self.exec(f"mkdir -p {target_dir}", user="root")
        await self._must("docker", "cp", f"{source_dir}/.", f"{self.container}:{target_dir}")

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy out."""
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        await self._must("docker", "cp", f"{self.container}:{source_path}", str(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy out."""
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        await self._must("docker", "cp", f"{self.container}:{source_dir}/.", str(target_dir))

    async def exec(
        self, command: str, cwd: str | None = None, env: dict[str, str] | None = None, timeout_sec: int | None = None,
        user: str | int | None = None, **others: Any,
    ) -> ExecResult:
        """Run a command as the trial's user, or another."""
        named = self._resolve_user(user)
        who = 0 if named == "root" else named  # a small base has no list of users
        words = ["docker", "exec", *(["-w", cwd] if cwd else []), *(["-u", str(who)] if who is not None else [])]
        for name, value in (self._merge_env(env) or {}).items():
            words += ["-e", f"{name}={value}"]
        return await self._sh(*words, self.container, "sh", "-c", command, timeout=timeout_sec)

    async def _must(self, *words: str) -> None:
        done = await self._sh(*words)
        if done.return_code:
            raise RuntimeError(f"{' '.join(words[:3])}: {done.stderr}")

    async def _sh(self, *words: str, timeout: float | None = None) -> ExecResult:
        process = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        out, said = await asyncio.wait_for(process.communicate(), timeout)
        return ExecResult(stdout=out.decode(), stderr=said.decode(), return_code=process.returncode or 0)
