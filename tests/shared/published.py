"""An OAuth issuer that does nothing but publish keys."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["publishing"]


@contextmanager
def publishing(keys: Sequence[Mapping[str, Any]], fetched: list[str] | None = None) -> Iterator[str]:
    """The URL of an issuer that publishes `keys`; the paths that are fetched from it go into `fetched`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if fetched is not None:
                fetched.append(self.path)
            found = {"keys": keys} if self.path == "/jwks" else {"issuer": url, "jwks_uri": f"{url}/jwks"}
            body = json.dumps(found).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield url
        finally:
            server.shutdown()
            thread.join()
