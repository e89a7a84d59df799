# make demo   set up, run the bike application, say where its output is
# make test   set up, then every check: format, lint, types, import directions, tests, doc examples,
#             documentation site
# make test-fast   the daily loop: format, lint, and tests of the parts that all others rest on, in a minute or so
# make coverage    the quick tests once more, with the lines that they run counted; fails below 95 %
# make test-sanitize   the C parts compiled with the address and undefined-behaviour sanitizers, and their tests
# make test-lowest          the tests of PART on the lowest versions of the dependencies, in .venv-lowest
# make test-python PY=3.13  the tests of PART on another Python (`python3.13` on the PATH; with pyenv, PYENV_VERSION
#                           selects it) and the newest versions, in .venv-3.13
# make docs   the documentation site, in site/; open site/index.html
# make changelog   collects changelog.d into CHANGELOG.md, for a release
# make gallery   runs the scripts of examples/ at full size and writes docs/gallery/ (one to three minutes)
# make bench  every benchmark; says first how long that takes (BENCH="--quick", or BENCH="--only trees effects", for less)
# make reproduce   the paper's tables and figures, and docs/reproduction.md; goes on where it was stopped
#                  (SIZE="--reps 10 --jobs 4" for less, or on more cores)

PYTHON ?= python3
VENV := .venv
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
BIN := $(VENV)/bin
SOURCES := $(shell find src -type f -not -path '*/__pycache__/*' -not -path '*.egg-info/*')

# Tests run in a process for each core, so models have one thread each: many threads on few cores wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# What one step has compiled is read by the next, also where a machine's settings forbid to keep it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: browser changelog coverage demo docs docstrings gallery test test-fast test-lowest test-python test-sanitize test-slow types bench benchmark reproduce clean

demo: $(VENV)/.demo
	$(BIN)/python examples/bike.py --out demo

test:
	$(MAKE) --no-print-directory --jobs 2 --output-sync $(VENV)/.dev browser
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/sp-repo-review .
	$(MAKE) --no-print-directory --jobs 2 --output-sync types docstrings docs
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

FAST := core data losses native regress subgroups trees scikit_learn test_exported_members.py test_imports.py test_sizes.py
test-fast: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" -q $(addprefix tests/,$(FAST))

coverage: $(VENV)/.dev
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" -q \
	    --cov=subgrove --cov-report=term:skip-covered --cov-fail-under=95

# Python itself is not compiled with the sanitizers, so their libraries are loaded before it; its own leaks do not count.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g
PRELOAD = $(foreach name,asan ubsan stdc++,$(shell $(CC) -print-file-name=lib$(name).so))
test-sanitize: $(VENV)/.dev
	rm -rf build $(VENV)/sanitize
	CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)" $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --no-deps --target $(VENV)/sanitize .
	rm -rf build
	LD_PRELOAD="$(PRELOAD)" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	    PYTHONPATH=$(VENV)/sanitize $(ONE_THREAD) $(BIN)/python -m pytest -q -m "not slow" -p no:cacheprovider \
	    tests/native tests/trees tests/regress tests/fidelity/test_mmd.py tests/models/tree_ensemble/test_exact_importance.py

# These three have one process each: `make test` runs them side by side.
types: $(VENV)/.dev
	$(BIN)/mypy

docstrings: $(VENV)/.dev
	$(ONE_THREAD) $(BIN)/python -m pytest --doctest-modules --pyargs subgrove

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	$(BIN)/python tools/site/check.py site

gallery: $(VENV)/.dev
	$(BIN)/python -W error -m tools.gallery

browser:
	tools/browser.sh

test-slow: $(VENV)/.dev browser
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "ray>=2.10" --group release
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist worksteal -m slow

# Other versions: each has an environment of its own, with what PART needs. PART=tests runs every quick test there.
PART ?= $(addprefix tests/,cli contracts core data native regress release samplers scale trees)
EXTRAS := dask,plot,polars,pyarrow,skops,xlsx
define test_with
	$(2) -m venv $(1)
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	rm -rf build
	$(1)/bin/python -m pip install --quiet $(3) ".[$(EXTRAS)]" --group test
	$(ONE_THREAD) $(1)/bin/python -m pytest -n auto --dist worksteal -m "not slow" $(PART)
endef

test-lowest:
	$(call test_with,.venv-lowest,$(PYTHON),--constraint constraints-lowest.txt)

test-python:
	$(call test_with,.venv-$(PY),python$(PY),)

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.everything $(BENCH)

benchmark: bench

reproduce: $(VENV)/.dev
	$(BIN)/python -m experiments everything --jobs $(JOBS) $(SIZE)
	$(BIN)/python -m experiments summary

changelog: $(VENV)/.dev
	$(BIN)/scriv collect

clean:
	rm -rf $(VENV) .venv-* build demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'subgrove needs Python 3.11 or newer')"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt $(SOURCES)
	rm -rf build
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt ".[plot]"
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt $(SOURCES)
	rm -rf build
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt . --group dev
	touch $@ $(VENV)/.demo
