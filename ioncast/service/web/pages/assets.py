"""The files that pages load: the style sheet and scripts."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache

from flask import Blueprint, Response, abort, request, url_for

from ioncast.show.rendering import STATIC
from ioncast_base.pages.rendering import STYLE

assets = Blueprint("assets", __name__)

_FOREVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"


_FILES = {
    "style.css": (STYLE, "text/css"),
    **{name: (STATIC / name, "text/javascript") for name in ("tabs.js", "drop.js", "zoom.js")},
    "favicon.svg": (STATIC / "favicon.svg", "image/svg+xml"),
}


@dataclass(frozen=True)
class _Asset:
    """A compressed file."""

    zipped: bytes
    digest: str
    media_type: str


@cache
def _asset(name: str) -> _Asset:
    place, media_type = _FILES[name]
    content = place.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:16]
    return _Asset(gzip.compress(content, 6, mtime=0), digest, media_type)


def asset_url(name: str) -> str:
    """The address of a file; it changes with the content, so browsers may keep the file."""
    return url_for("assets.asset", name=name, v=_asset(name).digest)


@assets.get("/assets/<name>")
def asset(name: str) -> Response:
    """Answer with a file, compressed if the browser accepts that."""
    if name not in _FILES:
        abort(404)
    found = _asset(name)
    zipped = request.accept_encodings.quality("gzip") > 0
    content = found.zipped if zipped else gzip.decompress(found.zipped)
    response = Response(content, mimetype=found.media_type)
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = (
        _FOREVER if request.args.get("v") == found.digest else _ASK_AGAIN
    )
    if zipped:
        response.headers["Content-Encoding"] = "gzip"
    # The two encodings are different bytes, so each has its own tag.
    response.set_etag(f"{found.digest}-{'gzip' if zipped else 'plain'}")
    response.make_conditional(request)
    return response
