"""Export formats of agent programs and providers, one module each.

Invariant: a writer first builds drafts (`lossy.drafts`), the messages as a reader of the file gets them, and writes
exactly these. `lossy.loss_count` derives the losses from them.
"""
