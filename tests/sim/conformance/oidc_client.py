"""The simulated provider of OpenID Connect, as Authlib sees it: its client, its keys, its check of ID tokens."""

import asyncio
import sys
from urllib.parse import parse_qs, quote_plus, urlsplit

import httpx
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import OAuth2Client, OAuthError
from authlib.jose import JsonWebKey, JsonWebToken
from authlib.oidc.core import CodeIDToken, UserInfo
from authlib.oidc.discovery import OpenIDProviderMetadata, get_well_known_url

from checks import check, equal, run

BACK = "http://localhost:1/callback"


class Provider:
    def __init__(self, issuer, client_id, secret):
        self.issuer, self.client_id, self.secret = issuer, client_id, secret
        self.metadata = httpx.get(get_well_known_url(issuer, external=True)).json()

    def client(self, method):
        # RFC 6749 has the header's parts encoded as in a form, which Authlib leaves to its caller.
        encoded = method == "client_secret_basic"
        return OAuth2Client(
            self.client_id,
            quote_plus(self.secret) if encoded else self.secret,
            token_endpoint_auth_method=method,
            redirect_uri=BACK,
            scope="openid email profile",
            code_challenge_method="S256",
        )

    def answer(self, client, **more):
        """Sends a browser there; returns the address that it is sent back to."""
        url, state = client.create_authorization_url(self.metadata["authorization_endpoint"], **more)
        told = httpx.get(url)
        equal(told.status_code, 302)
        back = told.headers["location"]
        pairs = parse_qs(urlsplit(back).query)
        equal((pairs["state"], pairs["iss"]), ([state], [self.issuer]))
        return back, state

    def login(self, method="client_secret_basic"):
        client = self.client(method)
        nonce, verifier = generate_token(), generate_token(48)
        back, state = self.answer(client, nonce=nonce, code_verifier=verifier)
        token = client.fetch_token(
            self.metadata["token_endpoint"], authorization_response=back, state=state, code_verifier=verifier
        )
        return client, token, nonce


@check("the discovery document is valid")
def discovery(provider):
    OpenIDProviderMetadata(provider.metadata).validate()
    equal(provider.metadata["issuer"], provider.issuer)


@check("a code is redeemed with PKCE, and the ID token is signed and says what it has to")
def signed(provider):
    for method in ["client_secret_basic", "client_secret_post"]:
        _, token, nonce = provider.login(method)
        keys = JsonWebKey.import_key_set(
            {"keys": [key for key in httpx.get(provider.metadata["jwks_uri"]).json()["keys"] if key["kty"] != "AKP"]}
        )
        claims = JsonWebToken(["RS256", "ES256"]).decode(
            token["id_token"],
            keys,
            claims_cls=CodeIDToken,
            claims_options={"iss": {"values": [provider.issuer]}},
            claims_params={"nonce": nonce, "client_id": provider.client_id},
        )
        claims.validate()
        equal((claims["sub"], claims["email"], claims["email_verified"]), ("ada-1", "ada@example.org", True))


@check("facts about the person are told to whoever has their token")
def userinfo(provider):
    client, _, _ = provider.login()
    told = UserInfo(client.get(provider.metadata["userinfo_endpoint"]).json())
    equal((told.sub, told.email), ("ada-1", "ada@example.org"))
    equal(httpx.get(provider.metadata["userinfo_endpoint"]).status_code, 401)


@check("a code is good once, for its client, its verifier and its address")
def once(provider):
    def refused(expected, secret=None, twice=False, **more):
        client = provider.client("client_secret_post")
        verifier = generate_token(48)
        back, state = provider.answer(client, code_verifier=verifier)
        given = {"authorization_response": back, "state": state, "code_verifier": verifier}
        if twice:
            client.fetch_token(provider.metadata["token_endpoint"], **given)
        client.client_secret = secret or provider.secret
        try:
            client.fetch_token(provider.metadata["token_endpoint"], **{**given, **more})
        except OAuthError as error:
            equal(error.error, expected)
        else:
            raise AssertionError(f"{more} was accepted")

    refused("invalid_grant", twice=True)
    refused("invalid_grant", code_verifier=generate_token(48))
    refused("invalid_grant", redirect_uri="http://localhost:2/callback")
    refused("invalid_client", secret="wrong")


sys.exit(asyncio.run(run("OpenID Connect provider", Provider(*sys.argv[1:]))))
