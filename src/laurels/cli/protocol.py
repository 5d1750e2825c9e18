"""HTTP as uvicorn speaks it, except that what is not HTTP is a problem too (RFC 9457)."""

from uuid import uuid4

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from laurels.api.problems import MEDIA_TYPE, Malformed, Problem, type_of


class Protocol(HttpToolsProtocol):
    def send_400_response(self, msg: str) -> None:
        """To what no request can be made of: there is no path, so no route and no log of it."""
        request_id = uuid4().hex
        problem = Problem(
            type=type_of(Malformed),
            title="The request cannot be read",
            status=400,
            detail=msg,
            instance="",
            request_id=request_id,
        )
        content = msgspec.json.encode(problem)
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(content)}\r\n"
            f"x-request-id: {request_id}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + content)
        self.transport.close()
