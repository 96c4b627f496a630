"""Commands for people, one file a family."""
