"""Pack the built extension into a file that VS Code installs.

    python editors/vscode/vsix.py FOLDER FILE.vsix

FOLDER is the extension with `dist/extension.js` built. The same files give the same bytes.
"""

import json
import sys
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

FILES: Final = ("package.json", "README.md", "dist/extension.js")
_THEN: Final = (1980, 1, 1, 0, 0, 0)
_TYPES: Final = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">\
<Default Extension=".json" ContentType="application/json"/><Default Extension=".md" ContentType="text/markdown"/>\
<Default Extension=".js" ContentType="application/javascript"/>\
<Default Extension=".vsixmanifest" ContentType="text/xml"/></Types>
"""


def manifest(told: dict[str, object]) -> str:
    """Return the manifest of the package, from what package.json says."""
    name, version, publisher = (quoteattr(str(told[key])) for key in ("name", "version", "publisher"))
    engine = quoteattr(str(dict(told["engines"])["vscode"]))  # type: ignore[call-overload]
    words = {key: quoteattr(str(told[key]))[1:-1] for key in ("displayName", "description")}
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">\n'
        f'<Metadata><Identity Language="en-US" Id={name} Version={version} Publisher={publisher}/>\n'
        f"<DisplayName>{words['displayName']}</DisplayName><Description>{words['description']}</Description>\n"
        f'<Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/></Properties></Metadata>\n'
        '<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation><Dependencies/>\n'
        '<Assets><Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>'
        "</Assets>\n</PackageManifest>\n"
    )


def pack(folder: Path, to: Path) -> None:
    """Write the package."""
    told = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    parts = {"extension.vsixmanifest": manifest(told).encode(), "[Content_Types].xml": _TYPES.encode()}
    parts |= {f"extension/{name}": (folder / name).read_bytes() for name in FILES}
    with ZipFile(to, "w", ZIP_DEFLATED) as package:
        for name, data in parts.items():
            package.writestr(ZipInfo(name, _THEN), data, ZIP_DEFLATED)


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
