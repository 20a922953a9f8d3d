import { describe, expect, test } from "vitest";
import { read, search, shown } from "./data";

const rows = [
  { id: "aa11", values: [1, 0.123456, "math/gsm"] },
  { id: "bb22", values: [2, null, "code/unit-tests"] },
];

describe("the data of an exported file", () => {
  test("is read from its block, whatever is in it", () => {
    const page = document.implementation.createHTMLDocument();
    const block = page.createElement("script");
    block.id = "rollouts";
    block.textContent = String.raw`{"title": "\u003c/script>", "rows": []}`;
    page.body.append(block);
    expect(read(page).title).toBe("</script>");
  });

  test("is missed with a reason", () => {
    expect(() => read(document.implementation.createHTMLDocument())).toThrow(/cut off/);
  });

  test("is searched by all words", () => {
    const found = (words: string) => search(rows, words).map((row) => row.id);
    expect(found("")).toEqual(["aa11", "bb22"]);
    expect(found("MATH")).toEqual(["aa11"]);
    expect(found("bb2 code")).toEqual(["bb22"]);
    expect(found("math code")).toEqual([]);
  });

  test("is shown shortly", () => {
    expect([0.123456, 3, null, true, "x", { a: 1 }].map(shown)).toEqual(["0.1235", "3", "", "true", "x", '{"a":1}']);
  });
});
