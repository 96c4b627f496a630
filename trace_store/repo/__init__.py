"""The front door: a repository with the verbs that one types all day.

    from trace_store.repo import Repo

One module a subject; the object that opens has them all. What a verb needs of the floors below is imported when it is
called, as far as those offer it so.
"""
