"""A running experiment, over its control socket."""
import json
import mmap
import os
import socket
import struct
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

MAGIC = 0x3152454D474E4952  # of regions of shared memory (docs/shared-memory.md)


class Refused(Exception):
    """The daemon's answer to a command that it does not carry out. kind: the class of the error."""

    def __init__(self, kind: str, words: str):
        super().__init__(words)
        self.kind = kind


class Replaced(Refused):
    """The daemon has closed this connection to make room for another client."""


def socket_of(name: str) -> str:
    """Where the experiment of that name listens."""
    chosen, user = os.environ.get("RINGMASTER_RUNTIME_DIR"), os.getuid()
    if not chosen and user == 0:
        chosen = "/run/ringmaster"
    elif not chosen:
        session = os.environ.get("XDG_RUNTIME_DIR")
        chosen = f"{session}/ringmaster" if session else f"/tmp/ringmaster-{user}"
    return f"{chosen}/{name}/control.sock"


class Counters:
    """Live counters of a run, read from memory that its workers write: no process is asked. Mapped read-only; readable after
    the daemon's end, too. `policies` and `workers` are names."""

    def __init__(self, where: Dict[str, Any]):
        try:
            file = os.open(where["path"], os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            raise PermissionError(f"{where['path']}: counters are mapped by root and the daemon's own user only; "
                                  "Client.metrics() asks the daemon for them") from None
        except FileNotFoundError:
            raise FileNotFoundError(f"{where['path']} is not there: the daemon has ended, or runs in another container") from None
        try:
            if os.fstat(file).st_size != where["bytes"]:
                raise ValueError(f"{where['path']} has {os.fstat(file).st_size} bytes where {where['bytes']} are expected")
            self.memory = mmap.mmap(file, where["bytes"], mmap.MAP_SHARED, mmap.PROT_READ)
        finally:
            os.close(file)
        magic, layout_hash, _, _, version = struct.unpack_from("<QQQII", self.memory)
        found = (magic, version, f"{layout_hash:016x}")
        if found != (MAGIC, where["layout"], where["layout_hash"]):
            self.memory.close()
            raise ValueError(f"{where['path']} has layout {version} ({layout_hash:016x}) where {where['layout']} "
                             f"({where['layout_hash']}) is expected: the board belongs to another daemon")
        self.blocks = {"policies": (where["policies"], where["policy_values"]),
                       "workers": (where["workers"], where["worker_values"])}

    @property
    def policies(self) -> List[str]:
        return [block["name"] for block in self.blocks["policies"][0]]

    @property
    def workers(self) -> List[str]:
        return [block["name"] for block in self.blocks["workers"][0]]

    def read(self) -> Dict[str, Dict[str, Dict[str, float]]]:
        """All values as they are now: read()["policies"][name]["updates"], read()["workers"][name]["steps"]."""
        return {kind: {block["name"]: {value["name"]: self.value(block, value) for value in values} for block in blocks}
                for kind, (blocks, values) in self.blocks.items()}

    def value(self, block: Dict[str, Any], value: Dict[str, Any]) -> float:
        form = "<Q" if value["type"] == "u64" else "<d"
        return struct.unpack_from(form, self.memory, block["at"] + value["at"])[0]

    def close(self) -> None:
        """Unmaps them."""
        self.memory.close()


class Client:
    """Commands to a running experiment: `Client("cartpole")`, or the path of its socket. Commands are methods, with the
    arguments and replies of docs/control.md."""

    def __init__(self, name: str, timeout_s: float = 60):
        self.path, self.number = name if "/" in name else socket_of(name), 0
        self.timeout_s, self.daemon, self.socket = timeout_s, 0, socket.socket(socket.AF_UNIX)
        self.connect()

    def connect(self) -> None:
        """As soon as there is room for one more client."""
        begun = time.monotonic()
        while True:
            try:
                return self.attempt()
            except Replaced as why:
                if self.timeout_s is not None and time.monotonic() - begun >= self.timeout_s:
                    raise ConnectionError(f"{self.path}: {why}") from None
            time.sleep(0.05)

    def attempt(self) -> None:
        self.close()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(self.timeout_s)
        self.waiting: List[Dict[str, Any]] = []
        self.buffer, self.connected, self.subscribed = b"", False, False
        try:
            self.socket.connect(self.path)
        except OSError as why:
            self.socket.close()
            raise ConnectionError(f"nothing runs at {self.path}: {why.strerror or why}") from None
        daemon, _, _ = struct.unpack("3i", self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if self.daemon not in (0, daemon):
            raise ConnectionError(f"{self.path}: the daemon has ended, and another one listens there")
        self.greeting = self.line()["ringmaster"]
        if self.greeting["protocol"] != 1:
            raise ConnectionError(f"{self.path} speaks protocol {self.greeting['protocol']}, but this package speaks 1")
        self.connected, self.daemon = True, daemon

    def line(self) -> Dict[str, Any]:
        while b"\n" not in self.buffer:
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionError(f"{self.path}: the daemon has ended")
            self.buffer += more
        text, _, self.buffer = self.buffer.partition(b"\n")
        line = json.loads(text)
        if "id" not in line and line.get("error", {}).get("class") == "not-now":
            self.connected = False
            raise Replaced("not-now", line["error"]["desc"])
        return line

    def call(self, command: str, **arguments: Any) -> Dict[str, Any]:
        """Any command. Events that arrive before its reply are kept for events(). If the daemon has closed the connection to
        make room for another client, the command is sent once more over a new connection, unless there are events."""
        self.number += 1
        request = {"execute": command, "id": self.number, **({"arguments": arguments} if arguments else {})}
        if not self.connected:
            self.connect()
        try:
            return self.exchange(request)
        except Replaced:
            if self.subscribed:
                raise
        self.connect()
        return self.exchange(request)

    def exchange(self, request: Dict[str, Any]) -> Dict[str, Any]:
        try:
            self.socket.sendall(json.dumps(request).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # the daemon may have said why
        while True:
            reply = self.line()
            if "event" in reply:
                self.waiting.append(reply)
            elif "error" in reply:
                raise Refused(reply["error"]["class"], reply["error"]["desc"])
            else:
                return reply["return"]

    def status(self) -> Dict[str, Any]:
        """The whole state."""
        return self.call("status")

    def metrics(self, describe: bool = False) -> Dict[str, Any]:
        """All counters of policies and workers."""
        return self.call("metrics", describe=describe)

    def query_schema(self) -> List[Dict[str, Any]]:
        """All commands, with their arguments and replies."""
        return self.call("query-schema")["commands"]

    def trace(self, seconds: float) -> Dict[str, int]:
        """Marks of phases are written for so long. Returns `from_ns` and `until_ns`."""
        return self.call("trace", seconds=seconds)

    def counters(self) -> Counters:
        """The counters of metrics() in memory, to be read as often as wanted without asking the daemon again."""
        return Counters(self.call("counters"))

    def get(self, key: Optional[str] = None) -> Any:
        """The value of a key or group; all of the configuration."""
        return self.call("get", **({"key": key} if key else {}))["value"]

    def set(self, key: str, value: Any, keep: bool = False) -> Dict[str, Any]:
        """Changes a hot key. Returns `before` and `value`."""
        return self.call("set", key=key, value=value, keep=keep)

    def pause(self) -> Dict[str, Any]:
        """Workers sleep."""
        return self.call("pause")

    def resume(self) -> Dict[str, Any]:
        """And go on."""
        return self.call("resume")

    def checkpoint(self) -> Dict[str, Any]:
        """Asks for a checkpoint. Its `number` is that of the event that tells its end."""
        return self.call("checkpoint")

    def evaluate(self, episodes: Optional[int] = None) -> Dict[str, Any]:
        """Asks for greedy episodes."""
        return self.call("evaluate", **({"episodes": episodes} if episodes else {}))

    def policies(self) -> Dict[str, str]:
        """Writes the newest weights. Returns paths of files by policy."""
        reply = self.call("policies")
        return {name: os.path.join(reply["directory"], f"{name}.safetensors") for name in reply["versions"]}

    def stop(self) -> Dict[str, Any]:
        """Ends the run in good order."""
        return self.call("stop")

    def events(self, timeout_s: Optional[float] = None) -> Iterator[Dict[str, Any]]:
        """Events (`event`, `time`, `data`) from this call on, as they come, until the daemon ends or none has come for
        `timeout_s`. Raises ConnectionError if the daemon closes the connection to make room for another client."""
        self.call("events")
        self.subscribed = True
        return self._events(timeout_s)

    def _events(self, timeout_s: Optional[float]) -> Iterator[Dict[str, Any]]:
        before = self.socket.gettimeout()
        self.socket.settimeout(timeout_s)
        try:
            while True:
                yield self.waiting.pop(0) if self.waiting else self.line()
        except Replaced as why:
            raise ConnectionError(str(why)) from None
        except (socket.timeout, ConnectionError):
            return
        finally:
            self.socket.settimeout(before)

    def close(self) -> None:
        """Ends the connection; the experiment goes on."""
        self.socket.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def connect(path: str, alive: Callable[[], bool], timeout_s: float = 60) -> Optional[Client]:
    """A client of a daemon that is starting, as soon as it listens; None: alive() says that it has ended."""
    end = time.monotonic() + timeout_s
    while alive() and time.monotonic() < end:
        try:
            return Client(path)
        except ConnectionError:
            time.sleep(0.05)
    return None
