"""Objects: the immutable values of a repository and their canonical bytes. Import from the modules themselves."""
