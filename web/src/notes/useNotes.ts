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
    mutationKey: ["notes", id],
    // One after the other: a verdict that is taken back at once has to be kept first.
    scope: { id: `notes ${id}` },
    mutationFn: async ({ add, remove, name }: Change) => {
      if (add) {
        const kept = (await ask(api.POST("/api/view/annotations", { body: { ...add, id, by: myName() } }) as Answer)) as Note;
        given.set(name, kept.note);
      }
      for (const { note } of remove) {
        await ask(api.DELETE("/api/view/annotations/{note}", { params: { path: { note: given.get(note) ?? note } } }));
      }
    },
    onMutate: async ({ add, remove, name }) => {
      await queries.cancelQueries({ queryKey });
      const before = queries.getQueryData<Rollout>(queryKey);
      queries.setQueryData<Rollout>(queryKey, (old) => {
        if (!old) return old;
        const gone = new Set(remove.map(({ note }) => note));
        const left = (old.annotations as unknown as Note[]).filter(({ note }) => !gone.has(note));
        const added = add ? [{ ...add, id, by: myName(), note: name, at: Date.now() / 1000 }] : [];
        return { ...old, annotations: [...left, ...added] as unknown as Rollout["annotations"] };
      });
      return before;
    },
    onError: (_, __, before) => queries.setQueryData(queryKey, before),
    onSettled: async () => {
      // The last one tells how it is; before, the answer would undo what is on its way.
      if (queries.isMutating({ mutationKey: ["notes", id] }) > 1) return;
      await queries.invalidateQueries({ queryKey });
      // Lists that show what was said.
      await queries.invalidateQueries({ queryKey: ["annotations"] });
    },
  });

  const said = useMemo(() => sorted(notes), [notes]);
  const [name, setName] = useState(storedName);
  const me = name ?? "";
  const mine = notes.filter((note) => note.kind === "verdict" && note.model === undefined && (note.by ?? "") === me);
  return {
    ...said,
    verdict: said.verdicts.find(({ by = "" }) => by === me),
    add: (add) => change.mutate({ add, remove: [], name: nextName() }),
    remove: (...remove) => change.mutate({ add: null, remove, name: nextName() }),
    setVerdict: (verdict) => {
      const add = verdict === null ? null : { kind: "verdict" as const, verdict };
      if (add || mine.length > 0) change.mutate({ add, remove: mine, name: nextName() });
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
  /** Of the new note, until the server has given it one. */
  name: string;
}

/** The server's names of notes that this page made, by those it gave them at first. */
const given = new Map<string, string>();

let made = 0;

function nextName(): string {
  made += 1;
  return `new-${made}`;
}

/** The description of the API has no body for an answer with status 201. */
type Answer = Promise<{ data?: unknown; error?: unknown; response: Response }>;
