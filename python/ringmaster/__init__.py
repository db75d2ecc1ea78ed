"""Ringmaster's Python side. `python -m ringmaster.worker` is started by actors to step Python worlds."""
