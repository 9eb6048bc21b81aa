# What a maintainer types; `.ci/run` types the same.

# List the recipes.
default:
    @just --list

# Everything that has to hold before a change is merged.
ci:
    bash .ci/run

# Every test, those in the documentation included.
test:
    cargo test --workspace

# Format the code.
fmt:
    cargo fmt --all

# Lints, with warnings denied.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Rule numbers, prose and public items, beside the pages in docs.
checks:
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
    cargo bench --profile release --bench counters -- {{arguments}}

# Run one example: `just example fan_out`.
example name *arguments:
    cargo run --release --example {{name}} -- {{arguments}}
