import { describe, expect, test } from "vitest";
import { pair, wentWrong } from "./pairs";
import { messagesOf, type Piece } from "./parts";
import { byPart, locate, spanBetween, spanOf } from "./places";

const piece = (message: number, channel: string, text: string): Piece => ({ message, channel, text });

/** An answer that thinks in a field and in its content, in characters that are more than one unit. */
const MIXED = {
  id: "1",
  messages: [
    { role: "user", content: "🙂 日本語?" },
    {
      role: "assistant",
      reasoning_content: "field 🙂",
      content: "<think>a🙂</think>\nb日<think>c",
      tool_calls: [{ id: "x", function: { name: "f", arguments: '{"a":1}' } }],
      advantage: 0.5,
    },
  ],
  pieces: [
    piece(0, "user", "🙂 日本語?"),
    piece(1, "reasoning", "field 🙂"),
    piece(1, "reasoning", "<think>a🙂</think>"),
    piece(1, "assistant", "\nb日"),
    piece(1, "reasoning", "<think>c"),
    piece(1, "tool_call", 'f {"a":1}'),
  ],
};

describe("parts of a message", () => {
  const messages = messagesOf(MIXED);

  test("are told apart, with what only marks them", () => {
    const shown = messages[1]?.parts.map((part) => [part.kind, part.text.slice(part.lead, part.text.length - part.tail), part.unclosed]);
    expect(shown).toEqual([
      ["reasoning", "field 🙂", false],
      ["reasoning", "a🙂", false],
      ["prose", "b日", false],
      ["reasoning", "c", true],
      ["call", 'f {"a":1}', false],
      ["more", '{"advantage":0.5}', false],
    ]);
  });

  test("are found by characters of the content, and told by them", () => {
    const content = MIXED.messages[1]?.content ?? "";
    for (const wanted of ["a🙂", "b日", "c"]) {
      const start = Array.from(content.slice(0, content.indexOf(wanted, 7))).length;
      const span = { message: 1, start, end: start + Array.from(wanted).length };
      const [place] = locate(messages, span);
      expect(place && place.part.text.slice(place.from, place.to)).toBe(wanted);
      expect(place && spanOf(place)).toEqual(span);
    }
  });

  test("are found by characters of a channel, over all that it says", () => {
    const at = (channel: string, start: number, end: number) =>
      locate(messages, { message: 1, channel, start, end }).map(({ part, from, to }) => part.text.slice(from, to));
    expect(at("reasoning", 6, 7)).toEqual(["🙂"]);
    expect(at("reasoning", 14, 16)).toEqual(["a🙂"]);
    expect(at("reasoning", 31, 32)).toEqual(["c"]);
    expect(at("assistant", 1, 3)).toEqual(["b日"]);
    expect(at("tool_call", 2, 9)).toEqual(['{"a":1}']);
    expect(at("user", 0, 1)).toEqual([]);
    expect(at("reasoning", 500, 510)).toEqual([]);
  });

  test("a span over several marks each of them", () => {
    const marks = byPart(messages, [{ message: 1, start: 7, end: 20, kind: "note" }]);
    expect([...marks.keys()].map((index) => messages[1]?.parts[index - 1]?.kind)).toEqual(["reasoning", "prose"]);
  });

  test("a selection over two messages ends with the first", () => {
    const [user, answer] = [messages[0]?.parts[0], messages[1]?.parts[2]];
    if (!user || !answer) throw new Error("parts are missing");
    expect(spanBetween({ part: user, from: 3, to: 3 }, { part: answer, from: 1, to: 1 })).toEqual({ message: 0, start: 2, end: 6 });
  });

  test("content in parts, images, nothing at all and roles that nobody knows", () => {
    const odd = messagesOf({
      id: "2",
      messages: [
        { role: "user", content: ["one", { type: "text", text: "two" }, { type: "image_url", image_url: { url: "http://x/y.png" } }] },
        { role: "assistant", content: null },
        { role: "critic", content: 7 },
        "only text",
      ],
      pieces: [piece(0, "user", "one"), piece(0, "user", "two"), piece(0, "user", "[image_url]"), piece(2, "user", "7"), piece(3, "user", "only text")],
    });
    expect(odd.map((message) => message.parts.map((part) => part.detail ?? part.text))).toEqual([
      ["one", "two", "image: http://x/y.png, not loaded"],
      [],
      ["7"],
      ["only text"],
    ]);
    expect(odd.map((message) => message.isKnown)).toEqual([true, true, false, true]);
  });

  test("a channel of Harmony that ends where the next begins is closed", () => {
    const [message] = messagesOf({
      id: "3",
      messages: [{ role: "assistant", content: "<|channel|>analysis<|message|>a<|channel|>final<|message|>b<|return|>" }],
      pieces: [piece(0, "reasoning", "<|channel|>analysis<|message|>a"), piece(0, "assistant", "<|channel|>final<|message|>b<|return|>")],
    });
    expect(message?.parts.map((part) => [part.text.slice(part.lead, part.text.length - part.tail), part.unclosed])).toEqual([
      ["a", false],
      ["b", false],
    ]);
  });
});

describe("calls and their results", () => {
  const call = (name: string, id?: string) => ({ ...(id === undefined ? {} : { id }), function: { name, arguments: "{}" } });
  const asked = (...calls: object[]) => ({ role: "assistant", content: null, tool_calls: calls });
  const result = (content: string, id?: string) => ({ role: "tool", content, ...(id === undefined ? {} : { tool_call_id: id }) });
  const pairsOf = (said: object[]) => {
    const messages = messagesOf({ id: "4", messages: said, pieces: [] });
    const parts = messages.flatMap((message) => message.parts);
    const { resultOf } = pair(messages);
    return parts.filter((part) => part.kind === "call").map((part) => `${part.name ?? ""}: ${resultOf.get(part.index)?.text ?? "none"}`);
  };

  test("belong together by id, in whatever order", () => {
    expect(pairsOf([asked(call("f", "a"), call("g", "b")), result("of g", "b"), result("of f", "a")])).toEqual(["f: of f", "g: of g"]);
  });
  test("belong together by order where there are no ids", () => {
    expect(pairsOf([asked(call("f"), call("g")), result("1"), result("2"), asked(call("h")), result("3")])).toEqual(["f: 1", "g: 2", "h: 3"]);
  });
  test("an id that is used again means the last call", () => {
    expect(pairsOf([asked(call("f", "a")), result("1", "a"), asked(call("g", "a")), result("2", "a")])).toEqual(["f: 1", "g: 2"]);
  });
  test("a call without a result and a result without a call stay alone", () => {
    expect(pairsOf([asked(call("f", "a"), call("g", "b")), result("?", "zz"), result("of g", "b")])).toEqual(["f: none", "g: of g"]);
    expect(pairsOf([asked(call("f")), { role: "user", content: "?" }])).toEqual(["f: none"]);
  });
  test("a result that went wrong is known by its fields or its beginning", () => {
    const wrong = (message: object) => {
      const part = messagesOf({ id: "5", messages: [message], pieces: [] })[0]?.parts[0];
      return part && wentWrong(part);
    };
    expect(wrong(result("Traceback (most recent call last):\n  x"))).toBe(true);
    expect(wrong({ ...result("fine"), is_error: true })).toBe(true);
    expect(wrong(result('{"error": "no such file"}'))).toBe(true);
    expect(wrong(result('{"error": null, "value": 1}'))).toBe(false);
    expect(wrong(result("no errors were found"))).toBe(false);
  });
});
