"""The command line of Trace. Nothing here is an interface for programs; import `trace_store` instead."""
