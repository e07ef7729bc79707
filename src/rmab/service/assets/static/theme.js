// Light or dark, as chosen before; loaded first, so that a page never flashes.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("live");
  try {
    const chosen = localStorage.getItem("rmab-theme");
    if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  } catch { /* a browser that keeps nothing shows the system's choice */ }
})();
