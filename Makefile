# make demo and make test need nothing but Python 3.10 or later: everything else goes into .venv.

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLING := $(VENV)/.installing

.PHONY: help demo test quick lint docs bench lock clean

help:
	@echo 'make demo    five hosts with and without TPA on the miniature world: a table and a figure'
	@echo 'make test    lint and run all tests, on two processes'
	@echo 'make quick   lint and run the method'"'"'s own tests: below a minute'
	@echo 'make lint    check style, format, imports, types and words'
	@echo 'make docs    build the documentation into build/docs'
	@echo 'make bench   measure TPA against the direct implementation'
	@echo 'make lock    update the tested versions and their hashes in constraints.txt (needs uv)'
	@echo 'make clean   remove the environment and every cache, but no data and no results'
	@echo
	@echo 'The first of them installs everything into $(VENV); PYTHON=python3.12 chooses the interpreter.'

demo: $(INSTALLED)
	$(BIN)/python tools/demo.py

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

quick: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m quick

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/codespell

# The source is the whole repository, so that links between its pages work in a checkout too.
docs: $(INSTALLED)
	$(BIN)/python -m sphinx -q -E -W --keep-going -c docs -b html . build/docs
	@echo 'The documentation is in build/docs/index.html.'

bench: $(INSTALLED)
	$(BIN)/python tools/benchmark.py

# Needs uv. The lines of lock.in say why they are there; delete one to update what it holds.
lock:
	uv pip compile pyproject.toml --extra all --extra test --constraint lock.in --universal --python-version 3.10 \
	    --generate-hashes --no-annotate --custom-compile-command 'make lock' --quiet --output-file constraints.txt

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The mark of an unfinished install becomes the mark of a finished one in the last step. Its time is that of the start,
# so that a file edited meanwhile counts as newer; where it is found, an install was cut short and starts over.
$(INSTALLED): pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "tpa_mmseg needs Python 3.10 or later and $(PYTHON) is " + sys.version.split()[0] + ": try make PYTHON=python3.12")'
	@if [ -e $(INSTALLING) ]; then echo 'the last install was cut short: starting over'; rm -rf $(VENV); fi
	@rm -f $(INSTALLED)
	@mkdir -p $(VENV)
	@touch $(INSTALLING)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --require-hashes --requirement constraints.txt
	$(BIN)/python -m pip install --no-deps --no-build-isolation --editable .
	$(BIN)/tpa doctor --imports
	@mv $(INSTALLING) $(INSTALLED)
