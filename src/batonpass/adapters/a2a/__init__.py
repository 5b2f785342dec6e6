"""A2A agents of any framework as targets of handoffs. Needs no extra: it speaks JSON over our own requests."""

from batonpass.adapters.a2a.remote_agent import RemoteAgent as RemoteAgent
from batonpass.adapters.a2a.remote_card import card_digest as card_digest
