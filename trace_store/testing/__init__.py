"""Test support: suites for the contracts, and disks that count, fail, or lose power."""
