/* Draws the figures of a page. Each <figure> contains its data as JSON in a script element, and
   an element to draw in. Colours are names of CSS variables, so figures follow the colour scheme. */
"use strict";

(() => {
  const VARIABLE = /^var\((--[\w-]+)\)$/;
  const AXIS_NAME = /^[xy]axis\d*$/;
  const BASE = {
    paper_bgcolor: "transparent",
    plot_bgcolor: "transparent",
    font: { color: "var(--text)", size: 13 },
    dragmode: false,
    hoverlabel: {
      bgcolor: "var(--surface)",
      bordercolor: "var(--border-strong)",
      font: { color: "var(--text)" },
      align: "left",
    },
    modebar: { bgcolor: "transparent" },
  };
  const AXIS = {
    gridcolor: "var(--grid)",
    linecolor: "var(--border-strong)",
    zerolinecolor: "var(--border-strong)",
    automargin: true,
    fixedrange: true,
  };

  // Pixels: narrower windows have room for only one legend entry in a row; the height of a row.
  const NARROW = 560;
  const LINE = 19;
  const TITLE = { size: 13, color: "var(--muted)" };

  /** Replace names of variables by their colours in the current colour scheme. */
  function themed(value, style) {
    if (typeof value === "string") {
      const found = VARIABLE.exec(value);
      return found ? style.getPropertyValue(found[1]).trim() : value;
    }
    if (Array.isArray(value)) {
      return value.map((each) => themed(each, style));
    }
    if (value !== null && typeof value === "object") {
      const pairs = Object.entries(value).map(([name, each]) => [name, themed(each, style)]);
      return Object.fromEntries(pairs);
    }
    return value;
  }

  function laidOut(layout) {
    const whole = { ...BASE, ...layout };
    const axes = Object.keys(layout).filter((name) => AXIS_NAME.test(name));
    for (const name of new Set(["xaxis", "yaxis", ...axes])) {
      const axis = { ...AXIS, ...layout[name] };
      whole[name] = { ...axis, title: { ...axis.title, font: TITLE } };
    }
    return whole;
  }

  /** The height in pixels of a legend whose entries stand below each other. */
  function legendHeight(data) {
    const names = data.filter((each) => each.showlegend !== false).map((each) => each.name || "");
    return names.reduce((lines, name) => lines + name.split("<br>").length, 0) * LINE;
  }

  function draw(script) {
    const style = getComputedStyle(document.documentElement);
    const place = script.closest("figure").querySelector(".plot");
    const figure = JSON.parse(script.textContent);
    const layout = laidOut(figure.layout);
    layout.font = { ...BASE.font, family: getComputedStyle(document.body).fontFamily };
    if (place.clientWidth < NARROW && layout.showlegend !== false) {
      layout.height += legendHeight(figure.data);
      place.style.minHeight = `${layout.height}px`;
    }
    Plotly.react(place, themed(figure.data, style), themed(layout, style), {
      responsive: true,
      displayModeBar: false,
    });
  }

  /** Draw the figures that have a place on the screen: not those of a hidden tab. */
  function drawShown() {
    for (const script of document.querySelectorAll("script.figure")) {
      if (script.closest("figure").offsetParent !== null) {
        draw(script);
      }
    }
  }

  drawShown();
  addEventListener("shown", drawShown);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawShown);
})();
