"""Logging in to the page by a provider of OpenID Connect; needs the extra `oidc`."""
