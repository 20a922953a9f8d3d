import { describe, expect, test } from "vitest";
import type { Condition } from "@/state/url";
import { charCount, matcherOf, placeOf, placesIn, textAt, type Piece } from "./place";

const PIECES: Piece[] = [
  { message: 0, channel: "user", text: "wait 🎯?" },
  { message: 1, channel: "reasoning", text: "<think>🎉 wait</think>" },
  { message: 1, channel: "assistant", text: "漢字 Wait." },
  { message: 1, channel: "reasoning", text: "<think>wait</think>" },
  { message: 1, channel: "assistant", text: "so wait" },
];

const wait: Condition = { kind: "all", text: "wait", regex: false, case: false, channels: [] };

test("characters are counted, not UTF-16 units", () => {
  expect(charCount("a🎉漢")).toBe(3);
  expect(charCount("")).toBe(0);
  // Half a pair is a character that cannot be read, but it is there.
  expect(charCount("\ud83c x")).toBe(3);
});

test("what a channel counts is found in its message", () => {
  const cases: [string, number, number, string][] = [
    ["reasoning", 9, 13, "wait"],
    ["assistant", 3, 7, "Wait"],
    // The second piece of a channel counts on from its first.
    ["assistant", 11, 15, "wait"],
    ["reasoning", 21, 28, "<think>"],
  ];
  for (const [channel, start, end, text] of cases) {
    expect(textAt(PIECES, placeOf(PIECES, { message: 1, channel, start, end }))).toBe(text);
  }
  expect(placeOf(PIECES, { message: 1, channel: null, start: 2, end: 4 })).toEqual({ message: 1, range: [2, 4] });
});

describe("the hits of a rollout", () => {
  test("come in reading order, whichever condition they are of", () => {
    const places = placesIn(PIECES, [wait, { ...wait, kind: "any", text: "think" }]);
    expect(places.map((place) => textAt(PIECES, place))).toEqual([
      "wait", "think", "wait", "think", "Wait", "think", "wait", "think", "wait",
    ]);
  });

  test("keep to their channels and their case", () => {
    const texts = (condition: Condition) => placesIn(PIECES, [condition]).map((place) => textAt(PIECES, place));
    expect(texts({ ...wait, channels: ["assistant"] })).toEqual(["Wait", "wait"]);
    expect(texts({ ...wait, case: true, channels: ["assistant"] })).toEqual(["wait"]);
    expect(texts({ ...wait, kind: "none" })).toEqual([]);
  });

  test("of a pattern that browsers do not know are left out", () => {
    expect(placesIn(PIECES, [{ ...wait, regex: true, text: "[[:alpha:]]" }])).toEqual([]);
  });
});

test("patterns of the server are read as it reads them", () => {
  const cases: [string, boolean, boolean, string, boolean][] = [
    ["a.b", false, false, "axb", false],
    ["a.b", false, false, "xA.Bx", true],
    ["a.b", true, true, "A.B", false],
    ["(?i)a.b", true, true, "A.B", true],
    ["(?P<x>a)b", true, true, "ab", true],
    ["a-b/c", false, true, "a-b/c", true],
    ["🎉", false, true, "x🎉", true],
  ];
  for (const [text, regex, hasCase, sample, fits] of cases) {
    expect(matcherOf({ text, regex, case: hasCase })?.test(sample), text).toBe(fits);
  }
});
