"""Repair of contexts that no provider would accept."""
