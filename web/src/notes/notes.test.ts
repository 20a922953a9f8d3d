import { expect, test } from "vitest";
import { scoreText, sorted, type Note } from "./notes";

const note = (name: string, more: Partial<Note>): Note => ({ note: name, id: "x", kind: "verdict", at: 0, ...more });

test("the last word of each counts, and people are told from models", () => {
  const said = sorted([
    note("1", { verdict: "good", by: "ann" }),
    note("2", { verdict: "bad", by: "bob" }),
    note("3", { verdict: "bad", by: "ann" }),
    note("4", { kind: "tag", tag: "leak" }),
    note("5", { kind: "tag", tag: "leak", by: "bob" }),
    note("6", { kind: "comment", text: "why?" }),
    note("7", { kind: "grade", metric: "accuracy", score: 1, by: "ann" }),
    note("8", { kind: "grade", metric: "accuracy", score: 0, model: "m", by: "model:m" }),
    note("9", { kind: "grade", metric: "accuracy", score: 0.5, model: "m", by: "model:m" }),
  ]);
  const names = (notes: Note[]) => notes.map((each) => each.note).join(" ");
  expect(names(said.verdicts)).toBe("3 2");
  expect(names(said.tags)).toBe("5");
  expect(names(said.comments)).toBe("6");
  expect(names(said.grades)).toBe("7");
  expect(names(said.byModels)).toBe("9");
});

test("scores of every kind are read", () => {
  expect([true, false, 0.123456, 3, undefined].map(scoreText)).toEqual(["yes", "no", "0.123", "3", "–"]);
});
