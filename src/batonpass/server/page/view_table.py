"""All views of the page, by address."""

from typing import Final

from batonpass.server.page.request import PageView
from batonpass.server.page.views import now, tasks, tree

VIEWS: Final[tuple[PageView, ...]] = (
    PageView(path="/", name="Now", template="now.html", make=now.show_now),
    PageView(path="/tasks", name="Tasks", template="tasks.html", make=tasks.list_tasks),
    PageView(path="/tasks/{root}", name="Tasks", template="tree.html", make=tree.show_tree),
    PageView(path="/handoffs", name="Tasks", template="handoffs.html", make=tasks.list_handoffs),
)
