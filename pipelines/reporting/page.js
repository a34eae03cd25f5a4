"use strict";
/* Reads charts out: what a mark says stands in its <title>; the pointer and the arrow keys show it. Without this script, browsers
   show the titles by themselves. */
(() => {
  const tip = document.getElementById("tip"), said = document.getElementById("said");
  const words = new WeakMap();
  let on = null;

  for (const plot of document.querySelectorAll(".plot")) {
    for (const title of plot.querySelectorAll("title")) {
      const owner = title.parentNode;
      if (owner === plot) plot.setAttribute("aria-label", title.textContent), plot.removeAttribute("aria-labelledby");
      else words.set(owner, title.textContent);
      title.remove();
    }
    const desc = plot.querySelector("desc");
    if (desc) plot.setAttribute("aria-describedby", desc.id);
  }

  function hide() {
    if (on) on.classList.remove("on");
    on = null;
    tip.hidden = true;
  }

  function show(mark, aloud) {
    if (on !== mark) hide();
    on = mark;
    mark.classList.add("on");
    tip.textContent = words.get(mark);
    tip.hidden = false;
    const at = mark.getBoundingClientRect(), own = tip.getBoundingClientRect(), wide = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(at.left + at.width / 2 - own.width / 2, wide - own.width - 8));
    const above = at.top - own.height - 8;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(above > 0 ? above : at.bottom + 8) + scrollY}px`;
    if (aloud) said.textContent = words.get(mark);
  }

  for (const picture of document.querySelectorAll(".picture")) {
    picture.addEventListener("pointerover", (event) => {
      const mark = event.target.closest(".mark");
      if (mark && words.has(mark)) show(mark, false); else hide();
    });
    picture.addEventListener("pointerleave", hide);
    picture.addEventListener("blur", hide);
    picture.addEventListener("keydown", (event) => {
      const shown = [...picture.querySelectorAll(".plot")].find((plot) => plot.getBoundingClientRect().width > 0);
      const marks = shown ? [...shown.querySelectorAll(".mark")] : [];
      const at = marks.indexOf(on), last = marks.length - 1;
      const next = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at < 0 ? last : at - 1, ArrowUp: at < 0 ? last : at - 1,
        Home: 0, End: last }[event.key];
      if (event.key === "Escape") hide();
      if (next === undefined || !marks.length) return;
      event.preventDefault();
      show(marks[Math.max(0, Math.min(next, last))], true);
    });
  }

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const watch = new IntersectionObserver((seen) => {
    for (const entry of seen) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const section of document.querySelectorAll("main > section")) watch.observe(section);
})();
