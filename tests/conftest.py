"""Settings that all tests share."""

from hypothesis import settings

# How long one example takes says nothing on a machine with other work; the whole test has a time limit.
settings.register_profile("trace", deadline=None, print_blob=True)
settings.load_profile("trace")
