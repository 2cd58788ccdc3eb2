# Every target sets up what it needs, once; `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCHMARKS := aggregates bursts core fanout filters joins latency multijoin panes response \
  simulator sustained

.DEFAULT_GOAL := help
.PHONY: help setup java demo picture test longtest check bench reproduce clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /  \1\t/p' Makefile | expand -t 14

setup: $(STAMP) ## create .venv and install Penstock with its dependencies

# Touched last, so that a broken installation is tried again.
$(STAMP): pyproject.toml constraints.txt
	@PYTHON=$(PYTHON) .ci/prerequisites python
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)

java:
	@.ci/prerequisites java

demo: java $(STAMP) ## twenty-two standing queries over a bursty stream, about a minute
	$(BIN)/penstock demo

picture: java $(STAMP) ## the picture in the README, from the record of a demo
	$(BIN)/penstock demo
	$(BIN)/python docs/images/live.py penstock-demo/checkpoint docs/images/live.svg 30 2> /dev/null

test: java $(STAMP) ## the tests: those on one Spark beside all others
	@{ $(BIN)/python -m pytest -q -m "not spark and not long"; pure=$$?; \
	  $(BIN)/python -m pytest -q -m "processes and not long"; test $$? -eq 0 -a $$pure -eq 0; \
	} > .pytest-beside.log 2>&1 & beside=$$!; \
	$(BIN)/python -m pytest -q -m "spark and not processes and not long"; spark=$$?; \
	wait $$beside; beside=$$?; cat .pytest-beside.log; rm -f .pytest-beside.log; \
	test $$spark -eq 0 -a $$beside -eq 0

longtest: java $(STAMP) ## the few tests that take a minute and more
	$(BIN)/python -m pytest -q -m long

check: $(STAMP) ## ruff, mypy, import-linter
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: java $(STAMP) ## the benchmarks, quick form; tables and results/*.json
	@for name in $(BENCHMARKS); do \
	  $(BIN)/python -m benchmarks $$name --quick --out results || exit 1; done

reproduce: $(STAMP) ## the experiments behind every figure
	$(BIN)/python -m experiments --out results

clean: ## remove .venv, caches and results
	rm -rf $(VENV) build dist results penstock-demo penstock-figures spark-warehouse metastore_db derby.log
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src harness tests benchmarks experiments -name __pycache__ -type d -prune -exec rm -rf {} +
	find src -name '*.egg-info' -type d -prune -exec rm -rf {} +
