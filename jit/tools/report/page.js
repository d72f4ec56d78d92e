"use strict";
(() => {
  const tip = document.getElementById("tip");
  const steps = JSON.parse(document.getElementById("steps").textContent);

  const show = (text, x, y) => {
    tip.textContent = text;
    tip.style.display = "block";
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(6, y - box.height - 12) : y + 18) + "px";
  };
  const hide = () => { tip.style.display = "none"; };

  for (const svg of document.querySelectorAll("svg.plan")) {
    const buffers = [...svg.querySelectorAll("g.b")];
    buffers.forEach((buffer, i) => {
      const title = buffer.querySelector("title");
      const text = title.textContent;
      title.remove();  // the text is shown by the page itself, at once
      buffer.setAttribute("aria-label", text);
      buffer.addEventListener("pointermove", (e) => show(text, e.clientX, e.clientY));
      buffer.addEventListener("pointerleave", hide);
      buffer.addEventListener("focus", () => {
        const box = buffer.getBoundingClientRect();
        show(text, box.left, box.bottom - 10);
      });
      buffer.addEventListener("blur", hide);
      buffer.addEventListener("keydown", (e) => {
        const to = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: buffers.length - 1 }[e.key];
        if (e.key === "Escape") hide();
        if (buffers[to]) {
          e.preventDefault();
          buffer.tabIndex = -1;
          buffers[to].tabIndex = 0;
          buffers[to].focus();
        }
      });
    });
    const hit = svg.querySelector(".hit");
    if (!hit) continue;
    const live = hit.dataset.live.split(" ").map(Number);
    hit.addEventListener("pointermove", (e) => {
      const box = hit.getBoundingClientRect();
      const column = Math.min(live.length - 1, Math.max(0, Math.floor((e.clientX - box.left) / box.width * live.length)));
      show(live[column].toLocaleString("en") + " bytes live\n" + steps[column], e.clientX, e.clientY);
    });
    hit.addEventListener("pointerleave", hide);
  }
})();
