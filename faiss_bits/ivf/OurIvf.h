#pragma once

#include <faiss/gpu/GpuIndex.h>

#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFPQ.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFScalarQuantizer.h"

/// Not part of the API.
namespace faiss_bits::gpu::detail {

/// Calls f(index) with the index as the class of ours that it is, of those of
/// inverted lists. False if it is none.
template <class F>
bool asOurIvf(faiss::gpu::GpuIndex& index, const F& f) {
    const auto is = [&]<class Ours>(Ours*) {
        auto* ours = dynamic_cast<Ours*>(&index);
        if (ours) {
            f(*ours);
        }
        return ours != nullptr;
    };
    return is(static_cast<GpuIndexBitsIVFFlat*>(nullptr)) ||
            is(static_cast<GpuIndexBitsIVFScalarQuantizer*>(nullptr)) ||
            is(static_cast<GpuIndexBitsIVFPQ*>(nullptr));
}

/// Whether it is one of these.
inline bool isOurIvf(faiss::gpu::GpuIndex& index) {
    return asOurIvf(index, [](auto&) {});
}

} // namespace faiss_bits::gpu::detail
