"""Run the service: loopback unless tokens protect it, one line of log per request, and an orderly stop."""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import uvicorn

from rmab.errors import ModelError
from rmab.live.store import Store
from rmab.service.accounts import list_tokens
from rmab.service.app import create_app
from rmab.service.demo import Demo
from rmab.service.guards import log_to_stderr
from rmab.service.settings import Settings

HOST, PORT = "127.0.0.1", 8321
PATIENCE = 30  # seconds to finish running requests on a stop signal
SECRET = "RMAB_SECRET"  # environment variable: signs sessions, so that they survive a restart


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(store: Store, host: str) -> None:
    """Reject an address that others can reach if no token is required."""
    if not is_loopback(host) and not any(one.is_valid for one in list_tokens(store.engine)):
        raise ModelError(
            f"{host}: others could reach it, but the store has no valid token; create one first: "
            "rmab live token create STORE OWNER --role operator",
            code="no-tokens",
            option="host",
        )


def serve(
    store: Store, *, host: str = HOST, port: int = PORT, settings: Settings | None = None, demo: Demo | None = None
) -> None:
    """Serve a store until the process is stopped (SIGTERM, Ctrl-C); running requests are finished.

    Parameters
    ----------
    store : Store
        From `rmab.live.open`.
    host, port
        Address to listen on. Other addresses than the loopback are rejected until the store has a token.
    settings : Settings, optional
        Limits and times.
    demo : Demo, optional
        A simulated programme in the store.
    """
    check_address(store, host)
    log_to_stderr()
    _server(store, host, port, settings, demo).run()


def _server(store: Store, host: str, port: int, settings: Settings | None, demo: Demo | None = None) -> uvicorn.Server:
    found = replace(settings or Settings(), loopback=is_loopback(host))
    if os.environ.get(SECRET):
        found = replace(found, secret=os.environ[SECRET].encode())
    config = uvicorn.Config(
        create_app(store, found, demo),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
        timeout_keep_alive=30,
        proxy_headers=True,
        forwarded_allow_ips="127.0.0.1,::1",
    )
    return uvicorn.Server(config)


@contextmanager
def serving(store: Store, settings: Settings | None = None, demo: Demo | None = None) -> Iterator[str]:
    """Serve a store on a free port of this machine, in a thread; yield its address. For tests and notebooks."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind((HOST, 0))
        server = _server(store, HOST, listener.getsockname()[1], settings, demo)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="rmab service", daemon=True)
        thread.start()
        try:
            while not server.started and thread.is_alive():
                thread.join(0.005)
            yield f"http://{HOST}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
