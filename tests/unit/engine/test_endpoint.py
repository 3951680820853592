"""What a client sends first to a Connect server on another machine."""

from __future__ import annotations

import socket

import grpc
import pytest
from pyspark.sql.connect.client.core import DefaultChannelBuilder

from firnline.engine.server import Endpoint

CLIENT_HELLO = b"\x16\x03"
HTTP2 = b"PRI * HTTP/2.0"


@pytest.mark.parametrize(("token", "first"), [("hidden", CLIENT_HELLO), ("", HTTP2)])
def test_a_token_goes_to_no_other_machine_in_the_clear(token: str, first: bytes) -> None:
    with socket.create_server(("127.0.0.2", 0)) as server:
        server.settimeout(10)
        url = Endpoint("127.0.0.2", server.getsockname()[1], token).url  # not localhost: for a client another machine
        with DefaultChannelBuilder(url).toChannel() as channel:
            grpc.channel_ready_future(channel)
            connection, _ = server.accept()
            with connection:
                connection.settimeout(10)
                sent = connection.recv(4096)
    assert sent.startswith(first)
    assert b"hidden" not in sent


@pytest.mark.parametrize("token", ["dG9rZW4=", "a/b;c=d", "100%25", "né e"])
def test_a_client_gets_the_very_token(token: str) -> None:
    builder = DefaultChannelBuilder(Endpoint("127.0.0.1", 15002, token).url)
    assert (builder.host, builder.token) == ("localhost", token)
