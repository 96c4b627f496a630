"""Version control for what a language model is shown."""

__version__ = "0.1.0"
