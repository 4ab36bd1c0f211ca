VENV ?= .venv
BIN := $(VENV)/bin
CORES := $(shell nproc)
# More workers than cores: tests wait for daemons, databases and browsers more than they compute.
WORKERS ?= $(shell expr $(CORES) + 1)

# CI sets .ci/rerun.py, which runs failed tests once more.
PYTEST ?= -m pytest

# Tests start hundreds of Python programs. The first one stores its compiled modules for the others.
unexport PYTHONDONTWRITEBYTECODE
# Numerical libraries start no threads, because the workers already use all cores. All tests of a file
# run in one worker, so that the services of a file start only once.
TEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python $(PYTEST) --dist loadfile --no-loadscope-reorder --durations 15
# Tests without services wait for nothing.
QUICKLY := -n $(CORES) -m "not service and not slow"

.PHONY: demo test all-tests services quick coverage nightly matrix lint tables docs packages release clean

demo: $(VENV)/installed
	$(BIN)/python -m experiments.demo

# All tests, with real services, which it installs. With `-j2` the linters, which use one core, run meanwhile.
test: lint all-tests

all-tests: services $(VENV)/installed-for-tests
	$(TEST) -n $(WORKERS)

services: $(VENV)/bin/python
	.ci/install-services

# The tests that need no service and little time.
quick: $(VENV)/installed-for-tests
	IONCAST_TEST_EXAMPLES=0.05 $(TEST) $(QUICKLY)

# `make quick`, then the lines that it does not reach. From Python 3.12 on, measuring that costs little.
coverage: $(VENV)/installed-for-tests
	COVERAGE_CORE=$$($(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")') \
	IONCAST_TEST_EXAMPLES=0.05 $(TEST) $(QUICKLY) --cov --cov-report=term:skip-covered

# `make test` with every example of the tests that make up their input. Each day random submissions are others;
# to repeat those of a day, set its seed. Then the tests on Slurm with newer versions of it, the Debian package in
# chroots, the quick tests with every Python, and the site of the documents.
nightly:
	IONCAST_TEST_EXAMPLES=1 IONCAST_TEST_SEED=$${IONCAST_TEST_SEED:-$$(date +%Y%m%d)} $(MAKE) test
	.ci/newer-slurm -n $(WORKERS) --dist loadfile
	.ci/try-deb
	.ci/try-deb --suite trixie
	.ci/matrix all
	$(MAKE) docs

# `make quick` with the oldest libraries that setup.cfg allows, and with the newest Python.
matrix:
	.ci/matrix

lint: $(VENV)/installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Write docs/checks.md and its sample of settings from the words of the checks, and the tables of promises.
tables: $(VENV)/bin/python
	$(BIN)/python docs/make_checks.py
	$(BIN)/python docs/make_promises.py

# The site of all documents, with reference and gallery, in build/site. A broken link fails, but not with --quiet.
docs: $(VENV)/installed-for-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open build/site/index.html; to search, run $(BIN)/python -m http.server --directory build/site"

# Sdist, wheel, .deb or .rpm, SBOM and hashes of the last commit, in dist/.
packages:
	packaging/build

# `make packages`, if the version, CHANGELOG.md and the tag agree. It publishes nothing.
release:
	packaging/check-release
	packaging/build

$(VENV)/bin/python:
	.ci/make-venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python setup.cfg
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	touch $@

$(VENV)/installed-for-tests: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable ".[test,spark]"
	touch $@

$(VENV)/installed-for-docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) .venv-matrix demo build/site
