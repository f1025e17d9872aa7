"""A server on this machine in place of the internet, and small files in the formats of the data sets."""

from __future__ import annotations

import gzip
import http.server
import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np


class Server:
    """Files by path, what is done wrong for each, and the requests that came."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: dict[str, int] = {}  # the connection is closed after so many bytes, once
        self.redirects: dict[str, str] = {}
        self.lengths: dict[str, str] = {}  # said in place of the true ones
        self.ranges = True  # whether parts are sent
        self.wrong_part = False
        self.requests: list[tuple[str, str | None]] = []
        self.url = ""


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            server.requests.append((self.path, asked))
            if self.path in server.redirects:
                self.send_response(302)
                self.send_header("Location", server.redirects[self.path])
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            data = server.files.get(self.path)
            if data is None:
                self.send_error(404)
                return
            start = 0
            if asked and server.ranges:
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
                if start >= len(data):
                    self.send_error(416)
                    return
                self.send_response(206)
                said = start + 1 if server.wrong_part else start
                self.send_header("Content-Range", f"bytes {said}-{len(data) - 1}/{len(data)}")
            else:
                self.send_response(200)
            self.send_header("Content-Length", server.lengths.get(self.path, str(len(data) - start)))
            self.end_headers()
            cut = server.cut.pop(self.path, None)
            self.wfile.write(data[start:] if cut is None else data[start : start + cut])

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{running.server_address[1]}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def idx(array: Any, code: int = 8) -> bytes:
    """An array as an IDX file."""
    array = np.asarray(array)
    lengths = b"".join(length.to_bytes(4, "big") for length in array.shape)
    return bytes([0, 0, code, array.ndim]) + lengths + array.astype(array.dtype.newbyteorder(">")).tobytes()


PICTURES = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
LABELS = np.array([3, 1, 4, 1, 5], dtype=np.uint8)


def write_mnist(raw: Path, packed: bool = False, parts: tuple[str, ...] = ("train", "t10k")) -> None:
    """Five pictures in each part."""
    raw.mkdir(parents=True, exist_ok=True)
    for part in parts:
        for name, array in ((f"{part}-images-idx3-ubyte", PICTURES), (f"{part}-labels-idx1-ubyte", LABELS)):
            data = idx(array)
            (raw / (name + ".gz" if packed else name)).write_bytes(gzip.compress(data) if packed else data)


def python2_pickle(value: Any) -> bytes:
    """A pickle of protocol 2 as Python 2 wrote it: text is bytes (opcodes U and T), arrays too; the memo counts from 1
    and holds what nobody asks for."""
    return b"\x80\x02" + _python2(value) + b"."


def _python2(value: Any) -> bytes:
    if isinstance(value, str):
        value = value.encode("latin1")
    if isinstance(value, bytes):
        short = len(value) < 256
        return (b"U" + bytes([len(value)]) if short else b"T" + len(value).to_bytes(4, "little")) + value
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        if 0 <= value < 256:
            return b"K" + bytes([value])
        return (
            b"M" + value.to_bytes(2, "little")
            if 0 <= value < 65536
            else b"J" + value.to_bytes(4, "little", signed=True)
        )
    if value is None:
        return b"N"
    if isinstance(value, list):
        return b"](" + b"".join(map(_python2, value)) + b"e"
    if isinstance(value, tuple):
        return b"(" + b"".join(map(_python2, value)) + b"t"
    if isinstance(value, dict):
        return b"}q\x01(" + b"".join(_python2(k) + _python2(v) for k, v in value.items()) + b"u"
    assert isinstance(value, np.ndarray) and value.dtype == np.uint8
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + _python2((0,)) + b"U\x01b\x87R"
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R" + _python2((3, "|", None, None, None, -1, -1, 0)) + b"b"
    state = b"(K\x01" + _python2(value.shape) + dtype + b"\x89" + _python2(value.tobytes()) + b"t"
    return made + state + b"b"


class Evil:
    """Runs a command when Python's own unpickler reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")


def evil_pickle(path: Path) -> bytes:
    return pickle.dumps({"data": Evil(path), "labels": []}, protocol=2)
