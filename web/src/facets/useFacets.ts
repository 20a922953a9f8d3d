import { api, ask } from "@/api/client";
import { useAsk, useView } from "@/api/view";
import { useViewState } from "@/state/location";
import { filterOf } from "@/state/url";
import { choiceOf, clausesOf, type Choice, type Value } from "./choice";

export interface Counts {
  field: string;
  values: { value: Value; count: number }[];
  distinct: number;
  range: [number, number] | null;
}

/** How often which value occurs, for several fields at once. */
export function useFacets(fields: string[], filter: string, values: number, enabled = true) {
  return useAsk(
    ["facets", filter, fields, values],
    async (view) => {
      const query = { filter, fields: fields.join(","), values };
      return (await ask(api.GET("/api/view/{view}/facets", { params: { path: { view }, query } }))) as unknown as Counts[];
    },
    { enabled: enabled && fields.length > 0, isAside: true },
  );
}

/** What is chosen of a field, how to choose otherwise, and the filter without it: a facet also shows what it left out. */
export function useChoice(field: string) {
  const { filter, filterError } = useView();
  const [{ q, clauses }, set] = useViewState();
  const { choice, others } = choiceOf(field, clauses);
  return {
    choice,
    isChosen: others.length < clauses.length,
    around: filterError ? filter : filterOf({ q, clauses: others }),
    choose: (next: Choice, withNulls: boolean) => set({ clauses: [...others, ...clausesOf(field, next, withNulls)] }),
  };
}
