"""Views of a trajectory: pages, Markdown, timelines, the text of a pull request, a folder.

Each is a pure function of a `View`: no store, no clock, equal text for equal trajectories.
"""

from trace_store.base.lazy_import import submodules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.trajectories.views import markdown as markdown
    from trace_store.trajectories.views import page as page
    from trace_store.trajectories.views import pull_request as pull_request
    from trace_store.trajectories.views import timeline as timeline
    from trace_store.trajectories.views import view as view

__getattr__ = submodules(__name__)
