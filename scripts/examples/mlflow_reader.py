"""Rows of metrics for MLflow: "metrics.exec": "python3 mlflow_reader.py" (docs/trackers.md)."""
import json
import os
import sys

import mlflow

mlflow.set_tracking_uri(os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{os.environ['RINGMASTER_READER']}/mlflow.db"))
with open(os.path.join(os.environ["RINGMASTER_RUN"], "config.json"), encoding="utf-8") as file:
    config = json.load(file)
mlflow.set_experiment(config["name"])
with mlflow.start_run():
    mlflow.log_params({key: json.dumps(value)[:500] for key, value in config.items()})
    for line in sys.stdin:
        row = json.loads(line)
        mlflow.log_metrics(row, step=row["steps"])
