"""`rmab live serve` and `rmab live token`: the web service and its access tokens."""

from pathlib import Path

import click

from rmab.cli.program import command, examples
from rmab.cli.screen import print_table, say

ROLES = ("viewer", "operator", "admin")


def _check_there(store: str) -> None:
    from rmab.errors import ModelError

    if "://" not in store and not Path(store).exists():
        raise ModelError(f"{store}: no such file; create a programme with `rmab live create {store} NAME ...`")


@command(
    ("rmab live serve programme.db", "then open http://127.0.0.1:8321"),
    ("rmab live serve programme.db --host 0.0.0.0", "in a container; needs a token, and HTTPS in front"),
)
@click.argument("store", required=False)
@click.option("--store", "url", help="Store (a file or postgresql://...), if not given as the argument.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; any that other machines can reach needs a token.",
)
@click.option("--port", type=click.IntRange(1, 65535), default=8321, show_default=True, help="Port to listen on.")
@click.option(
    "--max-bytes",
    type=click.IntRange(1000),
    default=20_000_000,
    show_default=True,
    help="Maximum size of a request body, in bytes.",
)
def serve(store: str | None, url: str | None, host: str, port: int, max_bytes: int) -> None:
    """Serve the programmes of STORE as a web page and an API, until Ctrl-C or SIGTERM."""
    from rmab.live import open as open_store
    from rmab.service import Settings, serve as run
    from rmab.service.running import check_address

    found = store or url
    if found is None or (store and url):
        raise click.UsageError("give one store: rmab live serve programme.db")
    with open_store(found) as opened:
        check_address(opened, host)
        shown = f"[{host}]" if ":" in host else host
        place = opened.engine.url.render_as_string(hide_password=True) if "://" in found else found
        say(f"http://{shown}:{port} serves {place}. Press Ctrl-C to stop.")
        run(opened, host=host, port=port, settings=Settings(max_bytes=max_bytes))


@click.group(
    epilog=examples(
        ("rmab live token create p.db ann --role operator", "printed once; only its hash is stored"),
        ("rmab live token list p.db", "owners, and when tokens were last used"),
        ("rmab live token revoke p.db 4f2a9c01d7b3", "block a token"),
    )
)
def token() -> None:
    """Create, list and revoke tokens, which give access to the service of a STORE."""


@command(
    ("rmab live token create p.db ann --role operator", "for all programmes"),
    ("rmab live token create p.db board --role viewer --programme mothers --days 30", "for one programme, for a month"),
    name="create",
    parent=token,
)
@click.argument("store")
@click.argument("owner")
@click.option(
    "--role", type=click.Choice(ROLES), required=True, help="viewer: read; operator: lists and reports; admin: all."
)
@click.option("--programme", "programmes", multiple=True, help="Programme that the token is limited to; may be repeated.")
@click.option(
    "--days",
    type=click.FloatRange(0, min_open=True),
    default=365.0,
    show_default=True,
    help="Number of days until it expires.",
)
def create(store: str, owner: str, role: str, programmes: tuple[str, ...], days: float) -> None:
    """Create a token for OWNER and print it once. The journal records OWNER with every change."""
    from rmab.errors import ModelError
    from rmab.live import open as open_store
    from rmab.service import create_token

    _check_there(store)
    with open_store(store) as found:
        unknown = sorted(set(programmes) - set(found.programmes)) if role != "admin" else []
        if unknown:
            raise ModelError(f"{store}: no programme {unknown[0]!r}; the store has {', '.join(found.programmes) or 'none'}")
        secret, account = create_token(found.engine, owner, role, programmes=programmes, days=days)
    say(secret)
    say(
        f"Token {account.id} of {owner} ({role}) is valid until {account.expires_at[:10]}. It cannot be shown again.",
        err=True,
    )


@command(("rmab live token list p.db", "owners, and when tokens were last used"), name="list", parent=token)
@click.argument("store")
def list_(store: str) -> None:
    """List all tokens, without their secrets."""
    from rmab.live import open as open_store
    from rmab.service import list_tokens

    _check_there(store)
    with open_store(store) as found:
        accounts = list_tokens(found.engine)
    rows = [
        (
            one.id,
            one.owner,
            ", ".join(f"{role} ({name or 'all'})" for name, role in one.grants.items()),
            "revoked" if one.revoked_at else one.expires_at[:10] or "never" if one.is_valid else "expired",
            one.used_at.replace("T", " ")[:16] or "never",
        )
        for one in accounts
    ]
    print_table("Tokens", ("id", "owner", "role", "valid until", "last use"), rows, left=5)


@command(("rmab live token revoke p.db 4f2a9c01d7b3", "block a token"), name="revoke", parent=token)
@click.argument("store")
@click.argument("number", metavar="ID")
def revoke(store: str, number: str) -> None:
    """Revoke the token with this ID and end its sessions."""
    from rmab.live import open as open_store
    from rmab.service import revoke_token

    _check_there(store)
    with open_store(store) as found:
        account = revoke_token(found.engine, number)
    say(f"The token {account.id} of {account.owner} is revoked.")


@command(("rmab live demo", "simulate a year, then a week at each press of a button"))
@click.option("--port", type=click.IntRange(1, 65535), default=8321, show_default=True, help="Port to listen on.")
@click.option("--arms", type=click.IntRange(20, 5000), default=300, show_default=True, help="Number of simulated people.")
@click.option(
    "--weeks", type=click.IntRange(2, 520), default=52, show_default=True, help="Number of weeks to simulate first."
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def demo(port: int, arms: int, weeks: int, no_browser: bool) -> None:
    """Show the web page of a simulated programme; nothing is stored."""
    import tempfile
    import threading
    import webbrowser

    from rmab.live import open as open_store
    from rmab.service import serve as run
    from rmab.service.demo import Demo

    with tempfile.TemporaryDirectory(prefix="rmab-demo-") as folder, open_store(f"{folder}/demo.db") as store:
        say(f"Simulating {weeks} weeks ...")
        played = Demo(store, arms=arms, budget=max(arms // 12, 2))
        played.play(weeks)
        address = f"http://127.0.0.1:{port}"
        say(f"{address} shows the programme. Press Ctrl-C to stop; nothing is stored.")
        if not no_browser:
            threading.Timer(1.0, webbrowser.open, [address]).start()
        run(store, port=port, demo=played)
