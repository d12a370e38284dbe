"""Weights of the tiny golden models, and a cache of its own for each test."""

from tests.hosts.conftest import _own_cache, plugin_weights  # noqa: F401
