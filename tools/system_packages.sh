#!/bin/sh
# Sees to what PyPI does not have: a C++ compiler, GoogleTest, Google Benchmark. Called by `make setup`.
# Installs the Debian packages where it may, else says what to do, and fails.
set -eu

missing=""
command -v g++ >/dev/null || command -v clang++ >/dev/null || missing="$missing g++"
has_header() {
  for dir in /usr/include /usr/local/include; do
    [ -e "$dir/$1" ] && return 0
  done
  return 1
}
has_header gtest/gtest.h || missing="$missing libgtest-dev"
has_header benchmark/benchmark.h || missing="$missing libbenchmark-dev"
[ -z "$missing" ] && exit 0

if command -v apt-get >/dev/null; then
  if [ "$(id -u)" = 0 ]; then
    apt-get update -qq && apt-get install -y -qq $missing && exit 0
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo apt-get update -qq && sudo apt-get install -y -qq $missing && exit 0
  fi
fi
echo "make setup: these system packages are missing and could not be installed:$missing" >&2
echo "On Debian or Ubuntu: sudo apt-get install$missing" >&2
echo "Elsewhere: install a C++20 compiler, GoogleTest and Google Benchmark." >&2
exit 1
