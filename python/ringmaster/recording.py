"""Recordings of runs (`record` of the configuration) as arrays, and as files for other programs.

    recording = ringmaster.Recording("runs/cartpole/latest/recording")
    stream = recording["actor-0.agent_0"]
    stream["obs"]       # (rows, lanes, ...)
    recording.export("cartpole.npz")

`python -m ringmaster.recording RECORDING FILE` exports from a shell. docs/histories.md says what the columns are.
"""
from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from typing import Any, Iterator

import numpy

from . import programs

LAST = 2 | 4  # flags of an episode's last row: terminated, truncated
TRUNCATED, DEAD = 4, 16


class Recording:
    """The streams of a recording by name: what one actor wrote for one policy, a dictionary of arrays by column. Arrays
    are files that are mapped when they are used, in a folder that lives as long as the object."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = os.fspath(folder)
        self._files = tempfile.TemporaryDirectory(prefix="ringmaster-recording-")
        done = subprocess.run([programs.find("bin", "ringctl"), "record", "export", self.folder, "--to", self._files.name],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise ValueError(re.sub("^ringctl: ", "", done.stderr.strip()))
        with open(os.path.join(self.folder, "recording.json"), encoding="utf-8") as file:
            about: dict[str, Any] = json.load(file)
        self.experiment: dict[str, Any] = about["experiment"]
        self.every: str = about["every"]
        self.about = {stream["name"]: stream for stream in about["streams"]}

    def __iter__(self) -> Iterator[str]:
        return iter(self.about)

    def __len__(self) -> int:
        return len(self.about)

    def __getitem__(self, name: str) -> dict[str, numpy.ndarray]:
        names = [column["name"] for column in self.about[name]["columns"]]
        if self.every == "step":
            names.append("row")
        return {column: _map(os.path.join(self._files.name, f"{name}.{column}.npy")) for column in names}

    def episodes(self, name: str) -> Iterator[dict[str, numpy.ndarray]]:
        """The whole episodes of a stream, lane after lane: obs (steps + 1), action, reward and flags (steps), and mask if
        there is one (steps + 1). Step t's reward is that of its action. Steps of an agent that was not in play are left
        out."""
        stream = self[name]
        first, last = stream["flags"] & 1 != 0, stream["flags"] & LAST != 0
        for lane in range(stream["flags"].shape[1]):
            starts = numpy.flatnonzero(first[:, lane])
            for start, end in zip(starts, [*starts[1:], len(first)]):
                ends = numpy.flatnonzero(last[start:end, lane])
                if not len(ends):
                    continue
                rows = numpy.arange(start, start + ends[0] + 1)
                # Whole: no row was lost, and one process wrote all.
                if stream["row"][rows[-1]] - stream["row"][start] != len(rows) - 1:
                    continue
                if stream["generation"][rows[-1]] != stream["generation"][start]:
                    continue
                rows = rows[stream["flags"][rows, lane] & DEAD == 0]
                episode = {"obs": stream["obs"][rows, lane], "action": stream["action"][rows[:-1], lane],
                           "reward": stream["reward"][rows[1:], lane], "flags": stream["flags"][rows[1:], lane]}
                if "mask" in stream:
                    episode["mask"] = stream["mask"][rows, lane]
                yield episode

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes a file: .npz with the arrays "STREAM.COLUMN", .parquet with a row for each row and lane (needs pyarrow),
        .h5 or .hdf5 with an episode to a group as Minari's data sets have them (needs h5py)."""
        path = os.fspath(path)
        ending = os.path.splitext(path)[1]
        writer = {".npz": self._npz, ".parquet": self._parquet, ".h5": self._hdf5, ".hdf5": self._hdf5}.get(ending)
        if writer is None:
            raise ValueError(f"{path} should end with .npz, .parquet, .h5 or .hdf5")
        part = f"{path}.tmp{ending}"
        try:
            writer(part)
            os.replace(part, path)
        finally:
            if os.path.exists(part):
                os.remove(part)

    def _npz(self, path: str) -> None:
        arrays: dict[str, Any] = {f"{name}.{column}": array for name in self for column, array in self[name].items()}
        numpy.savez_compressed(path, **arrays)

    def _parquet(self, path: str) -> None:
        import pyarrow
        import pyarrow.parquet
        writer = None
        for name in self:
            table = _table(pyarrow, name, self[name])
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
        if writer:
            writer.close()

    def _hdf5(self, path: str) -> None:
        import h5py
        if self.every != "step":
            raise ValueError("HDF5 has the steps of episodes: this recording has record.every \"episode\"")
        with h5py.File(path, "w") as file:
            number = steps = 0
            for name in self:
                for episode in self.episodes(name):
                    group = file.create_group(f"episode_{number}")
                    group.attrs["id"], group.attrs["total_steps"] = number, len(episode["reward"])
                    group["observations"], group["actions"] = episode["obs"], episode["action"]
                    group["rewards"] = episode["reward"]
                    group["terminations"] = episode["flags"] & 2 != 0
                    group["truncations"] = episode["flags"] & TRUNCATED != 0
                    number, steps = number + 1, steps + len(episode["reward"])
            file.attrs["total_episodes"], file.attrs["total_steps"] = number, steps


def _map(path: str) -> numpy.ndarray:
    try:
        return numpy.load(path, mmap_mode="r")
    except ValueError:  # there is nothing to map of an empty array
        return numpy.load(path)


def _table(pyarrow, name: str, stream: dict[str, numpy.ndarray]):
    """A row for each row and lane; values of a shape become lists."""
    columns: dict[str, Any] = {}
    rows, lanes = len(stream["flags"]), stream["flags"].shape[1] if stream["flags"].ndim > 1 else 1
    per_lane = stream["flags"].ndim > 1
    for column, array in stream.items():
        array = numpy.asarray(array)
        if per_lane and (array.ndim < 2 or column in ("version", "generation", "row")):
            array = numpy.repeat(array, lanes)
        flat = array.reshape(rows * lanes, -1)
        values = pyarrow.array(flat.reshape(-1))
        columns[column] = values if flat.shape[1] == 1 else pyarrow.FixedSizeListArray.from_arrays(values, flat.shape[1])
    if per_lane:
        columns["lane"] = pyarrow.array(numpy.tile(numpy.arange(lanes, dtype="uint32"), rows))
    columns["stream"] = pyarrow.array([name] * (rows * lanes)).dictionary_encode()
    return pyarrow.table(columns)


def main() -> int:
    """A recording and a file to write."""
    parser = argparse.ArgumentParser(prog="python -m ringmaster.recording", description="Exports a recording of a run.")
    parser.add_argument("recording", help="its folder")
    parser.add_argument("file", help="ends with .npz, .parquet, .h5 or .hdf5")
    given = parser.parse_args()
    try:
        Recording(given.recording).export(given.file)
    except (ImportError, OSError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
