"""The OpenAPI document and its readable page, both made from the table of endpoints."""
