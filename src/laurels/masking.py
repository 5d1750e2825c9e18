"""Masks secrets in text."""

from __future__ import annotations

import re

MASK = "***"

# A password may contain '@', '/' or quotes, so it extends to the last '@' before a space.
_URL_PASSWORD = re.compile(r"(://[^\s:/?#@]*):\S*@")
_QUERY_SECRET = re.compile(
    r"([?&](?:password|sslpassword|token|access_token|api_key|key)=)[^&\s\"']+", re.IGNORECASE
)
_API_KEY = re.compile(r"\b(lk_[A-Za-z0-9]+_)[A-Za-z0-9_-]+")
_JSON_WEB_TOKEN = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")
_BEARER = re.compile(r"\b(Bearer\s+)[\w.~+/=-]+", re.IGNORECASE)


def masked(text: str) -> str:
    """The text without the passwords in URLs, API keys and tokens."""
    text = _URL_PASSWORD.sub(rf"\1:{MASK}@", text)
    text = _QUERY_SECRET.sub(rf"\1{MASK}", text)
    text = _API_KEY.sub(rf"\1{MASK}", text)
    text = _JSON_WEB_TOKEN.sub(MASK, text)
    return _BEARER.sub(rf"\1{MASK}", text)
