"""The pages for people: this week's list, reports, evidence, people, the journal, the budget, and new programmes."""

from __future__ import annotations

from fastapi import FastAPI, Request
from starlette.responses import Response

from rmab.errors import RmabError
from rmab.service.pages import knowing, lists, people, reports, signing, starting
from rmab.service.pages.frame import SignInError, go, render, say
from rmab.service.problems import Problem, answer, describe, problem, status_of

MODULES = (signing, starting, lists, reports, people, knowing)


def install(app: FastAPI) -> None:
    """Add the pages to an app; errors of pages are pages, those of the API stay problem+json."""
    for module in MODULES:
        app.include_router(module.router)

    @app.exception_handler(SignInError)
    async def signed_out(request: Request, _error: SignInError) -> Response:
        where = request.url.path if request.method == "GET" else ""
        if request.method == "GET" and "hx-request" not in request.headers:
            return go("/sign-in", next=where)
        return render(request, "sign_in.html", None, 401, next=where or "/", error=say("sign.ended"))

    @app.exception_handler(Problem)
    async def declined(request: Request, error: Problem) -> Response:
        if _is_page(request):
            return render(request, "problem.html", None, error.status_code, detail=error.detail)
        return answer(problem(error.status_code, error.code, error.detail), error.headers)

    @app.exception_handler(RmabError)
    async def refused(request: Request, error: RmabError) -> Response:
        if _is_page(request):
            return render(request, "problem.html", None, status_of(error), detail=str(error))
        return answer(describe(error))


def _is_page(request: Request) -> bool:
    return request.url.path == "/" or request.url.path.startswith(("/p/", "/sign-", "/new"))
