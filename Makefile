# Everything a person or CI does with this project. `make` alone lists it.
#
# `setup` and what it stands on are shared with the projects that `firnline init` makes.

FIRNLINE := -e .
include src/firnline/template/firnline.mk

.PHONY: demo up cluster check postgresql chromium openlineage object-store test nightly simulate audit format lock clean

demo: setup ## Run the AMPLab pipeline, three epochs, through Airflow
	@$(BIN)/firnline demo amplab

up: setup ## Keep Airflow (UI and scheduler) running until Ctrl-C
	@$(BIN)/firnline up

cluster: setup postgresql object-store ## Keep PostgreSQL, an S3 server and a Spark cluster running until Ctrl-C
	@$(BIN)/python docker/without_docker.py

check: .venv/.ready ## Format, lint, types, import layers and the tests without a JVM: about a minute
	@echo "· format and lint" && $(BIN)/ruff format --quiet --check . && $(BIN)/ruff check --quiet .
	@echo "· compose file and Dockerfile" && $(BIN)/check-jsonschema -qq --builtin-schema vendor.compose-spec docker/compose.yaml && $(BIN)/hadolint -c docker/hadolint.yaml docker/Dockerfile
	@echo "· types" && $(BIN)/mypy --no-error-summary
	@echo "· import layers" && { out=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$out"; exit 1; }; }
	@echo "· tests without a JVM" && $(BIN)/pytest -q -m "not spark and not airflow and not nightly" --numprocesses 2 --dist loadfile tests/unit tests/property
	@echo "· examples in the model's documentation" && $(BIN)/pytest -q --doctest-modules src/firnline/model src/firnline/plan src/firnline/errors.py

# For the tests only: a server binary, started and stopped by the tests themselves.
postgresql:
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null || { echo "· PostgreSQL, for the tests"; \
	 [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && export DEBIAN_FRONTEND=noninteractive && apt-get -qq update > /dev/null && \
	 apt-get -qq install -y --no-install-recommends postgresql > /dev/null 2>&1; } || { \
	 echo "The tests need PostgreSQL's server: install the package postgresql, then run this again." >&2; exit 1; }

# For the tests only: the browser that looks at the page.
chromium:
	@command -v chromium > /dev/null || { echo "· Chromium, for the tests"; \
	 [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && export DEBIAN_FRONTEND=noninteractive && apt-get -qq update > /dev/null && \
	 apt-get -qq install -y --no-install-recommends chromium fonts-dejavu-core > /dev/null 2>&1; } || { \
	 echo "The tests need Chromium: install the package chromium, then run this again." >&2; exit 1; }

# For the tests only: beside the environment, since Airflow's Spark provider loads it whenever a DAG is parsed.
openlineage: .firnline/openlineage/.ready
.firnline/openlineage/.ready: tests/airflow/openlineage.lock | $(UV) .venv/.ready
	@echo "· Airflow's OpenLineage provider, for the tests" && rm -rf $(@D)
	@$(UV) pip install --quiet --python $(BIN)/python --target $(@D) --no-deps --require-hashes -r $< && touch $@

# A real S3 server, from the Go module proxy, and what Spark needs to speak to one.
VERSITYGW := v1.8.0
object-store: .firnline/bin/versitygw setup
	@for what in "jars for s3" classes; do $(BIN)/firnline doctor --with s3 --only "$$what" --mend > /dev/null || exit 1; done

.firnline/bin/versitygw:
	@command -v go > /dev/null || { echo "The S3 server is built with Go: install it (Debian: golang), then run this again." >&2; exit 1; }
	@echo "· versitygw $(VERSITYGW), an S3 server" && GOBIN="$(CURDIR)/.firnline/bin" GOFLAGS=-trimpath go install github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW)

test: setup postgresql chromium openlineage object-store check ## Set up, then everything there is: check, and the tests on real Spark, Iceberg and Airflow
	@echo "· tests on Airflow" && $(BIN)/pytest -q --durations=15 --durations-min=5 tests/airflow
	@echo "· tests on Spark, databases and a fresh clone" && $(BIN)/pytest -q --durations=60 --durations-min=5 --numprocesses 2 --dist worksteal --ignore=tests/unit --ignore=tests/property --ignore=tests/airflow tests

SEEDS ?= 0:10000
simulate: .venv/.ready ## Run the runtime in a simulated world: SEEDS=17 for one seed, 0:10000 for a range
	@$(BIN)/python -m tests.simulation $(SEEDS)

nightly: test simulate audit ## Test, then the tests too long for every change
	@echo "· properties, with many examples" && $(BIN)/pytest -q --numprocesses 2 --hypothesis-profile nightly tests/property
	@echo "· nightly tests" && { $(BIN)/pytest -q -m nightly tests || [ $$? -eq 5 ]; }

audit: $(UV) ## Ask for known vulnerabilities of the locked packages; needs PyPI's own service
	@echo "· known vulnerabilities" && $(UV) tool run --quiet --from pip-audit==2.10.1 pip-audit --progress-spinner off --disable-pip --no-deps -r requirements.lock

format: .venv/.ready ## Format the code and mend what the linter can mend
	@$(BIN)/ruff check --quiet --fix-only . ; $(BIN)/ruff format .

lock: $(UV) ## Resolve the dependencies of pyproject.toml again into requirements.lock
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --group dev -o requirements.lock pyproject.toml

clean: ## Remove the environment and all caches; data in .firnline stays
	@rm -rf .venv .firnline/uv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache dist
	@find . -name __pycache__ -type d -not -path './.firnline/*' -prune -exec rm -rf {} +
