/* Folds the numbers of figures, before the figures are drawn: without scripts they stay open. */
"use strict";

document.querySelectorAll("figure details.table").forEach((each) => {
  each.open = false;
});
