"""Experiments as data: grids of methods and settings, a runner that caches, and reports."""
