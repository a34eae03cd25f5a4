"""The recipe of a project whose tests the runner of Node.js runs: what `scripts.test` of package.json says.

In: the files of a tree. Out: a recipe, or the reason why there is none. The runner's own options stay but for those that say
where results go; a reporter of ours writes JUnit XML that names the file of each test. Packages are not installed: a project
runs with what lies in its tree.

Does not see: other runners (Jest, Vitest, Mocha), scripts of several commands; these need a command in the configuration.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from functools import cache

from env_builder.runtime.workspace.sandbox import HELP, PROGRAMS
from env_builder.runtime.workspace.trees import Tree

from .recipe import RESULTS, RepositoryRecipe

REPORTER = f"{HELP}/traceroom_node.mjs"
OLDEST = (18, 20)
"""Version of Node.js from which on events of its runner name their files, and reporters can be chosen."""
MANIFEST = "package.json"
_REPORTS = (f"--test-reporter={REPORTER}", f"--test-reporter-destination={RESULTS}",
            "--test-reporter=spec", "--test-reporter-destination=stdout")
"""The second is for who reads the output."""
_OPERATORS = re.compile(r"[;&|<>`$()\\\n]")
_DROPPED = re.compile(r"--(?:test-reporter(?:-destination)?|watch|experimental-test-coverage)(?:=|$)")
_WITH_VALUE = frozenset(("--test-reporter", "--test-reporter-destination"))
_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def node_recipe(tree: Tree) -> RepositoryRecipe | str:
    """Return the recipe of a tree's package.json, or in a sentence why it has none."""
    script = _script(tree)
    if script is None:
        return "its package.json has no script `test`"
    try:
        words = [] if _OPERATORS.search(script) else shlex.split(script)
    except ValueError:
        words = []
    variables = []
    while words and (match := _VARIABLE.fullmatch(words[0])) is not None:
        variables.append((match[1], match[2]))
        words = words[1:]
    if words[:1] != ["node"] or "--test" not in words:
        return f"its script `test` is {script!r}, not a single call of `node --test`"
    version = node_version()
    if version is None or version < OLDEST:
        least = ".".join(map(str, OLDEST))
        return f"it needs Node.js {least} or later in {PROGRAMS}, which this machine does not have"
    command = ["node", *_REPORTS, *(own := _without_reports(words[1:]))]
    if any(re.search(r"[*?\[]", word) for word in own):   # the script's shell takes patterns as they are written
        command = ["/bin/sh", "-c", f"exec node {' '.join(_REPORTS)} {' '.join(map(_pattern, own))}"]
    return RepositoryRecipe(command=tuple(command), env=tuple(variables))


@cache
def node_version() -> tuple[int, int] | None:
    """Return the version of this machine's Node.js, as a sandbox has it; None where there is none."""
    program = shutil.which("node", path=PROGRAMS)
    if program is None:
        return None
    ran = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    match = re.match(r"v(\d+)\.(\d+)", ran.stdout)
    return (int(match[1]), int(match[2])) if match is not None else None


def _script(tree: Tree) -> str | None:
    try:
        manifest = json.loads(tree[MANIFEST].content) if MANIFEST in tree else None
    except ValueError:
        manifest = None
    scripts = manifest.get("scripts") if isinstance(manifest, dict) else None
    script = scripts.get("test") if isinstance(scripts, dict) else None
    return script if isinstance(script, str) else None


def _without_reports(words: list[str]) -> list[str]:
    """Return the words of a command without what says where results go, and what never ends."""
    kept, skip = [], False
    for word in words:
        if not skip and not _DROPPED.match(word):
            kept.append(word)
        skip = not skip and word in _WITH_VALUE
    return kept


def _pattern(word: str) -> str:
    """Return a word for the shell, with the characters of patterns as they are."""
    return re.sub(r"[^\w@%+=:,./*?\[\]{}!^-]", lambda match: "\\" + match[0], word)
