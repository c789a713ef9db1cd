// What is better with JavaScript; the page does without.
// Hovering over a word of the question, or giving it the focus, lights the words that matched it.

const lit = (word, on) => {
  for (const found of document.querySelectorAll(".card [data-word]")) {
    if (found.dataset.word === word) found.classList.toggle("lit", on);
  }
};

for (const word of document.querySelectorAll(".words [data-word]")) {
  for (const event of ["mouseenter", "focus"]) word.addEventListener(event, () => lit(word.dataset.word, true));
  for (const event of ["mouseleave", "blur"]) word.addEventListener(event, () => lit(word.dataset.word, false));
}

// While a question is under way, its button says so; a server that is gone is told on the page, and looked for.
const form = document.querySelector("form.ask");
form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  const query = new URLSearchParams(new FormData(form));
  if (!query.get("where")) query.delete("where");
  button.disabled = true;
  button.textContent = "Asking …";
  try {
    await fetch("/livez", { cache: "no-store" });
    location.assign(`${form.getAttribute("action")}?${query}`);
  } catch {
    button.disabled = false;
    button.textContent = "Ask";
    away();
  }
});

addEventListener("pageshow", () => {
  const button = form?.querySelector("button");
  if (button) {
    button.disabled = false;
    button.textContent = "Ask";
  }
});

let looking = 0;
const away = () => {
  let notice = document.querySelector("#away");
  if (!notice) {
    notice = document.createElement("p");
    notice.id = "away";
    notice.className = "notice";
    notice.setAttribute("role", "status");
    form.after(notice);
  }
  notice.textContent = "The server does not answer. Looking for it …";
  clearInterval(looking);
  looking = setInterval(async () => {
    try {
      if ((await fetch("/readyz", { cache: "no-store" })).ok) {
        clearInterval(looking);
        notice.textContent = "The server is there again.";
      }
    } catch {
      // still away
    }
  }, 1000);
};
