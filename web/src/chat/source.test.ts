import { expect, test } from "vitest";
import { withSource, type Node } from "./source";

const text = (value: string, from: number, to: number): Node => ({ type: "text", value, position: { start: { offset: from }, end: { offset: to } } });
const element = (tagName: string, from: number, to: number, ...children: Node[]): Node => ({
  type: "element",
  tagName,
  properties: {},
  position: { start: { offset: from }, end: { offset: to } },
  children,
});

test("rendered text knows its place in the source, and marks land on it", () => {
  const source = "1. same\n2. same &amp; `same`\n";
  const tree = element(
    "root",
    0,
    source.length,
    element("ol", 0, 28, { type: "text", value: "\n" }, element("li", 0, 7, text("same", 3, 7)), { type: "text", value: "\n" }, element("li", 8, 28, text("same & ", 11, 22), element("code", 22, 28, { type: "text", value: "same" }))),
  );
  withSource(source, 100, [{ from: 123, to: 127, kind: "found" }])()(tree);
  const [before, first, , second] = tree.children?.[0]?.children ?? [];
  // A list may hold nothing but its items.
  expect(before).toEqual({ type: "text", value: "\n" });
  expect(first?.children?.[0]?.properties).toEqual({ dataAt: 103 });
  // What is written otherwise in the source has the place where it begins, and no length.
  expect(second?.children?.[0]?.properties).toEqual({ dataAt: 111, dataLength: 0 });
  const marked = second?.children?.[1]?.children?.[0];
  expect([marked?.tagName, marked?.properties]).toEqual(["mark", { dataAt: 123, dataKind: "found" }]);
});
