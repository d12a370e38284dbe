"""What ``tools/benchmark.py`` measures, and the direct implementation that it and the tests compare with."""
