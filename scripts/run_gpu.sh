#!/bin/bash
# The one script of the GPU bundle: unpacks the wheel beside it and runs what the arguments ask for.
#
#   ./run_gpu.sh OUT                              everything: tests, generator, blocks, schedules, gradients, bench, simt, streams, sanitizer, accuracy
#   ./run_gpu.sh OUT tests generator=4000 bench   some parts
#   ./run_gpu.sh OUT bench --minutes bench=3      with a limit of its own
#
# Needs python3 (or $PYTHON) with numpy; pytest is taken from the bundle where it is not installed. No network, no pip.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
[ $# -ge 1 ] || { sed -n 2,8p "$0"; exit 2; }

site=$here/site
if [ ! -d "$site/octants" ]; then
  "$python" -m zipfile -e "$here"/octants-*.whl "$site"
fi
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
"$python" -c 'import pytest' 2>/dev/null || export PYTHONPATH=$PYTHONPATH:$here/vendor
for wheel in "$here"/quadrants-*.whl; do
  [ -e "$wheel" ] || continue
  [ -d "$here/peer/quadrants" ] || "$python" -m zipfile -e "$wheel" "$here/peer"
done
for wheel in "$here"/warp_lang-*.whl; do
  [ -e "$wheel" ] || continue
  [ -d "$here/warp/warp" ] || "$python" -m zipfile -e "$wheel" "$here/warp"
done
# Unpacked here, or already in the bundle.
if [ -d "$here/peer/quadrants" ]; then export PEER=$here/peer; fi
if [ -d "$here/warp/warp" ]; then export WARP=$here/warp; fi
exec "$python" "$here/scripts/run_gpu.py" "$@"
