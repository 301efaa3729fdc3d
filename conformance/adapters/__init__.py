"""Other people's kernels as functions that the suite judges: `assay run --backend python:adapters.FILE:NAME` (README.md)."""
