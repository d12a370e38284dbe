#!/usr/bin/env python
"""Checks the environment: what is installed, what does not fit together, and how to fix it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    parser.add_argument('--json', action='store_true', help='print the report as JSON')
    args = parser.parse_args(argv)
    from tpa_mmseg.doctor import diagnose

    sys.exit(diagnose(args.json))


if __name__ == '__main__':
    main()
