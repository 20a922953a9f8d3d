# The front door: `make demo` shows it working, `make test` proves it, `make bench` measures it.
# On a fresh machine it needs git, Rust, Python 3.10+ and Node 20+; everything else is installed below.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
CLIENT_DEPS := tests/clients/requirements.txt
BENCH_DEPS := benches/baselines/requirements.txt
CRASH_ROUNDS ?= 20

.PHONY: demo test test-rust test-clients lint bench bench-engines fuzz build clean

demo: build
	./target/release/rollyard demo

build:
	cargo build --release --locked -p rollyard

test: test-rust test-clients

# nextest shows slow tests and runs them in parallel; plain cargo does where it is missing.
test-rust:
	@if cargo nextest --version >/dev/null 2>&1; then \
	  ROLLYARD_CRASH_ROUNDS=$(CRASH_ROUNDS) cargo nextest run --locked --workspace --no-fail-fast; \
	else \
	  ROLLYARD_CRASH_ROUNDS=$(CRASH_ROUNDS) cargo test --locked --workspace --no-fail-fast; \
	fi
	cargo test --locked --workspace --doc

# Real clients, as users have them, against the real binary.
test-clients: $(VENV)/clients
	cargo build --locked -p rollyard
	$(VENV)/bin/python -m pytest -q tests/clients

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/clients: $(CLIENT_DEPS) | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --requirement $(CLIENT_DEPS)
	@touch $@

$(VENV)/bench: $(BENCH_DEPS) | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --requirement $(BENCH_DEPS)
	@touch $@

lint: $(VENV)/clients
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(VENV)/bin/ruff check tests benches/baselines
	$(VENV)/bin/ruff format --check tests benches/baselines

# Ratios against baselines run in the same command. About fifteen minutes and 22 GB of disk.
bench: build $(VENV)/bench
	cargo run --release --locked -p rollyard-bench -- all --build

# Our log beside fjall and raft-engine; see docs/decisions/001-log.md.
bench-engines:
	cargo run --release --locked --manifest-path benches/engines/Cargo.toml

# Coverage-guided fuzzing; needs `cargo install cargo-fuzz`. FUZZ_SECONDS for each target.
FUZZ_SECONDS ?= 60
fuzz:
	@for target in item log config template; do \
	  RUSTC_BOOTSTRAP=1 cargo fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

clean:
	cargo clean
	rm -rf $(VENV)
