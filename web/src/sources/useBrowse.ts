import { useQuery } from "@tanstack/react-query";
import { api, ask, type Schema } from "@/api/client";

export type Listing = Schema["BrowseAnswer"];
export type FileEntry = Listing["files"][number];

/** What lies in a folder or below a prefix; the roots, where no place is given. */
export function useBrowse(place: string | null, options: { recursive?: boolean; name?: string } = {}) {
  const { recursive = false, name = "" } = options;
  return useQuery({
    queryKey: ["browse", place, recursive, name],
    queryFn: async ({ signal }) => {
      const query = { ...(place === null ? {} : { place }), recursive, ...(name === "" ? {} : { name }) };
      return await ask(api.GET("/api/view/browse", { params: { query }, signal }));
    },
    // A folder of another place is not this one's: only what narrows the same folder keeps the old list.
    placeholderData: (previous, query) => (query?.queryKey[1] === place ? previous : undefined),
    staleTime: 5000,
  });
}
