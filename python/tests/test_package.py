"""The package as a whole: its names, its stubs, its exceptions; forks and threads."""

from __future__ import annotations

import builtins
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import rollyard
from rollyard import errors
from samples import make_rollouts, run_python

PACKAGE = pathlib.Path(rollyard.__file__).parent


def test_the_stub_says_what_the_native_module_has() -> None:
    check = [sys.executable, "-m", "mypy.stubtest", "rollyard._rollyard"]
    subprocess.run(check, check=True, cwd=PACKAGE.parent)


def test_every_name_on_offer_is_there_and_typed() -> None:
    assert all(hasattr(rollyard, name) for name in rollyard.__all__)
    assert sorted(rollyard.__all__) == list(rollyard.__all__)
    assert (PACKAGE / "py.typed").exists()


ALSO = {
    "TemplateError": "ValueError",
    "TokenizerError": "ValueError",
    "MaskError": "ValueError",
    "BatchError": "ValueError",
    "ReplayError": "ValueError",
    "PacedError": "TimeoutError",
    "RolloutError": "ValueError",
    "EngineUnreachableError": "ConnectionError",
    "EngineTimeoutError": "TimeoutError",
    "NotExactError": "ValueError",
    "RequestError": "ValueError",
    "WorkflowError": "ValueError",
    "ExecutorError": "ValueError",
    "WaitTimeoutError": "TimeoutError",
    "RefusedError": "ValueError",
    "UnauthorizedError": "PermissionError",
    "UnknownError": "LookupError",
    "NotReachableError": "ConnectionError",
    "NoAnswerError": "TimeoutError",
}


@pytest.mark.parametrize(("name", "builtin"), ALSO.items())
def test_an_error_is_caught_as_the_builtin_it_also_is(name: str, builtin: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, errors.RollyardError) and issubclass(kind, getattr(builtins, builtin))


def test_errors_survive_pickling_with_their_fields() -> None:
    for kind in (errors.ServerError, errors.RefusedError, errors.UnauthorizedError, errors.UnknownError):
        told = kind("no", status=418, code="teapot", field="water", repeated=True)
        again = pickle.loads(pickle.dumps(told))
        assert type(again) is kind and str(again) == "no" and vars(again) == vars(told)


def test_importing_starts_no_thread() -> None:
    count = "import rollyard, os; print(len(os.listdir('/proc/self/task')))"
    # What numpy starts for its linear algebra is not ours.
    surroundings = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    told = subprocess.run([sys.executable, "-c", count], check=True, capture_output=True, env=surroundings)
    assert told.stdout.strip() == b"1"


def fill(number: int) -> int:
    batch = rollyard.training_batch(make_rollouts(8), [float(number)] * 8)
    return int((batch["loss_weights"].sum() / batch["loss_masks"].sum()).item())


# In a process of its own: JAX, which other tests have started here, does not survive a fork.
FORKING = """
import multiprocessing, os
from rollyard import digest, tensor_dict
from samples import make_rollouts
rollouts = make_rollouts(64)
batch = tensor_dict(rollouts)
before = digest(batch)
child = os.fork()
if child == 0:
    batch["input_ids"][:] = 1
    os._exit(0 if digest(batch) != before and digest(tensor_dict(rollouts)) == before else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert digest(batch) == before
with multiprocessing.get_context("fork").Pool(4) as pool:
    assert pool.map(digest, pool.map(tensor_dict, [rollouts] * 8)) == [before] * 8
"""


def test_the_package_works_after_a_fork() -> None:
    run_python(FORKING)


def test_the_package_works_in_a_spawned_process() -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(fill, range(4)) == list(range(4))


def test_batches_are_made_by_many_threads_at_once() -> None:
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(fill, range(500))) == list(range(500))
