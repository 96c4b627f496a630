"""What a model is asked about two lines of history, and what its answer is held to before anybody believes it."""
