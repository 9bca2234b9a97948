"""The classes of the compiled module with their Python manners. What makes or
returns an object of theirs imports this, so that none is seen unwrapped."""

from . import _build_info
from .class_wrappers import wrap_gpu_index, wrap_gpu_ivf_index
from .compiled import swigfaiss_bits
from .constructor_arguments import say_what_fits
from .fused_wrappers import (
    wrap_choice,
    wrap_fused_index,
    wrap_fused_ivf_index,
)
from .many_wrappers import (
    wrap_many_config,
    wrap_many_index,
    wrap_metric_space_shards,
)
from .metric_wrappers import wrap_gpu_metric_index, wrap_metric_index
from .search_parameters import (
    wrap_device_selector,
    wrap_ivf_search_parameters,
    wrap_search_parameters,
)

FusedChoice = swigfaiss_bits.FusedChoice
IndexFusedFlat = swigfaiss_bits.IndexFusedFlat
IndexFusedIVFFlat = swigfaiss_bits.IndexFusedIVFFlat

wrap_choice(FusedChoice)
wrap_fused_index(IndexFusedFlat)
wrap_fused_ivf_index(IndexFusedIVFFlat)

# Base before derived: a derived class looks at what its base has got.
IndexMetricSpace = swigfaiss_bits.IndexMetricSpace
IndexListOfClusters = swigfaiss_bits.IndexListOfClusters
IndexSSS = swigfaiss_bits.IndexSSS
for _the_class in (IndexMetricSpace, IndexListOfClusters, IndexSSS):
    wrap_metric_index(_the_class)
for _the_class in (
    IndexFusedFlat,
    IndexFusedIVFFlat,
    IndexListOfClusters,
    IndexSSS,
):
    say_what_fits(_the_class)

if _build_info.HAS_GPU:
    DeviceSelector = swigfaiss_bits.DeviceSelector
    GpuIndexBitsFlat = swigfaiss_bits.GpuIndexBitsFlat
    GpuIndexBitsFlatL2 = swigfaiss_bits.GpuIndexBitsFlatL2
    GpuIndexBitsFlatIP = swigfaiss_bits.GpuIndexBitsFlatIP
    GpuIndexBitsFlatConfig = swigfaiss_bits.GpuIndexBitsFlatConfig
    SearchParametersBitsFlat = swigfaiss_bits.SearchParametersBitsFlat
    SearchParametersBitsIVF = swigfaiss_bits.SearchParametersBitsIVF

    # Base before derived: a derived class looks at what its base has got.
    for _the_class in (GpuIndexBitsFlat, GpuIndexBitsFlatL2, GpuIndexBitsFlatIP):
        wrap_gpu_index(_the_class)
    GpuIndexBitsIVFFlat = swigfaiss_bits.GpuIndexBitsIVFFlat
    GpuIndexBitsIVFPQ = swigfaiss_bits.GpuIndexBitsIVFPQ
    GpuIndexBitsIVFScalarQuantizer = swigfaiss_bits.GpuIndexBitsIVFScalarQuantizer
    for _the_class in (
        GpuIndexBitsIVFFlat,
        GpuIndexBitsIVFPQ,
        GpuIndexBitsIVFScalarQuantizer,
    ):
        wrap_gpu_ivf_index(_the_class)
    GpuIndexBitsMetricSpace = swigfaiss_bits.GpuIndexBitsMetricSpace
    GpuIndexBitsListOfClusters = swigfaiss_bits.GpuIndexBitsListOfClusters
    GpuIndexBitsSSS = swigfaiss_bits.GpuIndexBitsSSS
    for _the_class in (
        GpuIndexBitsMetricSpace,
        GpuIndexBitsListOfClusters,
        GpuIndexBitsSSS,
    ):
        wrap_gpu_metric_index(_the_class)
    GpuIndexBitsManyConfig = swigfaiss_bits.GpuIndexBitsManyConfig
    GpuIndexBitsShards = swigfaiss_bits.GpuIndexBitsShards
    GpuIndexBitsReplicas = swigfaiss_bits.GpuIndexBitsReplicas
    wrap_many_config(GpuIndexBitsManyConfig)
    for _the_class in (GpuIndexBitsShards, GpuIndexBitsReplicas):
        wrap_many_index(_the_class)
    GpuIndexBitsMetricSpaceShards = swigfaiss_bits.GpuIndexBitsMetricSpaceShards
    wrap_metric_space_shards(GpuIndexBitsMetricSpaceShards)
    for _the_class in (
        GpuIndexBitsFlat,
        GpuIndexBitsFlatL2,
        GpuIndexBitsFlatIP,
        GpuIndexBitsIVFFlat,
        GpuIndexBitsIVFPQ,
        GpuIndexBitsIVFScalarQuantizer,
        GpuIndexBitsListOfClusters,
        GpuIndexBitsSSS,
    ):
        say_what_fits(_the_class)
    wrap_device_selector(DeviceSelector)
    wrap_search_parameters(SearchParametersBitsFlat)
    wrap_ivf_search_parameters(SearchParametersBitsIVF)
