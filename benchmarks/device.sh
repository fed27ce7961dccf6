#!/usr/bin/env bash
# Measures the searches on an accelerator, in less than six minutes on a GPU.
#
#     benchmarks/device.sh
#     DEVICE=cpu TINY=1 benchmarks/device.sh      a trial of the script, on any machine
#
# First the visits of both policies are compared with mctx's on the device
# (benchmarks.check): if they differ nothing is measured. Then come the searches, the
# overhead beside a net, and the costs. With GAMES come the games alone, beside pgx's if
# that is installed: each is measured if it plays as on the CPU. Each program is stopped
# when its time is up and writes its lines of JSON as they come, so that what it had is
# kept. The code is 1 if one of them failed or was stopped.
#
# Needs Python with the packages of pyproject.toml and a JAX for the device; builds and
# installs nothing. Environment:
#   OUT       folder for the lines of JSON, default results
#   PYTHON    default .venv/bin/python, or python3 where there is none
#   DEVICE    gpu (the default), tpu, cpu or auto
#   REPEATS   runs of each program but those of the costs, default 3
#   GAMES     if set, the games in place of the searches
#   TINY      if set, tiny sizes, whose numbers mean nothing
#   BATCH       games side by side, of the overhead's search as well
#   SIMULATIONS, WIDTH, BLOCKS   the sizes of that search and its net
set -euo pipefail
cd "$(dirname "$0")/.."

OUT=${OUT:-results}
DEVICE=${DEVICE:-gpu}
if [[ -z ${PYTHON:-} ]]; then
  PYTHON=python3
  [[ -x .venv/bin/python ]] && PYTHON=.venv/bin/python
fi
flags=(--device "$DEVICE")
sizes=(
  --batch "${BATCH:-1024}" --simulations "${SIMULATIONS:-128}"
  --width "${WIDTH:-64}" --blocks "${BLOCKS:-6}"
)
if [[ -n ${TINY:-} ]]; then
  flags+=(--tiny)
fi
export PYTHONUNBUFFERED=1

# measure PROGRAM SECONDS [FLAG ...]
measure() {
  local program=$1 seconds=$2
  shift 2
  rm -f "$OUT/$program.json"
  timeout "$seconds" "$PYTHON" -m "benchmarks.$program" \
    "${flags[@]}" --json "$OUT/$program.json" "$@" && return
  echo "benchmarks.$program failed, or ran out of its $seconds seconds" >&2
  code=1
}

mkdir -p "$OUT"
code=0
repeats=(--repeats "${REPEATS:-3}")
if [[ -n ${GAMES:-} ]]; then
  measure envs 340 "${repeats[@]}" --batch "${BATCH:-1024}"
  exit "$code"
fi
measure check 60
((code == 0)) || exit "$code"
measure search 120 "${repeats[@]}"
measure overhead 90 "${repeats[@]}" "${sizes[@]}"
measure cost 80
exit "$code"
