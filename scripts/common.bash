# Shared by the scripts beside it (source it): where the repository is, how many jobs fit, and quiet long commands.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One job for each core, and 1.5 GiB of memory for each job (the largest translation units take about that).
memory_jobs=$(awk '/^MemAvailable:/ {print int($2 / 1572864)}' /proc/meminfo 2>/dev/null || echo 1)
jobs=$(nproc)
[ "$jobs" -le "$memory_jobs" ] || jobs=$memory_jobs
[ "$jobs" -ge 1 ] || jobs=1

# Lets ccache know files by their place in the repository, so that another clone finds them too.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

logs=build/logs
say() { echo "== $*"; }

# A line now and then from what a command prints, so that a reader sees that it is alive.
progress() {
  local line='' rest='' start=$SECONDS next=$((SECONDS + 10)) status=0
  while true; do
    status=0
    IFS= read -r -t 10 rest || status=$?
    [ "$status" -eq 0 ] || [ "$status" -gt 128 ] || return 0  # end of input
    [ "$status" -ne 0 ] || line=$rest
    if [ "$SECONDS" -ge "$next" ] && [ -n "$line" ]; then
      printf '  %4d s  %s\n' $((SECONDS - start)) "${line:0:100}"
      next=$((SECONDS + 10))
    fi
  done
}

# quietly NAME WHAT COMMAND...: says WHAT, runs the command with its output in build/logs/NAME.log, and shows the end
# of that file if it fails.
quietly() {
  local log=$logs/$1.log start=$SECONDS
  say "$2"
  shift 2
  mkdir -p "$logs"
  if "$@" </dev/null 2>&1 | tee "$log" | progress; then
    echo "   done in $((SECONDS - start)) s"
  else
    tail -n 80 "$log"
    echo "   FAILED after $((SECONDS - start)) s; all of its output: $log"
    return 1
  fi
}

# configure PRESET; build PRESET TARGET... (no target: everything)
configure() { quietly "configure-$1" "Configuring the preset $1" cmake --preset "$1"; }
build() {
  local preset=$1
  shift
  quietly "build-$preset" "Building the preset $preset with $jobs jobs${1:+: $*}" \
    cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
}
