"""The connections to a hub, through a proxy if the environment names one."""

from __future__ import annotations

import contextlib
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bench.errors import SettingsError

if TYPE_CHECKING:
    import urllib3


def pool_of(hub: str) -> urllib3.PoolManager:
    """Return the connections to a hub, through the proxy that the environment names.

    Raises:
        SettingsError: The address of the proxy is invalid.
    """
    import urllib3

    parts = urlsplit(hub)
    if parts.hostname is None or urllib.request.proxy_bypass(parts.hostname):
        return urllib3.PoolManager()
    proxy = urllib.request.getproxies().get(parts.scheme)
    if not proxy:
        return urllib3.PoolManager()
    address = proxy if "://" in proxy else f"http://{proxy}"
    with contextlib.suppress(urllib3.exceptions.HTTPError, ValueError):
        if urlsplit(address).hostname:
            return urllib3.ProxyManager(address)
    raise SettingsError(
        f"invalid value for {parts.scheme}_proxy", "Use http://HOST:PORT, or list the hub's host in no_proxy."
    )
