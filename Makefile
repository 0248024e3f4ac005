# Two commands do everything on a machine that has only Python >= 3.10 and pip: `make demo` and `make test`.
PYTHON ?= python3
PYTEST_ARGS ?=
BIN := .venv/bin
CORE := .venv-core/bin
NEWEST := .venv-newest/bin
LOWEST := .venv-lowest/bin
export OMP_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg

.PHONY: help demo test test-core test-newest test-lowest test-slow test-fuzz lint format bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: .venv/.installed  ## set up, compare the learners on the paper's gridworld, write the report to out/demo
	$(BIN)/lfd-gym benchmark --preset quick --out out/demo

test: .venv/.installed  ## set up and run all tests
	$(BIN)/python -m pytest -n 2 -m "not slow" $(PYTEST_ARGS)

test-core: .venv-core/.installed  ## the core's tests, on the newest Gymnasium and without torch
	$(CORE)/python -m pytest -n 2 -m "not slow" --ignore-glob="*_full.py" $(PYTEST_ARGS)

test-newest: .venv-newest/.installed  ## what needs extras on the newest Gymnasium and Stable-Baselines3
	$(NEWEST)/python -m pytest -n 2 -m "not slow" tests/test_every_environment_full.py tests/envs/*_full.py \
		tests/policies/*_full.py tests/demonstrations/test_episodes_full.py tests/costs/test_recovered_full.py \
		tests/baselines/test_learners_full.py tests/training/test_trainer_full.py $(PYTEST_ARGS)

test-lowest: .venv-lowest/.installed  ## the core's tests, on the lowest versions that pyproject.toml declares
	$(LOWEST)/python -m pytest -n 2 -m "not slow" --ignore-glob="*_full.py" $(PYTEST_ARGS)

test-slow: .venv/.installed  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow --timeout 3600 $(PYTEST_ARGS)

FUZZ_ARGS ?= --calls 1000000
test-fuzz: .venv/.installed  ## wrong calls and damaged files, a million of them; goes on where it was stopped
	$(BIN)/python tests/fuzz/fuzz_campaign.py $(FUZZ_ARGS)

lint: .venv/.installed  ## ruff, ruff format, mypy --strict
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: .venv/.installed  ## let ruff rewrite the sources
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: .venv/.installed  ## measure every bar against its reference
	$(BIN)/python benchmarks/run_all.py

clean:  ## remove the virtual environments and everything built
	rm -rf .venv .venv-core .venv-newest .venv-lowest build dist out *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Reinstalls only when what is to be installed has changed. pip's build isolation takes setuptools from the registry.
.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

.venv-core/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-core
	$(CORE)/python -m pip install --quiet --upgrade pip
	$(CORE)/python -m pip install --quiet --editable ".[test]" "gymnasium>=1.4"
	@touch $@

# `imitation` pins older versions of both, but works with these; what else it imports is named here.
.venv-newest/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-newest
	$(NEWEST)/python -m pip install --quiet --upgrade pip
	$(NEWEST)/python -m pip install --quiet --editable ".[test,box2d,mujoco]" "gymnasium>=1.4" "stable-baselines3>=2.9" \
		torch==2.13.0 datasets huggingface-sb3 jsonpickle seals tensorboard
	$(NEWEST)/python -m pip install --quiet --no-deps imitation==1.0.1
	@touch $@

# What pyproject.toml declares, at its lowest; Python 3.11 is the oldest for which all of these have wheels.
.venv-lowest/.installed: pyproject.toml
	python3.11 -m venv .venv-lowest
	$(LOWEST)/python -m pip install --quiet --upgrade pip
	sed -n '/^dependencies = \[/,/^\]/p; /^test = /p' pyproject.toml | grep -oE '"[a-z0-9-]+>=[0-9.]+' | grep -v tomli \
		| tr -d '"' | sed 's/>=/==/' > .venv-lowest/lowest.txt
	$(LOWEST)/python -m pip install --quiet --requirement .venv-lowest/lowest.txt
	$(LOWEST)/python -m pip install --quiet --no-deps --editable .
	@touch $@
