// The button for light and dark, on every page; other scripts redraw on the event `theme`.
(() => {
  "use strict";
  const root = document.documentElement, button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => { button.textContent = isDark() ? "Light" : "Dark"; document.dispatchEvent(new Event("theme")); };
  root.classList.add("live");
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  system.addEventListener("change", label);
  label();
  window.report = {};
})();
