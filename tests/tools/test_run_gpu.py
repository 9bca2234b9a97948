"""tools/run_gpu.sh and tools/lib/gpu_tests.sh with made-up programs: a driver that
has the multi-process service, or has none, and tests that pass, fail or skip."""

import os
import pathlib
import shutil
import subprocess

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"

PASSES = 'echo "[  PASSED  ] 2 tests."'
SKIPS = 'echo "[  PASSED  ] 0 tests."; echo "[  SKIPPED ] A.B (0 ms)"'
FAILS = 'echo "[  PASSED  ] 1 test."; echo "[  FAILED  ] 1 test, listed:"; exit 1'


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def packed(tmp_path):
    """An archive's folder, with a driver of 16 GB of free memory and 8 cores.
    The service's server is a line in the file `server`."""
    for name in ("run_gpu.sh", "lib/gpu_tests.sh", "lib/gpu_benchs.sh"):
        shutil.copy(TOOLS / name, tmp_path)
    script(tmp_path / "driver/nvidia-smi", 'echo "16800"')
    script(tmp_path / "driver/nproc", "echo 8")
    script(
        tmp_path / "driver/nvidia-cuda-mps-control",
        f"""cd '{tmp_path}'
if [[ ${{1:-}} == -d ]]; then
    echo "start ${{CUDA_VISIBLE_DEVICES:-all}}" >>server
    [[ -d $CUDA_MPS_PIPE_DIRECTORY ]]
else
    cat >>server
fi""",
    )
    script(tmp_path / "tests/bin/test_device", PASSES)
    return tmp_path


def run(packed, **environment):
    inherited = {k: v for k, v in os.environ.items() if "FAISS_BITS" not in k}
    result = subprocess.run(
        ["bash", "run_gpu.sh", "tests", "out"],
        cwd=packed,
        env={**inherited, "PATH": f"{packed}/driver:{os.environ['PATH']}",
             **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    server = packed / "server"
    return result, server.read_text() if server.exists() else ""


def test_side_by_side(packed):
    # Each waits for the other: it passes only beside it.
    for name, other in ("ab", "ba"):
        script(
            packed / f"tests/bin/test_{name}",
            f"""cd '{packed}'; touch is_{name}
for i in {{1..100}}; do
    [[ -e is_{other} ]] && {PASSES} && exit 0
    sleep 0.1
done
exit 1""",
        )
    script(packed / "tests/bin/test_many_large",
           f'[[ -z ${{CUDA_MPS_PIPE_DIRECTORY:-}} ]] && {PASSES}')
    result, server = run(packed, CUDA_VISIBLE_DEVICES="3")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "programs at a time: 4" in result.stdout
    assert server == "start all\nquit\n"
    for name in ("device", "a", "b", "many_large"):
        assert f"test_{name} " in result.stdout
    assert result.stdout.count("passed (2 passed)") == 4
    assert not list((packed / "out").glob("*.status"))


def test_failed_and_skipped_are_not_passed(packed):
    script(packed / "tests/bin/test_bad", FAILS)
    script(packed / "tests/bin/test_empty", SKIPS)
    result, server = run(packed)
    assert result.returncode == 1
    assert "FAILED (1) (1 passed,1 failed)" in result.stdout
    assert "ALL SKIPPED" in result.stdout and "skipped: A.B" in result.stdout
    assert server.endswith("quit\n")


@pytest.mark.parametrize("probe", [SKIPS, FAILS])
def test_one_at_a_time_where_the_service_does_not_work(packed, probe):
    script(packed / "tests/bin/test_device",
           f'if [[ -n ${{CUDA_MPS_PIPE_DIRECTORY:-}} ]]; then {probe}; fi\n{PASSES}')
    result, server = run(packed)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "programs at a time: 1" in result.stdout
    assert server == "start all\nquit\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda packed: script(packed / "driver/nvidia-cuda-mps-control", "exit 1"),
        lambda packed: script(packed / "driver/nvidia-smi", "exit 9"),
        lambda packed: script(packed / "driver/nvidia-smi", "echo 3000"),
    ],
)
def test_one_at_a_time_without_service_or_memory(packed, change):
    change(packed)
    result, _ = run(packed)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "programs at a time: 1" in result.stdout


def test_the_user_decides(packed):
    assert "at a time: 3" in run(packed, FAISS_BITS_TEST_JOBS="3")[0].stdout
    (packed / "server").unlink()
    result, server = run(packed, FAISS_BITS_TEST_JOBS="1")
    assert "at a time: 1" in result.stdout and server == ""
