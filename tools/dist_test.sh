#!/usr/bin/env bash
# Tests a config on several GPUs (or CPU processes) of one machine.
# Usage: tools/dist_test.sh CONFIG GPUS [options of tools/test.py]
set -euo pipefail
if [ $# -lt 2 ]; then
    echo "usage: $0 CONFIG GPUS [options of tools/test.py]" >&2
    exit 2
fi
config=$1
gpus=$2
shift 2
exec "${PYTHON:-python}" -m torch.distributed.run --standalone --nproc_per_node="$gpus" \
    "$(dirname "$0")/test.py" "$config" --launcher pytorch "$@"
