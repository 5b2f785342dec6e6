"""An agent's card: what it is for and what it can take."""

from msgspec import Struct
from msgspec.structs import force_setattr

from batonpass.model.base.checks import require_media_type, require_text, require_texts
from batonpass.model.base.ids import AgentId, require_agent
from batonpass.model.grants.scope import Scope
from batonpass.model.grants.scope_text import read_scope


class Card(Struct, frozen=True, kw_only=True):
    """What an agent says about itself; a part that is None is not known, and is not checked."""

    agent: AgentId
    description: str = ""
    skills: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    accepts: tuple[str, ...] | None = None  # media types of artifacts
    ceiling: tuple[str, ...] | None = None  # permits: what it may ever hold, whoever grants it

    def __post_init__(self) -> None:
        require_agent("agent", self.agent)
        require_text("description", self.description, empty=True)
        for name in ("skills", "tools", "accepts", "ceiling"):
            if (given := getattr(self, name)) is not None:
                force_setattr(self, name, require_texts(name, given))
        for media_type in self.accepts or ():
            require_media_type("accepts", media_type)
        read_scope(self.ceiling or ())

    @property
    def most(self) -> Scope | None:
        """Return what it may ever hold; None if nobody said."""
        return None if self.ceiling is None else read_scope(self.ceiling)
