#!/usr/bin/env python
"""Count the shipped lines of code per package, without docstrings, comments and blank lines."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / 'tpa_mmseg'
#: The packages that are the method; everything else serves it.
METHOD = (
    'core',
    'layers',
    'clip',
    'encoders',
    'sam',
    'hosts',
    'plugins',
    'segmentors',
    'datasets',
    'evaluation',
    'engine',
)
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def main() -> None:
    counts = count_package(PACKAGE)
    for name, lines in sorted(counts.items(), key=lambda entry: -entry[1]):
        print(f'{lines:7,}  {name}{"" if name not in METHOD else "  (method)"}')
    total, method = counts.total(), sum(counts[name] for name in METHOD)
    print(f'{total:7,}  in all, {method:,} of them ({100 * method / total:.0f} %) the method')


def count_package(folder: Path) -> Counter:
    """Lines of code of every sub-package; modules beside them count as ``(root)``."""
    counts: Counter = Counter()
    for path in folder.rglob('*.py'):
        inside = path.relative_to(folder).parts
        if not inside[0].startswith('.'):
            counts[inside[0] if len(inside) > 1 else '(root)'] += count_lines(path.read_text(encoding='utf-8'))
    return counts


def count_lines(source: str) -> int:
    """Lines that hold code."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    code = {line for t in tokens if t.type not in _NO_CODE for line in range(t.start[0], t.end[0] + 1)}
    return len(code - _docstring_lines(source))


def _docstring_lines(source: str) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                lines.update(range(first.lineno, first.end_lineno + 1))
    return lines


if __name__ == '__main__':
    main()
