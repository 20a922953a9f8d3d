/** Places as they are named, shortened and remembered. */

import { INITIAL, format } from "@/state/url";
import { go } from "@/state/location";
import { keep, kept } from "@/state/kept";

/** Places that were opened together, the latest first. */
export const LATELY = "places-lately";
/** Files and folders with a star. */
export const MARKED = "places-marked";

const LATELY_MAX = 8;

/** The last part of a path, with the one above where that alone says little. */
export function shortName(place: string): string {
  const parts = place.replace(/\/+$/, "").split("/").filter(Boolean);
  if (place.startsWith("yard://")) return `run ${parts.slice(1).join("/")}`;
  const last = parts.at(-1) ?? place;
  const above = parts.at(-2);
  return above === undefined || above.endsWith(":") || last.length > 24 ? last : `${above}/${last}`;
}

/** The folder that a place lies in; null for a root. */
export function above(place: string, roots: string[]): string | null {
  if (roots.includes(place)) return null;
  const cut = place.replace(/\/+$/, "").lastIndexOf("/");
  const folder = place.slice(0, Math.max(cut, 0));
  return roots.some((root) => folder === root || folder.startsWith(root.endsWith("/") ? root : `${root}/`)) ? folder : null;
}

/** Opens places instead of what is open: what narrowed the old rows says nothing of the new ones. */
export function openPlaces(places: string[]) {
  go(`/${format({ ...INITIAL, places })}`);
}

export function remember(places: string[]) {
  const same = JSON.stringify(places);
  const others = kept<string[][]>(LATELY, []).filter((other) => JSON.stringify(other) !== same);
  keep(LATELY, [places, ...others].slice(0, LATELY_MAX));
}
