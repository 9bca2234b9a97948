#pragma once

#include <faiss/gpu/GpuIndexFlat.h>

namespace faiss_bits::gpu {

/// Options of GpuIndexBitsFlat: FAISS's own, and bfloat16.
///
/// device       GPU that holds the vectors and runs the searches, default 0
/// useFloat16   store vectors as float16 (half the memory; in plain searches
///              queries are rounded to float16 too), default false
/// useBFloat16  the same with bfloat16, which has the range of float32 and 8
///              bits of precision; not both of them
/// memorySpace  Device (default) or Unified
/// keepSearchImage  keep the 16-bit copy of the vectors that certified searches
///              use (2.1 d + 38 bytes a vector, by L2 d more for long ones,
///              docs/exact.md), until the vectors change; two where range
///              searches follow k-NN ones. Made by the first search of more
///              than 16 queries, or by the fifth of fewer, if they are 4 or
///              more or d >= 48. false: more than 16 queries make it anew in
///              temporary memory, others go without. So with the boxes range
///              searches in up to 4 dimensions use (17 to 21 bytes a vector);
///              false: they go without. Default true
///
/// With useBFloat16 FAISS's own code finds the number of the vectors, but not
/// the vectors, behind getGpuData():
///   copyFrom through a pointer to the base class stores float32; every call
///            but reset() and our copyFrom then throws
///   GpuIndexIVFFlat takes it as coarse quantizer (with cuVS it throws), but
///            not GpuIndexIVFPQ: that reads the centroids behind getGpuData(),
///            and throws where it uses precomputed tables, but ends the process
///            where it does not
///
/// FAISS's GpuIndexFlatConfig converts to it, so that a program which names our
/// classes in place of FAISS's need not change its configs.
struct GpuIndexBitsFlatConfig : public faiss::gpu::GpuIndexFlatConfig {
    GpuIndexBitsFlatConfig() = default;
    /// FAISS's options, with the defaults of ours.
    GpuIndexBitsFlatConfig(const faiss::gpu::GpuIndexFlatConfig& config)
            : faiss::gpu::GpuIndexFlatConfig(config) {}

    bool useBFloat16 = false;    ///< not with useFloat16
    bool keepSearchImage = true; ///< false: less memory, slower searches
};

} // namespace faiss_bits::gpu
