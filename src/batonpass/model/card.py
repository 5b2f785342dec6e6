"""An agent's card: what it is for and what it can take."""

from dataclasses import dataclass

from batonpass.model.checks import require_media_type, require_text, require_texts
from batonpass.model.ids import AgentId, require_agent


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What an agent says about itself; a part that is None is not known, and is not checked."""

    agent: AgentId
    description: str = ""
    skills: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    accepts: tuple[str, ...] | None = None  # media types of artifacts

    def __post_init__(self) -> None:
        require_agent("agent", self.agent)
        require_text("description", self.description, empty=True)
        for name in ("skills", "tools", "accepts"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, require_texts(name, given))
        for media_type in self.accepts or ():
            require_media_type("accepts", media_type)
