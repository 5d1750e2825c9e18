"""Laurels over HTTP.

The way of a request: `middleware` gives it an id and logs it, `parameters` reads its path and query,
`authentication` says who sends it, `body` reads what was sent, a module of `routes/` answers; `encoding` and
`problems` write the answer. `operation` declares routes, `openapi` describes all of them.
"""
