# What is done daily. PYTHON is the interpreter of the environment, by default the one that `make setup` makes.
PYTHON ?= .venv/bin/python
TESTS ?= tests symperf

.PHONY: help setup lint format types test quick nightly site docs bench smoke same-answers audit sbom package ci

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## */\1: /p' Makefile

setup: ## an environment in .venv with all that tests need
	python3 -m venv .venv
	.venv/bin/pip install --quiet -e '.[test]'

lint: ## what ruff finds
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

format: ## write files as ruff formats them, and mend what it can
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

types: ## mypy in its strict mode
	$(PYTHON) -m mypy

test: ## every test; TESTS=tests/models for some
	$(PYTHON) -m pytest -q -n auto $(TESTS)

quick: lint types ## lint, types, the rules of the house, catalogues and the command line: under two minutes
	$(PYTHON) -m pytest -q -n auto tests/house tests/models tests/systems tests/cli/test_cli.py tests/cli/test_list.py

nightly: ## every test, laws at length
	HYPOTHESIS_PROFILE=nightly $(PYTHON) -m pytest -q -n auto --timeout 7200 $(TESTS)

site: ## the documentation as a site in site/ (pip install -e '.[docs]')
	$(PYTHON) docs/build_site.py site

docs: ## write again what pages quote
	$(PYTHON) docs/refresh.py
	$(PYTHON) docs/pictures.py

bench: ## the time of one prediction, of start-up and of kernels
	$(PYTHON) benchmarks/bench_point.py
	$(PYTHON) benchmarks/bench_startup.py
	$(PYTHON) benchmarks/bench_kernels.py

SMOKES = bench_compilers bench_dask bench_explorer bench_factorial bench_kernels bench_point bench_search bench_startup performance published_plans same_answers serving_simulation
smoke: ## every benchmark compares its results, and none measures; whether the program of the step has grown
	@for each in $(SMOKES); do $(PYTHON) benchmarks/$$each.py --smoke || exit 1; done
	@$(PYTHON) benchmarks/history.py

same-answers: ## whether the checkout in BEFORE gives the same answers
	$(PYTHON) benchmarks/same_answers.py $(or $(BEFORE),$(error give BEFORE=FOLDER, a checkout to compare with))

audit: ## known faults of what is installed, and patterns of unsafe code (pip install pip-audit bandit)
	$(PYTHON) -m pip_audit --skip-editable
	$(PYTHON) -m bandit --quiet --recursive symperf formulas codegen --severity-level medium

sbom: ## the bill of materials of a release, sbom.json (pip install pip-audit)
	$(PYTHON) -m pip_audit --skip-editable --format cyclonedx-json --output sbom.json

package: ## the sdist and the wheel in dist/, checked and run (pip install build twine)
	PYTHON=$(PYTHON) .ci/package

ci: ## what CI does, in a clean environment
	.ci/run
