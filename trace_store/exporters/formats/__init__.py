"""Export formats of agent programs and providers: one module each, and one for requests to providers.

Invariant: a writer first builds drafts (`lossy.drafts`), the messages as a reader of the file gets them, and writes
exactly these. `lossy.loss_count` derives the losses from them.
"""
