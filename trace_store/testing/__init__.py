"""Test support: contract suites, and disks that count, fail, or lose power."""
