"""Bulk work on a Spark cluster: analysis, neighbours and annotation.

A job is a list of tasks. Each task writes one file or folder into a workspace that all
machines share, under a name that says what it was computed from, and does so atomically.
Spark decides where tasks run and runs lost ones again. What is there is finished:
a job that was interrupted continues with the tasks whose output is missing.
"""
