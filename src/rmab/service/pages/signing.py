"""Sign in with a token, sign out, the list of programmes, and the files of the pages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rmab.service.access import find_programme
from rmab.service.auth import Authenticator
from rmab.service.pages.frame import STATIC, Looking, Sent, go, programme_path, render, say, set_session, static_file
from rmab.service.problems import Problem
from rmab.service.sessions import COOKIE

router = APIRouter(include_in_schema=False)
LONGEST = 200  # characters of a token


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Return a file of the pages; its address changes with its content, so that browsers can cache it."""
    if name not in STATIC:
        raise Problem(404, "not-found", "no such file")
    content, kind, digest = static_file(name)
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "ETag": f'"{digest}"'}
    return Response(content, headers=headers, media_type=kind)


@router.get("/sign-in")
def sign_in(request: Request, next: Annotated[str, Query(max_length=500)] = "/") -> Response:
    """Show the form for a token."""
    return render(request, "sign_in.html", None, next=_inside(next), error="")


@router.post("/sign-in")
async def begin_session(request: Request) -> Response:
    """Begin a session with a token. Nobody is signed in yet, so a forged form cannot misuse anything."""
    fields = await request.form(max_files=0, max_fields=5)
    token, where = (str(fields.get(name) or "").strip() for name in ("token", "next"))
    auth: Authenticator = request.app.state.auth
    try:
        account = await auth.by_token(request, token[:LONGEST])
    except Problem as error:
        key = "sign.slow" if error.status_code == 429 else "sign.wrong"
        return render(request, "sign_in.html", None, error.status_code, next=_inside(where), error=say(key))
    answer = go(_inside(where))
    set_session(request, answer, auth.sessions.begin(account.id))
    return answer


@router.post("/sign-out")
async def end_session(_sent: Sent) -> Response:
    """End the session of this browser."""
    answer = go("/sign-in")
    answer.delete_cookie(COOKIE)
    return answer


@router.get("/")
async def show_programmes(request: Request, visitor: Looking) -> Response:
    """Show the programmes; if there is only one, its page."""

    def work() -> Response:
        names = [one for one in request.app.state.shared.store.programmes if visitor.account.may("viewer", one)]
        may_create = "admin" in visitor.account.grants.values()
        if len(names) == 1 and not may_create:
            return go(programme_path(names[0]))
        found: list[dict[str, Any]] = []
        for name in names:
            status = find_programme(request, visitor.account, name, "viewer").status()
            found.append({"name": name, "status": status, "red": sum(one.severity == "red" for one in status.findings)})
        return render(request, "programmes.html", visitor, programmes=found, may_create=may_create)

    return await run_in_threadpool(work)


def _inside(path: str) -> str:
    """Return a path of this service; its first page for anything else."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"
