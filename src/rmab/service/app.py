"""The application: routes, guards and shared objects."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse

import rmab
from rmab.live.store import Store
from rmab.service import machine, pages, problems, reading, schemas, writing
from rmab.service.accounts import Account
from rmab.service.auth import Authenticator, find_caller
from rmab.service.demo import Demo, router as demo_router
from rmab.service.guards import Limits, Surroundings
from rmab.service.machine import Machines
from rmab.service.metrics import Metrics
from rmab.service.pages.frame import Languages
from rmab.service.pages.starting import Drafts
from rmab.service.problems import Problem
from rmab.service.settings import Settings
from rmab.service.shared import Shared

PREFIX = "/api/v1"
ABOUT = """Live programmes over HTTP: lists, reports, corrections, evidence. Send `Authorization: Bearer TOKEN`. Errors are
`application/problem+json` with a stable `code`. `Idempotency-Key` makes a request safe to repeat, and `If-Match` rejects one
that is based on an outdated state."""
FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.ProblemOut, "description": what, "content": {problems.MEDIA_TYPE: {}}}
    for status, what in {
        400: "The request cannot be read.",
        401: "No token, or an invalid one.",
        403: "The role does not allow this.",
        404: "Not found.",
        409: "It contradicts the journal.",
        412: "It was changed meanwhile.",
        413: "Too large.",
        415: "The media type is not accepted.",
        422: "The body is not valid.",
        429: "Too many wrong tokens.",
        503: "The database cannot be reached.",
    }.items()
}


def create_app(store: Store, settings: Settings | None = None, demo: Demo | None = None) -> FastAPI:
    """Return the service of a store, as an ASGI application.

    Parameters
    ----------
    store : Store
        From `rmab.live.open`; the caller closes it.
    settings : Settings, optional
        Limits and times.
    demo : Demo, optional
        A simulated programme in the store; the page then has a button that plays its next week.

    Examples
    --------
    >>> import tempfile, rmab
    >>> from rmab.service import create_app
    >>> with tempfile.TemporaryDirectory() as folder, rmab.live.open(f"{folder}/p.db") as store:
    ...     create_app(store).title
    'rmab'
    """
    settings, metrics = settings or Settings(), Metrics()

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        yield
        app.state.machines.close()

    app = FastAPI(
        title="rmab",
        version=rmab.__version__,
        description=ABOUT,
        lifespan=running,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        openapi_url=f"{PREFIX}/openapi.json",
        middleware=[Middleware(Surroundings, metrics=metrics), Middleware(Limits, settings=settings), Middleware(Languages)],
    )
    app.state.settings, app.state.metrics = settings, metrics
    app.state.shared, app.state.machines = Shared(store), Machines(settings.lifetime)
    app.state.drafts = Drafts()
    app.state.auth = Authenticator(store.engine, settings)
    problems.install(app)
    for module in (reading, writing, machine):
        app.include_router(module.router, prefix=PREFIX, responses=FAILURES)
    pages.install(app)
    if demo is not None:
        app.state.demo = demo
        app.include_router(demo_router)
    _add_probes(app)
    return app


def _add_probes(app: FastAPI) -> None:
    """Add endpoints for monitoring: liveness, readiness (the database answers), and metrics."""

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    @app.get("/readyz", include_in_schema=False)
    async def readyz(request: Request) -> PlainTextResponse:
        try:
            await run_in_threadpool(lambda: request.app.state.shared.store.programmes)
        except rmab.errors.StoreError as error:
            raise Problem(503, "not-ready", "the database cannot be reached") from error
        return PlainTextResponse("ready\n")

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request, _account: Annotated[Account, Depends(find_caller)]) -> PlainTextResponse:
        return PlainTextResponse(request.app.state.metrics.to_text(), media_type="text/plain; version=0.0.4")
