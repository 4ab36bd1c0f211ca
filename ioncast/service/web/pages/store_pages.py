"""The pages of the site's store: a survey of all jobs, and named queries with their answers."""

from __future__ import annotations

from typing import cast

from flask import Response, redirect, request, url_for

from ioncast.service.context import service
from ioncast.service.web.api.queries import ValuesOfParameters
from ioncast.service.web.http.access import limit_client
from ioncast.service.web.http.given import checked_query
from ioncast.service.web.pages.frame import page, pages, problem_of, wants_page
from ioncast.service.web.site_store import ChosenJobs
from ioncast_base.errors import InputError


@pages.get("/survey")
def survey() -> Response:
    """Show the survey of the jobs of a system in some months."""
    limit_client(service(), request)
    store = service().store
    if store.folder is None:
        return page("store_survey.html")
    names = ("system", "from", "to")
    chosen = ChosenJobs(*(request.args.get(name) or None for name in names))
    return page("store_survey.html", found=store.survey(chosen), chosen=chosen)


@pages.get("/queries")
def queries() -> Response:
    """List the named queries; without a store, show how to make one."""
    store = service().store
    if store.folder is None:
        return cast("Response", redirect(url_for("pages.survey"), 303))
    return page("queries.html", queries=store.queries.values())


@pages.get("/queries/<name>")
def query(name: str) -> Response:
    """Show the form of a query, and its answer if the address has all values that it needs."""
    limit_client(service(), request)
    store = service().store
    chosen = store.query(name)
    values = checked_query(ValuesOfParameters, request.environ).__pydantic_extra__
    # A field that was left blank has its usual value.
    given = {key: value for key, value in values.items() if value}
    if store.folder and not values and any(each.usual is None for each in chosen.parameters):
        return page("query.html", query=chosen, given=given)
    try:
        found = store.answer(name, given)
    except InputError as error:
        if not wants_page():
            raise
        problem = problem_of(error)["detail"]
        return page("query.html", error.http_status, query=chosen, given=given, problem=problem)
    numbers = {name for row in found.rows for name in row if isinstance(row[name], int | float)}
    return page("query.html", query=chosen, given=given, found=found, numbers=numbers)
