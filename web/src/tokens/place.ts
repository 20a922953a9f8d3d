/** A token in the URL names its rollout too: it must not point into the next one that is opened. */

export const nameOf = (id: string, at: number): string => `${id.slice(0, 8)}.${at}`;

export function placeIn(token: string | null, id: string, length: number): number | null {
  const match = /^([0-9a-f]{8})\.(\d{1,9})$/.exec(token ?? "");
  const place = Number(match?.[2]);
  return match?.[1] === id.slice(0, 8) && place < length ? place : null;
}
