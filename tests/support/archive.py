"""Reads archives (shm/base/archive.h), what is shared in a checkpoint among them: streams of bytes by name."""
import struct

MAGIC = b"RMARCH01"
BEGINS, DATA, END = 1, 2, 4  # kinds of blocks


def uncompressed(data, size):
    """A block of LZ4: literals and copies of what came before, in turn."""
    out, at = bytearray(), 0

    def length(nibble):
        nonlocal at
        more = nibble == 15
        while more:
            nibble += data[at]
            more = data[at] == 255
            at += 1
        return nibble

    while at < len(data):
        token = data[at]
        at += 1
        literals = length(token >> 4)
        out += data[at:at + literals]
        at += literals
        if at >= len(data):
            break
        back = data[at] | data[at + 1] << 8
        at += 2
        copied = length(token & 15) + 4
        period = bytes(out[-back:])
        out += (period * (copied // back + 1))[:copied]
    if len(out) != size:
        raise ValueError(f"a block of {size} bytes has {len(out)}")
    return bytes(out)


def streams(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:len(MAGIC)] != MAGIC:
        raise ValueError(f"{path} is no archive")
    found, name, at, kind = {}, None, len(MAGIC), None
    while kind != END:
        _, kind, raw, stored = struct.unpack_from("<QIII", data, at)
        at += struct.calcsize("<QIII")
        block = data[at:at + stored]
        at += stored
        block = block if stored == raw else uncompressed(block, raw)
        if kind == BEGINS:
            name = block.rstrip(b"\0").decode()
            found[name] = []
        elif kind == DATA:
            found[name].append(block)
    return {name: b"".join(blocks) for name, blocks in found.items()}
