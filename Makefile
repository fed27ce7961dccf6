# Everything needs Linux or macOS and Python 3.11 to 3.13 with pip and venv, and nothing
# else. Another Python:
#   make setup PYTHON=python3.12
# Flags of the programs go through ARGS, for `make evaluate` the whole command:
#   make train ARGS="--help"
#   make evaluate ARGS="match random uct:sims=100 --env nim"

PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := setup
.PHONY: setup train evaluate test bench

setup: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; (3, 11) <= v <= (3, 13) or \
	  sys.exit("jaxsearch needs Python 3.11 to 3.13, but $(PYTHON) is %d.%d: give " \
	  "another one, as in  make $(MAKECMDGOALS) PYTHON=python3.12" % v)'
	@echo "installing into .venv, which takes about a minute"
	@if command -v uv > /dev/null; then \
	  uv venv --quiet --seed --allow-existing --python $(PYTHON) .venv && \
	  uv pip install --python $(BIN)/python --editable '.[dev]' --constraint constraints.txt; \
	else \
	  $(PYTHON) -m venv .venv && \
	  $(BIN)/python -m pip install --quiet --editable '.[dev]' --constraint constraints.txt; \
	fi
	@touch $@
	@echo "installed"

train: ARGS ?= --preset connect_four --minutes 5
train: setup
	$(BIN)/python train.py $(ARGS)

evaluate: ARGS ?= positions runs/connect_four
evaluate: setup
	$(BIN)/python evaluate.py $(ARGS)

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

bench: setup
	$(BIN)/python -m benchmarks.search $(ARGS)
	$(BIN)/python -m benchmarks.cost $(ARGS)
