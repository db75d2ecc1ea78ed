"""What stands beside a figure: the processor with the widest instructions that Ringmaster uses on it, and the commit."""
import pathlib
import platform
import subprocess

WIDEST = (("avx512_bf16", "AVX-512 with bf16"), ("avx512f", "AVX-512"), ("avx2", "AVX2"))


def cpu():
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    facts = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    facts = {name.strip(): value.strip() for name, value in facts.items()}
    flags = facts.get("flags", "").split()
    widest = next((words for flag, words in WIDEST if flag in flags), None)
    name = facts.get("model name", platform.machine())
    return f"{name} ({widest})" if widest else name


def commit():
    return subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True,
                          check=False).stdout.strip() or "unknown"
