"""Adapters for frameworks of others, each behind an extra of the package's name."""
