import { describe, expect, test } from "vitest";
import { fromBytes, taken, toBytes } from "./offsets";

describe("offsets", () => {
  const texts = ["", "reward > 1", 'a == "é" and b', 'x == "日本" ', '😀 == "👩‍🚀"', 'a\nb == "∀"'];

  test("go to bytes and back at every character", () => {
    for (const text of texts) {
      let at = 0;
      for (const character of [...Array.from(text), ""]) {
        expect(fromBytes(text, toBytes(text, at))).toBe(at);
        at += character.length;
      }
    }
  });

  test("count bytes as the server does", () => {
    expect(toBytes('a == "é" ', 9)).toBe(10);
    expect(toBytes("😀x", 2)).toBe(4);
    expect(fromBytes("日本", 3)).toBe(1);
  });

  test("inside a character are its beginning, and beyond the end are the end", () => {
    expect(fromBytes("a😀b", 3)).toBe(1);
    expect(fromBytes("é", 99)).toBe(1);
  });
});

describe("a suggestion that is taken", () => {
  const cases: [string, number, number, { text: string; kind: string }, string, number][] = [
    ["re", 0, 2, { text: "reward", kind: "field" }, "reward ", 7],
    ['a == "é" and re', 14, 16, { text: "reward", kind: "field" }, 'a == "é" and reward ', 20],
    ["re > 1", 0, 2, { text: "reward", kind: "field" }, "reward > 1", 7],
    ["le", 0, 2, { text: "length(", kind: "keyword" }, "length(", 7],
  ];
  test.each(cases)("%s", (text, from, to, suggestion, wanted, at) => {
    expect(taken(text, from, to, suggestion)).toEqual({ text: wanted, at });
  });
});
