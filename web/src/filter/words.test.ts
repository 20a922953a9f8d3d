import { expect, test } from "vitest";
import { blamed, words } from "./words";

test("words are told apart and nothing is lost", () => {
  const filter = 'reward.format >= .5 AND x contains "a \\" b" or not (y == \'é\') and n == 12 \n "open';
  const found = words(filter);
  expect(found.map((word) => word.text).join("")).toBe(filter);
  const kinds = found.filter((word) => word.kind !== "other").map((word) => `${word.kind}:${word.text}`);
  expect(kinds).toContain("name:reward.format");
  expect(kinds).toContain("keyword:contains");
  expect(kinds).toContain('text:"a \\" b"');
  expect(kinds).toContain("number:12");
  expect(kinds.at(-1)).toBe('text:"open');
});

test("the blamed part is cut out of its words", () => {
  const parts = blamed("rewrd > 1", 0, 5);
  expect(parts.filter((part) => part.bad).map((part) => part.text)).toEqual(["rewrd"]);
  expect(parts.map((part) => part.text).join("")).toBe("rewrd > 1");
  expect(blamed("ab cd", 1, 4).filter((part) => part.bad).map((part) => part.text).join("")).toBe("b c");
});
