"""Rollout batches handed over as files and through memory."""

from __future__ import annotations

import logging
import os
import pathlib
import pickle
import re
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import numpy as np
import pyarrow.ipc  # type: ignore[import-untyped]
import pytest
from moto.server import ThreadedMotoServer

from rollyard import (
    BatchError,
    FileRolloutReader,
    FileRolloutWriter,
    InMemoryRolloutQueue,
    RolloutBatch,
    RolloutGroup,
    RolloutMetadata,
    RolloutReader,
    RolloutStorageConfig,
    RolloutWriter,
    RollyardError,
    StorageError,
    StorageType,
    resolve_metadata,
)
from samples import make_rollout, run_python

NAN = float("nan")
SENT = RolloutMetadata("host_1", 12.5, 7)


def make_batch(name: str = "a", *, groups: int = 2, metadata: RolloutMetadata = SENT) -> RolloutBatch:
    """Groups of three rollouts that carry the metadata themselves; everything about them is said."""
    rollouts = [
        make_rollout(
            f"{name}{n}",
            loss_mask=[1, 0, 1],
            versions=[6, -1, 7],
            token_rewards=[0, 0.5, -0.0],
            episode_reward=n / 3,
            temperature=0.7,
            top_k=50,
            is_truncated=True,
            metadata=RolloutMetadata("host_1", 1.5 + n, 7),
            correctness_reward=0.25,
            exact=False,
        )
        for n in range(3)
    ]
    return RolloutBatch([RolloutGroup(rollouts) for _ in range(groups)], metadata)


def name_of(batch: RolloutBatch | None) -> str:
    assert batch is not None
    return batch.groups[0].rollouts[0].env_example_id.rstrip("0")


def names_of(batches: list[RolloutBatch]) -> list[str]:
    return [name_of(batch) for batch in batches]


def files_of(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a real server that speaks S3."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty bucket, which the environment says how to reach."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert httpx.post(f"{s3}/moto-api/reset").is_success
    assert httpx.put(f"{s3}/rollouts").is_success
    return "s3://rollouts"


@pytest.fixture(params=["file", "s3", "in_memory"])
def config(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> RolloutStorageConfig:
    if request.param == "in_memory":
        return RolloutStorageConfig("in_memory", queue_name=request.node.name, queue_maxlen=None)
    path = tmp_path if request.param == "file" else f"{request.getfixturevalue('bucket')}/run/1"
    return RolloutStorageConfig(StorageType.FILE, path)


def test_every_batch_comes_once_and_in_order(config: RolloutStorageConfig) -> None:
    reader, writer = config.create_reader(), config.create_writer()
    assert isinstance(reader, RolloutReader) and isinstance(writer, RolloutWriter)
    assert reader.read_batch() is None and reader.read_all_available() == []
    for name in "abc":
        writer.write_batch(make_batch(name))
    assert reader.read_batch() == make_batch("a")
    assert reader.read_all_available() == [make_batch("b"), make_batch("c")]
    assert reader.read_batch(timeout=0.01) is None and reader.read_all_available() == []


def test_a_reader_waits_for_a_batch_and_no_longer(config: RolloutStorageConfig) -> None:
    reader = config.create_reader()
    writing = threading.Timer(0.1, lambda: config.create_writer().write_batch(make_batch()))
    writing.start()
    assert reader.read_batch(timeout=30) == make_batch()
    writing.join()
    begun = time.monotonic()
    assert reader.read_batch(timeout=0.1) is None
    assert 0.1 <= time.monotonic() - begun < 5
    assert reader.read_batch(timeout=-1) is None


def test_batches_of_no_groups_are_batches(config: RolloutStorageConfig) -> None:
    empty = RolloutBatch([], SENT)
    config.create_writer().write_batch(empty)
    assert config.create_reader().read_batch(timeout=5) == empty


def test_what_was_read_is_as_exact_as_what_was_written(tmp_path: pathlib.Path) -> None:
    FileRolloutWriter(tmp_path).write_batch(make_batch())
    read = FileRolloutReader(tmp_path).read_batch()
    assert read is not None and read.metadata == SENT
    [again, *_], [written, *_] = read.groups[0].rollouts, make_batch().groups[0].rollouts
    for name in ("tokens", "response_logprobs", "token_rewards", "loss_mask", "versions"):
        np.testing.assert_array_equal(getattr(again, name), getattr(written, name), strict=True)
    assert np.signbit(again.token_rewards[2])
    for name in ("temperature", "top_k", "is_truncated", "correctness_reward", "metadata", "exact", "turns"):
        assert getattr(again, name) == getattr(written, name), name
    assert pickle.loads(pickle.dumps(read)) == read == make_batch()
    assert pickle.loads(pickle.dumps(make_batch())) == read


def test_a_deleted_and_a_damaged_file_are_skipped_and_told(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = FileRolloutWriter(tmp_path)
    for name in "abcde":
        writer.write_batch(make_batch(name))
    files = files_of(tmp_path)
    # A link to nowhere is listed and then not there, like a file that is deleted meanwhile.
    files[1].unlink()
    files[1].symlink_to("nowhere")
    files[2].write_bytes(files[2].read_bytes()[:1000])
    content = bytearray(files[3].read_bytes())
    content[content.index(b"d1")] ^= 0x40
    files[3].write_bytes(content)

    one, other = FileRolloutReader(tmp_path), FileRolloutReader(tmp_path)
    with caplog.at_level(logging.ERROR, logger="rollyard"):
        one_by_one = list(iter(one.read_batch, None))
    lines = len(caplog.records)
    at_once = other.read_all_available()
    # Of the batch with a bit flipped, only the row is missing that it was in.
    assert at_once == one_by_one and names_of(at_once) == ["a", "d", "e"]
    assert [len(group) for group in at_once[1]] == [2, 3]
    for reader in (one, other):
        names, whys = zip(*reader.problems, strict=True)
        assert names == tuple(file.name for file in files[1:4]) and reader.problems_total == 3
        for why, words in zip(whys, ["gone", "middle of a message", "row 1 of group 0"], strict=True):
            assert words in why
    assert lines == 3 and all(record.name == "rollyard" for record in caplog.records)
    assert files[2].name in caplog.records[1].getMessage()


def test_what_is_no_file_of_rollouts_is_left_alone(tmp_path: pathlib.Path) -> None:
    names = ("notes.txt", "00001763251200000000_host_000003.pkl", ".hidden.arrow")
    for name in names:
        (tmp_path / name).write_bytes(pickle.dumps("not rollouts"))
    writer, reader = FileRolloutWriter(tmp_path, max_rollout_files=1), FileRolloutReader(tmp_path)
    writer.write_batch(make_batch("a"))
    writer.write_batch(make_batch("b"))
    assert names_of(reader.read_all_available()) == ["b"] and reader.problems == []
    writer.clear_queue()
    assert {file.name for file in files_of(tmp_path)} == set(names)


def test_a_reader_beside_a_writer_never_sees_a_broken_file(tmp_path: pathlib.Path) -> None:
    writer, reader = FileRolloutWriter(tmp_path, max_rollout_files=1000), FileRolloutReader(tmp_path)

    def write() -> None:
        for n in range(200):
            writer.write_batch(make_batch(f"{n}-"))

    thread = threading.Thread(target=write)
    thread.start()
    seen: list[str] = []
    while len(seen) < 200:
        batch = reader.read_batch(timeout=60)
        seen.append(name_of(batch))
    thread.join()
    assert seen == [f"{n}-" for n in range(200)] and reader.problems_total == 0


@pytest.mark.parametrize("kind", ["file", "s3"])
def test_a_folder_keeps_the_newest_files_of_all_writers(
    kind: str, request: pytest.FixtureRequest, tmp_path: pathlib.Path
) -> None:
    path = str(tmp_path) if kind == "file" else f"{request.getfixturevalue('bucket')}/run"
    config = RolloutStorageConfig("file", path, max_rollout_files=3)
    for name in "abcde":
        config.create_writer().write_batch(make_batch(name))
    assert names_of(config.create_reader().read_all_available()) == ["c", "d", "e"]
    writer = FileRolloutWriter(path)
    writer.clear_queue()
    assert config.create_reader().read_batch() is None


def test_names_are_marins_with_an_ending_of_our_own(tmp_path: pathlib.Path) -> None:
    before = time.time()
    FileRolloutWriter(tmp_path).write_batch(make_batch())
    [file] = files_of(tmp_path)
    found = re.fullmatch(r"(\d{20})_(\S+)_(\d{6})\.arrow", file.name)
    assert found is not None
    assert before - 1 < int(found[1]) / 1e6 < time.time() + 1


def test_metrics_have_marins_names(tmp_path: pathlib.Path) -> None:
    writer = FileRolloutWriter(tmp_path)
    assert set(writer.get_metrics().values()) == {0.0}
    writer.write_batch(make_batch())
    first = writer.get_metrics()
    writer.write_batch(make_batch())
    metrics = writer.get_metrics()
    assert (
        set(metrics)
        == set(first)
        == {
            f"rollout_storage/{name}"
            for name in (
                "last_serialize_time",
                "last_write_time",
                "last_total_time",
                "last_size_bytes",
                "cumulative_write_time",
                "cumulative_batch_count",
            )
        }
    )
    assert metrics["rollout_storage/cumulative_batch_count"] == 2
    assert metrics["rollout_storage/last_size_bytes"] == files_of(tmp_path)[0].stat().st_size
    both = first["rollout_storage/last_write_time"] + metrics["rollout_storage/last_write_time"]
    assert metrics["rollout_storage/cumulative_write_time"] == pytest.approx(both)
    assert metrics["rollout_storage/last_total_time"] >= metrics["rollout_storage/last_write_time"] > 0


def test_old_rollouts_take_the_metadata_of_their_batch(tmp_path: pathlib.Path) -> None:
    own = RolloutMetadata("other_2", 3.5, 5)
    old = RolloutBatch([RolloutGroup([make_rollout("a"), make_rollout("b", metadata=own)])], SENT)
    FileRolloutWriter(tmp_path).write_batch(old)
    for batch in (resolve_metadata(old), FileRolloutReader(tmp_path).read_batch()):
        assert batch is not None
        first, second = batch.groups[0]
        assert (first.metadata, first.versions.tolist()) == (SENT, [7, 7, 7])
        assert (second, batch.metadata) == (make_rollout("b", metadata=own), SENT)
    # What was given is left as it was.
    assert old.groups[0].rollouts[0].metadata == RolloutMetadata()


def test_files_are_arrow_and_say_what_is_in_them(tmp_path: pathlib.Path) -> None:
    FileRolloutWriter(tmp_path).write_batch(make_batch())
    [file] = files_of(tmp_path)
    table = pyarrow.ipc.open_stream(file.read_bytes()).read_all()
    table.validate(full=True)
    page = (pathlib.Path(__file__).parents[2] / "docs/reference/rollout-files.md").read_text()
    columns = re.findall(r"^\| `(\w+)` \| ([\w<>]+)", page, re.MULTILINE)
    said = [(field.name, str(field.type)) for field in table.schema]
    arrow = {"list<item: int32 not null>": "list<int32>", "list<item: float not null>": "list<float32>"}
    arrow |= {"list<item: bool not null>": "list<bool>", "double": "float64", "float": "float32"}
    arrow |= {"string": "utf8"}
    assert [(name, arrow.get(kind, kind)) for name, kind in said] == columns
    row = table.to_pylist()[4]
    assert (row["env_example_id"], row["group"], row["episode_reward"]) == ("a1", 1, 1 / 3)
    assert (row["prompt_tokens"], row["response_tokens"]) == ([1, 2], [100, 101, 102])
    assert (row["response_logprobs"], row["loss_mask"]) == ([-0.5, -0.25, -0.125], [True, False, True])
    assert (row["versions"], row["token_rewards"]) == ([6, -1, 7], [0, 0.5, 0])
    assert (row["worker_id"], row["timestamp"], row["weight_step"]) == ("host_1", 2.5, 7)
    assert (row["top_k"], row["is_truncated"], row["exact"], row["uid"]) == (50, True, False, None)
    facts = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert facts["rollyard.format"] == "1" and facts["rollyard.rows"] == "6"
    assert (facts["rollyard.worker_id"], facts["rollyard.timestamp"]) == ("host_1", "12.5")
    for key in facts:
        assert f"`{key}`" in page, key


def test_columns_that_others_add_are_passed_over(tmp_path: pathlib.Path) -> None:
    FileRolloutWriter(tmp_path).write_batch(make_batch())
    [file] = files_of(tmp_path)
    table = pyarrow.ipc.open_stream(file.read_bytes()).read_all()
    notes = pyarrow.array([{"a": [n], "b": str(n)} for n in range(len(table))])
    labels = pyarrow.array(["good"] * len(table)).dictionary_encode()
    table = table.add_column(0, "labels", labels).append_column("notes", notes)
    with pyarrow.OSFile(str(file), "wb") as out, pyarrow.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table, max_chunksize=4)
    assert FileRolloutReader(tmp_path).read_batch() == make_batch()


def test_s3_tells_what_to_check(bucket: str) -> None:
    for act in (
        lambda: FileRolloutWriter("s3://nobody-has-this/run"),
        lambda: FileRolloutReader("s3://nobody-has-this/run").read_batch(),
    ):
        with pytest.raises(StorageError, match="check the bucket, AWS_ENDPOINT_URL") as raised:
            act()
        assert str(raised.value).endswith("s3://nobody-has-this/run")
    with pytest.raises(StorageError, match="no bucket"):
        FileRolloutReader("s3://")


def test_a_damaged_object_is_skipped_and_told(bucket: str, s3: str) -> None:
    path = f"{bucket}/run"
    writer, reader = FileRolloutWriter(path), FileRolloutReader(path)
    for name in "abc":
        writer.write_batch(make_batch(name))
    keys = re.findall(r"<Key>(.*?)</Key>", httpx.get(f"{s3}/rollouts?list-type=2").text)
    assert len(keys) == 3
    signed = {"Authorization": "AWS key:anything will do"}
    assert httpx.put(f"{s3}/rollouts/{keys[1]}", content=b"not rollouts", headers=signed).is_success
    assert names_of(reader.read_all_available()) == ["a", "c"]
    [(name, why)] = reader.problems
    assert f"run/{name}" == keys[1] and "not an Arrow stream" in why


@pytest.mark.parametrize("kind", ["file", "s3"])
def test_a_fork_reads_and_writes_on_its_own(
    kind: str, request: pytest.FixtureRequest, tmp_path: pathlib.Path
) -> None:
    path = str(tmp_path) if kind == "file" else f"{request.getfixturevalue('bucket')}/run"
    script = """
import os, sys
from rollyard import FileRolloutReader, FileRolloutWriter
from test_storage import make_batch, names_of
writer, reader = FileRolloutWriter(sys.argv[1]), FileRolloutReader(sys.argv[1])
writer.write_batch(make_batch("a"))
assert names_of([reader.read_batch()]) == ["a"]
if os.fork() == 0:
    writer.write_batch(make_batch("b"))
    assert names_of(reader.read_all_available()) == ["b"]
    os._exit(0)
assert os.wait()[1] == 0
writer.write_batch(make_batch("c"))
print(names_of(reader.read_all_available()))
"""
    assert run_python(script, path) == "['b', 'c']"


def test_a_fork_of_a_busy_reader_does_not_hang(tmp_path: pathlib.Path) -> None:
    script = """
import os, sys, threading
from rollyard import FileRolloutReader, FileRolloutWriter, StorageError
from test_storage import make_batch
reader, done = FileRolloutReader(sys.argv[1]), False
def read():
    while not done:
        reader.read_all_available()
for _ in range(4):
    threading.Thread(target=read).start()
for _ in range(50):
    if os.fork() == 0:
        try:
            reader.read_all_available()
        except StorageError as error:
            assert "make a new reader" in str(error)
        os._exit(0)
    assert os.wait()[1] == 0
done = True
"""
    FileRolloutWriter(tmp_path).write_batch(make_batch())
    assert run_python(script, str(tmp_path)) == ""


def test_named_queues_are_shared_in_a_process() -> None:
    config = RolloutStorageConfig("in_memory", queue_name="shared", queue_maxlen=2)
    writer = config.create_writer()
    writer.write_batch(make_batch("a"))
    other = RolloutStorageConfig(StorageType.IN_MEMORY, queue_name="other")
    assert other.create_reader().read_batch() is None
    assert names_of(config.create_reader().read_all_available()) == ["a"]


@pytest.mark.parametrize("make_room", [InMemoryRolloutQueue.pop_all, InMemoryRolloutQueue.clear_queue])
def test_a_full_queue_makes_writers_wait(make_room: Callable[[InMemoryRolloutQueue], object]) -> None:
    queue = InMemoryRolloutQueue(maxlen=1)
    queue.push(make_batch("a"))
    pushing = threading.Thread(target=queue.push, args=(make_batch("b"),))
    pushing.start()
    pushing.join(0.05)
    assert pushing.is_alive()
    make_room(queue)
    pushing.join(30)
    assert not pushing.is_alive() and name_of(queue.pop()) == "b"
    assert queue.pop() is None


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (lambda path: RolloutStorageConfig("tape"), ValueError, "'tape' is not a valid StorageType"),
        (lambda path: RolloutStorageConfig("file").create_reader(), ValueError, "path is None"),
        (lambda path: RolloutStorageConfig("in_memory").create_writer(), ValueError, "queue_name is None"),
        (lambda path: FileRolloutWriter(path, 0), ValueError, "max_rollout_files is 0, but must be at least"),
        (lambda path: FileRolloutWriter(path, -5), ValueError, "max_rollout_files is -5"),
        (lambda path: InMemoryRolloutQueue(maxlen=0), ValueError, "maxlen is 0"),
        (
            lambda path: FileRolloutReader("gs://bucket/run"),
            StorageError,
            "give a path, file:///path or s3://",
        ),
        (lambda path: FileRolloutWriter(path / "file/folder"), StorageError, "cannot make the folder"),
        (
            lambda path: FileRolloutWriter(path).write_batch(make_batch(metadata=RolloutMetadata("", NAN))),
            BatchError,
            "timestamp is NaN",
        ),
    ],
)
def test_what_cannot_be_is_told(
    act: Callable[[pathlib.Path], object], kind: type[Exception], words: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(kind, match=words) as raised:
        act(tmp_path)
    assert kind is ValueError or isinstance(raised.value, RollyardError)
    assert kind is not StorageError or isinstance(raised.value, OSError)
