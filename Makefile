# What people and CI call. Everything is installed into .venv; nothing else is touched.

# The newest python3 on PATH that is at least 3.11 and can make environments; `make PYTHON=...` takes another one.
PYTHON ?= $(shell $(NEWEST_PYTHON))
NEWEST_PYTHON = \
	(IFS=:; for folder in $$PATH; do ls "$$folder" 2> /dev/null; done) | grep -E '^python3(\.[0-9]+)?$$' | sort -u | \
	while read -r name; do \
		"$$name" -c 'import sys, venv, ensurepip; v = sys.version_info; v >= (3, 11) and print(v[1], sys.executable)' \
			2> /dev/null < /dev/null; \
	done | sort -n | tail -n 1 | cut -d ' ' -f 2-
VENV := .venv
BIN := $(VENV)/bin
# One more than there are cores, for tests that wait: each collects all tests, which takes it 6 s of a processor.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# How many seconds the slow tests (tests/slow.txt) of `make test` may take. With SLOW_S=inf EXAMPLES_TIMES=1 all run.
SLOW_S ?= 30
export SLOW_S
# Without compiled files each program that a test starts would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo python test types tests slow docs lowest bench format snapshots screenshots clean

# Runs the main job: the app on the sample suites (without a terminal: the samples headless, and a table).
demo: $(VENV)/.installed
	@$(BIN)/agenteval demo

# Lint, types, layers, tests: what CI runs, where it takes all tests.
test: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(BIN)/python -m compileall -q -j 0 agenteval_tui
	@$(MAKE) --no-print-directory -j 2 types tests

# Beside the tests, which often wait. A failure of one lets the other come to its end.
types: $(VENV)/.installed-dev
	$(BIN)/mypy
	$(BIN)/lint-imports

tests: $(VENV)/.installed-dev
	@# Once for all: reading the tests' files as pytest does takes longer than all else before the first test.
	@$(BIN)/python tests/unread.py
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup

# Measures all tests and lists the slow ones in tests/slow.txt.
slow: $(VENV)/.installed-dev
	MEASURE_SLOW=1 SLOW_S=inf $(BIN)/pytest -n $(WORKERS) --dist loadgroup --durations=1

# The documentation site, in docs/site. A warning is an error: a link or an anchor that leads nowhere, say.
docs: $(VENV)/.installed-dev
	$(BIN)/zensical build --strict --clean --config-file docs/mkdocs.yml

# Are the lower bounds in pyproject.toml true? Tests with the lowest versions, in an environment of their own.
lowest:
	$(PYTHON) tests/packaging/lowest.py

# The figures of benchmarks/README.md, measured on this machine.
bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# After a wanted change of what is shown, stored, sent or published: write the snapshots anew, then look at them.
snapshots: $(VENV)/.installed-dev
	$(BIN)/pytest tests/tui tests/golden -n $(WORKERS) --snapshot-update
	$(BIN)/python docs/make_console.py

# The pictures of the README.
screenshots: $(VENV)/.installed-dev
	$(BIN)/python docs/screenshots/make.py

# Prints the Python that new environments are made with.
python:
	@python='$(PYTHON)'; if [ -z "$$python" ]; then \
		echo 'agenteval needs Python 3.11 or newer, with venv and pip, and there is none on PATH (make PYTHON=/path/to/python3)' >&2; \
		exit 1; \
	fi; echo "$$python"

$(VENV)/bin/python:
	@$(MAKE) --no-print-directory python > /dev/null
	$(PYTHON) -m venv $(VENV)

# uv takes a tenth of pip's time. It doesn't read pip's settings: where it finds no packages, pip installs them.
install = @uv pip install --quiet --python $(BIN)/python -e $(1) 2> /dev/null || \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e $(1)

$(VENV)/.installed: pyproject.toml $(VENV)/bin/python
	$(call install,.)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/bin/python
	$(call install,".[dev]")
	@touch $@ $(VENV)/.installed

clean:
	rm -rf docs/site docs/.cache $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
