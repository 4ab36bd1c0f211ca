/* Makes tabs of the sections of a page. Without this script they stand below each other. */
"use strict";

(() => {
  const list = document.querySelector(".tabs");
  if (!list) {
    return;
  }
  const tabs = [...list.querySelectorAll("a")];
  const panels = tabs.map((tab) => document.querySelector(tab.hash));

  let current = 0;

  function select(chosen) {
    current = chosen;
    tabs.forEach((tab, place) => {
      tab.setAttribute("aria-selected", String(place === chosen));
      tab.tabIndex = place === chosen ? 0 : -1;
      panels[place].hidden = place !== chosen;
    });
  }

  /** Show the panel with the target of the address, and the target itself. */
  function follow() {
    const target = document.getElementById(location.hash.slice(1).split("?")[0]);
    const chosen = target ? panels.findIndex((panel) => panel.contains(target)) : 0;
    select(chosen < 0 ? current : chosen);
    if (target) {
      const folded = target.closest("details:not([open])");
      if (folded) {
        folded.open = true;
      }
      // A tab stays where it was clicked.
      if (!panels.includes(target)) {
        target.scrollIntoView();
      }
    }
  }

  list.setAttribute("role", "tablist");
  tabs.forEach((tab, place) => {
    tab.setAttribute("role", "tab");
    tab.id = `tab-${panels[place].id}`;
    tab.setAttribute("aria-controls", panels[place].id);
    panels[place].setAttribute("role", "tabpanel");
    panels[place].setAttribute("aria-labelledby", tab.id);
    tab.addEventListener("click", (event) => {
      event.preventDefault();
      history.pushState(null, "", tab.hash);
      select(place);
    });
  });
  list.addEventListener("keydown", (event) => {
    const now = tabs.indexOf(document.activeElement);
    const next = {
      ArrowLeft: (now + tabs.length - 1) % tabs.length,
      ArrowRight: (now + 1) % tabs.length,
      Home: 0,
      End: tabs.length - 1,
    }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      select(next);
      tabs[next].focus();
    }
  });
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  addEventListener("beforeprint", () => {
    panels.forEach((panel) => {
      panel.hidden = false;
    });
  });
  addEventListener("afterprint", () => select(current));
  follow();
})();
