# One entry per chore; .ci/run calls the same ones.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
# What is installed, in two steps: what serves (no torch), and on top of it everything.
SERVES := $(VENV)/.installed-serve
EVERYTHING := $(VENV)/.installed-all
# Servers that the integration tests call, apart from it all; without them those tests are skipped.
UPSTREAMS := .venv-upstreams

.PHONY: demo serve test upstreams lint fix bench clean

demo: $(SERVES)  ## Set up, start the server on the embedded API, show a search and a call
	@$(VENV)/bin/capdex demo

serve: $(SERVES)  ## Serve the embedded API (or ./capdex.toml) until interrupted
	@$(VENV)/bin/capdex serve

test: $(EVERYTHING)  ## Run every test
	@$(VENV)/bin/python -m pytest

upstreams: $(UPSTREAMS)/.installed  ## Install other people's servers, which the integration tests then call

lint: $(EVERYTHING)  ## Formatting, lint rules, types and the import rule
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

fix: $(EVERYTHING)  ## Repair what ruff can repair
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

bench: $(EVERYTHING)  ## Ranking quality on the golden and public sets (CAPDEX_BENCH_DATA names the documents)
	$(VENV)/bin/capdex bench quality

clean:  ## Remove the environment and what tools left behind
	rm -rf $(VENV) $(UPSTREAMS) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist build

$(VENV)/bin/python:
	@echo "capdex: creating $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "capdex needs Python 3.11 or newer: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv $(VENV)

$(SERVES): requirements-serve.txt pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "capdex: installing what serving needs (about a minute the first time)"
	@$(PIP) install -qq 'pip>=25.1'
	@$(PIP) install -qq -c constraints.txt -r requirements-serve.txt
	@$(PIP) install -qq --no-deps -e .
	@touch $@

# torch first and pinned: anything newer that another package pulls in is a build of several gigabytes.
$(EVERYTHING): $(SERVES)
	@echo "capdex: installing the rest, torch among it (a few minutes the first time)"
	@$(PIP) install -qq -c constraints.txt torch==2.13.0
	@$(PIP) install -qq -c constraints.txt -e . --group dev
	@touch $@

$(UPSTREAMS)/.installed: pyproject.toml constraints.txt constraints-upstreams.txt tests/integration/npm/package.json
	@echo "capdex: installing other people's servers for the integration tests (about a minute)"
	@$(PYTHON) -m venv $(UPSTREAMS)
	@$(UPSTREAMS)/bin/python -m pip --disable-pip-version-check install -qq 'pip>=25.1'
	@$(UPSTREAMS)/bin/python -m pip --disable-pip-version-check install -qq -c constraints.txt -c constraints-upstreams.txt --group upstreams
	@mkdir -p $(UPSTREAMS)/npm && cp tests/integration/npm/package.json $(UPSTREAMS)/npm/
	@if command -v npm >/dev/null; then npm install --prefix $(UPSTREAMS)/npm --no-package-lock --no-audit --no-fund --loglevel=error; \
	else echo "capdex: without npm, the tests of MCP servers that come from there are skipped"; fi
	@touch $@
