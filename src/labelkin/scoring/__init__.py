"""From neighbours to ranked labels."""
