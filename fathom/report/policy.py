"""The content security policy of Fathom's pages: their own style and script, and nothing else."""

from __future__ import annotations

import hashlib
from base64 import b64encode


def policy(style: str, script: str = "") -> str:
    """Return the policy of a page with a style and, if it has one, a script."""
    scripts = f"script-src 'sha256-{digest(script)}'; " if script else ""
    return f"default-src 'none'; style-src 'sha256-{digest(style)}'; {scripts}base-uri 'none'; form-action 'none'"


def digest(text: str) -> str:
    """Return the SHA-256 of a style or script, in Base64, as a policy names it."""
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()
