# The two commands of the README are `make demo` and `make test`; `make help` lists the rest.
# Every target sets up what it needs and skips what is up to date.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
CACHE  := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/octants

# Outside the clone, so that a fresh clone finds its dependencies compiled.
export CARGO_TARGET_DIR ?= $(CACHE)/target
export LLVM_SYS_191_PREFIX ?= /usr/lib/llvm-19

VENV := .venv
BIN  := $(VENV)/bin

WHEEL_INPUTS := $(shell git ls-files -co --exclude-standard -- crates python Cargo.toml Cargo.lock pyproject.toml \
                  README.md LICENSE THIRD-PARTY.md .cargo scripts/build_wheel.py scripts/glibc_floor.py scripts/glibc_floor.c \
                  2>/dev/null | grep -v -e '/tests/' -e '\.snap$$')
WHEEL_INPUTS := $(wildcard $(WHEEL_INPUTS))

.PHONY: help
help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## Build, then render pictures with kernels on all cores (into out/)
	@$(BIN)/python examples/first_program.py

.PHONY: test
test: build ## Run lints and all tests: Rust, filetests, Python, documents
	@$(BIN)/python scripts/run_tests.py

.PHONY: wheel
wheel: dist/.built ## Build the release wheel into dist/
	@ls -l dist/*.whl | awk '{printf "%s: %.1f MB\n", $$NF, $$5 / 1e6}'

.PHONY: lint
lint: $(VENV)/.packages ## Check formatting, clippy, ruff, pyright and the crate map
	@$(BIN)/python scripts/run_tests.py lint

.PHONY: format
format: $(VENV)/.packages ## Format Rust and Python
	cargo fmt --all
	$(BIN)/ruff check --quiet --fix-only . || true
	$(BIN)/ruff format --quiet .

.PHONY: bench
bench: build ## Run the side-by-side benchmarks (makes a virtual environment per peer)
	$(BIN)/python benches/run.py
	$(BIN)/python scripts/fill_benchmark_table.py

.PHONY: against
against: wheel ## Hold the wheel against an older commit's: what got slower (REV=COMMIT; ONLY=launch for some figures)
	@$(BIN)/python benches/against.py $(or $(REV),$(error say REV=COMMIT)) $(addprefix --only ,$(ONLY))

.PHONY: gpu-bundle
gpu-bundle: dist/.built ## Pack wheel, tests and benchmarks for an offline CUDA machine (PEER=WHEEL takes a peer along)
	@$(BIN)/python scripts/build_gpu_bundle.py $(PEER)

.PHONY: build
build: $(VENV)/.installed ## Build the release wheel and install it into .venv

.PHONY: develop
develop: $(VENV)/.packages ## Install in place: Python edits need no rebuild (undone by `make build`)
	$(BIN)/maturin develop --release --quiet
	@rm -f $(VENV)/.installed

.PHONY: clean
clean: ## Remove .venv, dist and out (cargo's target directory stays)
	rm -rf $(VENV) dist out

# --- what the targets stand on -------------------------------------------------------------------------------------

.PHONY: system
system:
	@scripts/install_system_packages.sh

$(VENV)/.packages: requirements-dev.txt | system
	@echo "Making $(VENV)"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

dist/.built: $(WHEEL_INPUTS) | $(VENV)/.packages
	@echo "Building the release wheel"
	@rm -rf dist && mkdir dist && touch dist/.begun
	@$(BIN)/python scripts/build_wheel.py
	@mv dist/.begun $@  # as old as its beginning: what changed meanwhile is built next time

$(VENV)/.installed: dist/.built
	@rm -f python/octants/_octants*.so
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl
	@touch $@
