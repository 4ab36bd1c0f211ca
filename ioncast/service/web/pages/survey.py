"""The page of the survey: the I/O of all jobs in the site's store."""

from __future__ import annotations

from flask import Response, request

from ioncast.service.context import service
from ioncast.service.web.http.access import limit_client
from ioncast.service.web.pages.frame import page, pages
from ioncast.service.web.site_store import ChosenJobs


@pages.get("/survey")
def survey() -> Response:
    """Show the survey of the jobs of a system in some months."""
    limit_client(service(), request)
    store = service().store
    if store.folder is None:
        return page("store_survey.html")
    asked = request.args
    names = ("system", "from", "to")
    chosen = ChosenJobs(*(asked.get(name) or None for name in names))
    return page("store_survey.html", found=store.survey(chosen), chosen=chosen)
