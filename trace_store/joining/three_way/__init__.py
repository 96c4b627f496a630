"""The three-way merge: contexts of the bases, of ours and of theirs in; operations and conflicts out."""
