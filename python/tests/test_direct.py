"""Large rollouts of a client go to the bucket of a yard, and not through a server."""

from __future__ import annotations

import asyncio
import json
import pathlib
import pickle
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from natsserver import serve_nats
from s3server import S3Server, serve_s3

from rollyard import AsyncClient, Client
from rollyard.client import direct, flow
from serving import Serve, Server

LARGE = 300_000


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with serve_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def yard(
    s3: S3Server, serve: Serve, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    with serve_nats(tmp_path / "nats") as nats:
        server = serve("--log", nats, "--blobs", "s3://yard/blobs", "--group-size", "2")
        yield server
        server.stop()


def make_item(n: int, size: int) -> dict[str, Any]:
    return {
        "uid": f"u{n}",
        "instance_id": f"i{n // 2}",
        "messages": [{"role": "assistant", "content": "x" * size}],
        "reward": float(n % 2),
        "extra_info": {},
    }


class Sent:
    """The bodies that went to the server, and what went elsewhere."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.here: list[bytes] = []
        self.elsewhere: list[httpx.Request] = []
        self.fails_elsewhere = False
        unsigned = flow.Send.unsigned

        def note(step: flow.Send, request: httpx.Request) -> httpx.Request:
            request = unsigned(step, request)
            if step.request.is_elsewhere:
                self.elsewhere.append(request)
                if self.fails_elsewhere:
                    raise httpx.ConnectError("no way there", request=request)
            else:
                self.here.append(request.content)
            return request

        monkeypatch.setattr(flow.Send, "unsigned", note)


def held(client: Client) -> dict[str, int]:
    lease = client.lease(groups=2, wait_secs=10)
    assert lease is not None
    with lease:
        items = [item for group in lease.groups for item in group.items]
    return {item["uid"]: len(item["messages"][0]["content"]) for item in map(json.loads, items)}


def test_large_rollouts_do_not_go_through_the_server(yard: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sent(monkeypatch)
    with Client(yard.url, token="s3cret") as client:
        assert client.write(make_item(0, LARGE)).uid == "u0"
        written = client.write_many([make_item(1, LARGE), make_item(2, 10), make_item(3, LARGE)])
        assert (written.accepted, written.rejected) == (3, ())
        assert max(map(len, sent.here)) < 2000, "only what stands for them"
        assert [len(request.content) > LARGE for request in sent.elsewhere] == [True] * 3
        assert all("Authorization" not in request.headers for request in sent.elsewhere)
        assert client.write_many([make_item(1, LARGE)]).duplicates == 1
        assert held(client) == {"u0": LARGE, "u1": LARGE, "u2": 10, "u3": LARGE}


def test_where_the_bucket_cannot_be_reached_they_go_whole(
    yard: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = Sent(monkeypatch)
    sent.fails_elsewhere = True
    with Client(yard.url) as client:
        assert client.write_many(make_item(n, LARGE) for n in range(4)).accepted == 4
        client.write(make_item(4, LARGE))
        assert len(sent.elsewhere) == 1, "it is not tried again for every rollout"
        assert held(client) == {f"u{n}": LARGE for n in range(4)}


def test_what_was_stored_for_another_owner_is_sent_whole(
    yard: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lighten = direct.lighten

    def outdated(site: Any, lines: Any) -> Any:
        sendable = yield from lighten(site, lines)
        return [direct.Sendable(one.line, one.content.replace(b'"claim":', b'"claim":9')) for one in sendable]

    monkeypatch.setattr(direct, "lighten", outdated)
    with Client(yard.url) as client:
        assert client.write_many(make_item(n, LARGE) for n in range(3)).accepted == 3
        assert client.write(make_item(3, LARGE)).uid == "u3"
        assert held(client) == {f"u{n}": LARGE for n in range(4)}


def test_a_server_that_keeps_payloads_itself_is_asked_once(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = Sent(monkeypatch)
    with Client(serve("--group-size", "2").url) as client:
        for n in range(4):
            client.write(make_item(n, LARGE))
        assert len(sent.here) == 5
        assert held(client) == {f"u{n}": LARGE for n in range(4)}


def test_what_a_client_has_learned_stays_in_its_process() -> None:
    client = Client("http://127.0.0.1:1")
    client._site.detour.close()
    copy = pickle.loads(pickle.dumps(client))
    assert copy._site.detour.closed_until == 0.0 < client._site.detour.closed_until


def test_the_client_that_awaits_does_the_same(yard: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sent(monkeypatch)

    async def write() -> int:
        async with AsyncClient(yard.url) as client:
            return (await client.write_many(make_item(n, LARGE) for n in range(4))).accepted

    assert asyncio.run(write()) == 4
    assert len(sent.elsewhere) == 4
    with Client(yard.url) as client:
        assert held(client) == {f"u{n}": LARGE for n in range(4)}
