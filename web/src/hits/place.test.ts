import { describe, expect, test } from "vitest";
import type { Condition } from "@/state/url";
import { charCount, matcherOf, placesIn, type Piece, type Place } from "./place";

const PIECES: Piece[] = [
  { message: 0, channel: "user", text: "wait 🎯?" },
  { message: 1, channel: "reasoning", text: "<think>🎉 wait</think>" },
  { message: 1, channel: "assistant", text: "漢字 Wait." },
  { message: 1, channel: "reasoning", text: "<think>wait</think>" },
  { message: 1, channel: "assistant", text: "so wait" },
];

const wait: Condition = { kind: "all", text: "wait", regex: false, case: false, channels: [] };

/** The text at a place, counted the slow way. */
function textAt({ message, channel, range }: Place): string {
  const said = PIECES.filter((piece) => piece.message === message && piece.channel === channel).map(({ text }) => text);
  return Array.from(said.join("")).slice(...range).join("");
}

test("characters are counted, not UTF-16 units", () => {
  expect(charCount("a🎉漢")).toBe(3);
  expect(charCount("")).toBe(0);
  // Half a pair is a character that cannot be read, but it is there.
  expect(charCount("\ud83c x")).toBe(3);
});

describe("the hits of a rollout", () => {
  test("come in reading order, whichever condition they are of", () => {
    const places = placesIn(PIECES, [wait, { ...wait, kind: "any", text: "think" }]);
    expect(places.map(textAt)).toEqual([
      "wait", "think", "wait", "think", "Wait", "think", "wait", "think", "wait",
    ]);
  });

  test("keep to their channels and their case", () => {
    const texts = (condition: Condition) => placesIn(PIECES, [condition]).map(textAt);
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
