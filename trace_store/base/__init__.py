"""What every module may use: object ids, clock and authors, argument checks, value classes, lazy imports."""
