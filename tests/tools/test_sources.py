"""Every test source is built: a file that no CMakeLists.txt names passes as
little as it fails."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_every_test_is_in_a_program():
    folders = [ROOT / "tests", ROOT / "research" / "tests"]
    sources = [
        path
        for folder in folders
        for pattern in ("Test*.cpp", "Test*.cu")
        for path in folder.rglob(pattern)
    ]
    assert len(sources) > 50
    lists = {
        folder: "\n".join(
            path.read_text() for path in folder.rglob("CMakeLists.txt")
        )
        for folder in folders
    }
    forgotten = [
        str(path.relative_to(ROOT))
        for path in sources
        if not any(
            re.search(rf"\b{re.escape(path.name)}", text)
            for text in lists.values()
        )
    ]
    assert forgotten == []
