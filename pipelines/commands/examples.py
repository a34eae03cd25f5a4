"""An example of each command, shown below its help and in the reference."""

from __future__ import annotations

_ROOM = "out/environments/main"
EXAMPLES: dict[str, str] = {
    "run": "run /var/log/agents --out out",
    "show": "show --out out --left --stage rewards",
    "ui": "ui --out out",
    "report": "report --out out",
    "unknowns": "unknowns --out out",
    "sniff": "sniff /var/log/agents/today.jsonl",
    "tasks": f"tasks {_ROOM}",
    "play": f"play {_ROOM} 3f0c --script moves.jsonl",
    "grade": f"grade {_ROOM} journals.jsonl --steps --json",
    "verify": f"verify {_ROOM} --deep",
    "serve": f"serve {_ROOM} --port 8765 --journals journals.jsonl",
    "rollout": f"rollout {_ROOM} --policy openai:MODEL@http://127.0.0.1:8000/v1 --group 8",
    "evaluate": f"evaluate {_ROOM} --policy script:policy.py --log out/rollouts/main",
    "export": f"export datasets {_ROOM} --to data --form dpo --split train",
    "release": "release --out out --why 'more feedback'",
    "releases": "releases --out out --pin paper=3f0c",
    "diff": "diff paper current --out out",
    "fetch": "fetch current --to here --registry s3://bucket/releases",
    "withdraw": "withdraw 3f0c --why 'a customer asked for it' --out out",
    "collect": "collect --out out --keep 5 --dry-run",
    "forget": "forget --subject - --out out --dry-run",
    "pseudonym": "pseudonym 'Emma Smith' --kind name",
    "base-image": "base-image --suite bookworm",
}
"""Command -> what follows `traceroom`."""


def example(command: str | None) -> str | None:
    """The whole line; None of what is no command of ours."""
    return f"traceroom {EXAMPLES[command]}" if command in EXAMPLES else None
