"""The shipped code does not creep."""

from __future__ import annotations

from tpa_tools import loc


def test_code_is_counted_without_docstrings_comments_and_blank_lines() -> None:
    source = '"""Doc\nof two."""\n\n# why\ndef f(x):  # a comment\n    """Doc."""\n    return (\n        x\n    )\n'
    assert loc.count_lines(source) == 4


def test_the_package_stays_small_and_the_method_in_front() -> None:
    counts = loc.count_package(loc.PACKAGE)
    assert counts.total() <= 15_200
    method = sum(counts[name] for name in loc.METHOD)
    assert all(counts[name] < method for name in counts)
