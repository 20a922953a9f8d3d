import { describe, expect, test } from "vitest";
import { chunks, markdownChunks } from "./chunks";
import { jsonLines } from "./json";
import { runs } from "./terminal";

describe("long texts in stretches", () => {
  const joined = (text: string) => chunks(text, 0, text.length).map(({ from, to }) => text.slice(from, to));

  test("end with lines, and together are the text", () => {
    const text = Array.from({ length: 500 }, (_, i) => `line ${i} ${"x".repeat(i % 90)}`).join("\n");
    const parts = joined(text);
    expect(parts.join("")).toBe(text);
    expect(parts.slice(0, -1).every((part) => part.endsWith("\n"))).toBe(true);
    expect(Math.max(...parts.map((part) => part.length))).toBeLessThanOrEqual(3000);
  });
  test("a line of a megabyte is cut, but never within a character", () => {
    const text = "a" + "🙂".repeat(500_000);
    const parts = joined(text);
    expect(parts.join("")).toBe(text);
    expect(parts.length).toBeGreaterThan(300);
    expect(parts.some((part) => /^[\udc00-\udfff]/.test(part))).toBe(false);
  });
});

describe("Markdown in stretches", () => {
  test("is cut between blocks, never within a fence", () => {
    const code = "```\n" + "a\n\n".repeat(4000) + "```\n";
    const text = "word ".repeat(2000) + "\n\n" + code + "\nend\n";
    const parts = markdownChunks(text, 0, text.length)?.map(({ from, to }) => text.slice(from, to)) ?? [];
    expect(parts.join("")).toBe(text);
    expect(parts.some((part) => part.includes(code))).toBe(true);
    expect(parts.length).toBeGreaterThan(1);
  });
  test("what does not come apart is not drawn as Markdown", () => {
    const text = "*a".repeat(50_000);
    expect(markdownChunks(text, 0, text.length)).toBeNull();
  });
});

describe("JSON in lines", () => {
  const shown = (text: string) =>
    jsonLines(text, 0, text.length)?.map((line) => " ".repeat(line.depth) + line.cells.map((cell) => cell.shown ?? text.slice(cell.at, cell.to)).join(""));

  test("keeps what was written: long numbers, keys that come twice", () => {
    const text = '{"a":12345678901234567890,"a":[1,2],"b":{"c":"' + "x".repeat(60) + '"}}';
    expect(shown(text)).toEqual(["{", ' "a": 12345678901234567890,', ' "a": [1, 2],', ' "b": {', `  "c": "${"x".repeat(60)}"`, " }", "}"]);
    const folds = jsonLines(text, 0, text.length)?.map((line) => line.closes);
    expect(folds).toEqual([6, null, null, 5, null, null, null]);
  });
  test("shows a text of several lines in lines", () => {
    expect(shown('{"code":"a\\n\\tb \\"c\\"","n":1}')).toEqual(["{", ' "code": "', "  a", '  \tb "c"",', ' "n": 1', "}"]);
  });
  test("is not made of what only looks like it", () => {
    expect(jsonLines("{'a': 1}", 0, 8)).toBeNull();
  });
});

describe("terminal text", () => {
  test("has our colours, and its commands are left out", () => {
    const text = "a\u001b[31mred\u001b[1;32mgreen\u001b[0m\u001b[2Kb\u001b[38;5;196mx\u001b[38;2;0;0;255my\u001b]8;;http://evil\u0007z";
    expect(runs(text).map((run) => [text.slice(run.from, run.to), run.colour, run.bold])).toEqual([
      ["a", null, false],
      ["red", "red", false],
      ["green", "green", true],
      ["b", null, false],
      ["x", "red", false],
      ["y", "blue", false],
      ["z", "blue", false],
    ]);
  });
});
