"""Every peer of labelkin on the same data, split and machine.

    python -m benchmarks.peers                  # all that is missing, then results/peers.md
    python -m benchmarks.peers omikuji          # one row: continued, or repeated if it is complete

A peer is one module and one row of `registry.PEERS`. It runs in an environment of its own, in
processes whose CPU time and memory `meter` reads from outside. The modules of feature peers, with
`worker`, `features`, `label_sets` and `data_folder`, are imported in those environments: at module
level they need NumPy only.
"""
