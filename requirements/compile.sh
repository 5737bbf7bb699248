#!/usr/bin/env bash
# Writes requirements/dev.txt: every dependency pinned with its hashes, no index host named.
set -euo pipefail
cd "$(dirname "$0")/.."
env -u PIP_FIND_LINKS CUSTOM_COMPILE_COMMAND="requirements/compile.sh" pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
  --extra collector --extra analytics --extra cuda --extra kafka --extra otel --extra tensorrt-rtx --extra demo --extra dev \
  --output-file requirements/dev.txt pyproject.toml
