"""A client of a daemon's control socket, for benchmarks."""
import json
import socket
import sys
import time


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self.file = self.socket.makefile("rw")
        self.file.readline()

    def ask(self, command):
        self.file.write(json.dumps({"execute": command}) + "\n")
        self.file.flush()
        return json.loads(self.file.readline())["return"]

    def close(self):
        self.file.close()
        self.socket.close()


def connect(path, daemon, every_s=0.02):
    """To a daemon that is starting; ends the program when the daemon ends, or answers nobody for 10 s."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            return Client(path)
        except OSError:
            if daemon.poll() is not None:
                sys.exit(f"ringmasterd ended with {daemon.returncode}")
            time.sleep(every_s)
    sys.exit("no control socket")
