"""Generators: files that make rollouts of a data set for a run, and hooks that judge and shape its groups."""
