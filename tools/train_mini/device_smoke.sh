#!/bin/sh
# First look at a GPU machine without network: correctness, tokens/s, profile, a short training. Under 8 minutes.
# Usage, from anywhere: device_smoke.sh [TRAIN_SECONDS]. Results on stdout; profiles also in $OUT if that is set.
cd "$(dirname "$0")/.." || exit 1
export PYTHONUNBUFFERED=1 TORCHINDUCTOR_COMPILE_THREADS="${TORCHINDUCTOR_COMPILE_THREADS:-12}"
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
TRITON_INTERPRET=0 timeout 120 python3 -m pytest -q ../tests/train_mini/kernels_test.py 2>&1 | tail -15
exec timeout 470 python3 -m train_mini.smoke --config ../models/mini --train-seconds "${1:-100}"
