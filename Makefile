# Everything runs inside .venv, which these targets create and keep up to date.

# The first of these that is Python 3.11 or later; choose another one with PYTHON=...
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-cov test-slow test-browser reproduce-laptop check check-lowest format lint types contracts bench clean

help:
	@echo "make demo              install, then run the demo (writes leaflearn-demo/)"
	@echo "make test              install, then run the tests and doctests"
	@echo "make test-cov          the same, and print which lines are not covered"
	@echo "make check             format, lint, types, import contracts, tests, doctests"
	@echo "make check-lowest      the tests with the lowest supported versions (.venv-lowest)"
	@echo "make test-slow         the tests that take longer"
	@echo "make test-browser      the report in a real browser; needs Chromium"
	@echo "make reproduce-laptop  the tables and figures of the paper; takes hours"
	@echo "make bench             speed, as ratios in one run"

demo: .venv/ready
	$(BIN)/leaflearn demo

# Two processes with one thread each: more threads of torch wait for each other and are slower.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

test: .venv/ready-dev
	$(PYTEST)

test-cov: .venv/ready-dev
	$(PYTEST) --cov --cov-report=term

test-slow: .venv/ready-dev
	$(BIN)/python -m pytest -m "slow and not browser"

# The browser of the system is used.
LEAFLEARN_CHROMIUM ?= /usr/bin/chromium
test-browser: .venv/ready-dev
	@test -x "$(LEAFLEARN_CHROMIUM)" || { echo "There is no Chromium at $(LEAFLEARN_CHROMIUM)." \
	  "On Debian and Ubuntu: apt install chromium." \
	  "Or choose another one: make test-browser LEAFLEARN_CHROMIUM=/path/to/chrome"; exit 1; }
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e ".[browser]"
	LEAFLEARN_CHROMIUM="$(LEAFLEARN_CHROMIUM)" OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m browser tests/browser

# Takes hours: the tables and figures of the paper at laptop scale, on the real data. Finished runs are
# not repeated. Times are measured first, one run after the other, because parallel runs are slower.
reproduce-laptop: .venv/ready-dev
	OMP_NUM_THREADS=1 $(BIN)/leaflearn reproduce table-time --scale laptop -o results/reproduction
	OMP_NUM_THREADS=1 $(BIN)/leaflearn reproduce --scale laptop --jobs 2 -o results/reproduction
	$(BIN)/leaflearn results --folder results/reproduction --page docs/results.md

check: format lint types contracts test

# The oldest versions have no wheels for newer Pythons.
LOWEST_PYTHON ?= python3.11
check-lowest: .venv-lowest/ready
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -m "not slow" -n 2 --dist worksteal tests

format: .venv/ready-dev
	$(BIN)/ruff format --check .

lint: .venv/ready-dev
	$(BIN)/ruff check .

types: .venv/ready-dev
	$(BIN)/mypy

contracts: .venv/ready-dev
	$(BIN)/lint-imports

bench: .venv/ready-dev
	$(BIN)/python benchmarks/step.py

# A stamp is written last, so that an interrupted installation is repeated.
.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or later was found. Pass one: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/ready: .venv/bin/python pyproject.toml constraints.txt
	@echo "Installing leaflearn into .venv; the first time this takes a minute or two."
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e .
	@touch $@

.venv/ready-dev: .venv/bin/python pyproject.toml constraints.txt
	@echo "Installing leaflearn and its development tools into .venv; the first time this takes a minute or two."
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e ".[dev]"
	@touch $@ .venv/ready

.venv-lowest/ready: pyproject.toml constraints-lowest.txt
	$(LOWEST_PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python $(PIP_INSTALL) -c constraints-lowest.txt -e ".[dev]"
	@touch $@

clean:
	rm -rf .venv .venv-lowest .coverage leaflearn-demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
