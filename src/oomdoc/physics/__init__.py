"""Pure functions over numbers and the data they need; nothing here reads a bundle or opens a database."""
