"""The client against the real server: what is written is stored once, what is leased is trained on once."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import rollyard
from flaky import flaky
from rollyard import Books, Client
from serving import Serve
from trainer import make_item


def make_rollouts(groups: int, *, size: int = 2, text: str = "4") -> list[dict[str, Any]]:
    return [make_item(f"i{n // size}", reward=n % 2, text=text) for n in range(groups * size)]


def uids(rollouts: list[dict[str, Any]]) -> Counter[str]:
    return Counter(rollout["uid"] for rollout in rollouts)


def assert_balanced(books: Books, **expected: int) -> None:
    assert books.balanced
    assert books.admitted == books.held + books.leased + books.trained + books.dropped
    assert {name: getattr(books, name) for name in expected} == expected


def test_a_training_loop_with_commit_and_rewind(serve: Serve) -> None:
    with Client(serve("--group-size", "2").url) as client:
        written = client.write_many(make_rollouts(6))
        assert (written.accepted, written.duplicates, written.rejected) == (12, 0, ())
        for step in (1, 2, 3):
            lease = client.lease(groups=2, wait_secs=10)
            assert lease is not None and len(lease) == 2 and len(lease.rollouts) == 4
            with lease:
                assert_balanced(client.books(), leased=4, held=12 - 4 * step)
            trained = uids(lease.rollouts)
            client.commit(step)
        assert_balanced(client.stats().books, trained=12, held=0)
        # The trainer died and begins again at checkpoint 2.
        assert_balanced(client.rewind(2).books, trained=8, held=4)
        again = client.lease()
        assert again is not None and uids(again.rollouts) == trained


def test_a_lease_has_what_was_written(serve: Serve) -> None:
    with Client(serve("--group-size", "2").url) as client:
        rollouts = make_rollouts(1)
        client.write_many(rollouts)
        client.set_version(3)
        lease = client.lease(reader="rank0", lease_secs=60)
        assert lease is not None
        [group] = lease
        assert (group.instance_id, group.round, lease.meta["total_samples"]) == ("i0", 0, 2)
        assert {row["uid"]: row["messages"] for row in group.rollouts} == {
            row["uid"]: row["messages"] for row in rollouts
        }
        assert client.fetch(lease.id).groups == lease.groups
        [status] = client.leases()
        assert (status.lease, status.status, status.groups) == (lease.id, "out", 1)
        assert status.reader.startswith("rank0/")
        lease.extend(secs=3600)
        assert (client.leases()[0].until_ms or 0) > lease.until_ms
        assert lease.ack().changed and not lease.ack().changed
        fate = client.fate(rollouts[0]["uid"])
        assert (fate.state, fate.lease, fate.can_rewind) == ("trained", lease.id, True)


def test_known_are_those_that_were_written_however_many_are_asked_after(serve: Serve) -> None:
    with rollyard.Client(serve().url) as client:
        written = client.write_many(make_item(f"i{n}", reward=1) for n in range(3)).uids
        # More than one call takes.
        asked = [f"no{n}" for n in range(10_000)] + [str(uid) for uid in written]
        assert client.known(asked) == set(written)
        assert client.known([]) == set()


def test_a_lease_is_given_back_when_the_block_fails(serve: Serve) -> None:
    with Client(serve("--group-size", "2").url) as client:
        client.write_many(make_rollouts(1))
        for kind in (RuntimeError, KeyboardInterrupt):
            lease = client.lease()
            assert lease is not None
            with pytest.raises(kind), lease:
                raise kind
            assert_balanced(client.books(), held=2, leased=0)


def test_a_lease_that_was_settled_inside_the_block_is_left_alone(serve: Serve) -> None:
    with Client(serve("--group-size", "2").url) as client:
        client.write_many(make_rollouts(2))
        first, second = client.lease(groups=1), client.lease(groups=1)
        assert first is not None and second is not None
        with first:
            first.give_back()
        with pytest.raises(RuntimeError), second:
            second.ack()
            raise RuntimeError
        assert_balanced(client.books(), held=2, trained=2)


def test_what_failed_is_not_hidden_by_a_server_that_is_gone(serve: Serve) -> None:
    server = serve("--group-size", "2")
    with Client(server.url) as client:
        client.write_many(make_rollouts(1))
        lease = client.lease()
        assert lease is not None
        with pytest.raises(RuntimeError, match="out of memory"), lease:
            server.kill()
            raise RuntimeError("out of memory")


def test_a_lease_that_ran_out_is_lost(serve: Serve) -> None:
    with Client(serve("--group-size", "2").url) as client:
        client.write_many(make_rollouts(1))
        lease = client.lease(lease_secs=0.05)
        assert lease is not None
        second = client.lease(wait_secs=10)
        assert second is not None
        with pytest.raises(rollyard.LeaseLostError, match="expired") as lost:
            lease.ack()
        assert (lost.value.code, lost.value.status) == ("lease_gone", 410)


def test_a_lease_waits_for_groups_and_gives_up_in_time(serve: Serve) -> None:
    with Client(serve("--group-size", "2").url) as client, ThreadPoolExecutor(1) as pool:
        assert client.lease(groups=1) is None
        waiting = pool.submit(client.lease, groups=1, wait_secs=30)
        client.write_many(make_rollouts(1))
        assert waiting.result() is not None
        began = time.monotonic()
        assert client.lease(groups=1, wait_secs=0.3) is None
        assert 0.3 <= time.monotonic() - began < 5


def test_a_waiting_lease_outlives_a_restart_of_the_server(serve: Serve) -> None:
    server = serve("--group-size", "2")
    with Client(server.url) as client, ThreadPoolExecutor(1) as pool:
        for how in (server.stop, server.kill):
            waiting = pool.submit(client.lease, groups=1, wait_secs=60)
            client.stats()
            how()
            server.start()
            client.write_many(make_rollouts(1))
            assert waiting.result() is not None


@pytest.mark.parametrize("cuts", [1, 3])
def test_a_write_whose_answer_is_lost_is_stored_once(serve: Serve, cuts: int) -> None:
    server = serve()
    with flaky(server.url) as proxy, Client(proxy.url) as client:
        rollout = make_item("a", 1)
        del rollout["uid"]
        before = copy.deepcopy(rollout)
        proxy.cut(cuts)
        result = client.write(rollout)
        assert proxy.cuts_made == cuts and result.duplicate
        assert rollout == before
        assert client.fate(result.uid).state == "held"
        assert_balanced(client.books(), admitted=1)


def test_a_bulk_write_whose_answers_are_lost_is_stored_once(serve: Serve) -> None:
    server = serve("--group-size", "2")
    with flaky(server.url) as proxy, Client(proxy.url) as client:
        proxy.cut(2)
        written = client.write_many(make_rollouts(50))
        assert written.accepted + written.duplicates == 100
        assert_balanced(client.books(), admitted=100, held=100)


def test_every_command_whose_answer_is_lost_is_done_once(serve: Serve) -> None:
    server = serve("--group-size", "2")
    with flaky(server.url) as proxy, Client(proxy.url) as client:
        client.write_many(make_rollouts(4))
        proxy.cut(1)
        # All there are: the lost lease has to be taken back before there can be another.
        lease = client.lease(groups=4, wait_secs=10)
        assert lease is not None and proxy.cuts_made == 1
        assert_balanced(client.books(), leased=8, held=0)
        proxy.cut(1)
        assert not client.ack(lease).changed
        proxy.cut(1)
        assert not client.commit(1).changed
        proxy.cut(1)
        assert_balanced(client.rewind(0).books, trained=0, held=8)
        other = client.lease(groups=1)
        assert other is not None
        proxy.cut(1)
        assert not other.give_back().changed
        assert_balanced(client.books(), leased=0, held=8)
        uid = lease.rollouts[0]["uid"]
        proxy.cut(1)
        assert not client.drop(uid).changed
        assert client.fate(uid).reason == "requested"
        proxy.cut(1)
        assert client.configure(group_size=3).config["group_size"] == 3
        assert proxy.cuts_made == 7
        # Without a lost answer there is nothing to excuse.
        with pytest.raises(rollyard.LeaseLostError):
            other.give_back()
        with pytest.raises(LookupError):
            client.drop(uid)


def test_an_answer_lost_again_and_again_is_given_up(serve: Serve) -> None:
    server = serve()
    with flaky(server.url) as proxy, Client(proxy.url, retries=2) as client:
        proxy.cut(100)
        with pytest.raises(rollyard.NotReachableError, match=proxy.url):
            client.books()
        assert proxy.cuts_made == 3


def test_each_bad_rollout_is_told_and_the_others_are_stored(serve: Serve) -> None:
    good = make_rollouts(2)
    reused = make_item("i9", 0.5)
    reused["uid"] = good[0]["uid"]
    no_uid = {"instance_id": "x"}
    bad: dict[int, tuple[Any, str, str | None]] = {
        1: (make_item("a", float("nan")), "not_json", "reward"),
        2: (no_uid, "missing_field", "messages"),
        4: (make_item("a", {1, 2}), "not_json", "reward"),  # type: ignore[arg-type]
        5: ("not a rollout", "not_json", None),
        6: (make_item("a", "high"), "wrong_field", "reward"),  # type: ignore[arg-type]
        8: (reused, "uid_taken", None),
        9: (make_item("a", 1, text="\ud800"), "not_json", "messages"),
    }
    rest = iter(good)
    rollouts = [bad[n][0] if n in bad else next(rest) for n in range(len(good) + len(bad))]
    with Client(serve("--group-size", "2").url) as client:
        written = client.write_many(rollouts)
        told = {one.index: (rollouts[one.index], one.code, one.field) for one in written.rejected}
        assert told == bad
        for one in written.rejected:
            given = bad[one.index][0]
            expected = given.get("uid", written.uids[one.index]) if isinstance(given, dict) else None
            assert one.uid == expected
        assert_balanced(client.books(), admitted=4)
        with pytest.raises(ValueError, match="rollout 1 .*reward.* 6 more"):
            written.raise_for_rejected()


def test_a_rollout_too_large_is_refused_alone(serve: Serve) -> None:
    rollouts = [make_item("a", 1), make_item("a", 0, text="x" * 100_000), make_item("a", 0)]
    with Client(serve("--max-body-bytes", "50000").url) as client:
        written = client.write_many(rollouts)
        [refused] = written.rejected
        assert (refused.index, refused.code) == (1, "line_too_large")
        assert_balanced(client.books(), admitted=2)
        with pytest.raises(rollyard.RefusedError) as caught:
            client.write(rollouts[1])
        assert caught.value.status == 413


def test_many_rollouts_go_in_several_bodies_with_progress(serve: Serve) -> None:
    seen: list[int] = []
    with Client(serve("--group-size", "2").url) as client:
        written = client.write_many((each for each in make_rollouts(1250)), progress=seen.append)
        assert written.accepted == 2500 and seen == [1000, 2000, 2500]
        seen.clear()
        client.write_many(make_rollouts(5, text="x" * 1_000_000), progress=seen.append)
        assert seen == [4, 8, 10]


def test_a_full_run_is_waited_for(serve: Serve) -> None:
    flags = ("--group-size", "2", "--max-buffer-size", "2", "--when-full", "reject", "--keep-commits", "0")
    with Client(serve(*flags).url, retries=20) as client, ThreadPoolExecutor(2) as pool:
        client.write_many(make_rollouts(1))
        alone = pool.submit(client.write, make_item("b", 1))
        many = pool.submit(client.write_many, make_rollouts(1)[:1])
        hasty = Client(client.url, retries=0)
        with hasty, pytest.raises(rollyard.FullError, match="make room"):
            hasty.write(make_item("c", 1))
        lease = client.lease()
        assert lease is not None
        lease.ack()
        client.commit(1)
        assert not alone.result().duplicate
        assert many.result().accepted == 1


def test_arrays_and_numpy_numbers_are_written_as_json(serve: Serve) -> None:
    with Client(serve("--group-size", "1", "--validate", "sized", "--normalize", "none").url) as client:
        rollout = make_item("a", 0) | {"reward": np.float32(0.5), "tokens": np.arange(3), "n": np.int64(2)}
        client.write(rollout)
        lease = client.lease(wait_secs=10)
        assert lease is not None
        [row] = lease.rollouts
        assert (row["tokens"], row["n"], row["reward"]) == ([0, 1, 2], 2, 0.5)


def test_a_bad_rollout_is_a_value_error_that_names_the_field(serve: Serve) -> None:
    with Client(serve().url) as client:
        with pytest.raises(rollyard.RolloutError, match="'reward' is nan") as here:
            client.write(make_item("a", float("nan")))
        assert here.value.field == "reward"
        with pytest.raises(ValueError, match="reward") as there:
            client.write(make_item("a", "high"))  # type: ignore[arg-type]
        assert isinstance(there.value, rollyard.RefusedError)
        assert (there.value.code, there.value.field, there.value.status) == ("wrong_field", "reward", 400)


def test_what_is_unknown_is_a_lookup_error(serve: Serve) -> None:
    url = serve().url
    with Client(url, run="nowhere") as client, pytest.raises(rollyard.UnknownError, match="nowhere"):
        client.stats()
    with Client(url) as client, pytest.raises(LookupError, match="a/b c"):
        client.fate("a/b c")


def test_runs_are_made_and_configured(serve: Serve) -> None:
    with Client(serve().url, run="exp-7") as client:
        assert client.make_run(group_size=4).config["group_size"] == 4
        assert client.configure(version_spread_max=1).config["version_spread_max"] == 1
        assert client.make_run().config["group_size"] == 4
        assert {run.run for run in client.runs()} == {"default", "exp-7"}
        client.set_version(7)
        assert client.stats().version == 7
        client.write(make_item("a", 1))
        assert_balanced(client.close_group("a"), admitted=1, dropped=1)
        with pytest.raises(ValueError, match="unknown setting") as caught:
            client.configure(colour="red")
        assert isinstance(caught.value, rollyard.RefusedError) and caught.value.field == "colour"


def test_a_wrong_token_is_said_and_a_right_one_works(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    url = serve("--token", "s3cret").url
    for token in (None, "wrong"):
        with Client(url, token=token) as client, pytest.raises(PermissionError, match="token") as caught:
            client.stats()
        assert isinstance(caught.value, rollyard.UnauthorizedError) and caught.value.code == "unauthorized"
    inside = url.replace("http://", "http://me:s3cret@")
    for right in (Client(url, token="s3cret"), Client(inside)):
        with right:
            assert right.stats().run == "default"
            assert "s3cret" not in repr(right) and "s3cret" not in right.url
    monkeypatch.setenv("ROLLYARD_URL", url)
    monkeypatch.setenv("ROLLYARD_TOKEN", "s3cret")
    with Client() as client:
        assert client.url == url and client.stats().run == "default"


def test_a_server_that_is_down_is_named_with_the_command_that_starts_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://me:s3cret@127.0.0.1:{port}"
    with Client(url, retries=1) as client, pytest.raises(ConnectionError) as caught:
        client.stats()
    message = str(caught.value)
    assert isinstance(caught.value, rollyard.NotReachableError)
    assert f"rollyard serve --listen 127.0.0.1:{port}" in message
    assert message.endswith(f"http://127.0.0.1:{port}")


def test_a_server_that_does_not_answer_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(url, timeout_secs=0.1, retries=1) as client, pytest.raises(TimeoutError, match=url):
            client.stats()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"url": "localhost:8889"}, "http://"),
        ({"url": "ftp://localhost"}, "http://"),
        ({"timeout_secs": 0}, "timeout_secs is 0"),
        ({"retries": -1}, "retries is -1"),
    ],
)
def test_a_client_that_cannot_work_is_refused_at_once(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Client(**arguments)


def test_a_closed_client_says_so(serve: Serve) -> None:
    client = Client(serve().url)
    client.stats()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.stats()


def test_many_threads_share_a_client(serve: Serve) -> None:
    with Client(serve("--group-size", "4").url) as client, ThreadPoolExecutor(32) as pool:
        rollouts = make_rollouts(100, size=4)
        trained: list[dict[str, Any]] = []
        lock = threading.Lock()

        def train() -> None:
            while (lease := client.lease(groups=1, wait_secs=2)) is not None:
                with lease, lock:
                    trained.extend(lease.rollouts)

        readers = [pool.submit(train) for _ in range(8)]
        list(pool.map(client.write, rollouts))
        for reader in readers:
            reader.result()
        assert uids(trained) == uids(rollouts)
        assert_balanced(client.books(), trained=400)


# In a process of its own, because what other tests start here (JAX) does not like forks.
FORKING = """
import multiprocessing, os, sys, rollyard
from trainer import make_item
client = rollyard.Client(sys.argv[1])

def write(number):
    return client.write(make_item(f"i{number // 2}", number % 2)).duplicate

assert not write(0)
child = os.fork()
if child == 0:
    for number in range(1, 50):
        assert not write(number)
    os._exit(0)
for number in range(50, 100):
    assert not write(number)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
with multiprocessing.get_context("fork").Pool(4) as pool:
    assert not any(pool.map(write, range(100, 200)))
books = client.books()
assert books.admitted == 200 and books.balanced, books
"""


def run_python(script: str, *arguments: str) -> None:
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script, *arguments], check=True, timeout=60, env=surroundings)


def test_a_client_works_on_both_sides_of_a_fork(serve: Serve) -> None:
    run_python(FORKING, serve("--group-size", "2").url)


def test_clients_leases_and_results_survive_pickling(serve: Serve) -> None:
    with Client(serve("--group-size", "2").url) as client:
        written = client.write_many(make_rollouts(1))
        lease = client.lease()
        stats = client.stats()
        assert lease is not None
        for value in (written, stats, client.leases()[0], client.fate(written.uids[0] or "")):
            assert pickle.loads(pickle.dumps(value)) == value
        travelled = pickle.loads(pickle.dumps(lease))
        assert travelled.groups == lease.groups
        assert travelled.ack().books.trained == 2
        travelled._client.close()


INTERRUPTED = """
import sys, rollyard
client = rollyard.Client(sys.argv[1])
with client.lease():
    print("leased", flush=True)
    client.lease(groups=99, wait_secs=60)
"""


def test_ctrl_c_leaves_no_lease_behind(serve: Serve) -> None:
    with Client(serve("--group-size", "2").url) as client:
        client.write_many(make_rollouts(1))
        command = [sys.executable, "-c", INTERRUPTED, client.url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline() == b"leased\n"
            reader.send_signal(signal.SIGINT)
            assert b"KeyboardInterrupt" in reader.communicate(timeout=30)[1]
        assert_balanced(client.books(), held=2, leased=0)
