/* Accepts a log that is dropped on the form; without this script, users choose the file. */
"use strict";

(() => {
  const zone = document.querySelector(".drop");
  const input = zone.querySelector("input[type=file]");
  const chosen = zone.querySelector("output");
  const form = zone.closest("form");

  function tell() {
    const file = input.files[0];
    chosen.textContent = file ? file.name : "";
    zone.classList.toggle("filled", Boolean(file));
  }

  for (const kind of ["dragenter", "dragover"]) {
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
  }
  zone.addEventListener("dragleave", (event) => {
    if (!zone.contains(event.relatedTarget)) {
      zone.classList.remove("over");
    }
  });
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (!event.dataTransfer.files.length) {
      return;
    }
    input.files = event.dataTransfer.files;
    tell();
    // The browser asks for missing fields first.
    form.requestSubmit();
  });
  input.addEventListener("change", tell);
  form.addEventListener("submit", () => {
    const button = form.querySelector("button[type=submit]");
    form.setAttribute("aria-busy", "true");
    button.textContent = button.dataset.busy;
  });
  addEventListener("pageshow", () => {
    const button = form.querySelector("button[type=submit]");
    form.removeAttribute("aria-busy");
    button.textContent = button.dataset.ready;
    tell();
  });
})();
