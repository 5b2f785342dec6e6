"""The door of A2A once it is open: requests over HTTP and gRPC, and the tasks that are looked after."""

import asyncio
from typing import TYPE_CHECKING

from batonpass.dispatch.egress import Egress
from batonpass.relay import home_of
from batonpass.server.a2a.http_door import make_door
from batonpass.server.a2a.incoming_task import IncomingTasks
from batonpass.server.a2a.push_configs import PushConfigs
from batonpass.server.a2a.request_handler import A2aRequests
from batonpass.server.a2a.settings import A2aSettings
from batonpass.server.a2a.task_keeper import TaskKeeper
from batonpass.server.control_plane import ControlPlane

if TYPE_CHECKING:
    from batonpass.server.a2a.grpc_door import GrpcDoor


class OpenedDoor:
    """A2A over HTTP and gRPC, and the tasks that are looked after."""

    def __init__(self, plane: ControlPlane, settings: A2aSettings) -> None:
        tasks = IncomingTasks(plane)
        pushes = PushConfigs(home_of(plane.relay), settings.egress)
        requests = A2aRequests(plane, settings, tasks, pushes)
        self.app = make_door(plane, settings, requests)
        self._place = settings.grpc
        self._grpc = None if settings.grpc is None else _grpc_door(plane, settings, requests)
        self._keeper = TaskKeeper(plane, tasks, pushes, Egress(settings.egress))
        self._keeping: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Look after the tasks that are not over, and listen for gRPC, in the event loop of the server."""
        if self._grpc is not None and self._place is not None:
            await self._grpc.begin(self._place)
        self._keeping = asyncio.get_running_loop().create_task(self._keeper.keep())

    async def end(self, drain_seconds: float) -> None:
        """Take no more requests over gRPC, and let those under way finish for so long."""
        if self._grpc is not None:
            await self._grpc.end(drain_seconds)


def _grpc_door(plane: ControlPlane, settings: A2aSettings, requests: A2aRequests) -> "GrpcDoor":
    from batonpass.server.a2a.grpc_door import GrpcDoor  # noqa: PLC0415 - needs the extra

    return GrpcDoor(plane, settings, requests)
