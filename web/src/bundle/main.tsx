import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { showTheme } from "@/app/theme";
import { KeysProvider } from "@/keys/keys";
import "@/styles/base.css";
import { Bundle } from "./Bundle";
import { read } from "./data";

showTheme();

const root = document.getElementById("root");
if (!root) throw new Error("the file has no element #root");
try {
  const data = read(document);
  createRoot(root).render(
    <StrictMode>
      <KeysProvider>
        <Bundle data={data} />
      </KeysProvider>
    </StrictMode>,
  );
} catch (error) {
  root.textContent = error instanceof Error ? error.message : String(error);
}
