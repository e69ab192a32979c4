# Every command of this project. CI calls only make.
# `make run` needs git, make and Python 3.11-3.13; everything else is installed into .venv from hash-pinned locks.

.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/sh
PY := .venv/bin/python
PYTEST := $(PY) -m pytest -n 2 --dist loadgroup
# Ends when make does, even by kill -9 (15 is SIGTERM: it stops everything in order).
TIED := exec $(PY) -I -S tools/guard.py $$PPID 15 same $(PY)
OTHER_TESTS = $(filter-out tests/unit tests/property tests/crash tests/harness tests/vectors tests/__pycache__ tests/conftest.py,$(wildcard tests/*))

.PHONY: help setup run demo lint check test test-crash gen docs lock bench clean .run-ready

help: ## Show this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

setup: ## Install what checks and tests need into .venv
	@sh tools/setup.sh dev

.run-ready:
	@sh tools/setup.sh run

run: .run-ready ## Start everything on this machine, play one match as a self-check, keep serving
	@$(TIED) -m tools.run

demo: .run-ready ## Start everything on free ports, play two whole matches, print the result as JSON, stop
	@$(TIED) -m tools.demo

lint: setup ## Run linters, type checker, import contracts, proto checks, generated code drift
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/buf lint proto
	sh tools/breaking.sh
	sh tools/drift.sh

check: lint ## Run lint, then unit, property and architecture tests; what to run before a commit
	$(PYTEST) tests/unit tests/property tests/architecture

test: setup ## Run every test, with 100 % branch coverage of rules, poker, table and every domain
	@rm -f .coverage .coverage.*
	@status=0; \
	.venv/bin/coverage run -m pytest -n 2 --dist worksteal tests/unit tests/property || status=1; \
	$(PYTEST) $(OTHER_TESTS) || status=1; \
	.venv/bin/coverage combine -q && .venv/bin/coverage report --fail-under=100 || status=1; \
	exit $$status

test-crash: setup ## Kill everything at seeded points of matches, see docs/crash-matrix.md; SEEDS=200 for more, SEED=17 for one
	@KOIKOI_CRASH_SEEDS=$(SEEDS) KOIKOI_CRASH_SEED=$(SEED) $(PYTEST) tests/crash

gen: setup ## Generate gen/ from proto/
	@exec sh tools/generate.sh

docs: setup ## Write the parts of docs/ that repeat the code
	@exec $(PY) -m tools.reference

lock: setup ## Resolve requirements/*.in into hash-pinned locks
	@exec sh tools/lock.sh

bench: setup ## Measure a deal, a move and the referee
	@exec $(PY) -m bench

clean: ## Remove the virtual environment, data and caches
	rm -rf sdk/python/koikoi_sdk/poker/_ristretto.* .venv .run build dist .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
