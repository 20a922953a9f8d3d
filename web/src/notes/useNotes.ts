/** Saying something of the open rollout and taking it back; shown at once, and undone if the server refuses. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { api, ask } from "@/api/client";
import { useView } from "@/api/view";
import type { Rollout } from "@/reader/useRollout";
import { useViewState } from "@/state/location";
import { myName, setMyName, sorted, storedName, type NewNote, type Note, type Said } from "./notes";

export interface Notes extends Said {
  add: (note: NewNote) => void;
  remove: (...notes: Note[]) => void;
  /** Mine, the last. */
  verdict: Note | undefined;
  setVerdict: (verdict: "good" | "bad" | null) => void;
  error: Error | null;
  /** Who says it; null if nobody was asked yet. */
  name: string | null;
  setName: (name: string) => void;
}

export function useNotes(rollout: Rollout): Notes {
  const { key } = useView();
  const [{ rollout: asked }] = useViewState();
  const queries = useQueryClient();
  const { id } = rollout;
  const notes = rollout.annotations as unknown as Note[];
  const queryKey = useMemo(() => ["in", key, "rollout", asked], [key, asked]);

  const change = useMutation({
    mutationFn: async ({ add, remove }: Change) => {
      if (add) await ask(api.POST("/api/view/annotations", { body: { ...add, id, by: myName() } }) as Answer);
      for (const { note } of remove) await ask(api.DELETE("/api/view/annotations/{note}", { params: { path: { note } } }));
    },
    onMutate: async ({ add, remove }) => {
      await queries.cancelQueries({ queryKey });
      const before = queries.getQueryData<Rollout>(queryKey);
      queries.setQueryData<Rollout>(queryKey, (old) => {
        if (!old) return old;
        const gone = new Set(remove.map(({ note }) => note));
        const left = (old.annotations as unknown as Note[]).filter(({ note }) => !gone.has(note));
        const added = add ? [{ ...add, id, by: myName(), note: NOT_YET, at: Date.now() / 1000 }] : [];
        return { ...old, annotations: [...left, ...added] as unknown as Rollout["annotations"] };
      });
      return before;
    },
    onError: (_, __, before) => queries.setQueryData(queryKey, before),
    onSettled: async () => {
      await queries.invalidateQueries({ queryKey });
      // Lists that show what was said.
      await queries.invalidateQueries({ queryKey: ["annotations"] });
    },
  });

  const said = useMemo(() => sorted(notes), [notes]);
  const [name, setName] = useState(storedName);
  const me = name ?? "";
  const mine = notes.filter((note) => note.kind === "verdict" && note.model === undefined && (note.by ?? "") === me && note.note !== NOT_YET);
  return {
    ...said,
    verdict: said.verdicts.find(({ by = "" }) => by === me),
    add: (add) => change.mutate({ add, remove: [] }),
    remove: (...remove) => change.mutate({ add: null, remove }),
    setVerdict: (verdict) => {
      const add = verdict === null ? null : { kind: "verdict" as const, verdict };
      if (add || mine.length > 0) change.mutate({ add, remove: mine });
    },
    error: change.error,
    name,
    setName: (next) => {
      setMyName(next);
      setName(storedName());
    },
  };
}

interface Change {
  add: NewNote | null;
  remove: Note[];
}

/** The name of a note that the server has not kept yet. */
export const NOT_YET = "not yet";

/** The description of the API has no body for an answer with status 201. */
type Answer = Promise<{ data?: unknown; error?: unknown; response: Response }>;
