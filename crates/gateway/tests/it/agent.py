"""An agent as small as one can be: asks in the environment's words, without any package."""

import json
import os
import pathlib
import subprocess
import sys
import urllib.request


def post(url: str, body: dict) -> dict:
    headers = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def chat(*turns: str) -> list[dict]:
    """All turns in one conversation."""
    messages, answers = [], []
    for turn in turns:
        messages.append({"role": "user", "content": turn})
        body = {"model": os.environ["OPENAI_MODEL"], "messages": messages}
        answers.append(post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body))
        messages.append(answers[-1]["choices"][0]["message"])
    return answers


def main(how: str, *rest: str) -> None:
    data = json.load(sys.stdin)
    if how == "chat":
        answers = chat(*rest)
        print("I am done.", answers[-1]["choices"][0]["message"]["content"])
        print(data.get("reward", 0.5))
    elif how == "claude":
        body = {"model": "claude", "max_tokens": 64, "messages": [{"role": "user", "content": rest[0]}]}
        post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body)
        print(json.dumps({"reward": 1}))
    elif how == "each":
        answers = chat(*rest)
        print(json.dumps({"rewards": {answer["id"]: place for place, answer in enumerate(answers)}}))
    elif how == "says":
        chat("hello")
        print(rest[0])
    elif how == "never":
        print(1)
    elif how == "crashes":
        chat("hello")
        sys.exit("the agent has had enough")
    elif how == "hangs":
        chat("hello")
        child = subprocess.Popen(["sleep", "600"])
        pathlib.Path(rest[0]).write_text(f"{os.getpid()} {child.pid}")
        child.wait()


main(*sys.argv[1:])
