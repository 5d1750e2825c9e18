"""Laurels over HTTP.

The way of a request: `envelope` gives it an id and logs it, `parameters` reads its path and query, `auth`
says who asks, `body` reads what was sent, `boards`, `scores`, `entries` and `windows` answer; `answers` and
`problems` write it down. `operation` declares the thin routes, `document` describes all of them.
"""
