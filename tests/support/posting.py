"""Threads that send data to a service, and repeat each request until it is accepted."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.serving import PATIENCE_S, Answer, Served, wait_for

_TESTS = Path(__file__).resolve().parents[1]
_LOGS = sorted(
    [
        *(_TESTS.parent / "experiments" / "data" / "testbed" / "logs").glob("*.darshan"),
        *(_TESTS / "summario" / "fixtures").glob("*.darshan"),
    ]
)
_ACCEPTED = frozenset({200, 201, 202})
_BUSY = 503
# The pause after each request, whether the next one is new or a repetition.
_PAUSE_S = 0.03
# The system of all measurements. For each system the keeper fits a model, which takes seconds.
_MEASURED = "measured"
_COMMAND = "mpiexec -n 16 ior -a POSIX -w -F -b 24m -t 24m"


@dataclass(frozen=True)
class Item:
    """A request with data to store."""

    path: str
    body: bytes
    content_type: str


def outcome(system: str, number: int) -> Item:
    """Make an outcome of a job."""
    told = {"job_id": str(number), "io_nodes": 4, "bandwidth_mib_s": 50.0 + number}
    return _json("/v1/outcomes", {"system": system, **told})


def measurement(system: str, number: int) -> Item:
    """Make a measurement of always the same configuration, on the system of all measurements."""
    told = {"io_nodes": 4, "bandwidth_mib_s": 50.0 + number, "note": f"{system} {number}"}
    body = {"system": _MEASURED, "measurements": [{"command": _COMMAND, **told}]}
    return _json("/v1/measurements", body)


def trace(system: str, number: int) -> Item:
    """Make a trace from a real log; the same log may be sent again for another system."""
    round_of, which = divmod(number, len(_LOGS))
    body, content_type = form(_LOGS[which].read_bytes(), f"{system}-{round_of}")
    return Item("/v1/traces", body, content_type)


def form(log: bytes, system: str) -> tuple[bytes, str]:
    """Make a multipart body with a log and its system; return it with its type."""
    parts = [
        b'--edge\r\nContent-Disposition: form-data; name="system"\r\n\r\n%b\r\n' % system.encode(),
        b'--edge\r\nContent-Disposition: form-data; name="log"; filename="app.darshan"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n",
        log,
        b"\r\n--edge--\r\n",
    ]
    return b"".join(parts), "multipart/form-data; boundary=edge"


def _json(path: str, body: dict[str, Any]) -> Item:
    return Item(path, json.dumps(body).encode(), "application/json")


KINDS: dict[str, Callable[[str, int], Item]] = {
    "outcomes": outcome,
    "measurements": measurement,
    "traces": trace,
}


class Posting:
    """Threads that send requests all the time, one for each kind of data.

    A request without an answer, or with the answer 503, is sent again until it is accepted, also
    at the end.

    Parameters
    ----------
    served : Served
        The service.
    token : str
        The token of an admin.
    system : str
        The name of a system, without spaces, that nothing else uses.

    Attributes
    ----------
    accepted : dict of str to dict of int to object
        The answers by kind and number.
    unanswered : int
        The number of requests without an answer.
    refused : list of (str, Answer)
        The kind and the answer of each request that was answered with 503.
    wrong : list of str
        All other answers, and requests that were not accepted in time.
    """

    def __init__(self, served: Served, token: str, system: str) -> None:
        self.system = system
        self.accepted: dict[str, dict[int, Any]] = {kind: {} for kind in KINDS}
        self.unanswered = 0
        self.refused: list[tuple[str, Answer]] = []
        self.wrong: list[str] = []
        self._served = served
        self._token = token
        self._stop = threading.Event()
        self._give_up_at = float("inf")
        self._threads = [threading.Thread(target=self._send, args=(kind,)) for kind in KINDS]

    def __enter__(self) -> Posting:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._give_up_at = time.monotonic() + PATIENCE_S
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def ids(self) -> dict[str, list[int]]:
        """Everything accepted: the numbers of jobs and of measurements, and the ids of runs."""
        return {
            "outcomes": sorted(self.accepted["outcomes"]),
            "measurements": sorted(self.accepted["measurements"]),
            "traces": sorted(told["run_id"] for told in self.accepted["traces"].values()),
        }

    def wait_until_accepted(self, more: int = 2) -> None:
        """Wait until so many more requests of each kind are accepted."""
        wanted = {kind: len(answers) + more for kind, answers in self.accepted.items()}
        self._wait_for(
            lambda: all(len(self.accepted[kind]) >= count for kind, count in wanted.items()),
            f"acceptance of {more} more of each kind",
        )

    def wait_until_refused(self) -> None:
        """Wait until one more request of each kind is answered with 503."""
        known = len(self.refused)
        self._wait_for(
            lambda: {kind for kind, _ in self.refused[known:]} == KINDS.keys(),
            "refusal of each kind",
        )

    def _wait_for(self, condition: Callable[[], bool], what: str) -> None:
        wait_for(lambda: self.wrong or condition(), what, PATIENCE_S)
        assert not self.wrong, self.wrong

    def _send(self, kind: str) -> None:
        for number in itertools.count():
            if self._stop.is_set():
                return
            item = KINDS[kind](self.system, number)
            while not self._is_settled(kind, number, item):
                time.sleep(_PAUSE_S)
            time.sleep(_PAUSE_S)

    def _is_settled(self, kind: str, number: int, item: Item) -> bool:
        """Send a request once; return whether it need not be sent again."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": item.content_type}
        told = "no answer"
        try:
            answer = self._served.ask(item.path, method="POST", body=item.body, headers=headers)
        except (OSError, http.client.HTTPException):
            self.unanswered += 1
        else:
            if answer.status in _ACCEPTED:
                self.accepted[kind][number] = answer.json
                return True
            told = f"{answer.status} {answer.body.decode()}"
            if answer.status == _BUSY:
                self.refused.append((kind, answer))
            else:
                self.wrong.append(f"{kind} {number}: {told}")
                return True
        if time.monotonic() < self._give_up_at:
            return False
        self.wrong.append(f"{kind} {number} at the end: {told}")
        return True


def everything(served: Served, path: str) -> Iterator[Any]:
    """Yield all items of a list, page after page."""
    following: str | None = path
    while following is not None:
        page = _page(served, following)
        yield from page["items"]
        following = page["next"]


def _page(served: Served, path: str) -> Any:
    """Get a page of a list; repeat the request while the service is busy with writing."""

    def answered() -> Any:
        answer = served.ask(path)
        return answer.status != _BUSY and answer.json

    return wait_for(answered, f"answer to {path}")


def stored(served: Served, posting: Posting) -> dict[str, list[int]]:
    """List the data of a posting that a service has, as `Posting.ids` does, with duplicates."""
    jobs = everything(served, f"/v1/outcomes?system={posting.system}&limit=500")
    measured = everything(served, f"/v1/measurements?system={_MEASURED}&limit=500")
    notes = [each["note"].split() for each in measured]
    return {
        "outcomes": sorted(int(each["job_id"]) for each in jobs),
        "measurements": sorted(int(number) for system, number in notes if system == posting.system),
        "traces": sorted(_runs(served, posting)),
    }


def _runs(served: Served, posting: Posting) -> Iterator[int]:
    for number in range(len(posting.accepted["traces"]) // len(_LOGS) + 1):
        place = f"/v1/applications?system={posting.system}-{number}&limit=500"
        for application in everything(served, place):
            for run in everything(served, f"/v1/applications/{application['id']}/runs?limit=500"):
                yield run["id"]
