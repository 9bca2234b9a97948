"""FAISS's own Python tests of GPU indexes, with our classes in place of its own,
or with its own on the drop-in library.

Nothing of FAISS's is copied: its files are loaded from its source tree, and what
they know as `faiss` is FAISS's module with the names in OURS bound to ours.

FAISS_BITS_TEST_FAISS_SOURCE  that tree, of the FAISS in use (CMakeLists.txt)
FAISS_BITS_TEST_WITH_DROPIN   not empty: the drop-in, and FAISS's classes
"""

import ast
import functools
import importlib.util
import os
import pathlib
import sys
import types
from unittest import mock

WITH_DROPIN = bool(os.environ.get("FAISS_BITS_TEST_WITH_DROPIN"))
if WITH_DROPIN:
    import faiss_bits.dropin  # before FAISS

import faiss  # noqa: E402
import pytest  # noqa: E402

import faiss_bits  # noqa: E402

sys.dont_write_bytecode = True  # in a source tree that is not ours

#: FAISS's name, and of what of ours it becomes the name. Functions for several
#: GPUs stay FAISS's: its tests change their results by GpuParameterSpace, which
#: knows no index of ours on several GPUs; tests/many has those.
CLASSES = {
    "GpuIndexFlat": "GpuIndexBitsFlat",
    "GpuIndexFlatIP": "GpuIndexBitsFlatIP",
    "GpuIndexFlatL2": "GpuIndexBitsFlatL2",
    "GpuIndexIVFFlat": "GpuIndexBitsIVFFlat",
    "GpuIndexIVFPQ": "GpuIndexBitsIVFPQ",
    "GpuIndexIVFScalarQuantizer": "GpuIndexBitsIVFScalarQuantizer",
    "index_cpu_to_gpu": "index_cpu_to_gpu",
}
# FAISS's aborts where there is no driver.
OURS = {"get_num_gpus": "get_num_gpus", **({} if WITH_DROPIN else CLASSES)}

#: Files of faiss/gpu/test, and their tests that are none of our classes, or ask
#: for what these have otherwise: a class, or one test of it.
FILES = {
    "test_gpu_basics.py": {
        "ReferencedObject.test_proxy": "on the CPU",
        "ReferencedObject.test_binary_flat": "vectors of bits",
        "TestAllPairwiseDistance": "FAISS's bfKnn",
        "TestGPUKmeans": "faiss.Kmeans, which names FAISS's classes itself",
        "TestGpuRef": "index_cpu_to_all_gpus, FAISS's",
        "TestKnn": "FAISS's bfKnn",
        "TestResidualQuantizer": "a factory of FAISS's indexes",
    },
    "test_gpu_index.py": {
        "EvalIVFPQAccuracy.test_mm": "on the CPU",
        "TestLSQIcmEncoder": "no index",
        "TestShardedFlat": "FAISS's shards, which take vectors once; ours go on",
    },
    "test_gpu_index_ivfsq.py": {},
    "test_gpu_index_serialize.py": {},
    "torch_test_contrib_gpu.py": {
        "TestTorchUtilsGPU.test_assign": "flat",
        "TestTorchUtilsGPU.test_lookup": "flat; search() takes D and I by name",
        "TestTorchUtilsGPU.test_range_search": "empty",
        "TestTorchUtilsGPU.test_reconstruct": "flat; reconstruct() makes arrays",
        "TestTorchUtilsGPU.test_remove_ids": "empty",
        "TestTorchUtilsGPU.test_sa_encode_decode": "empty",
        "TestTorchUtilsGPU.test_search_and_reconstruct": "empty",
        "TestTorchUtilsKnnGpu": "FAISS's knn_gpu",
        "TestTorchUtilsPairwiseDistanceGpu": "FAISS's pairwise_distance_gpu",
    },
}


def folder():
    """That of FAISS's tests; skips a file of ours where it is not known."""
    source = os.environ.get("FAISS_BITS_TEST_FAISS_SOURCE")
    if not source:
        pytest.skip(
            "FAISS_BITS_TEST_FAISS_SOURCE is not set: FAISS's source tree",
            allow_module_level=True,
        )
    return pathlib.Path(source) / "faiss" / "gpu" / "test"


def tests_of(path):
    """The tests of a file, "class.method" each, with their text; nothing runs."""
    text = path.read_text(encoding="utf-8")
    return {
        f"{node.name}.{one.name}": ast.get_source_segment(text, one)
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef)
        for one in node.body
        if isinstance(one, ast.FunctionDef) and one.name.startswith("test")
    }


def is_left_out(name, test):
    left_out = FILES[name]
    return test in left_out or test.partition(".")[0] in left_out


def all_tests():
    """(file, test) of those that run here."""
    return [
        (name, test)
        for name in FILES
        for test in tests_of(folder() / name)
        if not is_left_out(name, test)
    ]


def faiss_of_ours():
    """FAISS's module with our classes."""
    module = types.ModuleType("faiss")
    vars(module).update(vars(faiss))
    for theirs, ours in OURS.items():
        setattr(module, theirs, getattr(faiss_bits, ours))
    return module


@functools.lru_cache(maxsize=None)
def load(path):
    """A file of tests that knows our classes."""
    if path.name.startswith("torch"):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        if not torch.cuda.is_available():
            pytest.skip("torch sees no GPU")
    helpers = str(path.parents[3] / "tests")
    spec = importlib.util.spec_from_file_location(f"faiss_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    # Decorators ask for the number of GPUs.
    with mock.patch.object(faiss, "get_num_gpus", faiss_bits.get_num_gpus):
        with mock.patch.object(sys, "path", [helpers, *sys.path]):
            spec.loader.exec_module(module)
    module.faiss = faiss_of_ours()
    return module


def run(path, test):
    """Runs one test of a file; raises what it raises."""
    class_name, _, method = test.partition(".")
    case = getattr(load(path), class_name)(method)
    raises = case.assertRaises

    def our_raises(expected, *args, **kwargs):
        # FAISS's wrappers assert what ours name in a ValueError.
        if expected is AssertionError:
            expected = (AssertionError, ValueError)
        return raises(expected, *args, **kwargs)

    case.assertRaises = our_raises
    case.debug()
