"""TCP ports on which workers meet."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a TCP port that no program uses now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def address(host: str, port: int) -> str:
    """Return a host and a port as TensorFlow takes them. An address of IPv6 gets brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of all interfaces, by IPv4 and IPv6 where the system has both.

    Raises:
        OSError: another program uses the port.
    """
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=64, dualstack_ipv6=True)
    return socket.create_server(("", port), backlog=64)


def keep_alive(connection: socket.socket) -> None:
    """Let the system end a connection after half a minute if its other end has vanished."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
