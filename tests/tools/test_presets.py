"""CMakePresets.json: every current NVIDIA GPU has code in the release build."""

import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Compute capability of NVIDIA's GPUs from Ampere on, those of the Jetson Orin
# (8.7) left out: binaries of other GPUs do not run there.
CAPABILITIES = ("8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1")
# Systems on a chip whose binaries are their own: PTX serves them as well.
ON_CHIP = ("11.0",)


def architectures(preset):
    """[(major, minor, has a binary, has PTX)] of a preset, in CMake's form."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())
    variables = next(
        p for p in presets["configurePresets"] if p["name"] == preset
    )["cacheVariables"]
    found = []
    for entry in variables["CMAKE_CUDA_ARCHITECTURES"].split(";"):
        number, kind = re.fullmatch(r"(\d+)(-real|-virtual)?", entry).groups()
        found.append((int(number[:-1]), int(number[-1]), kind != "-virtual",
                      kind != "-real"))
    return found


def how_served(capability, compiled):
    """"binary", "PTX" or None, by NVIDIA's rules: a binary serves its major
    capability from its minor one on, PTX every capability from its own on."""
    major, minor = map(int, capability.split("."))
    if capability not in ON_CHIP and any(
        binary and a == major and b <= minor for a, b, binary, _ in compiled
    ):
        return "binary"
    if any(ptx and (a, b) <= (major, minor) for a, b, _, ptx in compiled):
        return "PTX"
    return None


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_release_serves(capability):
    expected = "PTX" if capability in ON_CHIP else "binary"
    assert how_served(capability, architectures("release")) == expected


def test_release_serves_what_comes_later():
    assert how_served("13.0", architectures("release")) == "PTX"


def test_release_says_which_gpus():
    presets = json.loads((ROOT / "CMakePresets.json").read_text())
    text = next(p for p in presets["configurePresets"]
                if p["name"] == "release")["description"]
    for major, minor, _, _ in architectures("release"):
        assert f"{major}{minor}: " in text


@pytest.mark.parametrize(
    "capability, compiled, expected",
    [
        ("8.6", [(8, 0, True, False)], "binary"),
        ("8.0", [(8, 6, True, False)], None),
        ("9.0", [(8, 0, True, False)], None),
        ("9.0", [(8, 0, True, True)], "PTX"),
        ("10.3", [(10, 0, True, False)], "binary"),
        ("10.0", [(12, 0, True, True)], None),
        ("11.0", [(10, 0, True, True), (11, 0, True, False)], "PTX"),
        ("12.1", [(12, 0, False, True)], "PTX"),
    ],
)
def test_rules(capability, compiled, expected):
    assert how_served(capability, compiled) == expected


def test_tests_are_built_for_one_architecture():
    """Where no GPU is found and nothing is asked for."""
    assert [a[:2] for a in architectures("dev")] == [(9, 0)]
    text = (ROOT / "tools" / "lib" / "cuda.sh").read_text()
    assert 'echo "${found:-90-real}"' in text
