"""Rows of metrics for Weights & Biases: "metrics.exec": "python3 wandb_reader.py PROJECT" (docs/trackers.md)."""
import json
import os
import sys

own = os.environ["RINGMASTER_READER"]  # the one folder that can be written
for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
    os.environ.setdefault(name, own)
import wandb  # pylint: disable=wrong-import-position

with open(os.path.join(os.environ["RINGMASTER_RUN"], "config.json"), encoding="utf-8") as file:
    config = json.load(file)
with wandb.init(project=sys.argv[1], name=config["name"], config=config, dir=own) as run:
    for line in sys.stdin:
        row = json.loads(line)
        run.log(row, step=row["steps"])
