import { expect, test } from "vitest";
import { fileGrades } from "./fileGrades";

const PIECES = [
  { message: 0, channel: "user", text: "🎯 two" },
  { message: 1, channel: "assistant", text: "🎉 It is four." },
];

test("grades of the row itself are read, whatever they are made of", () => {
  const grades = {
    accuracy: [
      { grade: 0.5, explanation: "half", quotes: ["is four", "is five"], model: "m" },
      { grade: "unknown" },
    ],
    done: { score: true },
    plain: 3,
  };
  const notes = fileGrades("x", grades, PIECES);
  expect(notes.map(({ metric, score, model }) => [metric, score, model])).toEqual([
    ["accuracy", 0.5, "m"],
    ["done", true, "in the file"],
    ["plain", 3, "in the file"],
  ]);
  expect(notes[0]?.quotes).toEqual([
    { text: "is four", found: true, span: { message: 1, channel: "assistant", start: 5, end: 12 } },
    { text: "is five", found: false },
  ]);
});

test("what is no grade is left out", () => {
  for (const grades of [null, undefined, "x", 3, { a: null }, { a: [] }, { a: [{}] }]) expect(fileGrades("x", grades, PIECES)).toEqual([]);
});
