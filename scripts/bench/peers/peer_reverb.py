"""dm-reverb: items of 4 KiB into a table and uniformly drawn out of it, server and client in one process.
Inserts and samples are measured one after the other, each the best of the library's ways."""
import os
import time

import common

args = common.arguments(["ring"])
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import reverb  # noqa: E402
import tensorflow as tf  # noqa: E402

ITEM = np.arange(1024, dtype=np.float32)  # 4 KiB
CAPACITY = 20_000


def table(name):
    return reverb.Table(name=name, sampler=reverb.selectors.Uniform(), remover=reverb.selectors.Fifo(),
                        max_size=CAPACITY, rate_limiter=reverb.rate_limiters.MinSize(1),
                        signature={"x": tf.TensorSpec([1, 1024], tf.float32)})


def timed(seconds, chunk):
    """chunk(): how many it did. Items a second."""
    chunk()
    began, done = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds:
        done += chunk()
    return done / spent


server = reverb.Server([table("t")])
client = reverb.Client(f"localhost:{server.port}")
share = args.seconds / 4
inserts, samples = {}, {}

with client.trajectory_writer(num_keep_alive_refs=1) as writer:
    def write(count=512):
        for _ in range(count):
            writer.append({"x": ITEM})
            writer.create_item("t", 1.0, {"x": writer.history["x"][-1:]})
        writer.flush(block_until_num_items=64)
        return count
    inserts["trajectory writer"] = timed(share, write)

with client.writer(max_sequence_length=1) as plain:
    def put(count=512):
        for _ in range(count):
            plain.append({"x": ITEM})
            plain.create_item("t", 1, 1.0)
        plain.flush()
        return count
    inserts["writer"] = timed(share, put)

samples["client"] = timed(share, lambda: sum(1 for _ in client.sample("t", 512, emit_timesteps=False)))
dataset = reverb.TrajectoryDataset.from_table_signature(f"localhost:{server.port}", "t",
                                                        max_in_flight_samples_per_worker=256)
batches = iter(dataset.batch(64))


def read():
    next(batches)
    return 64


samples["dataset, batches of 64"] = timed(share, read)
common.emit("dm-reverb", ["dm-reverb", "tensorflow", "numpy"], args.task,
            inserts_per_s=max(inserts.values()), samples_per_s=max(samples.values()),
            setting=f"{max(inserts, key=inserts.get)}; {max(samples, key=samples.get)}",
            all={"inserts": inserts, "samples": samples})
os._exit(0)  # its threads would wait for each other
