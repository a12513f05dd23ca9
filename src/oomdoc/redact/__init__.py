"""A copy of a bundle that is fit to send away, with the same diagnosis.

`run.redact` writes it; `text` replaces in lines, by what `words` says of fields and `shapes` of what tells itself; `names` makes the
stand-ins; `copy` writes archives as they were; `manifest` is what the copy says of itself; `same` compares two reports.
"""
