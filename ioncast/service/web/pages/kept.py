"""The pages of kept results: keep a result, show it, delete it."""

from __future__ import annotations

from typing import cast

from flask import Response, redirect, request, url_for

from ioncast.service.context import service
from ioncast.service.store.kept_results import MOST_DOCUMENT_BYTES
from ioncast.service.web.http.access import limit_client, reject_other_origins
from ioncast.service.web.pages.frame import page, pages
from ioncast.service.web.results import keeping
from ioncast.service.web.results.result import UploadResult
from ioncast.service.web.sandbox.insight_documents import with_advice
from ioncast.show.run import RunShown, run_shown

# Base64 makes a document longer by a third even if it cannot be compressed.
_MOST_FORM_BYTES = 2 * MOST_DOCUMENT_BYTES


@pages.post("/kept")
def keep() -> Response:
    """Store the result in the form, and lead to its address."""
    reject_other_origins(request)
    limit_client(service(), request)
    most_bytes = min(request.max_content_length or _MOST_FORM_BYTES, _MOST_FORM_BYTES)
    request.max_content_length = request.max_form_memory_size = most_bytes
    secret = keeping.keep(request.form.get("sealed", ""))
    return cast("Response", redirect(url_for("pages.kept", secret=secret), 303))


@pages.get("/kept/<secret>")
def kept(secret: str) -> Response:
    """Show a kept result as its upload was answered."""
    limit_client(service(), request)
    found = keeping.kept(secret)
    return page(
        "uploaded_run.html", result=found.result, shown=result_shown(found.result), kept=found
    )


@pages.post("/kept/<secret>/delete")
def delete_kept(secret: str) -> Response:
    """Delete a kept result."""
    reject_other_origins(request)
    limit_client(service(), request)
    keeping.forget(secret)
    return page("kept_deleted.html")


def result_shown(result: UploadResult) -> RunShown:
    """Arrange the result of an upload."""
    run = None if isinstance(result.prediction, str) else result.prediction["earlier_run"]
    measured = {run["io_nodes"]: [run["bandwidth_mib_s"]]} if run else {}
    insights = result.insights
    if not isinstance(insights, str):
        insights = {**insights, "checks": with_advice(insights["checks"])}
    return run_shown(
        *(result.prediction, result.advice, insights, result.phases),
        *(measured, result.asked["ran_with"]),
    )
