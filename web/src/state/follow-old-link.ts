/** From a link of the older viewer to the state that shows the same. */

import { api, ApiError, ask, type Schema } from "@/api/client";
import { counted } from "@/parts/numbers";
import { locate, type OldLink } from "./old-links";
import { INITIAL, type ViewState } from "./url";

export interface Followed {
  state: ViewState;
  /** What the reader should know; null where all is as the link says. */
  notice: string | null;
  /** A filter for all that may be meant. */
  others: string | null;
}

type View = Schema["ViewAnswer"];

const open = (places: string[]) => ask(api.POST("/api/view/open", { body: { places } }));

/** Paths of the older viewer began at its own root, so that each of ours may be what was meant. */
async function openAnywhere(files: string[]): Promise<View> {
  try {
    return await open(files);
  } catch (error) {
    const isRelative = files.every((file) => !/^(\/|[a-z0-9]+:\/\/)/i.test(file));
    if (!isRelative || !(error instanceof ApiError) || error.isAway) throw error;
    const { folders } = await ask(api.GET("/api/view/browse"));
    for (const root of folders.filter((folder) => !folder.startsWith("yard://"))) {
      const below = files.map((file) => `${root.replace(/\/+$/, "")}/${file.replace(/^\.\//, "")}`);
      const found = await open(below).catch(() => null);
      if (found) return found;
    }
    throw error;
  }
}

/** The number may be in the last line. */
async function indexed(view: View, signal: AbortSignal): Promise<void> {
  let { indexing } = view;
  while (!indexing.done && !signal.aborted) {
    await new Promise((go) => setTimeout(go, 200));
    ({ indexing } = await ask(api.GET("/api/view/{view}", { params: { path: { view: view.view } }, signal })));
  }
}

export async function follow(link: OldLink, signal: AbortSignal): Promise<Followed> {
  const plain = { ...INITIAL, places: link.files };
  let view: View;
  try {
    view = await openAnywhere(link.files);
  } catch {
    // The page of today says why, where it says so of every place.
    return { state: plain, notice: null, others: null };
  }
  const state: ViewState = { ...plain, places: view.places };
  const number = link.rollout;
  if (number === null) return { state, notice: null, others: null };
  await indexed(view, signal);
  const path = { view: view.view };
  const found = await ask(api.GET("/api/view/{view}/find", { params: { path, query: { rollout_n: number } }, signal })).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
  if (!found) return { state, notice: `The link means rollout ${number}, and no rollout here has that number.`, others: null };
  const shown: ViewState = { ...state, rollout: found.id, message: link.message };
  const isOne = found.matches === 1;
  const notice = isOne ? null : `The link means rollout ${number}, and ${counted(found.matches, "rollout has", "rollouts have")} that number. This is the first.`;
  const others = isOne ? null : `rollout_n == ${number}`;
  if (link.highlight === null) return { state: shown, notice, others };
  const { messages } = await ask(api.GET("/api/view/{view}/rollouts/{id}", { params: { path: { ...path, id: found.id } }, signal }));
  const place = locate(messages, link.message, link.highlight);
  if (place) return { state: { ...shown, ...place }, notice, others };
  const condition = { kind: "all" as const, text: link.highlight, regex: false, case: true, channels: [] };
  return {
    state: { ...shown, search: [condition] },
    notice: [notice, "The highlighted text is not in this rollout; it is searched for."].filter(Boolean).join(" "),
    others,
  };
}
