"""Housekeeping: sealing the journal into packs, folding packs, checking everything."""
