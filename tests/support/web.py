"""ringmaster-web under test: started beside a run's home, asked by hand, and ended."""
import http.client
import os
import re
import socket
import subprocess
import sys

from runs import BUILD, PATIENCE_S, Home

PROGRAM = f"{BUILD}/bin/ringmaster-web"


class Web:
    """With a token of its own and no experiment but those of its folder, which has a folder for each."""

    def __init__(self, folder, *options, unix=False, **environment):
        self.folder, self.path = folder, f"{folder}/web.sock"
        self.address = "::1" if "::1" in options else "127.0.0.1"
        self.token_file = f"{folder}/token"
        where = ["--socket", self.path] if unix else ["--port", "0", "--token-file", self.token_file]
        self.process = subprocess.Popen([PROGRAM, *where, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, "RINGMASTER_RUNTIME_DIR": folder, **environment})
        said = self.process.stdout.readline()
        self.port = int((re.search(r":(\d+)/", said) or [0, 0])[1])
        self.token = ""
        if not unix:
            with open(self.token_file, encoding="ascii") as file:
                self.token = file.read().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, self.process.returncode
        assert not os.path.exists(self.path), "its socket is left"

    def ask(self, path, method="GET", body=None, headers=None, token=True):
        """Status, headers and body. Of several headers by one name, a list of pairs."""
        link = http.client.HTTPConnection(self.address, self.port, timeout=PATIENCE_S)
        pairs = list(headers.items()) if isinstance(headers, dict) else headers or []
        if not any(name == "Host" for name, _ in pairs):
            pairs.append(("Host", f"127.0.0.1:{self.port}"))
        if token and self.token:
            pairs.append(("Authorization", f"Bearer {self.token if token is True else token}"))
        if body is not None and not any(name in ("Content-Length", "Transfer-Encoding") for name, _ in pairs):
            pairs.append(("Content-Length", str(len(body))))
        try:
            link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in pairs:
                link.putheader(name, value)
            link.endheaders(body.encode() if body is not None else None)
            answer = link.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            link.close()

    def raw(self, text=""):
        """A connection, to which this much of a request was sent."""
        link = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        link.sendall(text.encode())
        return link

    def own(self, **more):
        """Headers with which the page makes a change."""
        return {"X-Ringmaster": "1", "Origin": f"http://127.0.0.1:{self.port}", "Sec-Fetch-Site": "same-origin", **more}


def home_of(path, settings):
    """A home of the run "t" in a folder that can be a RINGMASTER_RUNTIME_DIR."""
    os.mkdir(f"{path}/t")
    os.symlink("socket", f"{path}/t/control.sock")
    return Home(f"{path}/t", "config/cartpole-dqn.json", settings)


def have_it():
    """Nothing is tested where there is no libmicrohttpd to build it."""
    if not os.path.exists(PROGRAM):
        print("1..0 # SKIP ringmaster-web is not built: libmicrohttpd is not installed")
        sys.exit(77)
