"""An agent's card: its purpose, its skills and tools, and the inputs it accepts."""

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance, require_media_type, require_text, require_texts
from batonpass.model.base.ids import AgentId, require_agent
from batonpass.model.grants.scope import Scope
from batonpass.model.grants.scope_text import read_scope


class Card(Struct, frozen=True, kw_only=True):
    """An agent's description of itself. A field that is None is unknown, and is not checked."""

    agent: AgentId
    description: str = ""
    skills: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    accepts: tuple[str, ...] | None = None  # media types of artifacts
    ceiling: tuple[str, ...] | None = None  # permits: the most that anybody may ever grant to it
    public: bool = False  # over A2A, callers without a token are let in too

    def __post_init__(self) -> None:
        require_agent("agent", self.agent)
        require_text("description", self.description, empty=True)
        for name in ("skills", "tools", "accepts", "ceiling"):
            if (given := getattr(self, name)) is not None:
                force_setattr(self, name, require_texts(name, given))
        for media_type in self.accepts or ():
            require_media_type("accepts", media_type)
        read_scope(self.ceiling or ())
        if require_instance("public", self.public, bool) and not self.ceiling:
            raise InvalidValueError("public", "takes a ceiling: callers without a token hold nothing else")

    @property
    def most(self) -> Scope | None:
        """Return the ceiling as a scope; None if the card has none."""
        return None if self.ceiling is None else read_scope(self.ceiling)
