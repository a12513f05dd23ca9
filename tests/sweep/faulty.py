"""An object store on a bad night: a proxy that resets connections, cuts answers, says "slow down", and is slow."""

from __future__ import annotations

import http.client
import random
import socket
import struct
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SLOW_DOWN = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'


class Faults:
    """What happens to requests: `rates` is kind -> share of requests; `cursed` paths are never answered whole."""

    def __init__(self, rates: dict[str, float], seed: int = 1, cursed: str = "") -> None:
        self.rates = rates
        self.cursed = cursed
        self.done: Counter[str] = Counter()
        self._rng = random.Random(seed)
        self._lock = threading.Lock()

    def draw(self, method: str, path: str) -> str:
        """The kind of fault of a request, or `none`."""
        with self._lock:
            kind = "none"
            if self.cursed and self.cursed in path:
                kind = "cut" if method == "GET" else "none"
            else:
                at = self._rng.random()
                for name, rate in self.rates.items():
                    at -= rate
                    if at < 0:
                        kind = name
                        break
            self.done[kind] += 1
            return kind


@contextmanager
def proxy(server: str, faults: Faults) -> Iterator[str]:
    """The address of a proxy before an object store."""
    target = urllib.parse.urlsplit(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def _body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data

        def _any(self) -> None:
            if self.headers.get("Expect", "").lower() == "100-continue":
                self.send_response_only(100)
                self.end_headers()
            body = self._body()
            kind = faults.draw(self.command, self.path)
            if kind == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            if kind == "busy":
                self._answer(503, [("Content-Type", "application/xml")], SLOW_DOWN)
                return
            if kind == "slow":
                time.sleep(0.5)
            there = http.client.HTTPConnection(target.hostname or "", target.port, timeout=30)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in ("transfer-encoding", "expect", "connection")}  # fmt: skip
            there.request(self.command, self.path, body, {**headers, "Content-Length": str(len(body))})
            answer = there.getresponse()
            data = answer.read()
            there.close()
            cut = len(data) // 2 if kind == "cut" and len(data) > 1 else None
            # the answer to a request that was carried out is lost, too
            self._answer(answer.status, answer.getheaders(), data, cut)

        def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes, cut: int | None = None) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            length = {name.lower(): value for name, value in headers}.get("content-length")
            self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data if cut is None else data[:cut])
            if cut is not None:
                self.close_connection = True

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _any  # noqa: N815

    held = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    held.daemon_threads = True
    threading.Thread(target=held.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{held.server_address[1]}"
    finally:
        held.shutdown()
        held.server_close()
