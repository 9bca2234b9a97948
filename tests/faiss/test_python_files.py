"""How FAISS's Python tests are found, loaded and run with our classes
(faiss_files.py): what needs no GPU."""

import os
import pathlib
import subprocess
import sys
import unittest

import faiss
import faiss_files
import pytest

import faiss_bits

LISTS = ("GpuIndexIVFFlat", "GpuIndexIVFPQ", "GpuIndexIVFScalarQuantizer")


def write(folder, text):
    """A file of tests in a source tree made up for it."""
    path = folder / "faiss" / "gpu" / "test" / "test_some.py"
    path.parent.mkdir(parents=True)
    path.write_text("import unittest\nimport faiss\n" + text)
    return path


def test_tests_of_all_lists_are_found():
    found = faiss_files.all_tests()
    assert len(set(found)) == len(found)
    for name in faiss_files.FILES:
        assert any(file == name for file, _ in found), name
    assert ("test_gpu_index_ivfsq.py", "TestSQ.test_8bit") in found
    text = "".join(
        (faiss_files.folder() / name).read_text() for name in faiss_files.FILES
    )
    assert all(f"faiss.{name}(" in text for name in LISTS)


@pytest.mark.skipif(
    faiss.__version__ != "1.7.3", reason="what is left out is of FAISS 1.7.3"
)
def test_what_is_left_out_is_there():
    for name, left_out in faiss_files.FILES.items():
        tests = faiss_files.tests_of(faiss_files.folder() / name)
        known = {*tests, *(test.partition(".")[0] for test in tests)}
        assert set(left_out) <= known, name
        # No test of inverted lists is among them.
        for test, text in tests.items():
            if faiss_files.is_left_out(name, test):
                assert not any(f"faiss.{one}(" in text for one in LISTS), test


def test_every_file_loads_with_our_classes():
    for name in faiss_files.FILES:
        if name.startswith("torch"):
            continue  # by torch, which must see a GPU
        module = faiss_files.load(faiss_files.folder() / name)
        for theirs, ours in faiss_files.OURS.items():
            assert getattr(module.faiss, theirs) is getattr(faiss_bits, ours)
        assert module.faiss.IndexIVFFlat is faiss.IndexIVFFlat
    # FAISS's module is as it was.
    assert faiss.GpuIndexIVFFlat.__name__ == "GpuIndexIVFFlat"


def test_with_the_drop_in_they_have_theirs():
    program = (
        "import faiss_files, faiss_bits.dropin\n"
        "module = faiss_files.load(faiss_files.folder() / 'test_gpu_index.py')\n"
        "print(module.faiss.GpuIndexIVFFlat.__name__, faiss_bits.dropin.status())\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "FAISS_BITS_TEST_WITH_DROPIN": "1",
    }
    environment.pop("FAISS_BITS_DROPIN", None)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=pathlib.Path(__file__).parent,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("GpuIndexIVFFlat ")
    assert "scans of inverted lists and k-selection are replaced" in done.stdout


def test_a_test_of_theirs_runs():
    path = faiss_files.folder() / "test_gpu_index.py"
    faiss_files.run(path, "EvalIVFPQAccuracy.test_mm")


def test_what_a_test_says_is_heard(tmp_path):
    path = write(
        tmp_path,
        """
class Some(unittest.TestCase):
    def setUp(self):
        self.name = faiss.GpuIndexIVFPQ.__name__

    def test_good(self):
        self.assertEqual(self.name, "GpuIndexBitsIVFPQ")

    def test_bad(self):
        self.assertEqual(self.name, "GpuIndexIVFPQ")

    def test_error(self):
        raise RuntimeError("of the test")

    @unittest.skipIf(True, "never")
    def test_skipped(self):
        pass

    def test_exceptions(self):
        def fail(error):
            raise error
        self.assertRaises(AssertionError, fail, AssertionError())
        self.assertRaises(AssertionError, fail, ValueError())
        with self.assertRaises(RuntimeError):
            fail(RuntimeError())
        self.assertRaises(RuntimeError, fail, ValueError())

    def helper(self):
        pass
""",
    )
    assert list(faiss_files.tests_of(path)) == [
        f"Some.test_{name}"
        for name in ("good", "bad", "error", "skipped", "exceptions")
    ]
    faiss_files.run(path, "Some.test_good")
    with pytest.raises(AssertionError, match="GpuIndexBitsIVFPQ"):
        faiss_files.run(path, "Some.test_bad")
    with pytest.raises(RuntimeError, match="of the test"):
        faiss_files.run(path, "Some.test_error")
    with pytest.raises(unittest.SkipTest, match="never"):
        faiss_files.run(path, "Some.test_skipped")
    with pytest.raises(ValueError):
        faiss_files.run(path, "Some.test_exceptions")
