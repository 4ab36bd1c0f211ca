/* Folds the numbers of figures before the figures are drawn. Without scripts they stay open, with
   a note. */
"use strict";

document.querySelectorAll("figure details.table").forEach((each) => {
  each.open = false;
});
document.querySelectorAll(".without-script").forEach((each) => each.remove());
