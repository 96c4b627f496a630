"""A socket that listens."""

from __future__ import annotations

import errno
import socket

from trace_store.errors import ErrorCode, InvalidInputError, StateError

BACKLOG = 128


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address of this machine; port 0 is a free one.

    Raises:
        InvalidInputError: the host is not an address of this machine.
        StateError: the port is in use or reserved, code `port-in-use`.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise InvalidInputError(f"not an address: {host[:80]!r}", argument="host") from error
    found = socket.socket(family, kind, protocol)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(address)
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        why = {errno.EADDRINUSE: "in use", errno.EACCES: "reserved"}.get(error.errno or 0)
        if why is None:
            raise InvalidInputError(f"cannot listen on {host[:80]!r}", argument="host") from error
        raise StateError(f"port {port} is {why}", code=ErrorCode.PORT_IN_USE, port=port) from error
    return found
