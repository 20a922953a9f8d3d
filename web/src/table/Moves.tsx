/** Keys that go from a rollout to others of its group, and to the steps around it, whatever list is shown. */

import { useQueryClient } from "@tanstack/react-query";
import { api, ask } from "@/api/client";
import { useView } from "@/api/view";
import { useKey } from "@/keys/keys";
import { useViewState } from "@/state/location";
import { filterOf } from "@/state/url";

export function Moves() {
  const { key: view, filter } = useView();
  const [{ rollout, sort }, set] = useViewState();
  const queries = useQueryClient();

  const show = (id: string | undefined) => {
    if (id !== undefined) set({ rollout: id, message: null, range: null, other: null }, "replace");
  };

  const sibling = async (by: 1 | -1) => {
    if (rollout === null) return;
    const group = await queries.query({
      queryKey: ["in", view, "siblings", rollout],
      queryFn: () => ask(api.GET("/api/view/{view}/rollouts/{id}/group", { params: { path: { view, id: rollout } } })),
    });
    const at = group.rollouts.findIndex((other) => other.id.startsWith(rollout));
    show(group.rollouts[at + by]?.id);
  };

  const first = async (clause: string, by: string) => {
    const query = { filter: filterOf({ q: filter, clauses: [clause] }), sort: by, columns: "step", limit: 1 };
    const { rows } = await ask(api.GET("/api/view/{view}/rows", { params: { path: { view }, query } }));
    const step: unknown = rows[0]?.values[0];
    return rows[0] && typeof step === "number" ? { id: rows[0].id, step } : undefined;
  };

  const step = async (by: 1 | -1) => {
    if (rollout === null) return;
    const query = { filter: `id == "${rollout}"`, columns: "step", limit: 1 };
    const here = await ask(api.GET("/api/view/{view}/rows", { params: { path: { view }, query } }));
    const now: unknown = here.rows[0]?.values[0];
    if (typeof now !== "number") return;
    const next = by > 0 ? await first(`step > ${now}`, "step") : await first(`step < ${now}`, "-step");
    if (next) show((await first(`step == ${next.step}`, sort))?.id);
  };

  // What cannot be asked at this moment is said elsewhere: the page shows that the server is away.
  const quietly = (what: Promise<void>) => void what.catch(() => undefined);
  const group = "Rollout";
  useKey({ keys: "n", label: "Next rollout of the group", group, run: () => quietly(sibling(1)) });
  useKey({ keys: "p", label: "Rollout before, of the group", group, run: () => quietly(sibling(-1)) });
  useKey({ keys: "]", label: "First rollout of the next step", group, run: () => quietly(step(1)) });
  useKey({ keys: "[", label: "First rollout of the step before", group, run: () => quietly(step(-1)) });
  return null;
}
