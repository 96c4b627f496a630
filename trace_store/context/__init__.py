"""Contexts: what a model is shown, its size in tokens, and what a provider said it used."""
