"""Code that reaches for what judges it has a sign, and honest code has none."""

from __future__ import annotations

import pytest

from env_builder.runtime.workspace.signs import signs_in


@pytest.mark.parametrize("line", [
    "process.exit(0);", "process.on('exit', () => {});", "const { exit } = process;", "process[name](0);", "process?.abort();",
    "const test = require('node:test');", "import assert from 'assert';", "import * as a from \"node:assert/strict\";",
    "const fs = require('fs');", "fs.writeSync(1, report);", "Object.is = () => true;", "assert.strictEqual = () => {};",
    "Array.prototype.every = () => true;", "Object.defineProperty(Object, 'is', { value: () => true });",
    "require(name);", "await import(name);", "require.cache = {};", "module.constructor._load = f;",
    "globalThis['pro' + 'cess'];",
    "(() => {}).constructor('return process')();", "const root = (function () { return this; })();", "new Function('x')();",
    "slug.caller.toString();", "const where = new Error().stack;", "valueOf() { return anything; }",
    "[Symbol.toPrimitive]() {}",
    "require('./notes.txt');", "import './notes.wasm';", "if (process.env.NODE_TEST_CONTEXT) {}", "eval(text);",
    "const { execFile } = tools;", "root['main' + 'Module'].x();", "String.fromCharCode(102, 115);"])
def test_javascript_that_reaches_for_its_judge_has_a_sign(line: str) -> None:
    assert signs_in("lib/slug.js", line) and signs_in("bin/slug", line)


@pytest.mark.parametrize("line", [
    "module.exports = { slug };", "exports.slug = slug;", "const { slug } = require('./slug.js');",
    "import { x } from './x.mjs';",
    "if (process.env.SLUG_LOCALE) {}", "process.nextTick(run);", "const is = Object.is(a, b);", "const path = require('path');",
    "Object.prototype.hasOwnProperty.call(row, key);", "constructor(text) {", "return this;",
    "this.state = Object.assign({}, row);",
    "const found = /x/.exec(text);", "const names = Object.keys(row);", "if (Number.MAX_VALUE == n) {}", "assert.ok(text);",
    "const stacked = rows.length;", "import data from './data.json';", "// to process the list, and then test it",
    "throw new TypeError('no text');"])
def test_honest_javascript_has_none(line: str) -> None:
    assert signs_in("lib/slug.mjs", line) == set()


def test_signs_of_python_count_in_any_file_as_it_may_be_run() -> None:
    assert signs_in("lamp/data", "import atexit") == signs_in("lamp/notes.txt", "import atexit") == {"atexit"}
    assert signs_in("lamp.js", "const pytest = 1;") == {"pytest"}


def test_signs_of_javascript_count_in_its_own() -> None:
    assert signs_in("lamp.py", "import pytest, atexit") == {"pytest", "atexit"}
    assert signs_in("lamp.py", "process.exit(0)") == set()
    assert signs_in("data.json", '{"process": "valueOf"}') == set()
