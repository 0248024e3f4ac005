# Two commands do everything on a machine that has only Python >= 3.10 and pip: `make demo` and `make test`.
PYTHON ?= python3
PYTEST_ARGS ?=
BIN := .venv/bin
CORE := .venv-core/bin
NEWEST := .venv-newest/bin
DOCS := .venv-docs/bin
LOWEST := .venv-lowest/bin
COVERAGE := $(BIN)/python -m coverage
export OMP_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg

.PHONY: help demo test test-core test-newest test-lowest test-pythons test-slow test-fuzz test-mutation coverage lint format \
	bench docs pictures package clean

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

PYTHONS ?= python3.10 python3.12 python3.13
test-pythons: $(PYTHONS:%=.venv-%/.installed)  ## the core's tests, on other versions of Python; PYTHONS="python3.12 …"
	for python in $(PYTHONS); do \
		.venv-$$python/bin/python -m pytest -n 2 -m "not slow" --ignore-glob="*_full.py" $(PYTEST_ARGS) || exit 1; \
	done

test-slow: .venv/.installed  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow --timeout 3600 $(PYTEST_ARGS)

FUZZ_ARGS ?= --calls 1000000
test-fuzz: .venv/.installed  ## wrong calls and damaged files, a million of them; goes on where it was stopped
	$(BIN)/python tests/fuzz/fuzz_campaign.py $(FUZZ_ARGS)

# Each module with the quick tests that should notice.
MUTATED ?= lfd_gym/confidence.py:tests/test_confidence.py \
	lfd_gym/assessment/comparison.py:tests/assessment/test_comparison.py \
	lfd_gym/demonstrations/estimation.py:tests/demonstrations/test_feature_expectations.py,tests/assessment/test_certificate_formulas.py,tests/assessment/test_evaluation.py \
	lfd_gym/demonstrations/rollout_costs.py:tests/assessment/test_evaluation.py,tests/test_task_criterion.py \
	lfd_gym/assessment/expert_bounds.py:tests/assessment/test_expert_bounds.py \
	lfd_gym/assessment/certificate.py:tests/assessment/test_certificate_formulas.py,tests/assessment/test_statements.py,tests/assessment/test_logged_data.py,tests/assessment/test_expert_bounds.py,tests/assessment/test_comparison.py \
	lfd_gym/assessment/evaluation.py:tests/assessment/test_evaluation.py \
	lfd_gym/assessment/statements.py:tests/assessment/test_statements.py \
	lfd_gym/assessment/point_certificate.py:tests/assessment/test_certificate_formulas.py,tests/assessment/test_certificate.py \
	lfd_gym/assessment/logged_data.py:tests/assessment/test_logged_data.py \
	lfd_gym/assessment/collecting.py:tests/assessment/test_collecting.py \
	lfd_gym/assessment/bounds.py:tests/assessment/test_bounds.py \
	lfd_gym/costs/sets.py:tests/costs/test_sets.py \
	lfd_gym/costs/costs.py:tests/costs/test_costs.py \
	lfd_gym/costs/fourier.py:tests/costs/test_fourier.py \
	lfd_gym/model/criterion.py:tests/model/test_criterion.py \
	lfd_gym/model/mdp.py:tests/model/test_mdp.py \
	lfd_gym/model/planning.py:tests/model/test_planning.py \
	lfd_gym/model/krylov.py:tests/model/test_planning.py \
	lfd_gym/model/dynamics.py:tests/model/test_mdp.py \
	lfd_gym/model/generative_model.py:tests/model/test_generative_model.py \
	lfd_gym/solvers/saddle/saddle_point.py:tests/solvers/saddle/test_saddle_point.py \
	lfd_gym/solvers/saddle/approximation.py:tests/solvers/saddle/test_coherence.py,tests/assessment/test_paper_statements.py \
	lfd_gym/solvers/saddle/coherence.py:tests/solvers/saddle/test_coherence.py \
	lfd_gym/solvers/saddle/residual_sampling.py:tests/assessment/test_certificate_formulas.py \
	lfd_gym/solvers/saddle/primal_dual_hybrid.py:tests/solvers/saddle/test_primal_dual_hybrid.py \
	lfd_gym/solvers/exact/bundle_master.py:tests/solvers/exact/test_bundle_master.py \
	lfd_gym/solvers/exact/cutting_plane.py:tests/solvers/exact/test_cutting_plane.py \
	lfd_gym/solvers/exact/linear_program.py:tests/solvers/exact/test_linear_program.py \
	lfd_gym/solvers/exact/weight_polytope.py:tests/solvers/exact/test_weight_polytope.py \
	lfd_gym/solvers/descent/_kernels.py:tests/solvers/descent/test_descent_rounds.py \
	lfd_gym/solvers/descent/step_sizes.py:tests/solvers/descent/test_step_sizes.py,tests/solvers/descent/test_descent_rounds.py \
	lfd_gym/envs/gridworld.py:tests/envs/test_gridworld.py
MUTANTS ?= --count 3

test-mutation: .venv/.installed  ## do the tests notice changed formulas? MUTATED="module:test,test …", MUTANTS="--count 20 --seed 1"
	$(BIN)/python scripts/mutate.py $(MUTANTS) $(MUTATED)

KERNELS ?= tests/model tests/test_confidence.py tests/envs/test_garnet.py tests/envs/test_gridworld.py
coverage: .venv/.installed  ## which lines the tests run, those of kernels without the compiler; a page in out/coverage/html
	rm -rf out/coverage && mkdir -p out/coverage
	$(COVERAGE) run -m pytest -q -n 2 -m "not slow" $(PYTEST_ARGS) || true
	NUMBA_DISABLE_JIT=1 $(COVERAGE) run -m pytest -q -m "not slow" --ignore-glob="*_full.py" --timeout 20 --timeout-method signal \
		$(KERNELS) || true
	$(COVERAGE) combine --quiet && $(COVERAGE) html --quiet --directory out/coverage/html && $(COVERAGE) report

lint: .venv/.installed  ## ruff, ruff format, mypy --strict
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: .venv/.installed  ## let ruff rewrite the sources
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: .venv/.installed  ## measure every bar against its reference
	$(BIN)/python benchmarks/run_all.py

docs: .venv-docs/.installed  ## build the site into out/site: runs the tutorials, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(DOCS)/mkdocs build --quiet

pictures: .venv/.installed  ## make the README's pictures again
	$(BIN)/python scripts/readme_pictures.py

package: .venv/.installed  ## build wheel and sdist, check them, and run the first example from each in a fresh environment
	scripts/check_package.sh

clean:  ## remove the virtual environments and everything built
	rm -rf .venv .venv-core .venv-newest .venv-lowest .venv-docs .venv-python* build dist out *.egg-info .pytest_cache .mypy_cache .ruff_cache \
		.hypothesis

# Reinstalls only when what is to be installed has changed. pip's build isolation takes setuptools from the registry.
.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	$(BIN)/python -c "import quantecon"  # fills its cache: two processes of the tests doing so at once damage it for good
	@touch $@

.venv-core/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-core
	$(CORE)/python -m pip install --quiet --upgrade pip
	$(CORE)/python -m pip install --quiet --editable ".[test]" "gymnasium>=1.4"
	@touch $@

.venv-docs/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	$(DOCS)/python -m pip install --quiet --upgrade pip
	$(DOCS)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	@touch $@

# `imitation` pins older versions of both, but works with these; what else it imports is named here.
.venv-newest/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-newest
	$(NEWEST)/python -m pip install --quiet --upgrade pip
	$(NEWEST)/python -m pip install --quiet --editable ".[test,box2d,mujoco]" "gymnasium>=1.4" "stable-baselines3>=2.9" \
		torch==2.13.0 datasets huggingface-sb3 jsonpickle seals tensorboard
	$(NEWEST)/python -m pip install --quiet --no-deps imitation==1.0.1
	@touch $@

.venv-python%/.installed: pyproject.toml
	python$* -m venv .venv-python$*
	.venv-python$*/bin/python -m pip install --quiet --upgrade pip
	.venv-python$*/bin/python -m pip install --quiet --editable ".[test]" "gymnasium>=1.4"
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
