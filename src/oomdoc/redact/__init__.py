"""A copy of a bundle that is fit to send away, with the same diagnosis.

`run.redact` writes it. `forms` says what a member is; `text` sends its lines through the steps: `enveloped` takes off what collectors put
around lines, `documents` walks YAML, JSON and sections, `fields` and `columns` find values by their names in `words`, `shapes` what tells
itself, `scanner` the keys of providers, and `refuse` replaces what is then not in the `vocabulary` of what is safe. `values` chooses and `names`
makes the stand-ins; `copy` writes archives as they were; `manifest` is what the copy says of itself; `same` compares two reports.
"""
