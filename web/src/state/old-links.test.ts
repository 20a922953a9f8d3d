import { describe, expect, test } from "vitest";
import { locate, parseOldLink } from "./old-links";

describe("links of the older viewer", () => {
  test("are read", () => {
    expect(parseOldLink("?file=a+b.jsonl&rollout=42&message=3&highlight=so%20%22it%22")).toEqual({
      files: ["a b.jsonl"],
      rollout: 42,
      message: 3,
      highlight: 'so "it"',
    });
    expect(parseOldLink("?file=s3%3A%2F%2Fb%2Fa.jsonl&rollout=x&message=-1")).toEqual({ files: ["s3://b/a.jsonl"], rollout: null, message: null, highlight: null });
  });

  test("are told from those of today", () => {
    for (const search of ["", "?place=a", "?place=a&file=b", "?file=", "?rollout=3"]) expect(parseOldLink(search)).toBeNull();
  });
});

describe("a highlighted text", () => {
  const messages = [{ role: "user", content: "wait 😀 wait" }, { role: "assistant", content: [{ type: "text", text: "é no" }, { type: "image" }, { type: "text", text: ", wait" }] }, { role: "tool" }];

  test("is found in characters, in the message that is named", () => {
    expect(locate(messages, 0, "😀 wait")).toEqual({ message: 0, range: [5, 11] });
    expect(locate(messages, 1, "wait")).toEqual({ message: 1, range: [6, 10] });
  });

  test("is found elsewhere when the message does not have it", () => {
    expect(locate(messages, 2, "no,")).toEqual({ message: 1, range: [2, 5] });
    expect(locate(messages, 99, "wait")).toEqual({ message: 0, range: [0, 4] });
    expect(locate(messages, null, "never")).toBeNull();
  });
});
