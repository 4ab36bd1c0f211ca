VENV ?= .venv
BIN := $(VENV)/bin
# Tests wait for daemons, databases and browsers more than they compute.
WORKERS ?= $(shell expr $$(nproc) + 1)

.PHONY: demo test lint clean

demo: $(VENV)/installed
	$(BIN)/python -m experiments.demo

test: lint
	.ci/install-services
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

lint: $(VENV)/installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/bin/python:
	.ci/make-venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python setup.cfg
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/installed-for-tests: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

clean:
	rm -rf $(VENV) demo
