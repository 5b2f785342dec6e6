"""The scanner's rules, for RE2 and lower-case text.

A rule matches the effect of words, not their author, so an article about injection matches too. A match is therefore
recorded and quarantined, never removed or refused. A score is the weight of one match, in thousandths.
"""

from typing import Final

from msgspec import Struct


class ScanRule(Struct, frozen=True):
    """A pattern with a stable id."""

    id: str
    score: int
    pattern: str


_ANY: Final = r"(?:[\s,]+\w+){0,3}?[\s,]+"  # up to three words in between
_EARLIER: Final = r"(?:previous|prior|above|earlier|preceding|foregoing|existing|original|initial|system|all)"
_ORDERS: Final = r"(?:instruction|direction|directive|prompt|rule|guideline|command|order|context|message|constraint)s?"

RULES: Final = (
    ScanRule(
        "override.ignore",
        900,
        rf"\b(?:ignore|disregard|forget|override|bypass|neglect|skip)\b{_ANY}{_EARLIER}\b(?:[\s,]+\w+){{0,3}}"
        rf"?[\s,]+{_ORDERS}\b",
    ),
    ScanRule(
        "override.everything",
        800,
        r"\b(?:ignore|disregard|forget)\s+(?:everything|anything|all|what)\b.{0,40}\b(?:above|before|said|"
        r"told|earlier|previously|so far)\b",
    ),
    ScanRule(
        "override.do-not-follow",
        800,
        rf"\b(?:do not|don't|stop|no longer)\s+(?:follow|obey|listen to|adhere to|comply with)\b{_ANY}(?:\w+"
        rf"\s+)?{_ORDERS}\b",
    ),
    ScanRule(
        "override.new-instructions",
        700,
        rf"\b(?:new|updated|real|actual|revised)\s+(?:system\s+)?{_ORDERS}\s*(?::|are\b|follow)",
    ),
    ScanRule(
        "override.german",
        900,
        r"\b(?:ignoriere?|ignorieren sie|vergiss|vergessen sie|missachte)\b.{0,40}\b(?:anweisung|instruktion"
        r"|vorgabe|befehl|regel)\w*",
    ),
    ScanRule(
        "override.french",
        900,
        r"\b(?:ignore[rz]?|oublie[rz]?|ne tene?z pas compte)\s+(?:de\s+)?(?:toutes?\s+)?(?:les|ces|tes|vos|"
        r"des)\b.{0,30}\b(?:instructions?|consignes?|directives?|r[eè]gles?)\b",
    ),
    ScanRule(
        "override.spanish",
        900,
        r"\b(?:ignora|ignore|ignorar|olvida|olvide|omite)\b.{0,40}\b(?:instrucciones|indicaciones|[oó]rdenes"
        r"|reglas)\b",
    ),
    ScanRule(
        "override.portuguese",
        900,
        r"\b(?:ignore|ignora|esque[cç]a|desconsidere)\b.{0,40}\b(?:instru[cç][oõ]es|ordens|regras)\b",
    ),
    ScanRule("override.italian", 900, r"\b(?:ignora|dimentica|trascura)\b.{0,40}\b(?:istruzioni|indicazioni|regole)\b"),
    ScanRule("override.russian", 900, r"(?:игнорируй|забудь|не обращай внимания).{0,40}(?:инструкц|указан|правил)"),
    ScanRule("override.chinese", 900, r"(?:忽略|无视|忘记|不要理会).{0,12}(?:指令|指示|提示|规则|说明)"),
    ScanRule("override.japanese", 900, r"(?:指示|命令|プロンプト|ルール).{0,10}(?:無視|忘れ)"),
    ScanRule(
        "role.you-are-now",
        600,
        r"\b(?:you are now|from now on,? you (?:are|will|must)|act as (?:if you (?:are|were)|an? (?:"
        r"unrestricted|different|new|evil))|pretend (?:to be|you are))\b",
    ),
    ScanRule(
        "role.jailbreak",
        900,
        r"\b(?:do anything now|dan mode|developer mode (?:enabled|on)|jailbr(?:eak|oken)|without (?:any )?(?"
        r":restrictions|filters|limitations)|unrestricted (?:mode|ai))\b",
    ),
    ScanRule("role.fake-turn", 800, r"(?:^|\n)\s*(?:###?\s*)?(?:system|assistant|developer)\s*(?:message|prompt)?\s*:"),
    ScanRule(
        "role.chat-markup",
        900,
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|\[/?inst\]|<</?sys>>|</?(?:system|"
        r"assistant)(?:-prompt|_prompt)?>",
    ),
    ScanRule(
        "role.authority",
        600,
        r"\b(?:this is|message from|as) (?:an? |the )?(?:system administrator|developer|openai|anthropic|"
        r"security team|your (?:creator|developer|operator))\b.{0,80}\b(?:must|need|require|authori[sz]ed|"
        r"allow|override|approv)",
    ),
    ScanRule(
        "leak.prompt",
        800,
        r"\b(?:reveal|show|print|repeat|output|tell me|display|leak|dump|return)\b.{0,40}\b(?:system prompt|"
        r"initial (?:prompt|instructions)|hidden (?:prompt|instructions)|your (?:instructions|prompt|rules|"
        r"configuration))\b",
    ),
    ScanRule(
        "leak.secret",
        800,
        r"\b(?:send|post|email|forward|upload|exfiltrat\w*|transmit|leak|print|reveal)\b.{0,60}\b(?:api[ _-]"
        r"?keys?|passwords?|credentials?|secrets?|access tokens?|private keys?|\.env|environment variables?)"
        r"\b",
    ),
    ScanRule("leak.image", 700, r"!\[[^\]]*\]\(https?://[^)\s]*\?[^)\s]*=(?:\{|\$|%7b|<)"),
    ScanRule(
        "hide.from-user",
        800,
        r"\b(?:do not|don't|never|without)\s+(?:tell|telling|mention|mentioning|inform|informing|notify|"
        r"notifying|reveal|revealing|alert|alerting)\b.{0,30}\b(?:user|human|anyone|anybody|operator|"
        r"customer|owner)\b",
    ),
    ScanRule(
        "hide.secretly",
        600,
        r"\b(?:secretly|silently|quietly|covertly)\s+(?:send|run|execute|call|delete|forward|copy|add|change"
        r"|transfer)\b",
    ),
    ScanRule(
        "act.instead",
        600,
        r"\b(?:instead|rather),?\s+(?:you (?:must|should|will)|please)?\s*(?:send|run|execute|delete|"
        r"transfer|forward|reply|respond|say|output|call)\b",
    ),
    ScanRule(
        "act.execute",
        700,
        r"\b(?:run|execute|eval)\b.{0,30}(?:rm\s+-rf|curl\s+[^|]{0,120}\|\s*(?:ba)?sh|wget\s+|powershell|os"
        r"\.system|subprocess)",
    ),
    ScanRule(
        "act.note-to-agent",
        700,
        r"\b(?:note|important|attention|message|instruction)s?\s+(?:to|for)\s+(?:the\s+|any\s+|all\s+)?(?:ai"
        r"|llm|assistant|agent|model|chatbot|language model)s?\b",
    ),
    ScanRule(
        "close.delimiter",
        600,
        r"\b(?:end of|begin(?:ning)? of)\s+(?:the\s+)?(?:system|user|data|context|document|untrusted|tool)\s"
        r"+(?:prompt|input|data|content|output|section)\b.{0,200}\b(?:now|must|instruction|ignore|follow)",
    ),
)
