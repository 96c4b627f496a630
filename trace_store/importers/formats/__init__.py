"""Import formats: one module or package per format."""
