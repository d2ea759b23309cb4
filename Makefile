# One entry per chore; .ci/run calls the same ones.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
INSTALLED := $(VENV)/.installed
TESTED := $(VENV)/.installed-dev

.PHONY: demo serve test lint fix bench clean

demo: $(INSTALLED)  ## Set up, start the server on the embedded API, show a search and a call
	@$(VENV)/bin/capdex demo

serve: $(INSTALLED)  ## Serve the embedded API (or ./capdex.toml) until interrupted
	@$(VENV)/bin/capdex serve

test: $(TESTED)  ## Run every test
	@$(VENV)/bin/python -m pytest

lint: $(TESTED)  ## Formatting, lint rules, types and the import rule
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

fix: $(TESTED)  ## Repair what ruff can repair
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

bench: $(TESTED)  ## Ranking quality on the golden and public sets (CAPDEX_BENCH_DATA names the documents)
	$(VENV)/bin/capdex bench quality

clean:  ## Remove the environment and what tools left behind
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist build

$(VENV)/bin/python:
	@echo "capdex: creating $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "capdex needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv $(VENV)

# torch first and pinned: anything newer that another package pulls in is a build of several gigabytes.
$(INSTALLED): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "capdex: installing (a few minutes the first time)"
	@$(PIP) install -qq 'pip>=25.1'
	@$(PIP) install -qq -c constraints.txt torch==2.13.0
	@$(PIP) install -qq -c constraints.txt -e .
	@touch $@

$(TESTED): $(INSTALLED)
	@echo "capdex: installing what the tests need"
	@$(PIP) install -qq -c constraints.txt --group dev
	@touch $@
