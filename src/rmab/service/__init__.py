"""The service: live programmes over HTTP, for machines and for people (extra `rmab[server]`).

    rmab live serve programme.db

docs/service.md is the guide, docs/security.md has its guarantees.
"""

from rmab.common import require

require("server", "rmab.service")

from rmab.service.accounts import Account, create_token, list_tokens, revoke_token
from rmab.service.app import create_app
from rmab.service.running import serve, serving
from rmab.service.settings import Settings

__all__ = ["Account", "Settings", "create_app", "create_token", "list_tokens", "revoke_token", "serve", "serving"]
