# Short names for the long forms of tests; `nox -l` lists every recipe.

# Many processes on one repository, killed at any moment
storm *options:
    nox -s storm -- {{options}}

# Writers that meet gc and prune at every call
collecting *options:
    nox -s collecting -- {{options}}

# Every bit, length, block and file of a small repository damaged
damage *options:
    nox -s damage -- {{options}}

# What reads bytes of strangers, fuzzed
fuzz *options:
    nox -s fuzz -- {{options}}

# The power cut at every point of every workload, and each sync taken out
crash *options:
    nox -s crash -- {{options}}

# Real power cuts on ext4, XFS and Btrfs, in mounted images; as root
powercut *options:
    nox -s powercut -- {{options}}

# Random histories of merges, picks, rebases, reverts and undo
lines *options:
    nox -s lines -- {{options}}
