"""Posting letters: as SNS posts them, to public addresses, and to nobody for longer than a while."""

import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest

from smart_redriver.engine.config.targets import Target, is_public
from smart_redriver.engine.errors import CallFailed
from smart_redriver.engine.messages.outgoing import Sent
from smart_redriver.engine.targets.web_target import TimedConnection, WebTarget, addresses_of
from tests.unit.endpoint import (
    HOST,
    Answer,
    Endpoint,
    certificate,
    for_ever,
    saying,
    served,
    status,
    trusting,
    until_hung_up,
)
from tests.unit.origin_letters import of_sns, sent
from tests.unit.target_clients import going

Context = Callable[[], ssl.SSLContext]


def post(
    to: Endpoint,
    *letters: Any,
    private: tuple[str, ...] = (HOST,),
    context: Context = ssl.create_default_context,
    whole_seconds: float = 15.0,
) -> Sent:
    target = WebTarget(
        Target.parse(to.url),
        private,
        resolve=to.resolve,
        context=context,
        whole_seconds=whole_seconds,
    )
    return target.deliver(going(*letters or (sent("an order"),)))


def test_a_letter_is_posted_as_sns_does_it() -> None:
    with Endpoint(status(200)) as endpoint:
        done = post(endpoint, of_sns())

    (request,) = endpoint.requests
    head, _, body = request.partition(b"\r\n\r\n")
    first, *headers = head.decode().split("\r\n")
    assert first == "POST /orders?key=1 HTTP/1.1"
    assert f"Host: {HOST}:{endpoint.port}" in headers
    assert "x-amz-sns-message-type: Notification" in headers
    assert "Content-Type: text/plain; charset=UTF-8" in headers
    assert body.decode() == of_sns().body
    assert (done.new_ids, done.faults, done.bounced) == ({"first": "first"}, [], {})


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("bücher.test", "xn--bcher-kva.test"),
        ("заказы.рф", "xn--80aatcn8h.xn--p1ai"),
        ("a" * 62, "a" * 62),
        ("endpoint.test.", "endpoint.test."),
        ("[fd00::1]", "[fd00::1]"),
    ],
)
def test_a_host_is_named_as_it_was_looked_up_whatever_the_port_is(host: str, named: str) -> None:
    """A port is no part of a name's last label, be that no ASCII or almost too long."""
    with Endpoint(status(200)) as endpoint:
        url = endpoint.url.replace(HOST, host)
        target = WebTarget(Target.parse(url), (host.strip("[]"),), resolve=endpoint.resolve)
        done = target.deliver(going(sent("a")))

    assert f"Host: {named}:{endpoint.port}\r\n".encode() in endpoint.requests[0]
    assert list(done.new_ids) == ["first"]


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
def test_two_hundreds_are_accepted(code: int) -> None:
    with Endpoint(status(code)) as endpoint:
        assert list(post(endpoint).new_ids) == ["first"]


@pytest.mark.parametrize("code", [300, 304, 400, 401, 404, 413, 429, 500, 503])
def test_every_other_answer_is_a_bounce_and_keeps_no_other_letter_back(code: int) -> None:
    with Endpoint(status(code)) as endpoint:
        done = post(endpoint, sent("a"), replace(sent("b"), message_id="second"))

    assert done.bounced == {"first": f"HTTP {code}", "second": f"HTTP {code}"}
    assert (done.new_ids, done.faults) == ({}, [])


@pytest.mark.parametrize(
    "place", ["http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "/elsewhere"]
)
def test_a_redirect_is_not_followed(place: str) -> None:
    with Endpoint(status(302, f"Location: {place}")) as endpoint:
        done = post(endpoint)

    assert done.bounced == {"first": "HTTP 302"}
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        saying(""),
        saying("HTTP/1.1 2"),
        saying("garbage\r\n\r\n"),
        saying("HTTP/1.1 200 " + "x" * 70_000),
        saying("HTTP/1.1 200 OK\r\n" + "a: b\r\n" * 200),
    ],
    ids=["nothing", "part", "garbage", "long", "many"],
)
def test_an_answer_that_is_none_is_a_bounce(answer: Answer) -> None:
    with Endpoint(answer) as endpoint:
        assert post(endpoint).bounced == {"first": "no answer"}


@pytest.mark.parametrize(
    "answer",
    [until_hung_up, for_ever("HTTP/1.1 100 Continue\r\n\r\n")],
    ids=["silence", "dripping"],
)
def test_an_endpoint_that_answers_for_ever_or_never_is_left_when_its_time_is_over(
    answer: Answer,
) -> None:
    with Endpoint(answer) as endpoint:
        assert post(endpoint, whole_seconds=0.2).bounced == {"first": "no answer"}


def test_a_letter_that_is_taken_at_a_drip_is_given_up_when_its_time_is_over() -> None:
    """Each chunk that goes through would start a socket's own time-out anew."""
    seconds = iter(range(100))

    class Slow(socket.socket):
        def send(self, data: Any, *_: Any) -> int:
            return min(1, len(data))

    with Slow() as slow, pytest.raises(TimeoutError):
        TimedConnection(slow, 50, lambda: next(seconds)).sendall(b"x" * 1000)
    assert next(seconds) == 51


def test_of_an_answer_without_end_no_more_than_the_status_is_read() -> None:
    with Endpoint(for_ever("x" * 1000, first="HTTP/1.1 200 OK\r\n\r\n")) as endpoint:
        assert list(post(endpoint).new_ids) == ["first"]


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    with Endpoint(status(200)) as endpoint:
        assert list(post(endpoint).new_ids) == ["first"]


def test_a_host_that_takes_no_connection_is_a_refusal_of_all_letters() -> None:
    with Endpoint(status(200)) as endpoint:
        pass

    done = post(endpoint, sent("a"), replace(sent("b"), message_id="second"))

    assert [one.code for one in done.faults] == ["NoConnection"] * 2
    assert done.refused is not None


def test_a_host_is_looked_up_once_for_a_delivery_and_reached_where_it_was_looked_up() -> None:
    """A second answer of the resolver would lead elsewhere."""
    asked = []
    with Endpoint(status(200)) as endpoint:

        def resolve(host: str, port: int, **_: Any) -> list[Any]:
            asked.append(host)
            place = "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, port))]

        target = WebTarget(Target.parse(endpoint.url), (HOST,), resolve=resolve)
        done = target.deliver(going(sent("a"), replace(sent("b"), message_id="second")))

    assert asked == [HOST]
    assert len(done.new_ids) == len(endpoint.requests) == 2


def test_a_host_with_an_address_that_is_not_public_is_not_called() -> None:
    with Endpoint(status(200)) as endpoint:
        done = post(endpoint, private=("other.test",))

    assert [(one.code, one.is_refusal) for one in done.faults] == [("AddressNotPublic", True)]
    assert endpoint.requests == []


class TestTls:
    def test_it_is_spoken_to_the_name_and_not_to_the_address(self) -> None:
        with Endpoint(status(200), served(certificate())) as endpoint:
            done = post(endpoint, context=trusting(certificate()))

        assert endpoint.names == [HOST]
        assert list(done.new_ids) == ["first"]

    def test_a_host_that_ends_with_a_dot_shows_the_certificate_of_its_name(self) -> None:
        with Endpoint(status(200), served(certificate())) as endpoint:
            target = WebTarget(
                Target.parse(endpoint.url.replace(HOST, f"{HOST}.")),
                (f"{HOST}.",),
                resolve=endpoint.resolve,
                context=trusting(certificate()),
            )
            done = target.deliver(going(sent("a")))

        assert endpoint.names == [HOST]
        assert list(done.new_ids) == ["first"]

    @pytest.mark.parametrize(
        ("shown", "trusted"),
        [
            (certificate("stranger.test"), certificate("stranger.test")),
            (certificate(days=-1), certificate(days=-1)),
            (certificate(), certificate("stranger.test")),
        ],
        ids=["of another host", "over", "of nobody known"],
    )
    def test_a_certificate_that_is_not_valid_is_a_refusal_and_nothing_is_posted(
        self, shown: Any, trusted: Any
    ) -> None:
        with Endpoint(status(200), served(shown)) as endpoint:
            done = post(endpoint, context=trusting(trusted))

        assert [(one.code, one.is_refusal) for one in done.faults] == [("CertificateInvalid", True)]
        assert endpoint.requests == []

    def test_a_handshake_that_fails_otherwise_is_a_refusal(self) -> None:
        with Endpoint(saying("what?\r\n\r\n")) as plain:
            target = WebTarget(
                Target.parse(plain.url.replace("http:", "https:")),
                (HOST,),
                resolve=plain.resolve,
                whole_seconds=0.2,
            )
            done = target.deliver(going(sent("a")))

        assert [(one.code, one.is_refusal) for one in done.faults] == [("SSLError", True)]

    def test_the_usual_context_looks_at_names_and_certificates(self) -> None:
        context = WebTarget(Target.parse("https://example.com/"))._context

        assert context.check_hostname
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def found(*addresses: str) -> Callable[..., Any]:
    return lambda host, port, **_: [(0, 0, 0, "", (address, port)) for address in addresses]


class TestAddresses:
    @pytest.mark.parametrize(
        "address",
        [
            "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "0.0.0.0",
            "100.64.0.1", "224.0.0.1", "233.252.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1",
            "240.0.0.1", "::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "ff0e::1",
            "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1",
            "fec0::1", "::127.0.0.1", "::8.8.8.8", "::ffff:0:8.8.8.8", "4000::1", "5f00::1", "0200::1",
            "3fff::1", "2001:20::1", "2001:0:808:808::1", "2002:808:808::1", "192.88.99.1", "100::1",
            "64:ff9b:1::808:808",
            "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001::1", "2001:db8::1",
        ],
    )  # fmt: skip
    def test_what_is_not_public(self, address: str) -> None:
        assert not is_public(ip_address(address))

    @pytest.mark.parametrize(
        "address",
        ["93.184.215.14", "8.8.8.8", "2606:2800:21f::1", "::ffff:8.8.8.8", "64:ff9b::808:808"],
    )
    def test_what_is(self, address: str) -> None:
        assert is_public(ip_address(address))

    def test_one_address_that_is_not_public_spoils_the_host(self) -> None:
        with pytest.raises(CallFailed, match="AddressNotPublic"):
            addresses_of("example.com", 443, (), found("8.8.8.8", "10.0.0.1"))

    def test_a_host_that_is_named_may_have_private_ones(self) -> None:
        told = addresses_of("Orders.internal", 443, ("orders.INTERNAL",), found("10.0.0.1"))

        assert told == ["10.0.0.1"]

    @pytest.mark.parametrize(
        "address",
        [
            "169.254.169.254", "fe80::1%eth0", "::ffff:169.254.1.1", "fd00:ec2::254", "fd00:ec2::23",
            "::169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::", "2002:a9fe:a9fe::",
            "2001:0:808:808:0:0:5601:5601",
        ],
    )  # fmt: skip
    def test_where_machines_get_their_credentials_it_may_not_be(self, address: str) -> None:
        with pytest.raises(CallFailed, match="AddressNotPublic"):
            addresses_of("orders.internal", 443, ("orders.internal",), found(address))

    def test_the_first_two_are_tried_those_of_the_older_protocol_first(self) -> None:
        told = addresses_of("a", 443, (), found("2606:2800:21f::1", "8.8.4.4", "8.8.8.8"))

        assert told == ["8.8.4.4", "8.8.8.8"]

    @pytest.mark.parametrize("error", [socket.gaierror(), UnicodeError(), TimeoutError()])
    def test_a_host_that_nobody_knows_is_a_refusal(self, error: Exception) -> None:
        def resolve(*_: Any, **__: Any) -> Any:
            raise error

        done = WebTarget(Target.parse("https://example.com/"), resolve=resolve).deliver(
            going(sent("a"))
        )

        assert [(one.code, one.is_refusal) for one in done.faults] == [("HostNotFound", True)]

    def test_an_address_in_the_place_of_a_host_is_looked_at_too(self) -> None:
        done = WebTarget(Target.parse("http://169.254.169.254/latest/meta-data/")).deliver(
            going(sent("a"))
        )

        assert [one.code for one in done.faults] == ["AddressNotPublic"]
