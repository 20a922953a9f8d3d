import { expect, test } from "vitest";
import { formatPlace, parsePlace } from "./place";

test("a place is the same after a way through the address", () => {
  for (const place of [
    { run: null, session: null, turn: null },
    { run: "a run & more", session: null, turn: null },
    { run: null, session: "s-1", turn: 0 },
    { run: "main", session: "s-1", turn: 12 },
  ]) {
    expect(parsePlace(new URL(formatPlace(place), "http://here").search)).toEqual(place);
  }
});

test("a turn that is none is the newest", () => {
  for (const turn of ["", "-1", "x", "1e9", "99999999999"]) expect(parsePlace(`?session=a&turn=${turn}`).turn).toBeNull();
});

test("a turn without a session is left out", () => {
  expect(formatPlace({ run: null, session: null, turn: 3 })).toBe("/live");
});
