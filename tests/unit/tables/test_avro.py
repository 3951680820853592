"""An Avro file that was cut is refused, wherever that happened, unless whole blocks are gone."""

import zlib

import pytest

from firnline.tables.avro import check_whole, unpacked

MARKER = bytes(range(16))
HEADER = b"Obj\x01" + b"\x02" + b"\x14avro.codec" + b"\x08null" + b"\x00" + MARKER
BLOCK = b"\x04" + b"\x06abc" + MARKER
FILE = HEADER + BLOCK + BLOCK


def test_a_whole_file_is_taken():
    check_whole(FILE)


@pytest.mark.parametrize("length", sorted(set(range(len(FILE))) - {len(HEADER), len(HEADER + BLOCK)}))
def test_a_file_that_was_cut_ends_early(length):
    with pytest.raises(EOFError):
        check_whole(FILE[:length])


@pytest.mark.parametrize("at", [0, 3, len(HEADER) + 1, len(FILE) - 1])
def test_a_file_of_another_form_is_refused(at):
    content = bytearray(FILE)
    content[at] ^= 0x01
    with pytest.raises(ValueError, match=r"begin|end|negative"):
        check_whole(bytes(content))


def test_blocks_are_unpacked_as_the_header_says():
    assert unpacked(FILE).endswith(MARKER + b"abcabc")
    packed = zlib.compress(b"the bounds of a column", wbits=-15)
    header = b"Obj\x01" + b"\x02" + b"\x14avro.codec" + b"\x0edeflate" + b"\x00" + MARKER
    assert unpacked(header + b"\x02" + bytes([2 * len(packed)]) + packed + MARKER).endswith(b"the bounds of a column")
    with pytest.raises(ValueError, match="zstd"):
        unpacked(HEADER.replace(b"\x08null", b"\x08zstd") + BLOCK)
