"""What processes have: memory, descriptors, threads, shared objects. For the soaks."""
import os


def shared(pid):
    """Bytes of shared objects that it has mapped or open, each once."""
    sizes = {}
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            if "/memfd:" in line:
                span, _, offset, _, inode, *_ = line.split()
                begin, end = (int(x, 16) for x in span.split("-"))
                sizes[int(inode)] = max(sizes.get(int(inode), 0), int(offset, 16) + end - begin)
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            if os.readlink(path).startswith("/memfd:"):
                status = os.stat(path)
                sizes[status.st_ino] = max(sizes.get(status.st_ino, 0), status.st_size)
        except FileNotFoundError:
            continue  # closed since it was listed
    return sum(sizes.values())


def children(pid):
    """(name, pid) of each."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/comm", encoding="utf-8") as comm:
                    yield comm.read().strip(), int(child)
    except OSError:
        return


def measured(pid):
    words = {}
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        for line in file:
            key, _, rest = line.partition(":")
            words[key] = rest.split()
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        times = file.read().rpartition(")")[2].split()
    return {"pid": pid, "resident_kib": int(words["VmRSS"][0]), "private_kib": int(words["RssAnon"][0]),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd")), "threads": int(words["Threads"][0]),
            "shared_bytes": shared(pid),
            "processor_s": (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")}


def left_of(mark):
    """Processes, but for this one, in whose environment `mark` stands."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return [p for p in found if p != os.getpid()]
