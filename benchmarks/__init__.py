"""Benchmarks of Trace and alternatives, described in docs/benchmarks.md."""
