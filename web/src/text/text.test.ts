import { describe, expect, test } from "vitest";
import { characters, unitOf } from "./characters";
import { findAll } from "./find";
import { odds } from "./odd";
import { segments } from "./segments";

describe("characters are what the server counts", () => {
  const cases: [string, number, number][] = [
    ["plain", 3, 3],
    ["a🙂b", 2, 3],
    ["日本語", 2, 2],
    ["🙂🙂", 1, 2],
    ["👩‍👩‍👧", 5, 8],
    ["a\ud800b", 2, 2],
    ["short", 99, 5],
  ];
  for (const [text, character, unit] of cases) {
    test(`${JSON.stringify(text)}: character ${character} is unit ${unit}`, () => {
      expect(unitOf(text, character)).toBe(unit);
      expect(characters(text, unit)).toBe(Math.min(character, characters(text)));
    });
  }
});

describe("what cannot be seen is shown", () => {
  const cases: [string, string[]][] = [
    ["tabs\tand\r\nline ends\n", []],
    ["\u001b[31m\u0000", ["␛", "␀"]],
    ["bell\u0007 del\u007f", ["␇", "␡"]],
    ["a\u202eb\u202c", ["U+202E", "U+202C"]],
    ["zero\u200bwidth\ufeff", ["U+200B", "U+FEFF"]],
    ["half \ud83d", ["U+D83D"]],
    ["tag \u{e0041}", ["U+E0041"]],
    ["family 👩‍👩‍👧, flag 🏴\u{e0067}\u{e0062}", []],
    ["joined a\u200db", ["U+200D"]],
    ["alone\rreturn", ["␍"]],
  ];
  for (const [text, shown] of cases) {
    test(JSON.stringify(text), () => expect(odds(text).map((odd) => odd.shown)).toEqual(shown));
  }
});

describe("segments", () => {
  test("lose nothing and know where they stand", () => {
    const text = "one \u202etwo\u202c three 🙂 four";
    const marks = [
      { from: 2, to: 8, kind: "found" as const },
      { from: 6, to: 16, kind: "note" as const, label: "why" },
    ];
    const cut = segments(text, 1, text.length, marks);
    expect(cut.map((segment) => text.slice(segment.at, segment.at + segment.length)).join("")).toBe(text.slice(1));
    expect(cut.filter((segment) => segment.odd).map((segment) => segment.text)).toEqual(["U+202E", "U+202C"]);
    const marked = (kind: "found" | "note") => cut.filter((segment) => segment.kinds.includes(kind)).reduce((sum, segment) => sum + segment.length, 0);
    expect([marked("found"), marked("note")]).toEqual([6, 10]);
    expect(cut.find((segment) => segment.kinds.includes("note"))?.label).toBe("why");
  });
});

describe("finding", () => {
  test("takes every sign as itself, and keeps to its places whatever lower case does", () => {
    expect(findAll("a.b axb A.B", "a.b", { case: false, limit: 9 })).toEqual([
      { from: 0, to: 3 },
      { from: 8, to: 11 },
    ]);
    expect(findAll("a.b A.B", "A.B", { case: true, limit: 9 })).toEqual([{ from: 4, to: 7 }]);
    // In lower case the first letter is two.
    expect(findAll("İ end", "END", { case: false, limit: 9 })).toEqual([{ from: 2, to: 5 }]);
    expect(findAll("(a)[b]{c}\\^$|/-", "(a)[b]{c}\\^$|/-", { case: false, limit: 9 })).toHaveLength(1);
    expect(findAll("aaaa", "a", { case: false, limit: 3 })).toHaveLength(3);
    expect(findAll("text", "", { case: false, limit: 3 })).toEqual([]);
  });
});
