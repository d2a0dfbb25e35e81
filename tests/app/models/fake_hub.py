"""A server on this machine that answers like huggingface.co, and misbehaves on request."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHUNK = 1 << 16


@dataclass
class FakeHub:
    """One repository behind an HTTP server.

    Attributes:
        drop_after: bytes of a body after which the connection breaks, one a request, then no more.
        stall_after: bytes of a body after which the server goes silent, None for never.
        redirect_to: the address of another server that has the files, empty for none.
        ignores_range: whether `Range` is answered with the whole file.
        refusals: (status, X-Error-Code) of the next answers, by the beginning of the path.
        ranges: the `Range` headers of all file requests, in order; None where there was none.
        tokens: the `Authorization` headers of all requests.
    """

    url: str = ""
    repo: str = "org/tiny"
    files: dict[str, bytes] = field(default_factory=dict)
    announced: dict[str, bytes] = field(default_factory=dict)
    commit: str = COMMIT
    drop_after: list[int] = field(default_factory=list)
    stall_after: int | None = None
    redirect_to: str = ""
    ignores_range: bool = False
    refusals: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    ranges: list[tuple[str, str | None]] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    stalled: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def listing(self) -> dict[str, Any]:
        """What the API says of the repository."""
        return {
            "id": self.repo,
            "sha": self.commit,
            "siblings": [
                self._sibling(name, self.announced.get(name, self.files[name])) for name in self.files
            ],
        }

    def _sibling(self, name: str, content: bytes) -> dict[str, Any]:
        blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
        sibling: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": blob}
        if name.endswith((".safetensors", ".gguf")):
            digest = hashlib.sha256(content).hexdigest()
            sibling["lfs"] = {"size": len(content), "sha256": digest, "pointerSize": 134}
        return sibling


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        hub, path = self.hub, unquote(urlsplit(self.path).path)
        hub.tokens.append(self.headers.get("Authorization"))
        for prefix, refusals in hub.refusals.items():
            if path.startswith(prefix) and refusals:
                self._refuse(*refusals.pop(0))
                return
        if path.startswith(f"/api/models/{hub.repo}/revision/"):
            if not path.endswith(("/main", "/v1")):
                self._refuse(404, "RevisionNotFound")
                return
            self._send(200, json.dumps(hub.listing()).encode(), {"Content-Type": "application/json"})
        elif hub.redirect_to:
            self._send(302, b"", {"Location": hub.redirect_to + path})
        elif path.startswith(f"/{hub.repo}/resolve/{hub.commit}/"):
            self._send_file(path.removeprefix(f"/{hub.repo}/resolve/{hub.commit}/"))
        elif path.startswith("/api/models/"):
            self._refuse(401, "RepoNotFound")
        else:
            self._refuse(404, "EntryNotFound")

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, b"{}", {"X-Error-Code": code} if code else {})

    def _send_file(self, name: str) -> None:
        content = self.hub.files[name]
        range_header = self.headers.get("Range")
        self.hub.ranges.append((name, range_header))
        headers = {"ETag": '"etag"', "X-Repo-Commit": self.hub.commit}
        if range_header and not self.hub.ignores_range:
            start = int(range_header.removeprefix("bytes=").removesuffix("-"))
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self._send(206, content[start:], headers)
        else:
            self._send(200, content, headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        is_file = "ETag" in headers
        limit = self.hub.drop_after.pop(0) if is_file and self.hub.drop_after else len(body)
        if is_file and self.hub.stall_after is not None:
            limit = min(limit, self.hub.stall_after)
        for start in range(0, min(limit, len(body)), CHUNK):
            self.wfile.write(body[start : min(start + CHUNK, limit)])
        self.wfile.flush()
        if limit < len(body):
            self.close_connection = True
            if self.hub.stall_after is not None:
                self.hub.stalled.set()
                self.hub.released.wait()

    def handle(self) -> None:
        """Serve a connection; a client that hangs up is no failure."""
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """Run the server for a while."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
