import { expect, test } from "vitest";
import { marked, unitsBefore } from "./snippet";

const bytes = (text: string) => new TextEncoder().encode(text).length;

test("bytes of UTF-8 become units of UTF-16", () => {
  const text = "aé漢🎉z";
  for (const before of ["", "a", "aé", "aé漢", "aé漢🎉", text]) expect(unitsBefore(text, bytes(before))).toBe(before.length);
  // Inside of a character: at its beginning.
  expect(unitsBefore(text, 8)).toBe(3);
  expect(unitsBefore(text, 99)).toBe(text.length);
});

test("the hit is cut out exactly, whatever stands around it", () => {
  const [before, hit, after] = ["漢字\n🎉 ", "né🎯", " done\r\nnext"];
  expect(marked(before + hit + after, [bytes(before), bytes(before + hit)])).toEqual({
    before: "漢字⏎🎉 ",
    hit,
    after: " done⏎next",
  });
});

test("a long beginning is cut, and never through a character", () => {
  const { before, hit } = marked(`${"🎉".repeat(40)}x!`, [161, 162]);
  expect(before.startsWith("…🎉")).toBe(true);
  expect(before.length).toBeLessThan(40);
  expect(hit).toBe("!");
});

test("what could turn a line around is shown as a dot", () => {
  expect(marked("a\u202eb\u0007c", [0, 1])).toEqual({ before: "", hit: "a", after: "·b·c" });
});
