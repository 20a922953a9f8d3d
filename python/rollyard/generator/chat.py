"""What `rollout_func` is given to ask the engine with: `openai`'s client, or a small one that looks like it.

The package needs no `openai`; who has it installed gets it. Ours speaks plain chat completions over one
connection that is kept open, and nothing else.
"""

from __future__ import annotations

import http.client
import importlib
import json
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from rollyard.errors import RollyardError

TIMEOUT_SECS = 3600.0
# What stands in front of an engine answers with these when there is no engine behind it.
_NOBODY_THERE = (502, 503, 504)


class ChatError(RollyardError):
    """The engine did not answer a request; `status` is that of its refusal."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Record(Mapping[str, Any]):
    """A JSON object whose fields are attributes too. One that is not there is `None`, as in `openai`."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._fields.get(name)

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"Record({self._fields!r})"

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        """Plain dictionaries and lists."""
        fields = self._fields.items()
        return {name: _plain(value) for name, value in fields if not (exclude_none and value is None)}


class ChatClient:
    """`client.chat.completions.create(**payload)`, for engines that speak like OpenAI."""

    def __init__(self, base_url: str, *, api_key: str = "test", timeout_secs: float = TIMEOUT_SECS) -> None:
        self.base_url = base_url
        self.chat = self.completions = self
        self._where = urllib.parse.urlsplit(base_url)
        if self._where.scheme not in ("http", "https") or not self._where.hostname:
            raise ValueError(f"an engine is at an http:// or https:// URL, not at {base_url!r}")
        self._headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
        self._timeout_secs = timeout_secs
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create(self, **payload: Any) -> Any:
        """Asks for a completion. `extra_body` goes into the body, and what is `None` is left out."""
        if payload.get("stream"):
            raise ValueError("streams are not understood; install `openai` for them, or set stream=False")
        payload |= payload.pop("extra_body", None) or {}
        body = {name: value for name, value in payload.items() if value is not None}
        status, content = self._request("POST", "/chat/completions", json.dumps(body).encode())
        if status != 200:
            shown = content[:500].decode(errors="replace")
            raise ChatError(f"the engine answered with {status}: {shown}: {self.base_url}", status=status)
        try:
            return json.loads(content, object_hook=Record)
        except ValueError as error:
            shown = content[:80].decode(errors="replace")
            raise ChatError(f"the engine's answer is not JSON, but {shown!r}: {self.base_url}") from error

    def is_there(self) -> bool:
        """Whether anybody answers. One that is slow is there."""
        try:
            status, _ = self._request("GET", "/models", None)
        except ChatError as error:
            return isinstance(error.__cause__, TimeoutError)
        return status not in _NOBODY_THERE

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _request(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        kept = self._connection is not None
        try:
            return self._send(method, path, body)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
            self.close()
            # A connection that was kept open may have been closed by the other side meanwhile.
            if not kept:
                raise self._failed(error) from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._failed(error) from error
        except BaseException:
            # An answer that is half read must not be taken for that to the next question.
            self.close()
            raise
        return self._request(method, path, body)

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        if self._connection is None:
            https = self._where.scheme == "https"
            kind = http.client.HTTPSConnection if https else http.client.HTTPConnection
            assert self._where.hostname is not None, "checked when it was made"
            self._connection = kind(self._where.hostname, self._where.port, timeout=self._timeout_secs)
        self._connection.request(method, self._where.path.rstrip("/") + path, body, self._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def _failed(self, error: Exception) -> ChatError:
        told = str(error) or type(error).__name__
        return ChatError(f"the engine did not answer ({told}): {self.base_url}")


def api_url(engine_url: str) -> str:
    """The URL that OpenAI's calls stand behind; slime gives the engine's with or without `/v1`."""
    return engine_url if "/v1" in engine_url else engine_url.rstrip("/") + "/v1"


def chat_client(engine_url: str) -> Any:
    """A client of the engine: `openai`'s where it is installed."""
    url = api_url(engine_url)
    ours = ChatClient(url)
    try:
        openai = importlib.import_module("openai")
    except ImportError:
        return ours
    return openai.OpenAI(api_key="test", base_url=url, timeout=TIMEOUT_SECS)


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.model_dump()
    return [_plain(each) for each in value] if isinstance(value, list) else value
