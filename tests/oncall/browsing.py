"""A page's requests to the console, over a person's simulated or mocked deployment."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from smart_redriver.oncall.console.app import make_app
from smart_redriver.oncall.console.cache import Sessions
from smart_redriver.oncall.console.tasks import Console
from smart_redriver.oncall.deployment.session import Session

HOST = "127.0.0.1:8700"
TOKEN = "secret"


class Browsing:
    """The console of one person, asked as its page asks."""

    def __init__(self, session: Session, *, is_read_only: bool = False) -> None:
        self.console = Console(sessions=Sessions(session), is_read_only=is_read_only)
        self.web = TestClient(
            make_app(self.console, token=TOKEN, hosts=[HOST]),
            base_url=f"http://{HOST}",
            headers={"Authorization": f"Bearer {TOKEN}"},
        )

    def get(self, path: str, **query: Any) -> Any:
        """What a look answers, which is to succeed."""
        answer = self.web.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def order(self, queue: str, verb: str, **given: Any) -> Any:
        """An order, once it asks or has ended."""
        answer = self.web.post(f"/api/queues/{queue}/{verb}", json=given)
        assert answer.status_code == 202, answer.text
        return self._settled(answer.json())

    def answer(self, task: Any, text: str | None = None) -> Any:
        """The order after an answer, yes unless another is given, once it asks again or has ended."""
        given = {
            "question": task["question"],
            "answer": task["expected"] if text is None else text,
        }
        answer = self.web.post(f"/api/tasks/{task['id']}/answer", json=given)
        assert answer.status_code == 200, answer.text
        return self._settled(answer.json(), is_answered=True)

    def stop(self, task: Any) -> Any:
        """The order after its stop button, ended."""
        answer = self.web.post(f"/api/tasks/{task['id']}/stop", json={})
        assert answer.status_code == 200, answer.text
        task = answer.json()
        while task["state"] != "ended":
            task = self.get(f"/api/tasks/{task['id']}", after=task["version"])
        return task

    def done(self, queue: str, verb: str, **given: Any) -> Any:
        """An order to which all answers were yes, ended."""
        task = self.order(queue, verb, **given)
        while task["state"] == "asking":
            task = self.answer(task)
        return task

    def _settled(self, task: Any, *, is_answered: bool = False) -> Any:
        while is_answered or task["state"] not in ("asking", "ended"):
            task = self.get(f"/api/tasks/{task['id']}", after=task["version"])
            is_answered = False
        return task


def told(task: Any, kind: str = "plan") -> str:
    """What an order said."""
    return "\n".join(one["text"] for one in task["lines"] if one["kind"] == kind)
