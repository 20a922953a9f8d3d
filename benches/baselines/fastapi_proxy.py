"""A pass-through to an engine in FastAPI and httpx, as proxies of agents are written: the gateway's baseline.

It records nothing, renders nothing and keeps nothing: the body goes to the engine, the answer comes back.
uvicorn runs with uvloop and httptools, without an access log, and the client keeps its connections.
"""

from __future__ import annotations

import argparse
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from fastapi import FastAPI, Request, Response


def app(engine: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        async with httpx.AsyncClient(base_url=engine, timeout=60, limits=limits) as client:
            app.state.client = client
            yield

    made = FastAPI(lifespan=lifespan)

    @made.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        body = await request.body()
        headers = {"content-type": "application/json"}
        answer = await request.app.state.client.post("/v1/chat/completions", content=body, headers=headers)
        return Response(answer.content, answer.status_code, media_type="application/json")

    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True)
    # Every contestant is given the flags of a yard.
    arguments, _ = parser.parse_known_args()
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app(arguments.engine), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
