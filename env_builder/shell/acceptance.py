"""Find the recipe of a repository, and accept it only where it reproduces what its CI saw.

In: trees of the main line, the outcomes that CI recorded of some of them, a date. Out: a recipe, or the reason why there is
none. Requirements come from the trees' metadata; what a run shows to be missing is added and tried again, a few times. Variants
(as root or not, with the project's own options of the runner, other versions of Python) are compared by the share of outcomes
that are as CI had them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from env_builder.runtime.workspace.junit import OUTCOMES
from env_builder.runtime.workspace.paths import is_test
from env_builder.runtime.workspace.trees import Tree

from .literals import imported_names
from .metadata import Metadata, metadata_of, name_of
from .node import MANIFEST, node_recipe
from .packages import Interpreter, NoInstaller, Unresolvable, interpreters, resolved
from .recipe import CONFIGURATION, PYTEST, RepositoryRecipe
from .requirements import needed, of_missing
from .trials import TrialRun, Trials

LEAST = 0.99
"""Share of CI's outcomes that a recipe has to reproduce."""
_ROUNDS = 8
_MOST_TREES = 8
"""So many trees of CI are tried for every variant; the accepted one is tried on all."""
_KEPT_OPTIONS = re.compile(r"--(?:import-mode|doctest-[\w-]+|ds|ignore|ignore-glob|pyargs|asyncio-mode)(?:[= ]\S+)?"
                           r"|--strict-markers|-p\s+\S+|-m\s+(?:'[^']*'|\"[^\"]*\"|\S+)|-W\s*\S+")
_NOT_OURS = ("cache_dir", "minversion", "required_plugins", "log_file", "junit_family", "junit_logging", "timeout", "addopts")


class Checked(NamedTuple):
    """A tree of the main line, and what CI recorded of it."""

    commit_id: str
    tree: Tree
    outcomes: Sequence[Mapping[str, str]]
    """Of each of its runs: id of a test -> its outcome; empty where CI left none."""


class AcceptedRecipe(NamedTuple):
    """A recipe that reproduces what CI saw."""

    recipe: RepositoryRecipe
    share: float | None
    """Of CI's outcomes; None where CI left none."""
    n_runs: int
    """Runs of CI that it was compared with."""
    reason: str
    """reproduced, no_ci_results."""
    detail: str
    """In words."""


class NoRecipe(NamedTuple):
    """Why a repository has no recipe."""

    reason: str
    detail: str


def find_recipe(checked: Sequence[Checked], until: datetime, trials: Trials) -> AcceptedRecipe | NoRecipe:
    """Return the recipe of a repository. `checked`: trees of its main line, the latest first."""
    if not checked:
        return NoRecipe("no_main_line", "The repository has no commit on a main line.")
    if not _has_python(checked[0].tree):
        recipe = node_recipe(checked[0].tree) if MANIFEST in checked[0].tree else "it holds neither Python nor a package.json"
        if isinstance(recipe, RepositoryRecipe):
            return given_recipe(recipe, checked, trials)
        return NoRecipe("no_recipe_known", f"No way to run its tests is known: {recipe}; give a command that writes JUnit XML "
                       "in the configuration.")
    sample = _sample(checked)
    best: tuple[float, RepositoryRecipe] | None = None
    problems: list[str] = []
    for python in _pythons(checked[0].tree)[:2]:
        try:
            recipe = _searched(sample, python, until, trials)
        except NoInstaller as error:
            return NoRecipe("no_installer", f"{error}.")
        except Unresolvable as error:
            problems.append(str(error))
            continue
        for variant in _variants(recipe, sample[0].tree):
            share = _share(sample, variant, trials)
            if best is None or share > best[0]:
                best = share, variant
            if best[0] == 1.0 or (best[0] >= LEAST and variant.as_root):
                break
        if best is not None and best[0] >= LEAST:
            break
    if best is None:
        return NoRecipe("recipe_not_installed", f"Its packages cannot be installed: {'; '.join(problems)}")
    return _decided(checked, best[1], trials)


def _has_python(tree: Tree) -> bool:
    """Return whether a tree's tests, or without a manifest of Node.js any of its files, are of Python."""
    return any(path.endswith(".py") and (is_test(path) or MANIFEST not in tree) for path in tree)


def _decided(checked: Sequence[Checked], recipe: RepositoryRecipe, trials: Trials) -> AcceptedRecipe | NoRecipe:
    """Accept a recipe by all that CI recorded, or where CI recorded nothing, by tests that pass."""
    with_results = [each for each in checked if each.outcomes]
    if with_results:
        share = _share(with_results, recipe, trials)
        if share >= LEAST:
            return AcceptedRecipe(recipe, round(share, 6), len(with_results), "reproduced",
                                  f"It gives {share:.1%} of the outcomes of {len(with_results)} commits that CI ran.")
        return NoRecipe("recipe_not_reproduced", f"{share:.1%} of CI's outcomes are reproduced, {LEAST:.0%} are asked for; "
                       + _differing(with_results, recipe, trials))
    return _decided_without_ci(checked[:2], recipe, trials)


def _decided_without_ci(
    latest: Sequence[Checked], recipe: RepositoryRecipe, trials: Trials,
) -> AcceptedRecipe | NoRecipe:
    """Accept a recipe with which tests of the latest tree that has any pass: older ones may not run on these versions."""
    runs = [run for each in trials.of_all([each.tree for each in latest], recipe) for run in each]
    run = next((run for run in runs if run.outcomes), None)
    if run is None:
        return NoRecipe("recipe_not_reproduced", "CI left no results, and no test of the main line ran.")
    failed, n_ran = _failed(run), len(run.passed) + len(_failed(run))
    examples = f" ({', '.join(failed[:5])})" if failed else ""
    detail = f"CI left no results; {len(run.passed)} of {n_ran} tests pass on the main line{examples}"
    if n_ran and len(run.passed) >= LEAST * n_ran:
        return AcceptedRecipe(recipe, None, 0, "no_ci_results", f"{detail}.")
    return NoRecipe("recipe_not_reproduced", f"{detail}, {LEAST:.0%} are asked for.")


def agreement(ours: Mapping[str, str], theirs: Mapping[str, str]) -> tuple[int, int]:
    """Return how many tests have the same outcome in both, and how many there are in either."""
    tests = ours.keys() | theirs.keys()
    return sum(_kind(ours.get(test)) == _kind(theirs.get(test)) for test in tests), len(tests)


def _as_recorded(ours: Mapping[str, str], theirs: Mapping[str, str], tree: Tree) -> Mapping[str, str]:
    """Return outcomes by the names that CI gave tests: without their files, where its results name none."""
    if any(test.partition("::")[0] in tree for test in theirs):
        return ours
    named: dict[str, str] = {}
    for test, outcome in ours.items():
        place, _, name = test.partition("::")
        name = name if place in tree and name else test
        named[name] = max(named.get(name, "passed"), outcome, key=OUTCOMES.index)
    return named


def _kind(outcome: str | None) -> str | None:
    return {"error": "failed", "flaky": "passed"}.get(outcome or "", outcome)


def _failed(run: TrialRun) -> list[str]:
    return [test for test, outcome in run.outcomes.items() if outcome in ("failed", "error")]


def _sample(checked: Sequence[Checked]) -> list[Checked]:
    """Return trees from all over the main line, those that CI ran if there are any."""
    chosen = [each for each in checked if each.outcomes] or list(checked[:2])
    step = max(1, -(-len(chosen) // _MOST_TREES))
    return [chosen[at] for at in dict.fromkeys((*range(0, len(chosen), step), len(chosen) - 1))]


def _share(checked: Sequence[Checked], recipe: RepositoryRecipe, trials: Trials) -> float:
    """Return the share of outcomes that are as CI had them; where CI left none, of tests that pass."""
    same = total = 0
    for each, (run,) in zip(checked, trials.of_all([each.tree for each in checked], recipe), strict=True):
        pairs = [agreement(_as_recorded(run.outcomes, theirs, each.tree), theirs) for theirs in each.outcomes] or [
            (len(run.outcomes) - len(_failed(run)), len(run.outcomes))]
        best = max(pairs, key=lambda pair: pair[0] / max(1, pair[1]))
        same, total = same + best[0], total + best[1]
    return same / total if total else 0.0


def _differing(checked: Sequence[Checked], recipe: RepositoryRecipe, trials: Trials) -> str:
    """Return in words which tests differ most often, and what they stated."""
    counts: Counter[str] = Counter()
    for each, (run,) in zip(checked, trials.of_all([each.tree for each in checked], recipe), strict=True):
        ours, theirs = max(((_as_recorded(run.outcomes, other, each.tree), other) for other in each.outcomes),
                           key=lambda pair: agreement(*pair)[0])
        for test in sorted(ours.keys() | theirs.keys()):
            if _kind(ours.get(test)) != _kind(theirs.get(test)):
                counts[f"{test} is {ours.get(test, 'absent')}, was {theirs.get(test, 'absent')}"] += 1
    return "; ".join(f"{what} ({n} commits)" for what, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:5])


def _pythons(tree: Tree) -> list[Interpreter]:
    """Return installed versions that the project allows: the running one first, then those that CI runs, the newest first."""
    own = interpreters()[0]
    stated = metadata_of(_contents(tree), own.minor)
    allowed = [each for each in interpreters() if allows(stated.requires_python, each.minor)]
    return sorted(allowed, key=lambda each: (each != own, each.minor not in stated.minors, -each.minor)) or [own]


def allows(specifier: str | None, minor: int) -> bool:
    """Return whether `requires-python` allows a minor version of Python 3."""
    for operator, number in re.findall(r"(>=|<=|<|>|==|!=|~=|\^|~)\s*3\.(\d+)", specifier or ""):
        at = int(number)
        is_below, is_above = minor < at, minor > at
        if ((operator in (">=", "~=", "^", "~", ">") and is_below) or (operator == "<=" and is_above)
                or (operator == "<" and not is_below) or (operator == "==" and minor != at)
                or (operator == "!=" and minor == at)):
            return False
    return True


def _searched(sample: Sequence[Checked], python: Interpreter, until: datetime, trials: Trials) -> RepositoryRecipe:
    """Return a recipe to which nothing is missing that runs of the latest, the earliest and a middle tree can tell."""
    trees = [sample[at].tree for at in dict.fromkeys((0, len(sample) // 2, len(sample) - 1))]
    stated = [metadata_of(_contents(each.tree), python.minor) for each in sample]
    imported = {name for tree in trees for name in _imported(tree)}
    requirements, others = needed(stated, imported)
    recipe = _first_recipe(stated[0], trees[0], python)
    recipe = recipe.with_packages(_resolved(requirements, python, until))
    attempted: set[str] = set()
    for _ in range(_ROUNDS):
        runs = [run for each in trials.of_all(trees, recipe) for run in each]
        messages = "\n".join(run.messages for run in runs)
        missing = [each for each in of_missing(messages, others) if name_of(each) not in attempted]
        files = _missing_files(messages, stated[0], trees[0], recipe)
        if not missing and files == recipe:
            break
        recipe = files
        for each in missing:
            attempted.add(name_of(each) or each)
            try:
                recipe = recipe.with_packages(_resolved([*requirements, each], python, until))
                requirements.append(each)
            except Unresolvable:
                continue
        recipe = _with_options(recipe)
    return _with_options(recipe)


def _resolved(requirements: list[str], python: Interpreter, until: datetime) -> tuple[str, ...]:
    """Return resolved packages: as asked for, else with looser versions, so that trees of several times go together."""
    problem: Unresolvable | None = None
    for loosened in (str, lambda each: re.sub(r"(?:==|~=)\s*[\w.*+!-]+", "", each),
                     lambda each: name_of(each) + each[each.find(";"):] if ";" in each else name_of(each) or each):
        try:
            return resolved([loosened(each) for each in requirements], python, until)
        except Unresolvable as error:
            problem = problem or error
    alone = [each for each in requirements if _is_resolvable(each, python, until)]
    if not 0 < len(alone) < len(requirements):
        raise problem or Unresolvable("nothing to resolve")
    return _resolved(alone, python, until)


def _is_resolvable(requirement: str, python: Interpreter, until: datetime) -> bool:
    """Return whether a package is to be had at all: some are only given as source, or in an index of their own."""
    try:
        return bool(resolved([name_of(requirement) or requirement], python, until)) or ";" in requirement
    except Unresolvable:
        return False


def _first_recipe(stated: Metadata, tree: Tree, python: Interpreter) -> RepositoryRecipe:
    path = ":".join(f"/repo/{root}".rstrip("/") for root in stated.roots)
    plugins = bool(stated.entry_points.get("pytest11"))
    options = {name: each for name, each in stated.runner.items() if name not in _NOT_OURS}
    ini = "[pytest]\n" + "".join(f"{name} = " + each.strip().replace("\n", "\n    ") + "\n" for name, each in options.items())
    recipe = RepositoryRecipe(minor=python.minor, env=(("PYTHONPATH", path),), files=((CONFIGURATION, ini),),
                    site_files=tuple(_scripts(stated)))
    for each in stated.version_files:
        recipe = _with_file(recipe, each, version_module(stated.version))
    return with_description(recipe, stated) if plugins else recipe


def _scripts(stated: Metadata) -> Iterator[tuple[str, str]]:
    """Yield the project's own commands, as an installer writes them."""
    for name, target in sorted(stated.entry_points.get("console_scripts", {}).items()):
        module, _, function = target.partition("[")[0].strip().partition(":")
        if re.fullmatch(r"[\w.-]+", name) and re.fullmatch(r"[\w.]+", module) and re.fullmatch(r"[\w.]+", function):
            first = function.partition(".")[0]
            yield f"bin/{name}", (f"#!/usr/bin/env python3\nimport sys\nfrom {module} import {first}\n"
                                  f"if __name__ == '__main__':\n    sys.exit({function}())\n")


def with_description(recipe: RepositoryRecipe, stated: Metadata) -> RepositoryRecipe:
    """Return a recipe whose site describes the project, as if it were installed."""
    name = re.sub(r"[-_.]+", "_", stated.name or "project")
    folder = f"{name}-{stated.version or '0'}.dist-info"
    points = "\n".join(f"[{group}]\n" + "".join(f"{each} = {target}\n" for each, target in sorted(rows.items()))
                       for group, rows in sorted(stated.entry_points.items()) if rows)
    files = dict(recipe.site_files)
    files[f"{folder}/METADATA"] = f"Metadata-Version: 2.1\nName: {stated.name or 'project'}\nVersion: {stated.version or '0'}\n"
    files[f"{folder}/entry_points.txt"] = points
    return replace(recipe, site_files=tuple(sorted(files.items())))


def version_module(version: str | None) -> str:
    """Return the module with the version that builds write."""
    text = version or "0.0.0"
    numbers = tuple(int(each) for each in re.findall(r"\d+", text)[:3])
    return (f"__version__ = version = {text!r}\n__version_tuple__ = version_tuple = {numbers!r}\n"
            "__commit_id__ = commit_id = None\n")


def _with_file(recipe: RepositoryRecipe, path: str, text: str) -> RepositoryRecipe:
    return replace(recipe, files=tuple(sorted({**dict(recipe.files), path: text}.items())))


def _missing_files(messages: str, stated: Metadata, tree: Tree, recipe: RepositoryRecipe) -> RepositoryRecipe:
    """Add what only a build or an installer writes, where a run asks for it."""
    described = re.findall(r"No package metadata was found for ([\w.-]+)|PackageNotFoundError: (?!No )([\w.-]+)"
                           r"|DistributionNotFound: The '([\w.-]+)' distribution", messages)
    if stated.name and any(name_of(each) == name_of(stated.name) for groups in described for each in groups if each):
        recipe = with_description(recipe, stated)
    for module in sorted(set(re.findall(r"No module named '([\w.]+)'", messages))):
        *above, name = module.split(".")
        for root in stated.roots if above and "version" in name else ():
            folder = "/".join(filter(None, (root, *above)))
            if f"{folder}/__init__.py" in tree:
                recipe = _with_file(recipe, f"{folder}/{name}.py", version_module(stated.version))
    return recipe


def _with_options(recipe: RepositoryRecipe) -> RepositoryRecipe:
    """Switch off, in the command, what plug-ins do beyond running tests."""
    names = {each.partition("==")[0] for each in recipe.requirements}
    options = [option for name, option in (("pytest-benchmark", "--benchmark-disable"), ("pytest-cov", "--no-cov"),
                                           ("pytest-randomly", "-pno:randomly")) if name in names]
    return replace(recipe, command=(*PYTEST, *options))


def given_recipe(recipe: RepositoryRecipe, checked: Sequence[Checked], trials: Trials) -> AcceptedRecipe | NoRecipe:
    """Return a recipe that somebody wrote, if it reproduces what CI saw, as root or not."""
    sample = _sample(checked)
    best = max((recipe, replace(recipe, as_root=True)), key=lambda each: _share(sample, each, trials))
    return _decided(checked, best, trials)


def _variants(recipe: RepositoryRecipe, tree: Tree) -> Iterator[RepositoryRecipe]:
    """Yield recipes in the order in which they are tried."""
    addopts = metadata_of(_contents(tree), recipe.minor or 0).addopts
    kept = tuple(word for match in _KEPT_OPTIONS.finditer(addopts) for word in match[0].split(" ", 1))
    for options in dict.fromkeys(((), kept)):
        for as_root in (False, True):
            yield replace(recipe, as_root=as_root, command=(*recipe.command, *options))


def _contents(tree: Tree) -> dict[str, bytes]:
    return {path: file.content for path, file in tree.items()}


def _imported(tree: Tree) -> Iterable[str]:
    return {name for path, file in tree.items() if path.endswith(".py")
            for name in imported_names(file.content.decode("utf-8", "replace"))}
