"""A server over HTTP on this machine, with a login if wanted: enough of OAuth 2.1 for a client to be held to it."""

import asyncio
import base64
import hashlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


@dataclass
class Site:
    """`tokens` are the access tokens that are good; `seen` the requests in words."""

    login: bool = False
    base: str = ""
    tokens: set[str] = field(default_factory=set)
    challenges: dict[str, str] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    lifetime: int = 3600
    issued: int = 0

    async def mcp(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        self.headers = dict(request.headers)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.login and token not in self.tokens:
            where = (
                f'Bearer resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
            )
            return Response(status_code=401, headers={"www-authenticate": where})
        message = await request.json()
        self.seen.append(message.get("method", "answer"))
        if "id" not in message:
            return Response(status_code=202)
        match message["method"]:
            case "initialize":
                result: dict[str, Any] = {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "site", "version": "1"},
                }
            case "tools/list":
                names = ("echo", "huge", "endless", "broken", "away")
                result = {"tools": [{"name": name, "inputSchema": TEXT} for name in names]}
            case "tools/call":
                return self._call(message)
            case _:
                error = {"code": -32601, "message": "Method not found"}
                return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _call(self, message: dict[str, Any]) -> Response:
        name, arguments = message["params"]["name"], message["params"].get("arguments", {})
        content = [{"type": "text", "text": arguments.get("text", name)}]
        whole = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}}
        match name:
            case "huge":

                async def pieces() -> AsyncIterator[bytes]:
                    for _ in range(64):
                        yield b"x" * (1 << 20)

                return StreamingResponse(pieces(), media_type="application/json")
            case "endless":

                async def silence() -> AsyncIterator[bytes]:
                    while True:
                        yield b": still here\n\n"
                        await asyncio.sleep(0.05)

                return StreamingResponse(silence(), media_type="text/event-stream")
            case "broken":
                return Response("<html>Bad gateway</html>", status_code=502, media_type="text/html")
            case "away":
                return RedirectResponse("http://127.0.0.1:9/elsewhere", status_code=307)
        return JSONResponse(whole)

    async def resource(self, _request: Request) -> Response:
        return JSONResponse({"resource": f"{self.base}/mcp", "authorization_servers": [self.base]})

    async def metadata(self, _request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.base,
                "authorization_endpoint": f"{self.base}/authorize",
                "token_endpoint": f"{self.base}/token",
                "registration_endpoint": f"{self.base}/register",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            }
        )

    async def register(self, request: Request) -> Response:
        wanted = await request.json()
        return JSONResponse({**wanted, "client_id": "client-1"}, status_code=201)

    async def authorize(self, request: Request) -> Response:
        query = request.query_params
        assert query["redirect_uri"].startswith("http://127.0.0.1:")
        self.challenges["code-1"] = query["code_challenge"]
        return RedirectResponse(f"{query['redirect_uri']}?code=code-1&state={query['state']}")

    async def token(self, request: Request) -> Response:
        form = await request.form()
        self.seen.append(str(form["grant_type"]))
        if form["grant_type"] == "authorization_code":
            verifier = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
            if self.challenges.pop(str(form["code"]), "") != base64.urlsafe_b64encode(
                verifier
            ).decode().rstrip("="):
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
        elif form["refresh_token"] != "refresh-1":
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        self.issued += 1
        token = f"access-{self.issued}"
        self.tokens.add(token)
        given = {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "refresh_token": "refresh-1",
        }
        return JSONResponse(given)


@asynccontextmanager
async def serve(site: Site) -> AsyncIterator[Site]:
    """The site on a free port of this machine."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    site.base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    routes = [
        Route("/mcp", site.mcp, methods=["GET", "POST", "DELETE"]),
        Route("/.well-known/oauth-protected-resource/mcp", site.resource),
        Route("/.well-known/oauth-protected-resource", site.resource),
        Route("/.well-known/oauth-authorization-server", site.metadata),
        Route("/register", site.register, methods=["POST"]),
        Route("/authorize", site.authorize),
        Route("/token", site.token, methods=["POST"]),
    ]
    config = uvicorn.Config(Starlette(routes=routes), log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]  # older releases have it
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        async with asyncio.timeout(10):
            while not server.started:  # noqa: ASYNC110 (the library has no event for it)
                await asyncio.sleep(0.01)
        yield site
    finally:
        server.should_exit = True
        server.force_exit = True
        await running
        listener.close()
