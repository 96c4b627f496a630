# Short names for the long forms of tests; `nox -l` lists every recipe.

# Many processes on one repository, killed at any moment
storm *options:
    nox -s storm -- {{options}}
