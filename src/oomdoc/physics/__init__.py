"""The engine's memory arithmetic: pure functions over numbers, and the data they need; nothing here reads a bundle.

`catalogue` and `config` give a `Model`, `weights`, `kv`, `pool` and `budget` what it takes, `planning` what has no formula,
`defaults` and `gpus` what nobody stated. `expect.expected` is the door that does all of it; `identify` goes backwards from
figures to models. Figures are `interval.Interval`: two bounds and an origin.
"""
