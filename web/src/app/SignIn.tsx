import { useId, useState } from "react";
import { errorOf } from "@/api/client";
import css from "./SignIn.module.css";

/** Asked for where the server has a token. It is swapped for a cookie, and kept nowhere in the page. */
export function SignIn({ onDone }: { onDone: () => void }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState<string | null>(null);
  const field = useId();
  const send = async () => {
    const response = await fetch("/api/session", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token }),
    }).catch(() => null);
    if (response?.ok) onDone();
    else if (response) setError(errorOf(response.status, await response.json().catch(() => undefined)).message);
    else setError("The server does not answer; try again.");
  };
  return (
    <form
      className={css["form"]}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <h1>This server needs a token</h1>
      <p>It is the one that the server was started with: --token, --token-file or ROLLYARD_TOKEN.</p>
      <label htmlFor={field}>Token</label>
      <input id={field} type="password" autoComplete="current-password" value={token} onChange={(event) => setToken(event.target.value)} />
      {error !== null && <p role="alert">{error}</p>}
      <button type="submit" disabled={token === ""}>
        Sign in
      </button>
    </form>
  );
}
