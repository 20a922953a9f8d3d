"""The HTTP calls that the README and the guides show, in their order, against a real server."""

from __future__ import annotations

import json
import pathlib
import shlex
import time

import requests

import trainer
from serving import ROOT, Serve


def curl_lines(page: str = "README.md") -> list[list[str]]:
    """Every `curl` line in the page's bash blocks, taken apart."""
    blocks = (ROOT / page).read_text().split("```bash\n")[1:]
    lines = [line for block in blocks for line in block.split("```")[0].splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("curl ")]


def run(words: list[str], base: str, folder: pathlib.Path) -> requests.Response:
    """Does what curl would: -d, --data-binary @file, -H, -X and -N are all the README uses."""
    method, data, headers, url = "GET", None, {}, ""
    words = words[1:]
    while words:
        word = words.pop(0)
        if word in ("-d", "--data-binary"):
            method, data = "POST", words.pop(0)
            if data.startswith("@"):
                data = (folder / data[1:]).read_text()
        elif word == "-H":
            name, value = words.pop(0).split(": ")
            headers[name] = value
        elif word == "-X":
            method = words.pop(0)
        elif word != "-N":
            url = word.replace("localhost:8889", base.removeprefix("http://"))
    return requests.request(method, f"http://{url}", data=data, headers=headers, timeout=10, stream=True)


def test_the_calls_in_the_readme_work(serve: Serve, tmp_path: pathlib.Path) -> None:
    server = serve("--group-size", "2")
    rollouts = [trainer.make_item(f"i{n // 2}", reward=n % 2) for n in range(128)]
    (tmp_path / "rollouts.jsonl").write_text("\n".join(json.dumps(item) for item in rollouts))
    write_sampled(tmp_path)
    answers = run_all(curl_lines(), server.url, tmp_path)
    written, leased, acked, committed, rewound = (json.loads(text) for text in answers[:5])
    assert written["accepted"] == 128
    assert len(leased["groups"]) == 64
    assert acked["books"]["trained"] == 128
    assert committed["changed"]
    assert rewound["books"] | {"held": 128, "trained": 0} == rewound["books"]


def test_the_calls_in_the_guide_to_sampling_work(serve: Serve, tmp_path: pathlib.Path) -> None:
    write_sampled(tmp_path)
    page = "docs/guide/replay-server.md"
    answers = [json.loads(text) for text in run_all(curl_lines(page), serve().url, tmp_path)]
    _, written, first, second, acked, committed, pool, rewound = answers
    assert written["accepted"] == 8
    shares = [[row["uid"] for row in answer["rollouts"]] for answer in (first, second)]
    assert [len(share) for share in shares] == [2, 2]
    assert len({*shares[0], *shares[1]}) == 4
    assert acked["changed"] and committed["changed"]
    assert pool["lengths"]["maths"]["trained"]["count"] == 4
    assert rewound["books"]["balanced"]


def write_sampled(folder: pathlib.Path) -> None:
    """Rollouts as a run in replay mode takes them."""
    source = {"env_name": "maths", "weight_version": 0}
    rollouts = [trainer.make_item(f"s{n // 2}", reward=n % 2) | source for n in range(8)]
    for rollout in rollouts:
        rollout["timestamp"] = time.time()
    (folder / "sampled.jsonl").write_text("\n".join(json.dumps(item) for item in rollouts))


def run_all(lines: list[list[str]], base: str, folder: pathlib.Path) -> list[str]:
    answers = []
    for words in lines:
        answer = run(words, base, folder)
        assert answer.ok, f"{words}: {answer.status_code} {answer.text}"
        endless = answer.headers["Content-Type"].startswith("text/event-stream")
        answers.append("" if endless else answer.text)
        answer.close()
    return answers
