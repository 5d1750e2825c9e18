"""Laurels over HTTP.

A request passes `middleware`, which gives it an id and logs it, `parameters`, which reads its path and query,
`authentication`, which checks its key, `body`, which reads its body, and a module of `routes/`. `encoding` or
`problems` writes the answer. `operation` declares routes, and `openapi` describes them.
"""
