"""For those who write tests: suites for the contracts, disks that count or fail, and one whose power is cut."""
