import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client";
import { App } from "./app/App";
import { KeysProvider } from "./keys/keys";
import "./styles/base.css";
import { showTheme } from "./app/theme";

showTheme();

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      gcTime: 120_000,
      refetchOnWindowFocus: false,
      // What the server refused it refuses again; a server that is away comes back.
      retry: (_, error) => error instanceof ApiError && error.isAway,
      retryDelay: 1000,
    },
  },
});

const root = document.getElementById("root");
if (!root) throw new Error("the page has no element #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <KeysProvider>
        <App />
      </KeysProvider>
    </QueryClientProvider>
  </StrictMode>,
);
