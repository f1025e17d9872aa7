"""Downloads of files, with a progress bar; refused where the connection ended early."""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request

TIMEOUT = 30.0  # seconds without a byte


def receive(url: str, part: str, progress: bool | None = None) -> None:
    """Make one request, for what follows the end of the file `part` if the server can do that, and append it.

    Args:
        progress: whether a bar is shown on stderr; None for where that is a terminal.

    Raises:
        urllib.error.URLError: nothing is there. OSError: the connection ended early, or the disk.
    """
    from tqdm import tqdm

    start = os.path.getsize(part) if os.path.exists(part) else 0
    headers = {"User-Agent": "tritensor", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and start:  # there is nothing after `start`: the checksum says whether it is whole
            return
        raise
    with response:
        goes_on = response.status == 206
        if goes_on and not re.match(rf"bytes {start}-", response.headers.get("Content-Range", "")):
            raise OSError(f"{url} sent another part of the file than the one that was asked for")
        start = start if goes_on else 0
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() and len(length) < 19 else None
        name, quiet = os.path.basename(part).removesuffix(".part"), None if progress is None else not progress
        bar = tqdm(total=total, initial=start, unit="B", unit_scale=True, desc=name, disable=quiet)
        with open(part, "ab" if goes_on else "wb") as stream, bar:
            while chunk := response.read(1 << 16):
                stream.write(chunk)
                bar.update(len(chunk))
    if total is not None and os.path.getsize(part) < total:
        raise OSError(f"the connection to {url} ended after {os.path.getsize(part)} of {total} bytes")
