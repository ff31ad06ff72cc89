# fairtrial: `make demo` runs the main job, `make test` passes every test; both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup demo test lint wheel generate clean

setup: $(VENV)/.installed

$(VENV)/.locked: requirements.lock scripts/make-venv
	PYTHON=$(PYTHON) scripts/make-venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements.lock
	touch $@

$(VENV)/.installed: $(VENV)/.locked pyproject.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
	$(BIN)/maturin develop --release --quiet
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

clean:
	rm -rf $(VENV) target dist
