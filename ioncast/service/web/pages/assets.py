"""The files that pages load: the style sheet and scripts."""

from __future__ import annotations

import hashlib
from functools import cache
from io import BytesIO

from flask import Blueprint, Response, abort, request, send_file, url_for

from ioncast.show.rendering import STATIC
from ioncast_base.pages.rendering import STYLE

assets = Blueprint("assets", __name__)

_YEAR_S = 365 * 24 * 3600
_FILES = {
    "style.css": STYLE,
    **{name: STATIC / name for name in ("tabs.js", "drop.js", "zoom.js", "favicon.svg")},
}


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(_FILES[name].read_bytes()).hexdigest()[:16]


def asset_url(name: str) -> str:
    """The address of a file; it changes with the content, so browsers may keep the file."""
    return url_for("assets.asset", name=name, v=_digest(name))


@assets.get("/assets/<name>")
def asset(name: str) -> Response:
    """Answer with a file; a proxy may compress it."""
    if name not in _FILES:
        abort(404)
    is_current = request.args.get("v") == _digest(name)
    # A file that is not read to its end would stay open.
    content = BytesIO(_FILES[name].read_bytes())
    response = send_file(
        content,
        download_name=name,
        etag=_digest(name),
        max_age=_YEAR_S if is_current else None,
    )
    response.cache_control.immutable = is_current
    return response
