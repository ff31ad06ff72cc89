"""The stream to a program's standard input and output."""

import pytest

from fairtrial.wire.transport import PipeTransport


def test_a_closed_stream_may_be_closed_again_and_neither_reads_nor_writes() -> None:
    stream = PipeTransport(["cat"])
    stream.write(b"here")
    assert stream.read() == b"here"
    stream.close()
    stream.close()
    assert stream.read() == b""
    with pytest.raises(BrokenPipeError, match="the stream was closed"):
        stream.write(b"gone")
