"""Whether an Avro container file is whole, and what its blocks hold.

PyIceberg takes the end of a file for the end of its rows: of a manifest that was cut it reads fewer, and says nothing.
A container is a header (magic, metadata, a marker), then blocks: a count, a length, so many bytes, and the marker again.
"""

from __future__ import annotations

import zlib

_MAGIC = b"Obj\x01"
_MARKER = 16


def check_whole(content: bytes) -> None:
    """Refuse a file that ends early with EOFError, one of another form with ValueError."""
    if not content.startswith(_MAGIC[: len(content)]):
        raise ValueError("it does not begin as an Avro file")
    at = len(_MAGIC)
    while True:
        count, at = _number(content, at)
        if count == 0:
            break
        if count < 0:
            _, at = _number(content, at)
        for _ in range(2 * abs(count)):  # a key and a value each
            at = _skipped(content, *_number(content, at))
    marker = content[at : at + _MARKER]
    at = _skipped(content, _MARKER, at)
    while at < len(content):
        _, at = _number(content, at)
        at = _skipped(content, *_number(content, at))
        if content[at : at + _MARKER] != marker[: len(content) - at]:
            raise ValueError("a block does not end where it says")
        at = _skipped(content, _MARKER, at)


def unpacked(content: bytes) -> bytes:
    """A container's header and the bytes of its blocks, as they were before they were packed; ValueError if that is unknown."""
    check_whole(content)
    at, codec = len(_MAGIC), b"null"
    while True:
        count, at = _number(content, at)
        if count == 0:
            break
        if count < 0:
            _, at = _number(content, at)
        for _ in range(abs(count)):
            key, at = _text(content, at)
            value, at = _text(content, at)
            codec = value if key == b"avro.codec" else codec
    if codec not in (b"null", b"deflate"):
        raise ValueError(f"it is packed by {codec.decode(errors='replace')}")
    at += _MARKER
    found = [content[:at]]
    while at < len(content):
        _, at = _number(content, at)
        block, at = _text(content, at)
        found.append(zlib.decompress(block, wbits=-15) if codec == b"deflate" else block)
        at += _MARKER
    return b"".join(found)


def _text(content: bytes, at: int) -> tuple[bytes, int]:
    """The bytes at a position, whose length stands before them, and where they end."""
    length, at = _number(content, at)
    return content[at : at + length], at + length


def _number(content: bytes, at: int) -> tuple[int, int]:
    """Avro's zigzag number at a position, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(content):
            raise EOFError
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def _skipped(content: bytes, length: int, at: int) -> int:
    if length < 0:
        raise ValueError("a length is negative")
    if at + length > len(content):
        raise EOFError
    return at + length
