/** How the page is built: hashed files below `/console/`, nothing inlined, because the policy of the page forbids it. */

import { defineConfig, type Plugin } from "vite";

/**
 * noVNC's client decodes a film when its code is loaded, to learn whether the browser can, and everything waits for that. The page
 * never asks a screen for one (`src/sandbox/screen/no-vnc.ts`).
 */
const withoutFilms: Plugin = {
  name: "no-vnc-without-films",
  transform: {
    filter: { id: /@novnc\/novnc\/core\/util\/browser\.js$/ },
    handler(code) {
      const asks = "supportsWebCodecsH264Decode = await _checkWebCodecsH264DecodeSupport();";
      if (!code.includes(asks)) throw new Error("noVNC asks in another way whether the browser decodes films");
      return { code: code.replace(asks, ""), map: null };
    },
  },
};

export default defineConfig({
  plugins: [withoutFilms],
  root: import.meta.dirname,
  base: "/console/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    emptyOutDir: true,
  },
});
