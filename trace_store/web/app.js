// The script of the web page. The server renders and escapes all HTML; this only places it, and follows what changes.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const main = $("#main");
const list = $("#messages");
const live = $("#live");
const token = $("meta[name=trace-token]").content;
const MOST_ARTICLES = 2000;
const WINDOW = 100;

// Small helpers

function make(tag, text = "", attributes = {}) {
  const found = document.createElement(tag);
  found.textContent = text;
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  return found;
}

function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = html; // made and escaped by the server
  localTimes(template.content);
  return template.content;
}

async function get(path, query) {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  const answer = await fetch(`${path}?${given}`, { headers: { accept: "application/json" } });
  const found = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(found.error || `the server answered ${answer.status}`);
  return found;
}

function localTimes(root) {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const each of $$("time[datetime]", root)) {
    const time = new Date(each.dateTime);
    if (Number.isNaN(time.getTime()) || each.title) continue;
    each.title = each.textContent;
    each.textContent = format.format(time);
  }
}

const number = (article) => Number($(".n", article).textContent);
const isTyping = (target) => target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;
const atEnd = () => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 80;

// Who is at the end stays there, also while elements take their size, until they scroll up.
let sticks = false;
let lastScroll = 0;
function toBottom() {
  sticks = true;
  window.scrollTo(0, document.documentElement.scrollHeight);
  lastScroll = window.scrollY; // else the scroll event, which comes later, would look like one by the reader
}
window.addEventListener("scroll", () => {
  if (window.scrollY < lastScroll && !atEnd()) sticks = false;
  lastScroll = window.scrollY;
});
new ResizeObserver(() => sticks && toBottom()).observe(main);

// Run a change of the page. What had the focus keeps it; if it is gone, what came after it gets it.
function keepFocus(change) {
  const places = () => $$("a[href], button, input, select, summary, article");
  const key = (each) => each.id || [each.tagName, each.getAttribute("href"), each.value, each.textContent].join();
  const had = document.activeElement;
  const all = places();
  const item = had.closest("article") || had;
  const at = all.indexOf(item);
  const others = [...all.slice(at), ...all.slice(0, Math.max(at, 0)).reverse()].filter((each) => !item.contains(each));
  const wanted = at < 0 ? [] : [...(had.closest(".tools-of-message") ? [] : [had]), item, ...others].map(key);
  change();
  if (!wanted.length || document.activeElement === had) return;
  const now = new Map(places().map((each) => [key(each), each]));
  const next = now.get(wanted.find((each) => now.has(each))) || main;
  next.focus({ preventScroll: true });
}

let current = null;

// The status line: what was done, with a way back

let hideStatus = 0;
function say(text, ...buttons) {
  clearTimeout(hideStatus);
  let line = $("#said");
  if (!line) {
    line = make("div", "", { id: "said", role: "status" });
    document.body.append(line);
  }
  const hadFocus = line.contains(document.activeElement);
  line.replaceChildren(make("span", text), ...buttons);
  if (hadFocus) (buttons[0] || current || main).focus({ preventScroll: true });
  hideStatus = setTimeout(() => line.remove(), buttons.length ? 20000 : 6000);
}

// Messages in windows

const state = list && { ...list.dataset, busy: null };
const before = make("button", "Earlier messages", { type: "button", class: "more-messages" });
const after = make("button", "Later messages", { type: "button", class: "more-messages" });

// Take over where a window is: `start`, `stop`, `count` and `tip` of an answer, or of the page.
function know({ start, stop, count, tip, hidden }) {
  Object.assign(state, { start: Number(start), stop: Number(stop), count: Number(count), tip, hidden });
  before.hidden = state.start <= 0;
  after.hidden = state.stop >= state.count;
  list.setAttribute("role", "region");
  list.setAttribute("aria-label", `Messages ${state.start + 1} to ${state.stop} of ${state.count}`);
}

async function load(query, place) {
  if (state.busy && place !== "all") return;
  await state.busy;
  let free = null;
  state.busy = new Promise((resolve) => (free = resolve));
  try {
    const found = await get("/messages", { name: state.name, hidden: state.hidden, ...query });
    const nodes = fragment(found.html);
    const { start, stop } = state;
    if (place === "all") keepFocus(() => list.replaceChildren(...[...nodes.children].map(merged)));
    else put(nodes, place);
    know({ ...found, ...(place === "before" && { stop }), ...(place === "after" && { start }) });
    drop(place);
    decorate();
    current = (current && document.getElementById(current.id)) || current;
  } catch (error) {
    say(`Cannot load messages: ${error.message}`);
  } finally {
    state.busy = null;
    free();
  }
}

// Put articles before or after the others; those that are here already are replaced if they differ.
function put(nodes, place) {
  const anchor = list.firstElementChild;
  const at = place === "before" && anchor ? anchor.getBoundingClientRect().top : 0;
  const fresh = [...nodes.children].filter((each) => {
    const here = document.getElementById(each.id);
    if (here && here.outerHTML !== each.outerHTML) replace(here, each);
    return !here;
  });
  if (place === "before") list.prepend(...fresh);
  else list.append(...fresh);
  if (at) window.scrollBy(0, anchor.getBoundingClientRect().top - at);
}

// Return the article that is here already if it is the same, else the new one with the folds as they are.
function merged(next) {
  const here = document.getElementById(next.id);
  if (!here || here.parentElement !== list) return next;
  $(".tools-of-message", here)?.remove();
  $$(".point", here).forEach((each) => each.remove());
  if (here.outerHTML === next.outerHTML) return here;
  unfold(here, next);
  return next;
}

function replace(here, next) {
  unfold(here, next);
  const focused = here.contains(document.activeElement) ? document.activeElement.closest("article")?.id : "";
  here.replaceWith(next);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

// Open and close the folds of a new article like those of the old one.
function unfold(here, next) {
  const key = (each) => `${each.closest("article")?.id} ${each.className} ${$("b", each)?.textContent}`;
  const open = new Map($$("details", here).map((each) => [key(each), each.open]));
  for (const each of $$("details", next)) each.open = open.get(key(each)) ?? each.open;
}

// Keep the number of articles bounded: what is far from the new window goes.
function drop(place) {
  let many = $$("article", list).length - MOST_ARTICLES;
  if (many <= 0) return;
  const gone = [];
  for (let each = place === "before" ? list.lastElementChild : list.firstElementChild; many > 0; ) {
    gone.push(each);
    many -= 1 + $$("article", each).length;
    each = place === "before" ? each.previousElementSibling : each.nextElementSibling;
  }
  const kept = place === "before" ? list.firstElementChild : gone.at(-1).nextElementSibling;
  const at = kept.getBoundingClientRect().top;
  for (const each of gone) each.remove();
  if (place === "before") state.stop = number(gone.at(-1)) - 1;
  else state.start = number(kept) - 1;
  window.scrollBy(0, kept.getBoundingClientRect().top - at);
  know(state);
}

const loadBefore = () => state.start > 0 && load({ start: Math.max(0, state.start - WINDOW), count: Math.min(WINDOW, state.start) }, "before");
const loadAfter = () => state.stop < state.count && load({ start: state.stop }, "after");

async function loadOutline() {
  const outline = $("#outline");
  if (!outline || !state) return;
  try {
    const found = await get("/outline", { name: state.name, hidden: state.hidden });
    const isOpen = $("details.fetched", outline)?.open;
    outline.replaceChildren(fragment(found.html));
    for (const fold of $$("details.fetched", outline)) {
      fold.addEventListener("toggle", fetchFold, { once: true });
      fold.open = isOpen;
    }
  } catch (error) {
    outline.replaceChildren(make("p", error.message, { class: "none" }));
  }
}

async function fetchFold({ target }) {
  const source = new URL($("a", target).href);
  const found = await get(source.pathname, Object.fromEntries(source.searchParams)).catch((error) => ({ html: "", error }));
  $("a", target).replaceWith(fragment(found.html), make("span", found.error?.message));
}

// Checkpoints, forks and runs, each after a message

let marks = [];
let marksTimer = 0;

async function loadMarks() {
  const found = await get("/marks", { name: state.name }).catch(() => ({ marks: [] }));
  for (const { node } of marks) node.remove();
  marks = found.marks.map(([address, html]) => ({ address, node: fragment(html).firstElementChild }));
  decorate();
}

function decorate() {
  for (const { address, node } of marks) {
    const article = document.getElementById(address);
    const outer = article?.parentElement.closest("article") || article;
    if (outer && node.parentElement !== outer) outer.append(node);
  }
  highlight();
}

// The current message, and the address that says what is shown

let moved = 0;

function focusOn(article, { scroll = true } = {}) {
  if (!article) return;
  current = article;
  sticks = false;
  for (let fold = folded(article); fold; fold = folded(article)) fold.open = true;
  article.focus({ preventScroll: true });
  if (scroll) article.scrollIntoView({ block: "start" });
  remember(article.id);
}

const folded = (item) => item.parentElement.closest("details:not([open])");

function remember(address) {
  const url = new URL(location.href);
  if (!list || url.searchParams.get("at") === address) return;
  url.searchParams.set("at", address);
  url.searchParams.delete("start");
  url.hash = "";
  history.replaceState(history.state, "", url);
}

function goTo(address) {
  const [birth, number] = address.split(".");
  const isIt = ({ id }) => {
    const [own, place] = id.split(".");
    return place === number && (own.startsWith(birth) || birth.startsWith(own));
  };
  const article = document.getElementById(address) || $$("article", list).find(isIt);
  if (article) focusOn(article);
  return Boolean(article);
}

// Go to a message, wherever it is in the session.
async function jump(address) {
  if (goTo(address)) return;
  await load({ at: address }, "all");
  goTo(address);
}

function isInView(item) {
  const { top, bottom } = item.getBoundingClientRect();
  return item.isConnected && bottom > 0 && top < window.innerHeight;
}

function visible() {
  const head = $(".stays")?.getBoundingClientRect().bottom || 48;
  return $$("article", list || main).find((each) => each.getBoundingClientRect().bottom > head + 32) || null;
}

if (list) {
  list.addEventListener("focusin", (event) => {
    current = event.target.closest("article") || current;
  });
  window.addEventListener("scroll", () => {
    clearTimeout(moved);
    moved = setTimeout(() => {
      const article = current && isInView(current) ? current : visible();
      if (article && !sticks && !atEnd()) remember(article.id);
    }, 400);
  });
  // A link to a message of this session moves to it; the page stays.
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest("a[href]");
    if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const url = new URL(anchor.href);
    const address = url.hash.slice(1) || url.searchParams.get("at");
    if (url.origin !== location.origin || !address) return;
    const same = url.pathname === location.pathname && url.searchParams.get("name") === (new URLSearchParams(location.search).get("name") || state.name) && (url.searchParams.get("hidden") || "") === state.hidden;
    if (same) {
      event.preventDefault();
      history.pushState(null, "", location.href);
      jump(address);
    }
  });
  window.addEventListener("popstate", () => {
    const query = new URLSearchParams(location.search);
    if (query.has("at")) jump(query.get("at"));
    else toEnd(!query.has("start"));
  });
}

// The whole of a long message, or of a message of which only the beginning is shown
main.addEventListener("click", async (event) => {
  const whole = event.target.closest("a.whole");
  if (!whole) return;
  event.preventDefault();
  const query = Object.fromEntries(new URL(whole.href).searchParams);
  try {
    const next = fragment((await get("/message", query)).html).firstElementChild;
    replace(whole.closest("article, .side"), next);
  } catch (error) {
    say(error.message);
  }
});

// Words of a search, marked without a change of the page

const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean);
const hasWords = (each) => words.every((word) => each.textContent.toLowerCase().includes(word));
const isHit = (each) => !words.length || !list || (hasWords(each) && !$$("article", each).some(hasWords));

function highlight() {
  if (!list || !words.length || !window.CSS?.highlights) return;
  const ranges = [];
  const walker = document.createTreeWalker(list, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < 5000; node = walker.nextNode()) {
    const text = node.data.toLowerCase();
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, Math.min(at + word.length, node.length));
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set("hit", new Highlight(...ranges));
}

// Live: subscribe first, then fetch, then apply what comes

let following = false;
let pending = false;

function connection(text, kind) {
  live.textContent = text;
  live.className = kind;
}

// A run: the text of open steps, which passes and is not stored. A piece says where it begins, in characters.

const steps = () => $("#steps");
const texts = new Map();

function stream({ run, step, at, text, whole }) {
  if (steps()?.dataset.name !== run) return;
  const known = texts.get(step);
  if (!whole && known?.end !== at) return; // the middle of a text; all of it follows within two seconds
  const before = whole ? (at ? "…" : "") : known.text;
  texts.set(step, { text: before + text, end: at + [...text].length, notes: known?.notes || [] });
  showText(step);
}

function note({ run, step, number, source, substep }) {
  if (steps()?.dataset.name !== run) return;
  const known = texts.get(step) || { text: "", end: 0, notes: [] };
  const kind = source ? "source" : "part";
  const said = source ? `source: ${source.title || source.url}` : `part: ${substep.title}${substep.completed ? " ✓" : " …"}`;
  known.notes = [...known.notes.filter((each) => each.kind !== kind || each.number !== number), { kind, number, said }];
  texts.set(step, known);
  showText(step);
}

function showText(step) {
  const place = document.getElementById(`text-${step}`);
  const known = texts.get(step);
  if (!place || !known) return;
  const end = following || sticks || atEnd();
  place.replaceChildren(document.createTextNode(known.text), ...known.notes.map(({ said }) => make("p", said)));
  if (end) toBottom();
}

function showTexts() {
  if (!steps()) return;
  for (const step of texts.keys()) {
    if (document.getElementById(`text-${step}`)) showText(step);
    else if (document.getElementById(`step-${step}`)) texts.delete(step); // it has ended
  }
}

let known = "";
const heard = {
  hello({ position }) {
    connection("● live", "on");
    // The page may be older than the connection: what it shows is fetched again, unless nothing happened.
    if (known !== position) refresh();
    known = position;
  },
  moved({ ref }, id) {
    known = id;
    const watched = main.dataset.watch.split(" ").find((each) => each && (each.endsWith("/") ? ref.startsWith(each) : ref === each));
    if (list && watched?.endsWith("/")) {
      clearTimeout(marksTimer);
      marksTimer = setTimeout(loadMarks, 500);
    } else if (watched) refresh();
  },
  reset: () => refresh(),
  progress: (frame) => stream(frame),
  noted: (frame) => note(frame),
  closed: ({ reason }) => connection(`○ ${reason}`, "off"),
  error: () => connection("○ not connected", "off"),
};

// A browser opens only six connections to a server, so all tabs share one: the tab that holds a lock has it, and tells
// the others.
const channel = window.BroadcastChannel ? new BroadcastChannel("trace-events") : null;
let leads = false;
let isOn = false;

function tell(kind, data, id) {
  isOn = kind === "error" ? false : isOn || kind === "hello";
  heard[kind](data, id);
  channel?.postMessage({ kind, data, id });
}

function connect() {
  leads = true;
  return new Promise((done) => {
    let events = null;
    const open = () => {
      events = new EventSource("/events");
      for (const kind of ["hello", "moved", "reset", "closed", "progress", "noted"]) {
        events.addEventListener(kind, (event) => tell(kind, JSON.parse(event.data), event.lastEventId));
      }
      events.addEventListener("error", () => {
        tell("error", {}, "");
        if (events.readyState === EventSource.CLOSED) setTimeout(open, 2000);
      });
    };
    open();
    window.addEventListener("pagehide", () => {
      events.close();
      leads = false;
      done();
    });
  });
}

function listen() {
  channel?.addEventListener("message", ({ data: { kind, data, id } }) => {
    if (kind !== "ask") heard[kind](data, id);
    else if (leads && isOn) channel.postMessage({ kind: "hello", data: { position: known }, id: known });
  });
  channel?.postMessage({ kind: "ask" });
  if (channel && navigator.locks) navigator.locks.request("trace-events", connect);
  else connect();
}
window.addEventListener("pageshow", (event) => event.persisted && location.reload());

async function refresh() {
  if (pending) return void (pending = "again");
  pending = true;
  try {
    if (list) await refreshMessages();
    else await refreshPage();
  } catch (error) {
    say(`Cannot update: ${error.message}`);
  }
  const again = pending === "again";
  pending = false;
  if (again) setTimeout(refresh, list ? 50 : 1000);
}

async function refreshMessages() {
  const end = following || ((sticks || atEnd()) && state.stop >= state.count);
  const found = await get("/news", { name: state.name, hidden: state.hidden, tip: state.tip, start: state.count });
  if (found.tip === state.tip) return;
  if (found.html === null) return reloadWindow();
  const { start, stop, count } = state;
  if (stop >= count) {
    put(fragment(found.html), "after");
    know({ ...found, start });
    drop("after");
  } else know({ ...found, start, stop });
  decorate();
  if (end) toBottom();
  else say(`${state.count} messages`);
  clearTimeout(outlineTimer);
  outlineTimer = setTimeout(loadOutline, 1500);
}
let outlineTimer = 0;

async function reloadWindow() {
  const tops = new Map($$("article", list).filter(isInView).map((each) => [each.id, each.getBoundingClientRect().top]));
  const article = visible();
  const place = article ? number(article) - 1 : state.start;
  const wasAtEnd = sticks || atEnd();
  const start = Math.min(Math.max(state.start, place - WINDOW / 2), Math.max(state.start, state.stop - WINDOW));
  await load(wasAtEnd ? {} : { start }, "all");
  if (wasAtEnd) toBottom();
  else keepInPlace(tops);
  loadOutline();
}

// Scroll so that the first of some articles that is left is where it was, also while others take their size.
function keepInPlace(tops, frames = 10) {
  const left = [...tops.keys()].find((id) => document.getElementById(id));
  if (!left || !frames) return;
  window.scrollBy(0, document.getElementById(left).getBoundingClientRect().top - tops.get(left));
  requestAnimationFrame(() => keepInPlace(tops, frames - 1));
}

async function refreshPage() {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  const { scrollX, scrollY } = window;
  const content = $("#main", next);
  const top = $("header.top", next);
  if (!content) return;
  const isNew = content.innerHTML !== lastContent;
  lastContent = content.innerHTML;
  for (const each of [content, top]) if (each) localTimes(each);
  const end = steps() && (following || sticks || atEnd());
  keepFocus(() => {
    if (isNew) replaceMain(content);
    if (!steps() || !top) return;
    $("header.top")?.replaceWith(top);
    offerFollow();
  });
  if (!isNew) return;
  showTexts();
  window.scrollTo(scrollX, end ? document.documentElement.scrollHeight : scrollY);
}
let lastContent = main.innerHTML;

// Show new content. A form stays as it is, with the typed text.
function replaceMain(content) {
  const form = $(":scope > form", main);
  const nodes = [...content.childNodes];
  const at = nodes.indexOf($(":scope > form", content));
  if (!form || at < 0) return void main.replaceChildren(...nodes);
  for (const each of [...main.childNodes]) if (each !== form) each.remove();
  form.before(...nodes.slice(0, at));
  form.after(...nodes.slice(at + 1));
}

// Actions

async function act(action, { message = "", text = "", session = state ? state.name : "" } = {}) {
  try {
    const answer = await fetch(`/do/${action}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-trace-token": token },
      body: JSON.stringify({ session, message, text }),
    });
    const found = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
    if (!answer.ok) return say(`Not done: ${found.error}`);
    const undo = make("button", "Undo", { type: "button" });
    undo.addEventListener("click", () => act("undo", { session }));
    say(found.said, ...(found.undo ? [undo] : []));
    refresh();
  } catch (error) {
    say(`Not done: ${error.message}`);
  }
}

function ask(title, { text = null, large = false, button = "OK" } = {}) {
  return new Promise((resolve) => {
    const dialog = make("dialog");
    const form = make("form", "", { method: "dialog" });
    const heading = make("h2", title, { id: "asked" });
    dialog.setAttribute("aria-labelledby", "asked");
    const field = text === null ? null : make(large ? "textarea" : "input", "", { "aria-label": title });
    if (field) field.value = text;
    const yes = make("button", button, { value: "yes" });
    const no = make("button", "Cancel", { value: "no", type: "button" });
    no.addEventListener("click", () => dialog.close("no"));
    const buttons = make("p", "", { class: "switches" });
    buttons.append(yes, no);
    form.append(heading, ...(field ? [field] : []), buttons);
    dialog.append(form);
    document.body.append(dialog);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? (field ? field.value : "yes") : null);
    });
    dialog.showModal();
    (field || yes).focus();
  });
}

const onMessage = {
  Pin: (article) => act(article.classList.contains("pinned") ? "unpin" : "pin", { message: article.id }),
  Edit: async (article) => {
    const { text } = await get("/message", { name: state.name, at: article.id });
    const wording = await ask("New wording of the message", { text, large: true, button: "Save" });
    if (wording !== null && wording !== text) act("edit", { message: article.id, text: wording });
  },
  Remove: async (article) => {
    if (await ask("Hide this message from the model? A call and its results go together, to the trash.", { button: "Remove" })) act("remove", { message: article.id });
  },
  Restore: (article) => act("restore", { message: article.id }),
};

async function copy(article) {
  const { text } = await get("/message", { name: state.name, at: article.id });
  await navigator.clipboard.writeText(text);
  say("Copied.");
}

const onSession = {
  Trim: async () => {
    const text = await ask("Shorten old tool output until the context has this size (tokens, or a percentage)", { text: "60%", button: "Trim" });
    if (text) act("trim", { text });
  },
  Compact: async () => {
    const text = await ask("Replace old messages by a summary until the context has this size (tokens, or a percentage)", { text: "50%", button: "Compact" });
    if (text) act("compact", { text });
  },
  Clear: async () => {
    if (await ask("Hide all messages but instructions, pins and summaries?", { button: "Clear" })) act("clear");
  },
  Checkpoint: async () => {
    const text = await ask("Name of the checkpoint", { text: "", button: "Save" });
    if (text) act("checkpoint", { text });
  },
  Undo: () => act("undo"),
};

function button(name, run) {
  const found = make("button", name, { type: "button" });
  found.addEventListener("click", () => Promise.resolve(run()).catch((error) => say(error.message)));
  return found;
}

function toolbar() {
  const bar = make("span", "", { class: "tools-of-message" });
  const show = (article) => {
    if (!article || bar.parentElement?.parentElement === article) return;
    const names = article.classList.contains("hidden") ? ["Restore"] : ["Pin", "Edit", "Remove"];
    const copies = button("Copy", () => copy(article));
    bar.replaceChildren(copies, ...(token ? names.map((name) => button(name, () => onMessage[name](article))) : []));
    $("header", article).append(bar);
  };
  list.addEventListener("focusin", (event) => show(event.target.closest("article")));
  // Who uses keys keeps the buttons, wherever the pointer is.
  list.addEventListener("pointerover", (event) => $(":focus-visible", bar) || show(event.target.closest("article")));
}

if (list) {
  toolbar();
  const bar = $(".top .switches");
  bar.append(make("a", "Export", { href: `/export?${new URLSearchParams({ name: state.name })}`, download: "" }));
  if (token) bar.prepend(...Object.entries(onSession).map(([name, run]) => button(name, run)));
}
offerFollow();
document.body.classList.toggle("acts", token !== "");
main.addEventListener("click", (event) => {
  const restore = event.target.closest("button.restore");
  if (restore) act("restore", { message: restore.value, session: restore.dataset.session });
});

// A session, and a run that runs, can be followed.
function offerFollow() {
  const isLive = list || steps()?.classList.contains("live");
  following = following && Boolean(isLive);
  if (!isLive) return;
  const follow = make("label", "");
  const box = make("input", "", { type: "checkbox", id: "follow" });
  box.checked = following;
  box.addEventListener("change", () => setFollow(box.checked));
  follow.append(box, document.createTextNode("Follow"));
  $(".top .switches").append(follow);
}

function setFollow(on) {
  const box = $("#follow");
  following = on && box !== null;
  if (box) box.checked = following;
  if (!following) return;
  if (steps() && new URLSearchParams(location.search).has("start")) location.href = $(".latest").href;
  else toBottom();
}
window.addEventListener("wheel", (event) => event.deltaY < 0 && following && setFollow(false), { passive: true });

// Keys

const articles = () => $$("article, .cards > li", main).filter((each) => !folded(each));
// Return the place of what is read: the current item, while it is in view, or what the window shows; a session that is
// at its end was read to its end.
function whereIn(all, by) {
  if (current && all.includes(current) && isInView(current)) return all.indexOf(current);
  if (list && atEnd()) return by < 0 ? all.length : all.length - 2;
  const at = all.indexOf(visible());
  return by < 0 ? at : Math.max(at - 1, -1); // the first key leads to what is in sight
}
function step(by, test = () => true, all = articles()) {
  const from = whereIn(all, by);
  for (let at = from + by; at >= 0 && at < all.length; at += by) if (test(all[at])) return focusItem(all[at]);
  if (list) (by < 0 ? loadBefore : loadAfter)?.();
}
function toHit(by) {
  step(by, isHit, $$("article, .cards > li", main));
  if (list && words.length && current) for (const each of $$("details", current)) each.open ||= hasWords(each);
}
function focusItem(item) {
  if (item.tagName === "ARTICLE") return focusOn(item);
  current = item;
  $("a", item).focus();
}
const toggle = (id) => $(`#${id}`)?.click();
async function toEnd(last) {
  if (list && (last ? state.stop < state.count : state.start > 0)) {
    await load(last ? {} : { start: 0 }, "all");
  }
  focusItem(articles().at(last ? -1 : 0) || main);
}

const KEYS = {
  "/": ["search", () => $("#search").focus()],
  j: ["next message or entry of a list", () => step(1)],
  k: ["previous one", () => step(-1)],
  J: ["next turn of the user", () => step(1, (each) => each.classList.contains("user"))],
  K: ["previous turn of the user", () => step(-1, (each) => each.classList.contains("user"))],
  n: ["next hit", () => toHit(1)],
  p: ["previous hit", () => toHit(-1)],
  g: ["twice: first message", () => (lastKey === "g" ? toEnd(false) : null)],
  G: ["last message", () => toEnd(true)],
  o: ["outline", () => $("#outline a")?.focus()],
  t: ["show or hide thinking", () => toggle("show-reasoning")],
  x: ["show or hide tools", () => toggle("show-tools")],
  f: ["follow what is new", () => setFollow(!following)],
  c: ["copy the address of the message", () => current && navigator.clipboard.writeText(current.id).then(() => say("Copied."))],
  d: ["context and difference at the message", () => ($$("a.jump", $("header", current || visible())).at(-1) || {}).click?.()],
  e: ["export", () => $("a[download]")?.click()],
  "[": ["sessions", () => (location.href = "/")],
  "?": ["help", help],
};
let lastKey = "";
let keysOn = localStorage.getItem("keys") !== "off";

function help() {
  const dialog = make("dialog", "", { "aria-label": "Keys", class: "help" });
  const box = make("input", "", { type: "checkbox", id: "keys" });
  box.checked = keysOn;
  box.addEventListener("change", () => {
    keysOn = box.checked;
    localStorage.setItem("keys", keysOn ? "on" : "off");
  });
  const label = make("label", "");
  label.append(box, document.createTextNode(" Keys of one letter"));
  const keys = make("dl", "", { class: "facts" });
  for (const [key, [what]] of Object.entries(KEYS)) {
    const row = make("div");
    row.append(make("dt", key), make("dd", what));
    keys.append(row);
  }
  const close = button("Close", () => dialog.close());
  dialog.append(make("h2", "Keys"), label, keys, close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
$(".bar nav").append(button("Keys", help));

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && isTyping(event.target)) return event.target.blur();
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    return $("#search").focus();
  }
  if (!keysOn || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || $("dialog[open]")) return;
  const found = KEYS[event.key];
  if (found) {
    event.preventDefault();
    found[1]();
  }
  lastKey = lastKey === "g" ? "" : event.key;
});

// Begin

if (list) {
  list.before(before);
  list.after(after);
  before.addEventListener("click", loadBefore);
  after.addEventListener("click", loadAfter);
  const sentinels = new IntersectionObserver(
    (entries) => {
      for (const each of entries) if (each.isIntersecting) (each.target === before ? loadBefore : loadAfter)();
    },
    { rootMargin: "800px" },
  );
  history.scrollRestoration = "manual";
  know(state);
  const wanted = new URLSearchParams(location.search).get("at");
  if (wanted) goTo(wanted);
  else if (!location.hash && !new URLSearchParams(location.search).has("start")) toBottom();
  setTimeout(() => [before, after].forEach((each) => sentinels.observe(each)), 300);
  loadMarks();
  loadOutline();
}
// A run that runs opens at its latest step; who comes back to it, or reloads it, is where they were.
const [arrival] = performance.getEntriesByType("navigation");
if (steps()?.classList.contains("live") && arrival?.type === "navigate" && !location.hash && !new URLSearchParams(location.search).has("start")) toBottom();
localTimes(document);
highlight();
if (main.dataset.watch) listen();
