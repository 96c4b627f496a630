"""Bundles: refs and everything reachable from them, in one file."""
