"""Classes whose base classes faiss.contrib.torch_utils has changed before
faiss_bits was imported."""

import os
import subprocess
import sys
import textwrap

import pytest


def run(program):
    """Runs a program of its own, as imports cannot be undone."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_numpy_arrays():
    # torch_utils only names torch's types where it is imported.
    run(
        """
        import sys
        import types

        import faiss
        import numpy as np

        if "torch" not in sys.modules:
            torch = types.ModuleType("torch")
            torch.Tensor = type("Tensor", (), {})
            sys.modules["torch"] = torch
        import faiss.contrib.torch_utils
        import faiss_bits

        x = np.random.default_rng(1).standard_normal((500, 16)).astype("float32")
        indexes = [faiss_bits.IndexFusedFlat(16)]
        indexes.append(
            faiss_bits.IndexFusedIVFFlat(faiss.IndexFlatL2(16), 16, 4)
        )
        indexes[1].nprobe = 4
        for index in indexes:
            index.train(x)
            index.add(x)
            D, I = index.search(x[:7], 3)
            assert (I[:, 0] == np.arange(7)).all(), I
            assert (index.assign(x[:7], 1).ravel() == np.arange(7)).all()
            lims, D, I = index.range_search(x[:7], 1e-6)
            assert (I == np.arange(7)).all() and len(lims) == 8
        assert (indexes[0].reconstruct(3) == x[3]).all()
        assert (indexes[0].reconstruct_n(2, 4) == x[2:6]).all()
        """
    )


@pytest.mark.parametrize("lists", ["", "IVF"])
def test_tensors(torch, lists):
    run(
        f"""
        import faiss
        import torch
        import faiss.contrib.torch_utils
        import faiss_bits

        torch.manual_seed(1)
        x = torch.randn(2000, 16, device="cuda")
        res = faiss.StandardGpuResources()
        if "{lists}":
            index = faiss_bits.GpuIndexBitsIVFFlat(res, 16, 4)
            index.nprobe = 4
        else:
            index = faiss_bits.GpuIndexBitsFlatL2(res, 16)
        ids = torch.arange(2000, device="cuda")
        index.train(x)
        index.add(x)
        D, I = index.search(x[:7], 3)
        assert (I[:, 0] == ids[:7]).all(), I
        D, I = index.search(x[:7].cpu().numpy(), 3)
        assert (I[:, 0] == ids[:7].cpu().numpy()).all(), I
        if "{lists}":
            index.reset()
            index.add_with_ids(x, ids + 5)
            assert (index.search(x[:7], 3)[1][:, 0] == ids[:7] + 5).all()
        """
    )
