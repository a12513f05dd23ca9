# Bare `make` lists the verbs. `make demo` installs what a user needs into .venv, `make test` what a developer needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Where it is set, every start would compile the program and the tests again: of a run's time a tenth.
export PYTHONDONTWRITEBYTECODE :=
# One more than cores: a third of the tests' time is waiting, for processes that they start and for clocks.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

.DEFAULT_GOAL := help
.PHONY: help demo test lint types collected check samples golden bench pages docs vega metamorphic mutants code-mutants wording weights noise whole fuzz audit dist airgap clean

help: ## list the verbs
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "oomdoc needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# What a user needs: run-time dependencies, seconds. `$(VENV)/ready` is that and what developers need.
$(VENV)/usable: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@# of an editable package pip compiles nothing, and where PYTHONDONTWRITEBYTECODE is set no start would: a fifth of each
	$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/ready: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	@# pip would compile on one core; what is no Python of this version among templates is no fault
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib src > $(VENV)/compiled 2>&1 || true
	@touch $(VENV)/usable $@

demo: $(VENV)/usable ## install what a user needs, then diagnose a shipped bundle
	$(BIN)/oomdoc analyze sample_logs/kv-demand-long-chats

test: $(VENV)/ready lint ## install, then lint, types, tests
	@$(MAKE) --no-print-directory -j 2 types collected
	@$(MAKE) --no-print-directory check

lint: $(VENV)/ready ## ruff: style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready ## mypy, strict
	$(BIN)/mypy

# Tests are compiled with what their assertions say, 7 s: once, beside the types, and not by each worker.
collected: $(VENV)/ready
	@$(BIN)/python -m pytest --collect-only -qq > $(VENV)/collected || { cat $(VENV)/collected; exit 1; }

# Of one room no workers: to start them takes longer than its tests.
check: $(VENV)/ready ## the tests alone, or those of one room (ARGS=tests/ledger)
	@$(BIN)/python -m compileall -q src
	$(BIN)/python -m pytest $(or $(ARGS),-n $(WORKERS) --dist worksteal)

whole: $(VENV)/ready ## the tests with every grid in full, which `make test` samples
	OOMDOC_WHOLE=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

samples: $(VENV)/ready ## write the generated sample bundles again
	$(BIN)/python sample_logs/make_samples.py

golden: $(VENV)/ready ## accept the present reports as snapshots; read the diff
	OOMDOC_UPDATE=1 $(BIN)/python -m pytest tests -k "snapshot or golden"

pages: $(VENV)/ready ## write the generated pages again
	$(BIN)/python docs/generate.py

docs: pages ## the generated pages, then the site in build/site, strict about links
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/mkdocs build --strict --quiet

vega: $(VENV)/ready ## make the charts' JavaScript again from its wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$($(BIN)/python -c 'import sys; sys.path.insert(0, "docs"); import vega; print(vega.WHEEL)')"
	$(BIN)/python docs/vega.py

mutants: $(VENV)/ready ## break each threshold and guard of rules and views: which break goes unnoticed
	$(BIN)/python tests/mutants.py --list $(ARGS)

code-mutants: $(VENV)/ready ## the same for physics, ledger and weighing (ARGS="--changed main --seconds 90": what a branch changed)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mutants]'
	$(BIN)/python tests/code_mutants.py --list $(ARGS)

wording: $(VENV)/ready ## learn again which words go with which cause (ARGS=--left-out: what they are worth on first runs)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[wording]'
	$(BIN)/python tests/learn_wording.py $(ARGS)

weights: $(VENV)/ready ## fit the weights of all signs to the recorded first runs again (ARGS="--later r63,w13": what they are worth on rounds left out)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[wording]'
	$(BIN)/python tests/learn_weights.py $(ARGS)

noise: $(VENV)/ready ## innocent evidence beside every sample: which verdicts it turns (or every case of CASES=folder)
	$(BIN)/python tests/noise.py $(or $(CASES),sample_logs) --turned

metamorphic: $(VENV)/ready ## every sample in every shape (or every case of CASES=folder)
	$(if $(CASES),$(BIN)/python tests/shapes.py $(CASES),OOMDOC_METAMORPHIC=1 $(BIN)/python -m pytest tests/test_metamorphic.py)

fuzz: $(VENV)/ready ## hostile bytes for every reader, longer than the tests do (EXAMPLES=2000), and new examples for every property
	OOMDOC_FUZZ=$(or $(EXAMPLES),2000) $(BIN)/python -m pytest tests/test_fuzz.py
	OOMDOC_FUZZ=100 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m hypothesis --ignore tests/test_fuzz.py

bench: $(VENV)/ready ## the table of ratios on a generated bundle (SIZE=256M)
	$(BIN)/python tests/bench/bench.py --size $(or $(SIZE),256M)

audit: $(VENV)/ready ## known weaknesses of the dependencies; says so where nobody can be asked
	$(BIN)/python .ci/audit

dist: $(VENV)/ready ## wheel and sdist in dist/, the same bytes for the same source
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1767225600) $(BIN)/python -m hatchling build

airgap: $(VENV)/ready ## one packed folder for hosts without network: dist/oomdoc-airgap.tar.gz
	packaging/airgap.sh $(BIN)/python dist/oomdoc-airgap.tar.gz

clean: ## remove what was built
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
