# `make demo` and `make test` do all the set-up they need on a machine with Python 3.11 or newer.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help demo test check tests browser browser-parts fuzz crashes format docs site wheel wheels lock clean

VENV ?= .venv
INDEX ?= demo-index
# `make tests PROCESSES=2` shares the tests out by files, which halves the time; each process needs about 4 GB.
PROCESSES ?=
# CI sets it: the tests that take long too (runs of training, crashes, load, bombs, what the pages show).
SLOW ?=
CASES ?= 1000
# The Pythons under which `make wheels` proves the wheel.
VERSIONS ?= 3.11 3.12 3.13
SEED ?= 1
# Checks the page for what keeps people out; only tests use it, and nothing of it is in the package.
AXE := 4.14.1
AXE_SHA256 := e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
# What `make lock` holds back: torch to the release that we measure with, transformers (which the package of the
# base model's weights brings along) to the range that works beside vLLM.
HOLD := 'torch==2.13.0' 'transformers>=5.16.1,<5.20'
CANDIDATES := $(PYTHON) python3.11 python3.12 python3.13 python3 python
BIN := $(VENV)/bin
# The tests start hundreds of processes, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --disable-pip-version-check

help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/installed  ## Set up, index the sample corpus and answer its questions
	@$(BIN)/helios demo --out $(INDEX)

test: check tests  ## Style, types and the tests; with SLOW=1 everything that CI runs

check: $(VENV)/installed-dev  ## Style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

tests: $(VENV)/installed-dev  ## The tests alone, with the ten slowest
	$(BIN)/python -m pytest --durations=10 $(if $(SLOW),,-m "not slow") $(if $(PROCESSES),--numprocesses=$(PROCESSES) --dist=loadfile --no-loadscope-reorder)

browser: browser-parts  ## The tests of the page in a real browser, with what they need
	$(BIN)/python -m pytest tests/serving/test_browser.py

browser-parts: $(VENV)/installed-dev  ## What those tests need: playwright, Debian's chromium, axe-core
	$(PIP) install --quiet --editable '.[browser]'
	@command -v chromium > /dev/null || { echo "installing chromium with apt-get"; \
		$$(test $$(id -u) = 0 || echo sudo) apt-get install --yes --no-install-recommends chromium; }
	@test -f $(VENV)/browser/package/axe.min.js || { command -v npm > /dev/null \
		|| { echo "no npm: the check by axe-core is left out"; exit 0; }; \
		mkdir -p $(VENV)/browser; cd $(VENV)/browser; echo "fetching axe-core $(AXE) with npm"; \
		npm pack --silent axe-core@$(AXE) > /dev/null; echo "$(AXE_SHA256)  axe-core-$(AXE).tgz" | sha256sum --check --quiet; \
		tar xzf axe-core-$(AXE).tgz package/axe.min.js; }

fuzz: $(VENV)/installed-dev  ## Attacks by generated input: make fuzz CASES=10000 SEED=7
	HELIOS_FUZZ=$(CASES) HELIOS_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest tests/attacks \
		--hypothesis-profile=random --hypothesis-seed=$(SEED)

crashes: $(VENV)/installed-dev  ## Crash writers at every durable step, in CASES=20 states each: make crashes CASES=20
	HELIOS_CRASHES=$(CASES) HELIOS_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest tests/indexing/test_crashes.py -s

format: $(VENV)/installed-dev  ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/installed-dev  ## Write docs/reference.md from the code
	$(BIN)/python -m helios.reference > docs/reference.md

site: $(VENV)/installed-dev  ## Build the documentation site into site/; a link that leads nowhere ends it
	$(PIP) install --quiet --editable '.[docs]'
	$(BIN)/zensical build --strict --config-file zensical.toml

# What a newcomer does: the wheel alone, a fresh environment, the first commands of the README, in an empty folder that
# has a `training` of its own. Takes minutes; torch is held to the release that we measure with.
wheel:  ## Build the wheel into dist/, and prove it in a fresh environment
	@set -eu -o pipefail; rm -rf dist; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	for python in $(CANDIDATES); do command -v $$python > /dev/null && break; done; \
	$$python -m venv "$$scratch/venv"; printf '%s\n' $(HOLD) > "$$scratch/hold"; \
	pip="$$scratch/venv/bin/python -m pip --disable-pip-version-check"; \
	$$pip wheel --quiet --no-deps --wheel-dir dist .; \
	$$pip install --quiet --no-compile --constraint "$$scratch/hold" dist/*.whl; \
	mkdir -p "$$scratch/empty/training" "$$scratch/empty/indexing"; cd "$$scratch/empty"; \
	export XDG_CACHE_HOME="$$scratch/cache" PATH="$$scratch/venv/bin:$$PATH"; unset PYTHONPATH; \
	touch training/__init__.py indexing/__init__.py; \
	helios sample; cd helios-sample; \
	helios ask bridges "Who designed the Forth Bridge?" | tee answer; grep -q '^John Fowler  likely' answer; \
	cd ..; python -m helios index build helios-sample/bridges --out bridges-index; \
	helios init; helios search "Forth Bridge" --index bridges-index --config helios.yaml -k 1; \
	echo "Where was Brunel born?" | helios chat --index bridges-index; \
	helios train ranker --help > train-help; grep -q table-reader train-help; helios doctor; \
	echo "the wheel works: $$(ls "$(CURDIR)/dist") on $$(python --version)"

# pyenv's own `python3.13` may be there and say that it is not.
wheels:  ## The same under each Python from 3.11 to 3.13 that this machine has
	@set -eu; for version in $(VERSIONS); do \
		found=; for python in python$$version ~/.pyenv/versions/$$version.*/bin/python; do \
			if $$python --version > /dev/null 2>&1; then found=$$python; break; fi; done; \
		if test -n "$$found"; then $(MAKE) --no-print-directory wheel PYTHON=$$found; \
		else echo "no Python $$version here: the wheel is not proved under it"; fi; \
	done

# Prints one line per package, so that a slow download does not look like a hang. What is imported is compiled then: that
# is a small part of what is installed.
define install
@echo "installing $(1) into $(VENV): the first time this downloads several hundred MB"
@set -o pipefail; $(PIP) install --no-compile --requirement $(1) | awk '/^ *(Downloading|Using cached) .*\.(whl|tar\.gz) \(/ { \
	n = split($$2 == "cached" ? $$3 : $$2, path, "/"); sub("%2B", "+", path[n]); \
	print "  " path[n], $$(NF - 1), $$NF; fflush() } \
	/^Installing collected packages/ { print "unpacking " NF - 3 " packages"; fflush() }'
@$(PIP) install --quiet --no-deps --editable .
@touch $@
endef

$(VENV)/installed: requirements.lock pyproject.toml | $(VENV)/pyvenv.cfg
	$(call install,requirements.lock)

$(VENV)/installed-dev: requirements-dev.lock pyproject.toml | $(VENV)/pyvenv.cfg
	$(call install,requirements-dev.lock)
	@touch $(VENV)/installed

$(VENV)/pyvenv.cfg:
	@for python in $(CANDIDATES); do \
		command -v $$python > /dev/null || continue; \
		$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || continue; \
		if ! $$python -c 'import ensurepip, venv' 2> /dev/null; then \
			echo "$$python has no venv module: install it (on Debian and Ubuntu the package python3-venv)" >&2; exit 1; \
		fi; \
		echo "creating $(VENV) with $$($$python --version)"; \
		exec $$python -m venv $(VENV); \
	done; \
	echo "HELIOS needs Python 3.11 or newer and found none of: $(CANDIDATES)." >&2; \
	echo "Install one, or name it: make PYTHON=/path/to/python demo" >&2; exit 1

# Resolves the ranges of pyproject.toml in an empty environment and writes what was installed.
lock:  ## Renew requirements.lock and requirements-dev.lock
	@set -eu -o pipefail; scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
	for python in $(CANDIDATES); do command -v $$python > /dev/null && break; done; \
	$$python -m venv "$$scratch/venv"; \
	printf '%s\n' $(HOLD) > "$$scratch/hold"; \
	pip="$$scratch/venv/bin/python -m pip --disable-pip-version-check"; \
	write() { \
		$$pip freeze --all --exclude helios-retrieval --exclude pip --exclude wheel | sed -E 's/\+[a-z0-9.]+$$//' > "$$scratch/pins"; \
		{ echo "# $$2. Made by \`make lock\`; do not edit."; cat "$$scratch/pins"; } > "$$1"; \
		echo "$$1: $$(wc -l < "$$scratch/pins") packages"; \
	}; \
	$$pip install --quiet --constraint "$$scratch/hold" '.[documents]'; \
	write requirements.lock 'What HELIOS runs on, with the readers of documents'; \
	$$pip install --quiet --constraint "$$scratch/hold" '.[dev]'; \
	write requirements-dev.lock 'What HELIOS is developed and tested with: all extras'

clean:  ## Remove the virtual environment, the demo's index and caches
	rm -rf $(VENV) $(INDEX) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
