"""Tests. A package, so that it is found before the `tests` that other distributions leave in site-packages."""
