"""Plots of a collection: what they show, apart from how it is drawn.

`frequencies`, `reliability` and `latent` compute; the service sends the same
data to its page. `drawing` needs matplotlib.
"""
