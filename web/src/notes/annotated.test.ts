import { expect, test } from "vitest";
import { chosen, clauseOf, heaps } from "./annotated";
import type { Note } from "./notes";

const note = (id: string, more: Partial<Note>): Note => ({ note: "n", id, kind: "verdict", at: 0, ...more });

test("rollouts are heaped by what was said last", () => {
  const found = heaps([
    note("a", { verdict: "bad", by: "ann" }),
    note("a", { verdict: "good", by: "ann" }),
    note("b", { verdict: "good" }),
    note("b", { kind: "tag", tag: "leak" }),
    note("a", { kind: "tag", tag: "leak" }),
    note("a", { kind: "tag", tag: "leak", by: "bob" }),
    note("c", { kind: "comment", text: "hm" }),
    note("c", { kind: "grade", metric: "accuracy", model: "m", score: 1 }),
    note("d", { kind: "grade", metric: "accuracy", score: 1 }),
  ]);
  expect(found.map(({ kind, name, ids }) => `${kind} ${name}: ${ids.join(" ")}`)).toEqual([
    "verdict bad: a",
    "verdict good: b",
    "tag leak: b a",
    "comment commented: c",
    "grade accuracy: c",
  ]);
});

test("one list of ids is on at a time", () => {
  const first = clauseOf({ kind: "tag", name: "x", ids: ["a", "b"] });
  expect(first).toBe('id in ("a", "b")');
  const second = clauseOf({ kind: "tag", name: "y", ids: ["c"] });
  expect(chosen(["step == 1"], first)).toEqual(["step == 1", first]);
  expect(chosen(["step == 1", first], second)).toEqual(["step == 1", second]);
  expect(chosen(["step == 1", second], second)).toEqual(["step == 1"]);
});
