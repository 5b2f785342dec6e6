"""Logging in by a provider: the code flow with PKCE, and everything about a token that has to hold."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest

from batonpass.credentials.port import Secret
from batonpass.errors import PolicyFileError
from batonpass.model.base.kinds import AccessRole
from batonpass.model.policy.login_settings import LoginRole, LoginSettings
from batonpass.policy.login_table import read_login
from batonpass.relay import Relay
from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.control_plane import ControlPlane
from batonpass.server.login.door import login_routes
from batonpass.server.login.provider import LoginProvider
from batonpass.server.page.door import PageDoor
from batonpass.server.page.session import PageSessions
from tests.unit.server.login.provider import CLIENT, ISSUER, KEYS, Provider
from tests.unit.server.visitor import HERE, Answered, Visitor

LONG_AGO, LONG_HENCE = 1_000_000_000, 4_000_000_000  # in seconds since 1970
ROLES = (
    LoginRole(claim="groups", value="root", role=AccessRole.ADMIN),
    LoginRole(claim="groups", value="ops", role=AccessRole.OPERATOR),
    LoginRole(claim="sub", value="eve", role=AccessRole.AUDITOR),
)


class Browser:
    """A browser at a server that has a login, and its cookies."""

    def __init__(self, relay: Relay, provider: Provider, settings: LoginSettings, secret: str | None = None) -> None:
        self.relay = relay
        self.provider = provider
        plane = ControlPlane.over(relay, egress=provider.egress())
        page = PageDoor(plane, PageSessions(plane), has_login=True)
        known = LoginProvider(settings, plane.egress, None if secret is None else Secret(secret))
        mounts = [*page.routes(), *login_routes(settings, known, page)]
        self.visitor = Visitor(make_app(plane, hosts=hosts_for("127.0.0.1"), mounts=mounts))
        self.cookies: dict[str, str] = {}

    def get(self, target: str) -> Answered:
        """Look at an address, and keep the cookies that come with it."""
        given = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = self.visitor.get(target, **({"cookie": given} if given else {}))
        for line in answer.headers.get("set-cookie", "").split("\n"):
            name, _, rest = line.partition("=")
            if name:
                self.cookies[name] = rest.partition(";")[0]
        return answer

    def begin(self) -> dict[str, str]:
        """Go to the provider and log in there; return what it was asked."""
        self.provider.log_in(self.get("/login?to=/runs").headers["location"])
        return self.provider.asked

    def come_back(self, **given: str) -> Answered:
        """Come back from the provider with a code."""
        said = {"code": "code-1", "state": self.provider.asked.get("state", ""), **given}
        return self.get(f"/login/callback?{'&'.join(f'{name}={value}' for name, value in said.items())}")

    def log_in(self) -> Answered:
        """Do both."""
        self.begin()
        return self.come_back()

    def refused(self, answer: Answered, words: str) -> bool:
        """Return whether somebody was refused with these words, and no session was opened."""
        is_open = [one for one in self.relay.admin.tokens() if one.added_by == "service:login"]
        return answer.status == 403 and words in answer.body.decode() and not is_open


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    """Return a relay over a new ledger."""
    with Relay.open(tmp_path / "ledger.db", home=tmp_path) as relay:
        relay.start("Ship", by="user:ana").close()
        yield relay


def a_browser(relay: Relay, provider: Provider | None = None, **changed: object) -> Browser:
    """Return a browser at a server whose settings may differ."""
    given: dict[str, object] = {"issuer": ISSUER, "client_id": CLIENT, "roles": ROLES, **changed}
    return Browser(relay, provider or Provider(), LoginSettings(**given))  # type: ignore[arg-type]  # as a test says


def test_a_person_logs_in_with_the_role_that_the_table_gives(relay: Relay) -> None:
    """The provider is asked with PKCE; who came in, as what, is on record; the page is open then."""
    browser = a_browser(relay)
    asked = browser.begin()
    back = browser.come_back()
    (token,) = relay.admin.tokens()

    assert (303, "/runs") == (back.status, back.headers["location"])
    assert ("user:ana", AccessRole.OPERATOR, "service:login") == (token.principal, token.role, token.added_by)
    assert ("code", "S256", f"http://{HERE}/login/callback", CLIENT) == (
        asked["response_type"],
        asked["code_challenge_method"],
        asked["redirect_uri"],
        asked["client_id"],
    )
    assert 200 == browser.get("/").status
    assert "Log in with your organisation" in a_browser(relay).get("/enter").body.decode()


def test_cookies_are_kept_from_scripts_and_other_sites(relay: Relay) -> None:
    """That of the session is strict; that of the login comes back with the browser, and only there."""
    browser = a_browser(relay)
    begun = browser.get("/login").headers["set-cookie"].lower()
    browser.provider.asked = {
        name: values[0] for name, values in parse_qs(urlsplit(browser.get("/login").headers["location"]).query).items()
    }
    session = browser.come_back().headers["set-cookie"].lower()

    assert all(part in begun for part in ("httponly", "samesite=lax", "path=/login/callback"))
    assert all(part in session for part in ("httponly", "samesite=strict"))


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        pytest.param(Provider(claims={"iss": "http://evil.internal"}), "InvalidIssuerError", id="another issuer"),
        pytest.param(Provider(claims={"aud": "somebody-else"}), "InvalidAudienceError", id="another audience"),
        pytest.param(Provider(claims={"aud": [CLIENT, "other"]}), "another program", id="for two, and for whom?"),
        pytest.param(Provider(claims={"azp": "other"}), "another program", id="made for another program"),
        pytest.param(Provider(claims={"exp": LONG_AGO}), "ExpiredSignatureError", id="expired"),
        pytest.param(Provider(claims={"iat": LONG_HENCE}), "ImmatureSignatureError", id="from tomorrow"),
        pytest.param(Provider(claims={"nbf": LONG_HENCE}), "ImmatureSignatureError", id="not yet"),
        pytest.param(Provider(claims={"nonce": "another"}), "another login", id="another nonce"),
        pytest.param(Provider(without=("nonce",)), "another login", id="no nonce"),
        pytest.param(Provider(without=("exp",)), "MissingRequiredClaimError", id="no end"),
        pytest.param(Provider(without=("aud",)), "MissingRequiredClaimError", id="no audience"),
        pytest.param(Provider(without=("iss",)), "MissingRequiredClaimError", id="no issuer"),
        pytest.param(Provider(without=("sub",)), "MissingRequiredClaimError", id="nobody"),
        pytest.param(Provider(claims={"sub": "two words"}), "no name of a principal", id="no principal"),
        pytest.param(Provider(claims={"groups": ["staff"]}), "gives user:ana a role", id="no role"),
        pytest.param(Provider(claims={"groups": {"ops": True}}), "gives user:ana a role", id="no list"),
        pytest.param(Provider(key=1), "does not publish", id="an unpublished key"),
        pytest.param(Provider(key=1, header={"kid": "key-0"}), "InvalidSignatureError", id="signed by another"),
        pytest.param(Provider(header={"crit": ["x"]}), "does not hold", id="something critical"),
        pytest.param(Provider(forged="not.a.token"), "DecodeError", id="no token"),
        pytest.param(Provider(discovery={"issuer": "http://evil.internal"}), "another one", id="another provider"),
        pytest.param(Provider(discovery={"token_endpoint": None}), "where it is asked", id="no place"),
        pytest.param(Provider(discovery={"jwks_uri": "file:///keys"}), "where it is asked", id="a file"),
        pytest.param(
            Provider(discovery={"jwks_uri": "https://169.254.169.254/"}), "not a public address", id="a place inside"
        ),
    ],
)
def test_a_token_that_does_not_hold_lets_nobody_in(relay: Relay, provider: Provider, words: str) -> None:
    """One sentence, and no session."""
    browser = a_browser(relay, provider)
    first = browser.get("/login")
    if first.status == 303:
        provider.log_in(first.headers["location"])
        first = browser.come_back()

    assert words in first.body.decode()
    assert first.status in {400, 403}
    assert [] == [one for one in relay.admin.tokens() if one.added_by == "service:login"]


def test_no_signature_and_a_shared_key_are_refused(relay: Relay) -> None:
    """`alg: none`, and an HMAC keyed with the provider's public key."""
    provider = Provider()
    browser = a_browser(relay, provider)
    for header in ({"alg": "none"}, {"alg": "HS256", "kid": "key-0"}):
        browser.begin()
        claims = jwt.decode(provider.token(), options={"verify_signature": False})
        parts = [base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=").decode() for one in (header, claims)]
        provider.forged = f"{'.'.join(parts)}."
        assert browser.refused(browser.come_back(), "a way that is not taken")


def test_keys_are_rotated(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is not known is fetched, once in a while, and an old one that is gone is not taken any more."""
    moment = [1000.0]
    monkeypatch.setattr("batonpass.server.login.provider.time.monotonic", lambda: moment[0])
    provider = Provider()
    browser = a_browser(relay, provider)
    first = browser.log_in().status
    provider.key, provider.published = 1, (1,)
    too_soon = browser.log_in().status
    moment[0] += 31
    second = browser.log_in().status
    provider.key = 0
    moment[0] += 31
    old = browser.log_in().status

    assert [303, 403, 303, 403] == [first, too_soon, second, old]
    assert (3, 1) == (provider.fetched.count("/keys"), provider.fetched.count("/.well-known/openid-configuration"))
    assert 2 == len(KEYS)


def test_a_login_is_finished_once_in_its_own_browser_and_in_time(relay: Relay) -> None:
    """Whoever is sent somebody else's link does not come in as them."""
    provider = Provider()
    mine, other = a_browser(relay, provider), None
    mine.begin()
    stolen = dict(mine.cookies)
    mine.cookies.clear()
    assert mine.refused(mine.come_back(), "another browser")
    mine.cookies = stolen
    assert mine.refused(mine.come_back(), "finished before")
    assert mine.refused(mine.come_back(state="made-up"), "not begun here")
    assert other is None


def test_a_code_that_the_provider_does_not_know(relay: Relay) -> None:
    """And a provider that says no."""
    browser = a_browser(relay)
    browser.begin()
    assert browser.refused(browser.come_back(code="guessed"), "gave no token")
    browser.begin()
    denied = browser.get(f"/login/callback?error=access_denied&state={browser.provider.asked['state']}")
    assert browser.refused(denied, "did not let you in")


def test_our_secret_is_sent_to_the_provider_alone(relay: Relay) -> None:
    """As the standard says; a wrong one is refused there."""
    settings = LoginSettings(issuer=ISSUER, client_id=CLIENT, roles=ROLES)
    right = Browser(relay, Provider(secret="hunter2"), settings, "hunter2")
    wrong = Browser(relay, Provider(secret="hunter2"), settings, "hunter3")

    assert 303 == right.log_in().status
    answer = wrong.log_in()
    assert ("gave no token" in answer.body.decode(), b"hunter" in answer.body) == (True, False)


def test_an_address_has_to_be_verified_to_be_a_name(relay: Relay) -> None:
    """Anybody may claim any address at some providers."""
    provider = Provider(claims={"email": "ana@example.org", "email_verified": False})
    browser = a_browser(relay, provider, principal_claim="email")
    assert browser.refused(browser.log_in(), "has not verified")
    provider.claims["email_verified"] = True

    assert 303 == browser.log_in().status
    assert "user:ana@example.org" == relay.admin.tokens()[0].principal


def test_the_settings_are_read_and_mistakes_are_named(tmp_path: Path) -> None:
    """With the line; nobody logs in as an agent."""
    file = tmp_path / "batonpass.toml"
    good = f'[login]\nissuer = "{ISSUER}"\nclient_id = "{CLIENT}"\nsecret_variable = "S"\nprincipal_claim = "email"\n'
    row = '[[login.roles]]\nclaim = "groups"\nvalue = "ops"\nrole = "operator"\n'
    file.write_text(good + row)
    read = read_login(file)
    file.write_text("")

    assert read is not None
    assert (ISSUER, "S", "email", (ROLES[1],)) == (read.issuer, read.secret_variable, read.principal_claim, read.roles)
    assert (None, None) == (read_login(None), read_login(file))
    wrong = {
        good: "are missing",
        good + row.replace("operator", "agent"): "nobody logs in as agent",
        good + row.replace("operator", "king"): "is not one of",
        good + row.replace('value = "ops"\n', ""): "value is missing",
        good.replace(ISSUER, "accounts") + row: "URL of a provider",
        good + 'scopes = ["email"]\n' + row: "openid is missing",
        "[login]\nclient_id = 'x'\n": "needs issuer",
        good + "color = 'red'\n" + row: "no such key",
    }
    for text, words in wrong.items():
        file.write_text(text)
        with pytest.raises(PolicyFileError) as told:
            read_login(file)
        assert words in str(told.value)
