import { expect, test } from "vitest";
import { lineOf, linesOf } from "./lines";
import { modelOf, nextWorst, worstOf } from "./model";
import { nameOf, placeIn } from "./place";
import { advantageStep, colourOf, entropyStep, legendOf, logprobStep } from "./scale";
import { bucketsOf } from "./strip";
import { cells, visible, visibleText } from "./visible";

const answer = {
  tokens: [1, 2, 3, 4, 5],
  prompt_len: 2,
  mask: [true, false, true],
  logprobs: [-0.05, -9, -3],
  versions: [7, 7, 6],
  exact: true, problems: [],
  texts: ["Hi", "\n", " a", "\u001b[0m", "b"],
  entropies: [0.05, 0.6, 2.5],
  advantages: [-1, 0, 0.25],
};

test("values are about the tokens after the prompt", () => {
  const model = modelOf(answer);
  expect(model.token(1)).toMatchObject({ isPrompt: true, logprob: null, version: null, text: "\n" });
  expect(model.token(4)).toMatchObject({ isPrompt: false, isTrained: true, logprob: -3, version: 6, entropy: 2.5, advantage: 0.25, id: 5 });
  expect(model.trained).toBe(2);
  expect(model.versions).toEqual([7, 6]);
});

test("the worst token is one that was sampled", () => {
  expect(modelOf(answer).worst).toEqual([4, 2]);
  expect(worstOf([-1, null, -5, -5], [true, true, true, true])).toEqual([2, 3, 0]);
  expect(worstOf([-1, -2, -3], [true, true, true], 2)).toEqual([2, 1]);
});

test("stepping through the worst goes round, from anywhere", () => {
  expect([nextWorst([4, 2], null, 1), nextWorst([4, 2], 3, 1), nextWorst([4, 2], 4, 1), nextWorst([4, 2], 2, 1)]).toEqual([4, 4, 2, 4]);
  expect([nextWorst([4, 2], null, -1), nextWorst([4, 2], 4, -1), nextWorst([], null, 1)]).toEqual([2, 2, null]);
});

test("without texts the ids are shown, and without data a colour is not offered", () => {
  const model = modelOf({ tokens: [1, 2], prompt_len: 0, mask: [true, true], exact: false, problems: [] });
  expect([model.shown(0), model.shown(1)]).toEqual(["1", "2"]);
  expect(model.has).toEqual({ logprob: false, entropy: false, advantage: false, version: false, none: true });
});

test("colours are the steps that the legend names", () => {
  const model = modelOf(answer);
  expect([0, -0.5, -2, -4, -5].map(logprobStep)).toEqual([0, 1, 2, 3, 4]);
  expect([0, 0.1, 0.7, 1, 5].map(entropyStep)).toEqual([0, 1, 2, 3, 4]);
  expect([-1, -0.25, 0, 0.25, 1].map((value) => advantageStep(value, 1))).toEqual([-2, -1, 0, 1, 2]);
  expect([2, 3, 4].map((at) => colourOf(model, "version", model.token(at)))).toEqual(["version0", "version0", "version1"]);
  expect(colourOf(model, "logprob", model.token(0))).toBe(null);
  for (const heat of ["logprob", "entropy", "advantage", "version"] as const) {
    const named = legendOf(model, heat).map(({ colour }) => colour);
    for (const at of [2, 3, 4]) expect(named).toContain(colourOf(model, heat, model.token(at)));
  }
});

test("older versions than there are colours share the last, and the legend says so", () => {
  const versions = [9, 8, 7, 6, 5, 4, 3];
  const model = modelOf({ tokens: versions, prompt_len: 0, mask: versions.map(() => true), versions, exact: true, problems: [] });
  expect(colourOf(model, "version", model.token(6))).toBe("version4");
  expect(legendOf(model, "version").map(({ label }) => label)).toEqual(["9", "8", "7", "6", "≤ 5"]);
});

test("lines hold what fits, end at line ends, and part prompt from response", () => {
  const widths = [3, 3, 3, 1, 9, 2];
  const lines = linesOf({ length: 6, promptLen: 1, columns: 7, width: (at) => widths[at] ?? 0, endsLine: (at) => at === 3 });
  expect(lines).toEqual([
    { from: 0, to: 1, isPrompt: true },
    { from: 1, to: 4, isPrompt: false },
    { from: 4, to: 5, isPrompt: false },
    { from: 5, to: 6, isPrompt: false },
  ]);
  expect([0, 1, 3, 4, 5].map((at) => lineOf(lines, at))).toEqual([0, 1, 1, 2, 3]);
});

test("100,000 tokens are in some line each, once", () => {
  const lines = linesOf({ length: 100_000, promptLen: 50, columns: 80, width: (at) => (at % 7) + 1, endsLine: (at) => at % 31 === 0 });
  expect(lines.reduce((n, { from, to }) => n + to - from, 0)).toBe(100_000);
  expect(lines.every((line, i) => i === 0 || line.from === lines[i - 1]?.to)).toBe(true);
});

test("a bucket stands for the highest value in it, and buckets cover all", () => {
  const values = [1, 5, null, null, 2, 3, 9];
  expect(bucketsOf(7, 3, (at) => values[at] ?? null)).toEqual([
    { from: 0, to: 2, at: 1, value: 5 },
    { from: 2, to: 4, at: null, value: null },
    { from: 4, to: 7, at: 6, value: 9 },
  ]);
  expect(bucketsOf(2, 100, () => 1).length).toBe(2);
});

test("what cannot be seen is made visible", () => {
  expect(visible("a\n")).toBe("a⏎");
  expect(visible("\t\u001b[0m\u202e\u200b")).toBe("⇥\\x1b[0m⟨U+202E⟩⟨U+200B⟩");
  expect(visible("")).toBe("∅");
  expect(visibleText("a\n\tb\u202e")).toBe("a\n\tb⟨U+202E⟩");
  expect([cells("ab"), cells("漢字"), cells("🙂")]).toEqual([2, 4, 2]);
});

test("a token in a link belongs to its rollout", () => {
  const id = "8d0fb2a1c3d4e5f6";
  expect(placeIn(nameOf(id, 412), id, 1000)).toBe(412);
  expect(placeIn(nameOf(id, 412), id, 412)).toBe(null);
  expect(placeIn(nameOf("0000000000", 4), id, 1000)).toBe(null);
  expect(placeIn("8d0fb2a1.-4", id, 1000)).toBe(null);
});
