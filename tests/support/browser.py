"""A headless Chromium, spoken to over a pipe by its DevTools protocol: what a page shows, and what it complains of."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE_S = 120


def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.of, to_write = os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_read, to_write)]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]}', "browser", chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--no-first-run", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=theirs, start_new_session=True)
        for fd in (to_read, to_write, *theirs):
            os.close(fd)
        self.buffer, self.number, self.complaints = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    session = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(30)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.of)
        shutil.rmtree(self.profile, ignore_errors=True)

    def message(self):
        end = time.monotonic() + PATIENCE_S
        while b"\0" not in self.buffer:
            assert select.select([self.of], [], [], max(0, end - time.monotonic()))[0], "the browser does not answer"
            data = os.read(self.of, 1 << 20)
            assert data, "the browser ended"
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def note(self, message):
        method, of = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(of["exceptionDetails"])[:400])
        elif method == "Runtime.consoleAPICalled" and of["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(of["args"])[:400])
        elif method == "Log.entryAdded" and of["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{of['entry']['text']} {of['entry'].get('url')}")
        elif method == "Network.requestWillBeSent":
            self.asked.add(of["request"]["url"])

    asked = set()

    def call(self, method, **of):
        self.number += 1
        request = {"id": self.number, "method": method, "params": of}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]
            self.note(message)

    def value(self, expression):
        """Of JavaScript; a promise is waited for."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def until(self, expression):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                value = self.value(expression)
            except AssertionError:  # between two pages
                value = None
            if value or time.monotonic() > end:
                assert value, f"{expression}: did not come about; {self.complaints}"
                return value
            time.sleep(0.05)

    def go(self, url):
        self.call("Page.navigate", url=url)

    def look(self, width, height, dark, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
