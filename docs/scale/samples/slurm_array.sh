#!/bin/bash
# A Slurm array: each task judges one shard. A task that is requeued goes on where it was.
#   sbatch --array=0-7 slurm_array.sh ./libvendor.so results
#   assay merge results/part*.jsonl -o all.jsonl
#SBATCH --job-name=assay
#SBATCH --array=0-7
#SBATCH --requeue
#SBATCH --output=assay-%A_%a.log
set -u
backend=$1 results=$2
assay=${ASSAY:-assay}
mkdir -p "$results"
part=$results/part$SLURM_ARRAY_TASK_ID.jsonl
resume=--results
if [[ $(head -c 1 "$part" 2>/dev/null) ]]; then resume=--resume; fi
# ASSAY_WORDS: further words of the command line, such as --profile full
exec "$assay" run --backend "$backend" ${ASSAY_WORDS:-} --quiet \
  --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" "$resume" "$part"
