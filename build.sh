#!/usr/bin/env bash
# The one entry point of the repository: ./build.sh help
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$root"

usage() {
  cat <<'TEXT'
usage: ./build.sh VERB
  deps      install what building needs from the distribution (Debian 12, Ubuntu 24.04); does nothing when all is there
  build     deps, then the release build; the program is build/deepinfer
  demo      build, then let the shipped model continue a text, answer a question and call a tool
  test      build, then unit, contract and golden tests, checks of the tree, and seconds of fuzzing
  nightly   the tests under AddressSanitizer + UBSan and under ThreadSanitizer, then each fuzz target for a minute
  help      this text
environment:
  DEEPINFER_TEST_DATA   directory of the public test suites; tests that need them are registered only when it is set
  DEEPINFER_SKIP_DEPS   1: never call the package manager, trust that everything is installed
TEXT
}

say() { printf '%s\n' "$*"; }
die() {
  printf 'build.sh: %s\n' "$*" >&2
  exit 1
}

# One line before each stage; a verb sets n_stages first.
stage_idx=0
n_stages=1
stage() {
  stage_idx=$((stage_idx + 1))
  say "[$stage_idx/$n_stages] $*"
}

# --- packages of the distribution -------------------------------------------------------------------------------------

has_command() { command -v "$1" >/dev/null 2>&1; }
has_package() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# A tool may come from anywhere, so its command is looked for; a library is looked for by its package.
build_tools=(g++:g++ cmake:cmake ninja:ninja-build python3:python3)
build_libraries=(libsimdjson-dev nlohmann-json3-dev libssl-dev)
test_libraries=(libgtest-dev python3-venv ca-certificates)
speed_tools=(ccache:ccache mold:mold) # only make it faster: a machine without them is fine

can_fuzz() {
  has_command clang++ || return 1
  local dir rc=0
  dir=$(mktemp -d)
  printf '#include <string>\nextern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n' >"$dir/f.cc"
  clang++ -fsanitize=fuzzer,address,undefined "$dir/f.cc" -o "$dir/f" >/dev/null 2>&1 || rc=1
  rm -rf "$dir"
  return $rc
}

# missing_packages build|test -> one package a line
missing_packages() {
  local entry
  for entry in "${build_tools[@]}"; do
    has_command "${entry%%:*}" || say "${entry#*:}"
  done
  local libraries=("${build_libraries[@]}")
  [[ $1 == build ]] || libraries+=("${test_libraries[@]}")
  for entry in "${libraries[@]}"; do
    has_package "$entry" || say "$entry"
  done
  if [[ $1 == test ]] && ! can_fuzz; then say clang; fi
}

missing_speed_tools() {
  local entry
  for entry in "${speed_tools[@]}"; do
    has_command "${entry%%:*}" || say "${entry#*:}"
  done
}

# The sanitizer and fuzzer runtime is a package named after clang's version.
clang_runtime() {
  local version
  version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -1)
  [[ -z $version ]] || say "libclang-rt-$version-dev"
}

# as_root COMMAND...: quietly; what it printed is shown when it fails.
as_root() {
  local log rc=0 prefix=()
  log=$(mktemp)
  [[ $(id -u) == 0 ]] || prefix=(sudo)
  "${prefix[@]}" env DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1 </dev/null || rc=$?
  [[ $rc == 0 ]] || tail -n 25 "$log" >&2
  rm -f "$log"
  return $rc
}

# install_missing build|test
install_missing() {
  [[ ${DEEPINFER_SKIP_DEPS:-} != 1 ]] || return 0
  local required=() speed=()
  mapfile -t required < <(missing_packages "$1")
  mapfile -t speed < <(missing_speed_tools)
  local can_install=yes
  has_command apt-get && { [[ $(id -u) == 0 ]] || has_command sudo; } || can_install=no
  if [[ ${#required[@]} == 0 ]]; then
    if [[ ${#speed[@]} == 0 || $can_install == no ]]; then return 0; fi
    # Absent after an earlier try: they are not worth a visit to the package server on every build.
    [[ ! -e build/.speed_tools_tried ]] || return 0
  elif ! has_command apt-get; then
    die "these packages are missing and there is no apt-get to install them: ${required[*]}
          Install what your distribution calls them, then run again with DEEPINFER_SKIP_DEPS=1."
  elif [[ $can_install == no ]]; then
    die "these packages are missing: ${required[*]}
          Become root (or install sudo) and run: apt-get install --no-install-recommends ${required[*]}"
  fi
  say "      installing: ${required[*]} ${speed[*]}"
  as_root apt-get update -q || say "      apt-get update failed; trying with the package lists that are here"
  local options=(-y -q --no-install-recommends -o DPkg::Lock::Timeout=300)
  if [[ " ${required[*]} " == *" clang "* ]]; then mapfile -t -O "${#required[@]}" required < <(clang_runtime); fi
  if [[ ${#required[@]} != 0 ]]; then
    as_root apt-get install "${options[@]}" "${required[@]}" || die "apt-get could not install: ${required[*]}"
  fi
  if [[ ${#speed[@]} != 0 ]]; then
    as_root apt-get install "${options[@]}" "${speed[@]}" || say "      going on without ${speed[*]} (slower builds)"
    mkdir -p build && touch build/.speed_tools_tried
  fi
  mapfile -t required < <(missing_packages "$1")
  [[ ${#required[@]} == 0 ]] || die "still missing after installation: ${required[*]}"
}

# --- building and testing ---------------------------------------------------------------------------------------------

configure() { # configure PRESET [-DNAME=VALUE...]; quiet unless it fails
  local log rc=0
  log=$(mktemp)
  cmake --preset "$@" >"$log" 2>&1 || rc=$?
  if [[ $rc != 0 ]]; then cat "$log" >&2; fi
  grep -A3 '^CMake Warning' "$log" >&2 || true
  rm -f "$log"
  [[ $rc == 0 ]] || die "cmake could not configure the $1 preset"
}

# Test tools from PyPI, in a virtual environment made anew only when the pinned list, the python or the place changes.
venv=$root/.venv-test
make_venv() {
  local stamp
  stamp="$(python3 --version) $venv $(sha256sum <tests/requirements.txt)"
  [[ -e $venv/stamp && $(<"$venv/stamp") == "$stamp" ]] && return 0
  rm -rf "$venv"
  python3 -m venv "$venv" || die "python3 -m venv failed (package python3-venv)"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    -r tests/requirements.txt || die "pip could not install tests/requirements.txt"
  printf '%s' "$stamp" >"$venv/stamp"
}

# Sanitizer runtimes older than the kernel need addresses that are not randomised.
without_aslr() {
  if setarch "$(uname -m)" -R true >/dev/null 2>&1; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

test_options() {
  printf '%s\n' -DDI_BUILD_TESTS=ON "-DDI_TEST_DATA=${DEEPINFER_TEST_DATA:-}" "-DDI_TEST_PYTHON=$venv/bin/python"
}

show_left_out() { # show_left_out BUILD_DIR
  if [[ -z ${DEEPINFER_TEST_DATA:-} ]]; then
    say "      public suites not found (DEEPINFER_TEST_DATA is not set): their tests are not registered"
  fi
  if [[ -s $1/tests_left_out.txt ]]; then
    say "      left out of this run:"
    sed 's/^/        /' "$1/tests_left_out.txt"
    echo
  fi
}

do_deps() {
  stage "packages of the distribution"
  install_missing "$1"
}

do_build() {
  stage "configuring the release build"
  local options=()
  if [[ ! -e build/CMakeCache.txt ]]; then options=(-DDI_BUILD_TESTS=OFF); fi
  configure release "${options[@]}"
  stage "compiling"
  cmake --build --preset release --target deepinfer check_layers
  [[ -x build/deepinfer ]] || die "the build left no build/deepinfer"
}

# demo_part HEADING PROMPT [OPTION...]: the prompt, what the model makes of it, and the speed; all on standard output.
demo_part() {
  local heading=$1 prompt=$2
  say
  say "--- $heading ---"
  say "prompt: $prompt"
  say
  build/deepinfer generate --prompt "$prompt" --stats "${@:3}" 2>&1
}

weather_tool='[{"type": "function", "function": {
  "name": "get_weather",
  "description": "Tells the weather in a city.",
  "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city."}},
                 "required": ["city"]}}}]'

do_demo() {
  stage "the shipped model, models/mini: a very small one, so do not take what it says for true"
  demo_part "a text goes on" "The old man opened the door, and" --temperature 0.7 --top-p 0.9 --seed 2 --max-tokens 64
  demo_part "a question: its thoughts, then its answer" "What is 47 + 38?" --chat
  demo_part "a tool, get_weather(city): its call" "What is the weather in Oslo?" --chat --thinking off \
    --tools <(say "$weather_tool")
}

do_test() {
  local options=()
  stage "test tools from PyPI"
  make_venv
  stage "fuzz targets"
  configure fuzz
  cmake --build --preset fuzz
  stage "configuring the release build with tests"
  mapfile -t options < <(test_options)
  configure release "${options[@]}" "-DDI_FUZZ_DIR=$root/build-fuzz"
  stage "compiling"
  cmake --build --preset release
  stage "tests"
  show_left_out build
  ctest --preset release --parallel "$(nproc)"
}

do_nightly() {
  local preset options=() failed=()
  stage "test tools from PyPI"
  make_venv
  mapfile -t options < <(test_options)
  for preset in asan-ubsan tsan; do
    stage "tests under $preset"
    configure "$preset" "${options[@]}"
    cmake --build --preset "$preset"
    show_left_out "build-$preset"
    without_aslr ctest --preset "$preset" --parallel "$(nproc)" || failed+=("$preset")
  done
  stage "fuzzing, a minute for each target"
  configure fuzz -DDI_FUZZ_SECONDS=60
  cmake --build --preset fuzz
  ctest --preset fuzz --parallel "$(nproc)" || failed+=(fuzz)
  [[ ${#failed[@]} == 0 ]] || die "failed: ${failed[*]}"
}

[[ $# == 1 ]] || {
  usage >&2
  exit 2
}
# One command a line: in an && list a failure inside a function would not end the script.
case $1 in
  deps)
    do_deps build
    ;;
  build)
    n_stages=3
    do_deps build
    do_build
    ;;
  demo)
    n_stages=4
    do_deps build
    do_build
    do_demo
    ;;
  test)
    n_stages=6
    do_deps test
    do_test
    ;;
  nightly)
    n_stages=5
    do_deps test
    do_nightly
    ;;
  help | -h | --help)
    usage
    ;;
  *)
    usage >&2
    die "unknown verb '$1'"
    ;;
esac
