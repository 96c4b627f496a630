"""Commands for programs, one file each: output documented to the byte, nothing but data on standard output."""
