"""The HTTP service: Annif's API, labelkin's own, and what running them takes."""
