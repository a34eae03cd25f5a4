"""The consumers: what each needs, on which Python, which exports its program reads, and whether CI must run it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PROGRAMS = Path(__file__).parent / "programs"
SHARED = PROGRAMS.with_name("shared")
"""What programs import; they do not see each other, for they are called as the packages are."""
AS_OF = "2026-11-21"
"""What the packages need themselves is taken as it was published before this day."""

HUGGING_FACE = ("trl==1.16.0", "torch==2.13.0", "transformers==5.23.0", "datasets==5.2.0", "minari==0.5.4",
                "gymnasium==1.4.0", "h5py", "pillow")
"""Libraries that agree with each other share one interpreter."""
VERIFIERS = ("verifiers==0.4.0", "hatchling==1.33.0", "uv==0.13.9")
"""Its harnesses are scripts that it runs by uv."""


class Consumer(NamedTuple):
    """A library that takes an export as it is, and the program that proves it."""

    name: str
    """Of the program in `programs/`, and of the row in docs/consumers.md."""
    requirements: tuple[str, ...]
    """What pip installs; the package itself first."""
    exports: tuple[str, ...]
    """Exporters whose folders the program reads. Who takes a room says the rewards of the episodes, and its digest."""
    python: str = "3.11"
    """Version that the package needs."""
    overrides: tuple[str, ...] = ()
    """Pins in the place of its own, where what it asks for is not in the registry as of `AS_OF`."""
    docker: bool = False
    """Its program runs containers."""
    required: bool = True
    """CI must run it; the others are run by `just consumers`."""

    @property
    def package(self) -> str:
        """The package that consumes, without its pin."""
        return self.requirements[0].split("==")[0]


def _first(package: str, requirements: tuple[str, ...]) -> tuple[str, ...]:
    """Return the same requirements, this package first."""
    return tuple(sorted(requirements, key=lambda pin: (not pin.startswith(f"{package}=="), requirements.index(pin))))


CONSUMERS = (
    Consumer("agentlightning", ("agentlightning==0.3.0",), ("agentlightning",), required=False),
    Consumer("art", ("openpipe-art==0.5.18", "openai==2.54.0"), ("art",), python="3.12", required=False),
    Consumer("datasets", _first("datasets", HUGGING_FACE), ("datasets",)),
    Consumer("harbor", ("harbor==0.25.0",), ("harbor",), python="3.12", overrides=("certifi",), docker=True),
    Consumer("minari", _first("minari", HUGGING_FACE), ("datasets",)),
    Consumer("trl_offline", HUGGING_FACE, ("datasets",)),
    Consumer("inspect", ("inspect-ai==0.3.285",), ("inspect",)),
    Consumer("nemo_gym", ("nemo-gym==0.4.0",), ("nemo_gym",), python="3.12", required=False),
    Consumer("openenv", ("openenv==0.10.0",), ("openenv",)),
    Consumer("skyrl", ("skyrl-gym==0.4.0", "pyarrow"), ("skyrl",), required=False),
    Consumer("tinker", ("tinker-cookbook==0.6.1", "torch==2.13.0", "transformers==5.23.0"), ("tinker",), python="3.12",
             overrides=("tml-renderers==0.2.1",), required=False),
    Consumer("trl_grpo", HUGGING_FACE, ("trl",)),
    Consumer("verifiers", VERIFIERS, ("verifiers",)),
    Consumer("verifiers_server", VERIFIERS, ("verifiers",), required=False),
    Consumer("verl", ("verl==0.9.1", "torch==2.13.0", "cachetools", "fastapi", "uvicorn", "aiohttp"), ("verl",),
             required=False),
)

BY_NAME = {consumer.name: consumer for consumer in CONSUMERS}
MUST_RUN = frozenset({"datasets", "harbor", "inspect", "minari", "openenv", "trl_grpo", "trl_offline", "verifiers"})
"""CI fails if one of these did not run."""
