"""Trace measured beside what one would use instead: `python -m benchmarks`; see docs/benchmarks.md."""
