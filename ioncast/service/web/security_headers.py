"""Headers that protect an answer in browsers and proxies."""

from __future__ import annotations

# Scripts and styles may come only from our own files.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
FOR_PEOPLE = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# Everybody with the address of a kept result may read it. No proxy may store its page, no search
# engine list it, and no other request name it. With `no-referrer` browsers would send the forms of
# this page with `Origin: null`, as those of another site; with this policy they name the site, but
# never the page.
FOR_SECRET_ADDRESSES = {
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex",
    "Referrer-Policy": "strict-origin",
}
# Programs need fewer headers, and each one takes time. No proxy may store their answers.
FOR_PROGRAMS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
)
