// One gallery at a time: the chosen mechanism, party and image; all are in the page.
"use strict";
const Galleries = (() => {
  function start() {
    const form = document.getElementById("gallery-form");
    if (!form) return;
    const which = document.getElementById("gallery-which"),
      image = document.getElementById("gallery-image");
    const show = () => {
      document.querySelectorAll("[data-gallery]").forEach((box) => (box.hidden = box.dataset.gallery !== which.value));
      document.querySelectorAll("[data-image]").forEach((box) => (box.hidden = box.dataset.image !== image.value));
    };
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    show();
  }
  return { start };
})();

addEventListener("DOMContentLoaded", () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  Explore.start(data);
  Unseen.start(data);
  Curves.start(data);
  Galleries.start();
  document.documentElement.dataset.ready = "true";
});
