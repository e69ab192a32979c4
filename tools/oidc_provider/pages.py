"""The login page: type any name and e-mail address, or take one of three."""

from collections.abc import Mapping
from html import escape
from urllib.parse import urlencode

ACCOUNTS = ("hana@example.test", "tsuru@example.test", "kame@example.test")
_AT_ONCE = {"prompt": "none"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Local sign-in</title>
<style>body{{font:1rem system-ui;max-width:24rem;margin:4rem auto;padding:0 1rem}}
label{{display:block;margin:1rem 0}}input{{display:block;width:100%;font:inherit;padding:.4rem}}
strong{{color:#a00}}</style>
<h1>Local sign-in</h1>
<p><strong>For development only.</strong> Anybody can sign in as anybody here.</p>
{content}
</html>"""


def login_page(parameters: Mapping[str, str]) -> str:
    """Return the form; the authorization request travels along in hidden fields and is checked again."""
    hidden = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in parameters.items()
        if name not in {"email", "name"}
    )
    email = escape(parameters.get("login_hint", ""))
    at_once = "".join(
        f'<li><a href="/authorize?{escape(urlencode({**parameters, **_AT_ONCE, "login_hint": one}))}">{one}</a></li>'
        for one in ACCOUNTS
    )
    return _PAGE.format(
        content=f'<form method="post" action="/authorize">{hidden}'
        f'<label>E-mail <input name="email" type="email" required maxlength="200" value="{email}" autofocus></label>'
        '<label>Name <input name="name" maxlength="100"></label><button>Sign in</button></form>'
        f"<p>Or at once as</p><ul>{at_once}</ul>"
    )


def refusal_page(message: str) -> str:
    """Return a page that says why nothing was done."""
    return _PAGE.format(content=f"<p>{escape(message)}</p>")
