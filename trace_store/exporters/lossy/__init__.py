"""Helpers of export formats: fitting a session into a format, and counting losses."""
