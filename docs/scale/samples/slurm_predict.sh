#!/bin/bash
# A Slurm array on nodes without GPUs: each task is a worker that predicts blocks of cases, and one more job joins what they predict. A task that
# is killed or requeued loses nothing: others take its blocks.
#   jobs=$(sbatch --parsable --array=0-15 slurm_predict.sh predicting)
#   joined=$(sbatch --parsable --dependency=afterany:$jobs --wrap "assay merge predicting -o predicted.jsonl")
#   ASSAY_WORDS="--predicted predicted.jsonl" sbatch --dependency=afterok:$joined --array=0-7 slurm_array.sh ./libvendor.so results
#SBATCH --job-name=assay-predict
#SBATCH --array=0-15
#SBATCH --requeue
#SBATCH --output=assay-predict-%A_%a.log
set -u
journal=$1
assay=${ASSAY:-assay}
# ASSAY_PREDICT_WORDS: further words of the command line, such as --profile full --stated results/part0.jsonl
exec "$assay" predict --journal "$journal" ${ASSAY_PREDICT_WORDS:-} --quiet
