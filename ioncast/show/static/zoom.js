/* Zooms the time line, and picks out the requests of a cause. The address keeps both. */
"use strict";

(() => {
  const line = document.querySelector(".timeline");
  if (!line) {
    return;
  }
  const MOST = 64;
  const TICKS = 6;
  const SVG = "http://www.w3.org/2000/svg";
  const panels = line.querySelector(".panels");
  const tools = line.querySelector(".tools");
  const chosen = tools.querySelector("select");
  const areas = [...line.querySelectorAll(".area")];
  const low = Number(line.dataset.low);
  const length = Number(line.dataset.high) - low;
  let zoom = 1;

  /** The part of the time that is in the middle of the screen, from 0 to 1. */
  function middle() {
    const area = areas[0].getBoundingClientRect();
    const seen = panels.getBoundingClientRect();
    return (seen.left + seen.width / 2 - area.left) / area.width;
  }

  function show(at) {
    line.style.setProperty("--zoom", zoom);
    line.classList.toggle("zoomed", zoom > 1);
    const area = areas[0].getBoundingClientRect();
    panels.scrollLeft += (at - middle()) * area.width;
    areas.forEach(label);
  }

  /** Label the axis of time at the present zoom. */
  function label(area) {
    area.querySelector(".ticks")?.remove();
    if (zoom === 1) {
      return;
    }
    const ticks = document.createElementNS(SVG, "g");
    ticks.setAttribute("class", "ticks");
    ticks.setAttribute("aria-hidden", "true");
    const rough = length / zoom / TICKS;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
    const digits = Math.min(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), 12);
    const first = Math.ceil(low / step);
    const number = Math.min(Math.floor((low + length) / step) - first + 1, 2 * TICKS * MOST);
    for (let place = 0; place < number; place += 1) {
      const value = (first + place) * step;
      const text = document.createElementNS(SVG, "text");
      text.setAttribute("x", `${(100 * (value - low)) / length}%`);
      text.setAttribute("y", "100%");
      text.setAttribute("dy", "1.35em");
      text.setAttribute("text-anchor", "middle");
      text.textContent = value.toFixed(digits);
      ticks.append(text);
    }
    area.append(ticks);
  }

  function pick(cause) {
    if (cause === "" || !chosen?.querySelector(`option[value="${Number(cause)}"]`)) {
      delete line.dataset.cause;
    } else {
      line.dataset.cause = cause;
    }
  }

  function keep() {
    const view = new URLSearchParams();
    if (zoom > 1) {
      view.set("zoom", zoom);
      view.set("at", middle().toFixed(4));
    }
    if (line.dataset.cause !== undefined) {
      view.set("cause", line.dataset.cause);
    }
    const text = view.toString();
    history.replaceState(null, "", `#timeline${text && `?${text}`}`);
  }

  function zoomBy(factor) {
    const at = factor === 0 ? 0.5 : middle();
    zoom = Math.min(Math.max(1, zoom * factor), MOST);
    show(at);
    keep();
  }

  /** Show what the address tells. */
  function follow() {
    const [name, text] = location.hash.slice(1).split("?");
    if (name !== "timeline") {
      return;
    }
    const view = new URLSearchParams(text);
    zoom = Math.min(Math.max(1, Number(view.get("zoom")) || 1), MOST);
    pick(view.get("cause") ?? "");
    if (chosen) {
      chosen.value = line.dataset.cause ?? "";
    }
    show(Number(view.get("at") ?? 0.5));
  }

  document.querySelectorAll("a[data-cause]").forEach((link) => {
    link.hash = `#timeline?cause=${link.dataset.cause}`;
  });
  tools.hidden = false;
  panels.tabIndex = 0;
  panels.setAttribute("role", "group");
  panels.setAttribute("aria-label", "Time line; plus and minus zoom, the arrows move");
  tools.addEventListener("click", (event) => {
    if (event.target.dataset.zoom !== undefined) {
      zoomBy(Number(event.target.dataset.zoom));
    }
  });
  chosen?.addEventListener("change", () => {
    pick(chosen.value);
    keep();
  });
  panels.addEventListener("keydown", (event) => {
    const factor = { "+": 2, "=": 2, "-": 0.5, 0: 0 }[event.key];
    if (factor !== undefined && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      zoomBy(factor);
    }
  });
  panels.addEventListener("scrollend", () => {
    if (zoom > 1) {
      keep();
    }
  });
  addEventListener("hashchange", follow);
  follow();
})();
