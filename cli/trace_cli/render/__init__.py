"""Forms of output: escaped text, tables for people, JSON records for programs."""
