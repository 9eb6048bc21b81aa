# The maintainer's commands; `.ci/run` uses the same.

# List the recipes.
default:
    @just --list

# All checks before a merge.
ci:
    bash .ci/run

# All tests, including those in the documentation.
test:
    cargo test --workspace

# Format the code.
fmt:
    cargo fmt --all

# Lints, with warnings denied.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Layers, rule numbers, prose and public items.
checks:
    bash ci/check-layers
    bash ci/check-rules
    bash ci/check-words
    bash ci/check-public

# The reference, with warnings denied.
doc:
    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps

# Licenses, sources and duplicates of dependencies; needs cargo-deny.
deny:
    cargo deny check bans licenses sources

# Count allocations and instructions beside the baseline; `just counters --accept` writes it.
counters *arguments='--check':
    cargo bench --profile release --package workflow-benches --no-default-features --bench counters -- {{arguments}}

# Run one example: `just example fan_out`.
example name *arguments:
    cargo run --example {{name}} -- {{arguments}}
