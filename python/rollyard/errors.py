"""What can go wrong, by name.

Every class is a `RollyardError`, and also the builtin that a careful program catches anyway: a value that
does not fit is a `ValueError`, a server that is not there a `ConnectionError`, one that does not answer in
time a `TimeoutError`.

Fields have defaults, because an exception is unpickled by its message alone and gets its fields afterwards.
"""

from __future__ import annotations


class RollyardError(Exception):
    """The root of all that Rollyard raises."""


class TemplateError(RollyardError, ValueError):
    """A chat template cannot be read, or does not render these messages."""


class TokenizerError(RollyardError, ValueError):
    """A tokenizer cannot be read, or does not encode this text."""


class MaskError(RollyardError, ValueError):
    """No loss mask can be made that is true to the template."""


class BatchError(RollyardError, ValueError):
    """These rollouts do not make a batch."""


class ReplayError(RollyardError, ValueError):
    """A replay buffer cannot be set up so, or cannot do this. Nothing has changed."""


class PacedError(RollyardError, TimeoutError):
    """The limiter of a replay buffer had no room for these rollouts in time. Nothing was added."""


class RolloutError(RollyardError, ValueError):
    """This is not a rollout. `field` is the field that is to blame, where one is."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class StorageError(RollyardError, OSError):
    """A folder of rollouts cannot be opened, listed or written to."""


class QueryError(RollyardError, ValueError):
    """A question that cannot be answered. `at` says where the mistake stands, in bytes, if that is known."""

    def __init__(
        self, message: str, at: tuple[int, int] | None = None, expected: list[str] | None = None
    ) -> None:
        super().__init__(message)
        self.at = at
        self.expected = expected or []


class EngineError(RollyardError):
    """An inference engine did not do what it was asked.

    `may_pass` says whether asking again may help; `status` is the HTTP status, where there is one.
    """

    def __init__(self, message: str, *, may_pass: bool = False, status: int | None = None) -> None:
        super().__init__(message)
        self.may_pass = may_pass
        self.status = status


class EngineUnreachableError(EngineError, ConnectionError):
    """No server of the engine can be reached."""


class EngineTimeoutError(EngineError, TimeoutError):
    """The engine did not answer in time."""


class NotExactError(EngineError, ValueError):
    """The engine gives no token ids or log-probs, but exact tokens were asked for."""


class RequestError(EngineError, ValueError):
    """This cannot be asked of an engine. Nothing was sent."""


class WorkflowError(RollyardError, ValueError):
    """This is not a workflow, or cannot be used as one."""


class EpisodeError(RollyardError):
    """Episodes failed, and no further attempt was left."""


class ExecutorError(RollyardError, ValueError):
    """This cannot be asked of an executor, or not any more."""


class NotEnoughError(ExecutorError):
    """More results were asked for than can still come."""


class WaitTimeoutError(RollyardError, TimeoutError):
    """Not enough results were ready in time. Nothing was taken."""


class WorkerError(RollyardError):
    """Worker processes cannot be started, or end as soon as they are."""


class NotReachableError(RollyardError, ConnectionError):
    """No connection to the server, or it broke, for as often as it was tried."""


class NoAnswerError(RollyardError, TimeoutError):
    """The server did not answer in time, for as often as it was asked."""


class ServerError(RollyardError):
    """The server answered, and not with yes.

    `code` is the server's short name for the trouble, to branch on; `status` the HTTP status; `field` the
    field that is to blame, where one is. `repeated` says that the call was sent before and no answer came, so
    that it may have been done then.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = "",
        field: str | None = None,
        repeated: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.field = field
        self.repeated = repeated


class RefusedError(ServerError, ValueError):
    """The call asks for what cannot be done. Nothing has changed, and repeating it does not help."""


class UnauthorizedError(ServerError, PermissionError):
    """The token is wrong or missing, or the server does not go by this name."""


class UnknownError(ServerError, LookupError):
    """There is no such run, lease or rollout."""


class LeaseLostError(ServerError):
    """The lease has ended: it expired, was given back, or a rewind took it back. Its groups are not yours."""


class FullError(ServerError):
    """The run has no room, and got none for as long as it was tried."""
