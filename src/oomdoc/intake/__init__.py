"""Bytes in, lines out: members of a bundle, what collectors did to them undone, lines found and dense columns cut."""
