"""Task systems on the web: single requests with a time limit, which follow no redirects."""

from __future__ import annotations

import json
import threading
from typing import Any

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.ident import Clock
from trace_store.llm.http import Connection, HttpResponse, Peer, RequestConnections, retry_after
from trace_store.llm.settings import Secret, checked_key, checked_url, is_private, proxy_for
from trace_store.trajectories.tasks.systems import MAXIMUM_ANSWER_BYTES

SECONDS = 15.0


class Service:
    """A task system that is asked over HTTPS.

    Attributes:
        name: its name in error messages.
        url: its address.
    """

    def __init__(self, name: str, environment: Environment, url: str, variable: str) -> None:
        """Take the address from the environment, else the given one.

        Args:
            name: its name in error messages.
            environment: has the variables.
            url: the address if the variable is not set.
            variable: the variable with the address.

        Raises:
            InvalidInputError: the address is not valid, or keys would be sent to it without encryption.
        """
        self.name = name
        self.url = checked_url(environment.variables(variable).get(variable, url), variable)
        if not is_private(self.url):
            raise errors.InvalidInputError(f"{variable} is not https, and keys are sent there")
        self._environment = environment
        self._key_names: tuple[str, ...] = ()

    def key(self, *names: str) -> Secret:
        """Return the key in the first variable that is set.

        Raises:
            StateError: none of them is set.
            InvalidInputError: it is not a valid key.
        """
        settings = self._environment.variables(*names)
        self._key_names = tuple(name for name in names if name in settings)
        if not self._key_names:
            raise errors.StateError(
                f"{self.name} needs a key",
                code=errors.ErrorCode.NO_TASK_KEY,
                variable=" or ".join(names),
            )
        return checked_key(settings[self._key_names[0]], self._key_names[0])

    def ask(
        self, method: str, path: str, headers: dict[str, str], fields: object = None
    ) -> tuple[int, dict[str, Any]]:
        """Send a request; return the status (200, 400 or 404) and the JSON object in the answer.

        Raises:
            TaskError: there is no answer in time, the service refuses or redirects, or the answer is unusable.
            InvalidInputError: the proxy or the certificates from the environment cannot be used.
        """
        environment = self._environment
        peer = Peer(
            self.name,
            self.url,
            SECONDS,
            proxy_for(environment, self.url),
            environment.variables("SSL_CERT_FILE").get("SSL_CERT_FILE", ""),
            errors.TaskUnreachableError,
            errors.TaskNonsenseError,
        )
        connections = RequestConnections(peer)
        timer = threading.Timer(SECONDS, connections.expire)
        timer.daemon = True
        timer.start()
        body = None if fields is None else json.dumps(fields).encode("ascii")
        connection = Connection(peer, connections)
        try:
            response = connection.send(
                method, self.url + path, {"accept": "application/json", **headers}, body
            )
            try:
                self._check(response)
                data = b"".join(response.chunks(MAXIMUM_ANSWER_BYTES))
            finally:
                response.close()
        finally:
            timer.cancel()
            connection.close()
        return response.status, self._object(response.status, data)

    def refused(self, why: str) -> errors.TaskRefusedError:
        """Return the error for a request that the service refuses."""
        return errors.TaskRefusedError(
            f"{self.name} {why} ({self.url})", needs=" and ".join(self._key_names) or "its settings"
        )

    def _check(self, response: HttpResponse) -> None:
        status = response.status
        if status in (200, 400, 404):
            return
        if 300 <= status < 400:
            raise errors.TaskUnreachableError(
                f"{self.url} redirects ({status}), and keys are not sent elsewhere"
            )
        if status in (401, 403):
            raise self.refused(f"refuses the key ({status})")
        if status == 429:
            wait = retry_after(response.headers, Clock())
            how_long = "" if wait is None else f" for {wait:,.0f} s"
            raise self.refused(f"allows no more requests{how_long}")
        if status >= 500:
            raise errors.TaskUnreachableError(f"{self.name} has failed ({status}; {self.url})")
        raise self.refused(f"refuses the request ({status})")

    def _object(self, status: int, data: bytes) -> dict[str, Any]:
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        if status != 200:
            return {}
        raise errors.TaskNonsenseError(f"{self.name}'s answer is not a JSON object ({self.url})")
