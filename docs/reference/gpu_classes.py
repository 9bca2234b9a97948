"""The Python classes of the GPU part for builds without it, so that the reference
has them on every machine: proxies that SWIG makes of the same headers, without
the C++ behind them, in the manners of faiss_bits.class_wrappers. tests/docs holds
them against the real ones of a GPU build."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import MagicMock

_ROOT = Path(__file__).resolve().parents[2]
_MODULE = "gpu_reference"
_INTERFACE = """
%module gpu_reference
#pragma SWIG nowarn=302,314,315,325,362,389,401,403,503,509
%include <stdint.i>
typedef uint64_t size_t;
namespace faiss_bits { typedef int64_t idx_t; }
%include "kernels/common/SearchMode.h"
%include "faiss_bits/flat/GpuIndexBitsFlatConfig.h"
%ignore faiss_bits::gpu::detail::resourcesOf;
%ignore faiss_bits::gpu::detail::maxResultsOf;
%ignore *::rangeSearchOnDevice;
%include "faiss_bits/flat/SearchParametersBitsFlat.h"
%include "faiss_bits/flat/GpuIndexBitsFlat.h"
%include "faiss_bits/flat/GpuIndexBitsFlatSubclasses.h"
%include "faiss_bits/ivf/SearchParametersBitsIVF.h"
%include "faiss_bits/ivf/GpuIndexBitsIVF.h"
%template(GpuIndexBitsIVFOfFlat)
    faiss_bits::gpu::GpuIndexBitsIVF<faiss::gpu::GpuIndexIVFFlat>;
%template(GpuIndexBitsIVFOfPQ)
    faiss_bits::gpu::GpuIndexBitsIVF<faiss::gpu::GpuIndexIVFPQ>;
%template(GpuIndexBitsIVFOfScalarQuantizer)
    faiss_bits::gpu::GpuIndexBitsIVF<faiss::gpu::GpuIndexIVFScalarQuantizer>;
%include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
%include "faiss_bits/ivf/GpuIndexBitsIVFPQ.h"
%include "faiss_bits/ivf/GpuIndexBitsIVFScalarQuantizer.h"
%include "faiss_bits/many/DeviceList.h"
%ignore faiss_bits::gpu::GpuIndexBitsMany::at;
%include "faiss_bits/many/GpuIndexBitsMany.h"
%include "faiss_bits/many/GpuIndexBitsShards.h"
%include "faiss_bits/many/GpuIndexBitsReplicas.h"
%include "faiss_bits/metric_space/GpuIndexBitsMetricSpace.h"
%include "faiss_bits/metric_space/GpuIndexBitsListOfClusters.h"
%include "faiss_bits/metric_space/GpuIndexBitsSSS.h"
%include "faiss_bits/many/GpuIndexBitsMetricSpaceShards.h"
%ignore faiss_bits::gpu::DeviceSelector::bits;
%ignore faiss_bits::gpu::DeviceSelector::ids;
%include "faiss_bits/flat/DeviceSelector.h"
"""


def _proxies(root):
    """The module that SWIG writes, on a compiled part that has every name."""
    with tempfile.TemporaryDirectory() as folder:
        interface = Path(folder, f"{_MODULE}.swig")
        interface.write_text(_INTERFACE)
        subprocess.run(
            ["swig", "-python", "-c++", "-doxygen", "-DSWIGWORDSIZE64",
             f"-I{root}", "-outdir", folder, "-o", f"{folder}/unused.cxx",
             str(interface)],
            check=True,
        )
        sys.modules[f"_{_MODULE}"] = MagicMock()
        spec = importlib.util.spec_from_file_location(
            _MODULE, Path(folder, f"{_MODULE}.py")
        )
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def _on(base, proxy):
    """The proxy's members in a class with the base that C++ gives it: of
    FAISS's GPU classes a CPU build has none, and the CPU's takes the same
    wrappers."""
    members = {
        name: value
        for name, value in vars(proxy).items()
        if name not in ("__dict__", "__weakref__")
    }
    return type(proxy.__name__, (base,), members)


def stand_ins(root=_ROOT):
    """{name: class} of the GPU classes."""
    import faiss

    from faiss_bits import (
        class_wrappers,
        many_wrappers,
        metric_wrappers,
        search_parameters,
    )

    module = _proxies(root)
    index = _on(faiss.IndexFlat, module.GpuIndexBitsFlat)
    selector = _on(faiss.IDSelector, module.DeviceSelector)
    classes = [
        index,
        _on(index, module.GpuIndexBitsFlatL2),
        _on(index, module.GpuIndexBitsFlatIP),
    ]
    for the_class in classes:
        class_wrappers.wrap_gpu_index(the_class)
    for base, proxy in (
        (faiss.IndexIVFFlat, module.GpuIndexBitsIVFFlat),
        (faiss.IndexIVFPQ, module.GpuIndexBitsIVFPQ),
        (faiss.IndexIVFScalarQuantizer, module.GpuIndexBitsIVFScalarQuantizer),
    ):
        inverted = _on(_on(base, proxy.__mro__[1]), proxy)
        class_wrappers.wrap_gpu_ivf_index(inverted)
        if "add_sa_codes" in vars(inverted):
            del inverted.add_sa_codes  # of the CPU's classes alone
        classes.append(inverted)
    parts = _on(faiss.Index, module.GpuIndexBitsMany)
    for proxy in (module.GpuIndexBitsShards, module.GpuIndexBitsReplicas):
        many = _on(parts, proxy)
        many_wrappers.wrap_many_index(many)
        classes.append(many)
    many = _on(faiss.Index, module.GpuIndexBitsMetricSpaceShards)
    many_wrappers.wrap_metric_space_shards(many)
    classes.append(many)
    many_wrappers.wrap_many_config(module.GpuIndexBitsManyConfig)
    classes.append(module.GpuIndexBitsManyConfig)
    metric_space = _on(faiss.Index, module.GpuIndexBitsMetricSpace)
    metric_wrappers.wrap_gpu_metric_index(metric_space)
    for proxy in (module.GpuIndexBitsListOfClusters, module.GpuIndexBitsSSS):
        the_class = _on(metric_space, proxy)
        metric_wrappers.wrap_gpu_metric_index(the_class)
        classes.append(the_class)
    search_parameters.wrap_device_selector(selector)
    params = _on(faiss.SearchParameters, module.SearchParametersBitsFlat)
    search_parameters.wrap_search_parameters(params)
    ivf_params = _on(faiss.SearchParametersIVF, module.SearchParametersBitsIVF)
    search_parameters.wrap_ivf_search_parameters(ivf_params)
    classes += [selector, params, ivf_params, module.GpuIndexBitsFlatConfig]
    return {the_class.__name__: the_class for the_class in classes}


def complete():
    """Puts them where a build without a GPU part has none."""
    import faiss_bits
    from faiss_bits import _build_info

    if not _build_info.HAS_GPU:
        vars(faiss_bits).update(stand_ins())
