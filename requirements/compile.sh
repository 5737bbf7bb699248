#!/usr/bin/env bash
# Writes the locks: every dependency pinned with its hashes, no index host named.
#   dev.txt     all of it: what the tests run with
#   worker.txt  the image of a build worker; server.txt: of collector and judge; build.txt: what makes the wheel
# The three hold versions of dev.txt only, so an image runs what was tested.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
  local output="requirements/$1"
  shift
  env -u PIP_FIND_LINKS CUSTOM_COMPILE_COMMAND="requirements/compile.sh" pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras \
    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host "$@" --output-file "$output" pyproject.toml
}

compile dev.txt --extra collector --extra analytics --extra cuda --extra kafka --extra otel --extra tensorrt-rtx --extra demo --extra dev
compile worker.txt --constraint requirements/dev.txt --extra kafka --extra otel --extra tensorrt-rtx
compile server.txt --constraint requirements/dev.txt --extra collector --extra analytics --extra kafka --extra otel
compile build.txt --constraint requirements/dev.txt --only-build-deps --build-deps-for wheel
