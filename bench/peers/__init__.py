"""Our device library and other projects' kernels, timed beside one another: measure.py."""
