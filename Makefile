# `make demo` runs the main job, `make test` all tests but the long ones; both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCKED := --require-hashes --only-binary :all:
PIP := $(BIN)/python -m pip install --quiet --no-compile $(LOCKED)
# Whose wheels `make wheel` builds: x86-64's is built on x86-64 alone (scripts/build-wheel).
MACHINES ?= $(if $(filter x86_64,$(shell uname -m)),x86_64) aarch64
# Three workers a processor: docs/explanation/developing.md says why. Files in the order of tests/conftest.py: few and long before the
# thousands of short ones, so that no worker waits for another's at the end.
PYTEST := $(BIN)/pytest -n $$((3 * $$(nproc))) --dist loadfile --no-loadscope-reorder

.PHONY: setup demo docs test test-rust test-python test-long lint lint-python lint-rust wheel deb image generate clean

# Thousands of processes start here: where Python may not keep its bytecode, each compiles all its packages for seconds.
unexport PYTHONDONTWRITEBYTECODE

# Packages are unpacked while the compiler, which takes longer, is at work.
setup:
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/.installed

# uv takes a tenth of the time; pip, where uv cannot: it does not know a mirror that only pip's configuration names.
# Bytecode is written when a module is first imported: most of these never are.
$(VENV)/.locked: requirements.lock packaging/uv.lock scripts/make-venv
	PYTHON=$(PYTHON) scripts/make-venv $(VENV)
	{ $(PIP) -r packaging/uv.lock && $(BIN)/uv pip install --quiet --python $(BIN)/python $(LOCKED) -r requirements.lock; } \
		|| $(PIP) -r requirements.lock
	touch $@

target/.compiled: Cargo.toml Cargo.lock scripts/build-locks $(shell find crates -type f)
	@echo "compiling the agent (a few minutes the first time)"
	mkdir -p target
	cargo build --quiet --locked --package fairtrial-agent
	scripts/build-locks
	touch $@

# Editable: Python changes need no second setup, Rust changes do.
$(VENV)/.installed: $(VENV)/.locked target/.compiled pyproject.toml $(shell find packaging -type f)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --quiet >/dev/null
	touch $@

demo: setup
	$(BIN)/fairtrial demo

# Rust's tests wait for servers half of their time: once they are compiled, they run beside Python's.
test: setup
	scripts/install-servers
	scripts/test-rust --no-run
	@$(MAKE) --no-print-directory --jobs 2 test-rust test-python

test-rust: setup
	scripts/install-servers
	scripts/test-rust

# Every worker imports every test, and compiles what is not: once before them, else it takes each 15 seconds. That a test
# cannot be imported is for the tests to say.
$(VENV)/.tests-compiled: | setup
	for part in unit end_to_end; do $(BIN)/pytest -qq --collect-only tests/$$part >/dev/null 2>&1 & done; wait
	touch $@

test-python: setup $(VENV)/.tests-compiled
	scripts/install-servers
	$(PYTEST) -m 'not long' --durations 40

# What `make test` runs a cheaper sibling of: CONTRIBUTING.md says when to run it.
test-long: setup
	scripts/install-servers
	$(PYTEST) -m long
	scripts/test-rust --ignored
	scripts/fuzz

# Python is checked while Rust is compiled, which leaves a processor idle now and then.
lint:
	@$(MAKE) --no-print-directory --jobs 3 --output-sync=line lint-python lint-rust

lint-python: $(VENV)/.locked
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports
	$(BIN)/typos
	! command -v actionlint || actionlint

lint-rust: target/.compiled
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	cargo clippy --locked --package fairtrial-locks --features preload --quiet -- -D warnings
	scripts/audit

# Links, anchors and menus are checked: a page that is wrong fails.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Zig is the C compiler and the linker for both machines, and brings musl.
$(VENV)/.zig: packaging/zig.lock $(VENV)/.locked
	$(PIP) -r packaging/zig.lock
	touch $@

wheel: $(VENV)/.zig
	for machine in $(MACHINES); do scripts/build-wheel $$machine dist || exit; done

# Of the wheel for this machine, with all its dependencies.
deb:
	packaging/debian/build dist

# On the release of Debian that the package is for.
image: deb
	podman build --tag fairtrial --file packaging/Containerfile \
		--build-arg BASE=docker.io/library/debian:$$(. /etc/os-release && echo $$VERSION_ID)-slim \
		--build-arg TARGETARCH=$$(dpkg --print-architecture) \
		--build-arg VERSION=$$(sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml) .

generate: setup
	scripts/generate-wire
	scripts/generate-reference
	scripts/generate-audits
	scripts/generate-manual
	$(BIN)/python scripts/generate-third-party

clean:
	rm -rf $(VENV) target dist src/fairtrial/locks/libfairtrial_locks.so
