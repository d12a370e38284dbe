#!/usr/bin/env bash
# Tests a config on a Slurm cluster.
# Usage: [GPUS=8] [GPUS_PER_NODE=8] [CPUS_PER_TASK=5] [SRUN_ARGS="..."] tools/slurm_test.sh PARTITION JOB_NAME CONFIG [options]
set -euo pipefail
if [ $# -lt 3 ]; then
    echo "usage: $0 PARTITION JOB_NAME CONFIG [options of tools/test.py]" >&2
    exit 2
fi
partition=$1
job=$2
config=$3
shift 3
gpus=${GPUS:-8}
per_node=${GPUS_PER_NODE:-$((gpus < 8 ? gpus : 8))}
# shellcheck disable=SC2086  # SRUN_ARGS holds several options
exec srun --partition="$partition" --job-name="$job" --gres="gpu:$per_node" --ntasks="$gpus" \
    --ntasks-per-node="$per_node" --cpus-per-task="${CPUS_PER_TASK:-5}" --kill-on-bad-exit=1 ${SRUN_ARGS:-} \
    "${PYTHON:-python}" -u "$(dirname "$0")/test.py" "$config" --launcher slurm "$@"
