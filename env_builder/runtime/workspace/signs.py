"""Signs that source reaches for its judge: names by which code finds, patches or imitates what runs its tests.

In: lines that a change puts in, and the file that they are of. Out: the names. A sign refuses nothing by itself: where only
reports of the code under test tell, a change that passes and has signs is left to a person. Those of Python count in any file,
as one may be run under any name; those of JavaScript in its own. Of other languages none are known.

Does not see: names that are put together from variables, or reached in ways not listed. Standard library only.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_PYTHON = re.compile(
    r"\b(?:_?pytest|unittest|sys\.modules|_getframe|inspect\.(?:stack|currentframe)|gc\.get_\w+|os\._exit|atexit|settrace"
    r"|setprofile|ctypes|__eq__|__ne__|PYTEST_CURRENT_TEST)\b")
_SCRIPTS = ("", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
"""Suffixes of files that Node.js runs when they are asked for: those without any are, too."""
_BUILT_IN = ("Array|BigInt|Boolean|Buffer|Date|Function|JSON|Map|Math|Number|Object|Promise|Reflect|RegExp|Set|String|Symbol"
             "|WeakMap|assert|console|Error|AssertionError")
_MODULES = ("assert|async_hooks|child_process|cluster|diagnostics_channel|fs|inspector|module|net|process|repl|test|v8|vm"
            "|worker_threads")
_HARMLESS = r"\.(?:env\.(?!NODE_)|platform\b|versions?\b|nextTick\b|cwd\b|hrtime\b|emitWarning\b|arch\b)"
_JAVASCRIPT = re.compile("|".join((
    rf"['\"`](?:node:)?(?:{_MODULES})(?:/[\w/]+)?['\"`]",   # what judges, writes, or runs what is not seen
    r"\bnode:test\b", r"\bfs\b(?=\s*[.\[,)])", r"\b(?:execSync|execFile|spawn|writeFile|appendFile|createWriteStream)\w*\b",
    r"\b(?:require|import)\s*\(\s*(?!['\"`\s])", r"\b(?:require|import)\s*\(\s*$",   # a module whose name is worked out
    r"['\"`]\.{1,2}/[^'\"`]*\.(?!(?:[mc]?[jt]s|[jt]sx|json)['\"`])\w+['\"`]",        # a program under the name of another file
    r"\brequire\s*(?:[.\[,;)\]}]|$)", r"\bcreateRequire\b", r"\bmodule\s*(?:\[|\.(?!exports\b))",
    rf"(?<![.\w-])process\b(?!{_HARMLESS})(?=\s*(?:[.\[;,)}}]|\?\.|$))",
    r"\bglobalThis\b", r"\bglobal\b(?=\s*[.\[])", r"(?:function[^{]*\{|=>\s*\{?)\s*return\s+this\b",
    r"\beval\b", r"\bFunction\s*\(", r"\.\s*constructor\b", r"\[\s*['\"`]constructor", r"\b__proto__\b", r"\bsetPrototypeOf\b",
    r"\.(?:callee|caller|stack)\b", r"\b(?:captureStackTrace|prepareStackTrace|stackTraceLimit)\b",
    rf"\b(?:{_BUILT_IN})(?:\.prototype)?(?:\.\w+|\[[^\]]*\])\s*=(?![=>])",
    r"\b(?:Object|Array|Function|String)\.prototype\b(?!\.\w)",
    rf"\b(?:defineProperty|defineProperties|assign|set)\s*\(\s*(?:{_BUILT_IN})(?:\.prototype)?\s*,",
    r"\bSymbol\.(?:toPrimitive|hasInstance|toStringTag|species)\b", r"\bvalueOf\b",
    r"\bnew\s+Proxy\b", r"\bNODE_\w+", r"/proc\b",
    r"['\"`]\w+['\"`]\s*\+\s*['\"`]\w+['\"`]", r"\bfromCharCode\b", r"\batob\b")))   # names that are put together


def signs_in(path: str, line: str) -> set[str]:
    """Return the signs of a line of a file."""
    patterns = (_PYTHON, _JAVASCRIPT) if PurePosixPath(path).suffix.lower() in _SCRIPTS else (_PYTHON,)
    return {" ".join(match[0].split()) for pattern in patterns for match in pattern.finditer(line)}
