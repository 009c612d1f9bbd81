# The one door. Everything runs inside .venv, which these targets create and keep up to date.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: help demo test test-slow test-browser reproduce-laptop check format lint types contracts bench clean

help:
	@echo "make demo       install, then watch contexts come apart (writes leaflearn-demo/)"
	@echo "make test       install, then run the tests and doctests"
	@echo "make check      format, lint, types, import contracts, tests, doctests"
	@echo "make test-slow  the tests that take longer"
	@echo "make test-browser  the report in a real browser; needs Chromium"
	@echo "make reproduce-laptop  the paper's tables and figures, in hours"
	@echo "make bench      speed, as ratios in one run"

demo: .venv/ready
	$(BIN)/leaflearn demo

# Two processes with one thread each: threads of torch that wait for each other are slower than none.
test: .venv/ready-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

test-slow: .venv/ready-dev
	$(BIN)/python -m pytest -m "slow and not browser"

# The browser is the system's own.
LEAFLEARN_CHROMIUM ?= /usr/bin/chromium
test-browser: .venv/ready-dev
	@test -x "$(LEAFLEARN_CHROMIUM)" || { echo "There is no Chromium at $(LEAFLEARN_CHROMIUM). On Debian and Ubuntu: apt install chromium." \
	  "Or name another one: make test-browser LEAFLEARN_CHROMIUM=/path/to/chrome"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[browser]"
	LEAFLEARN_CHROMIUM="$(LEAFLEARN_CHROMIUM)" OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m browser tests/browser

# Hours: the paper's tables and figures at laptop scale, on the real data. What is done already is not done again. Times are taken first, one
# run after the other, because two at once slow each other down.
reproduce-laptop: .venv/ready-dev
	OMP_NUM_THREADS=1 $(BIN)/leaflearn reproduce table-time --scale laptop -o results/reproduction
	OMP_NUM_THREADS=1 $(BIN)/leaflearn reproduce --scale laptop --jobs 2 -o results/reproduction
	$(BIN)/leaflearn results --folder results/reproduction --page docs/results.md

check: format lint types contracts test

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

# A stamp is written last, so an interrupted installation starts again.
.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/ready: .venv/bin/python pyproject.toml constraints.txt
	@echo "Installing leaflearn and what it needs into .venv; the first time this takes a minute or two."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/ready-dev: .venv/bin/python pyproject.toml constraints.txt
	@echo "Installing leaflearn and what its tests need into .venv; the first time this takes a minute or two."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@ .venv/ready

clean:
	rm -rf .venv leaflearn-demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
